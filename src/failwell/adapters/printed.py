"""Foreign exceptions and containers as text and items, without running into something endless.

The text of an exception is produced in two places only: where a rule reads the words of an SDK's exception, and
where a policy records them. It is complete before anything can be cut, so what an exception may print is weighed
first: its arguments, and the attributes of one whose `__str__` is written in Python. Nothing outside it can bound how
long such a function runs, so rules call only those of libraries that are known here. Subclasses of built-in containers are read by the methods of the built-in class, so that an
overridden `items` or `__iter__` is not called.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from itertools import islice
from sys import stdlib_module_names
from typing import Any, cast

from failwell.adapters.safe_getattr import safe_getattr

_ENDLESS = 200_000
_MOST_FIELDS = 200

_dict_items: Any = vars(dict)["items"]
_ITERATORS: tuple[tuple[type, Any], ...] = (
    (list, vars(list)["__iter__"]),
    (tuple, vars(tuple)["__iter__"]),
    (set, vars(set)["__iter__"]),
    (frozenset, vars(frozenset)["__iter__"]),
)

arguments_of: Any = BaseException.__dict__["args"].__get__
"""The arguments of an exception, read without calling code of its class."""


_attributes_of: Any = BaseException.__dict__["__dict__"].__get__
WRITTEN_IN_C = type(BaseException.__str__)


def printed(error: BaseException) -> str:
    """`str(error)`; empty if the text would be endless. Raises what the exception's `__str__` raises."""
    printer, arguments = type(error).__str__, arguments_of(error)
    if type(printer) is not WRITTEN_IN_C:
        is_endless = weighs((arguments, _attributes_of(error)), _ENDLESS)
    elif printer is BaseException.__str__ and len(arguments) == 1 and type(arguments[0]) is str:
        is_endless = False
    else:
        is_endless = weighs((arguments, safe_getattr(error, "filename")), _ENDLESS)
    if is_endless:
        return ""
    text = arguments_text(error) if _quotes_a_statement(type(error)) else str(error)
    # A subclass may say of itself what it likes: its length, and what is in it.
    return text if type(text) is str else str.__str__(text)


def arguments_text(error: BaseException) -> str:
    """What the built-in class prints of an exception: its arguments; empty if they are foreign objects, or too large."""
    arguments = arguments_of(error)
    plain = all(type(value) is str or type(value) is int for value in islice(arguments, _MOST_FIELDS))
    return "" if not plain or weighs(arguments, _ENDLESS) else BaseException.__str__(error)


def items_of(value: Mapping[Any, Any]) -> Iterable[tuple[Any, Any]]:
    """The items of a mapping; those of a `dict` by its own method, whatever a subclass overrides."""
    return _dict_items(value) if issubclass(type(value), dict) else value.items()


def sequence_of(value: object) -> Iterable[Any]:
    """The items of a foreign list, tuple or set by the method of the built-in class, whatever a subclass overrides."""
    for cls, items in _ITERATORS:
        if issubclass(type(value), cls):
            return items(value)
    return cast("Iterable[Any]", value)


@lru_cache(maxsize=1024)
def _quotes_a_statement(cls: type) -> bool:
    """Whether the class prints a statement and its parameters after its message, as SQLAlchemy's does."""
    return any(
        above.__name__ == "StatementError" and above.__module__ == "sqlalchemy.exc" for above in cls.__mro__
    )


def text_for_rules(error: BaseException) -> str:
    """What rules read of an exception: `printed`, or its arguments if nobody knows who wrote its `__str__`."""
    return printed(error) if _is_known_printer(type(error)) else arguments_text(error)


@lru_cache(maxsize=1024)
def _is_known_printer(cls: type) -> bool:
    """Whether the `__str__` of a class is written in C, or belongs to a library that is known here."""
    if type(cls.__str__) is WRITTEN_IN_C:
        return True
    from failwell.adapters.registry import HOMES

    author = next(above for above in cls.__mro__ if "__str__" in vars(above))
    library = author.__module__.partition(".")[0]
    return library in HOMES or library in stdlib_module_names


def weighs(value: object, limit: int) -> bool:
    """Whether printing `value` takes more than `limit` characters. A small object can contain itself many times."""
    room = limit
    waiting: list[object] = [value]
    while waiting and room >= 0:
        item = waiting.pop()
        room -= 16
        kind = type(item)
        if issubclass(kind, str):
            room -= str.__len__(cast("str", item))
        elif issubclass(kind, bytes | bytearray):
            room -= len(cast("bytes", item)) if kind is bytes or kind is bytearray else 0
        elif issubclass(kind, dict):
            pairs = islice(items_of(cast("dict[object, object]", item)), 1 + max(room, 0) // 2)
            for pair in pairs:
                room -= 2
                waiting += pair
        elif issubclass(kind, list | tuple | set | frozenset):
            inside = list(islice(sequence_of(item), 1 + max(room, 0) // 2))
            room -= 2 * len(inside)
            waiting += inside
        elif issubclass(kind, BaseException):
            waiting.append(arguments_of(item))
        elif is_dataclass(kind):
            waiting += [safe_getattr(item, field.name) for field in fields(kind)[:_MOST_FIELDS]]
    return room < 0
