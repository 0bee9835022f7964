"""Foreign exceptions and containers as text and items, without running into something endless.

The text of an exception is produced in two places only: where a rule reads the words of an SDK's exception, and
where a policy records them. Built-in exceptions print all their arguments before anything can be cut, so those are
weighed first. A `__str__` that is written in Python is called once and its result is cut; nothing outside it can
bound how long it runs. Subclasses of built-in containers are read by the methods of the built-in class, so that an
overridden `items` or `__iter__` is not called.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from itertools import islice
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


def printed(error: BaseException) -> str:
    """`str(error)`; empty if the text would be endless. Raises what the exception's `__str__` raises."""
    if _prints_its_arguments(error) and weighs(
        (arguments_of(error), safe_getattr(error, "filename")), _ENDLESS
    ):
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


def _prints_its_arguments(error: BaseException) -> bool:
    printer = type(error).__str__
    arguments = arguments_of(error)
    if printer is BaseException.__str__ and len(arguments) == 1 and type(arguments[0]) is str:
        return False
    # Written in C, as those of all built-in exceptions are: it makes the whole text before it can be cut.
    return type(printer) is type(BaseException.__str__)


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
