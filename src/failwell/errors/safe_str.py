"""Foreign exceptions, values and containers as text and items, without running code of an unknown author.

How long a foreign `__str__`, `__repr__`, `items` or iterator runs cannot be bounded, and its text is complete before
anything can be cut. So `str(error)` is called only if the method belongs to Python or to a library that is known here, and
if everything that it may print is plain data, or printed by such methods, and not too large. Of any other exception the
arguments are printed, with the names of types in place of what is not plain. Subclasses of built-in containers are
read by the methods of the built-in class. An author writes a `Fault` for us to print: its text is his word.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from gc import get_referents
from itertools import islice
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MemberDescriptorType, TracebackType
from typing import Any, cast

from failwell.errors.causes import instance_dict, type_name
from failwell.errors.fault import Fault
from failwell.errors.foreign_code import (
    adds_no_code,
    definer,
    has_ordinary_class,
    is_known,
    is_pythons,
    is_readable,
    members_of,
    runs_known_code,
)
from failwell.errors.foreign_objects import safe_call

_ENDLESS = 200_000
_LARGEST = 20_000
"""Characters of one value that is written out among others."""
_MOST_FIELDS = 200
_MOST_ITEMS = 2_000
_MOST_SHOWN = 200
_DEEPEST = 6
_PRINTING = ("__str__", "__repr__", "__format__")

_dict_items: Any = vars(dict)["items"]
_ITERATORS: tuple[tuple[type, Any], ...] = (
    (list, vars(list)["__iter__"]),
    (tuple, vars(tuple)["__iter__"]),
    (set, vars(set)["__iter__"]),
    (frozenset, vars(frozenset)["__iter__"]),
)
_SEQUENCES = (list, tuple, set, frozenset)

arguments_of: Any = BaseException.__dict__["args"].__get__
"""The arguments of an exception, read without calling code of its class."""

_FIELDS: dict[type[BaseException], tuple[str, ...]] = {
    OSError: ("errno", "strerror", "filename", "filename2"),
    SyntaxError: ("msg", "filename", "lineno"),
    UnicodeEncodeError: ("encoding", "object", "reason"),
    UnicodeDecodeError: ("encoding", "object", "reason"),
    UnicodeTranslateError: ("object", "reason"),
    ImportError: ("msg",),
    BaseExceptionGroup: ("message",),
}
"""What classes of Python print besides the arguments."""
_SELF_CONTAINED = (object, type, str, int, bool, float, complex, bytes, bytearray, dict, list, tuple)
"""Their methods that print are written in C and call no other method of a subclass. Those of `set` do."""
_NAMES_ONLY = (FunctionType, BuiltinFunctionType, CodeType, FrameType, TracebackType, range)
_VALUES = frozenset(
    {
        "_decimal", "_io", "_pydatetime", "_pydecimal", "_socket", "_ssl", "_thread", "concurrent", "datetime", "decimal",
        "email", "fractions", "http", "ipaddress", "pathlib", "re", "socket", "ssl", "threading", "urllib", "uuid", "zoneinfo",
    }
)  # fmt: skip
"""Modules of Python whose objects print no object of somebody else."""

Reads = Callable[[Any], Iterable[Any]]
"""Gives everything that an object may print."""


def words_of(error: BaseException) -> str:
    """What an exception says: `str(error)` where that runs known code alone, else its arguments.

    Raises what a `__str__` raises that is called.
    """
    text = printed(error)
    return arguments_text(error) if text is None else text


def printed(error: BaseException, method: str = "__str__") -> str | None:
    """`str(error)`, or `repr(error)` for `__repr__`; `None` if it would run unknown code or be too long."""
    cls = type(error)
    reads = _reads(cls, method) if type(cls) is type or has_ordinary_class(error) else None
    if reads is arguments_of and method == "__str__":
        arguments = arguments_of(error)
        if len(arguments) == 1 and type(arguments[0]) is str:
            return arguments[0]
    if reads is None or not is_printable(reads(error)):
        return None
    text = str(error) if method == "__str__" else repr(error)
    # A subclass may say of itself what it likes: its length, and what is in it.
    return text if type(text) is str else str.__str__(text)


def has_unknown_printer(error: BaseException) -> bool:
    """Whether an author who is not known here wrote how an exception prints itself."""
    cls = type(error)
    if issubclass(cls, Fault) or runs_known_code(cls, "__str__"):
        return False
    return not has_ordinary_class(error) or not _quotes_a_statement(cls)


def arguments_text(error: BaseException) -> str:
    """What the built-in class prints of an exception: its arguments, with the names of types for what is not plain."""
    arguments = tuple(plain(value) for value in arguments_of(error)[:_MOST_FIELDS])
    if len(arguments) != 1:
        return repr(arguments) if arguments else ""
    return arguments[0] if type(arguments[0]) is str else repr(arguments[0])


@lru_cache(maxsize=1024)
def _reads(cls: type[Any], method: str) -> Reads | None:
    """What a method of an exception class prints from; `None` if it is not to be called."""
    if issubclass(cls, Fault) and method == "__str__":
        return _nothing
    if not runs_known_code(cls, method) or _quotes_a_statement(cls):
        return None
    author = cast("type", definer(cls, method))
    if author is BaseException:
        return arguments_of
    if author.__module__ == "builtins":
        names = [(base, name) for base, own in _FIELDS.items() if issubclass(cls, base) for name in own]
        getters = tuple(vars(base)[name].__get__ for base, name in names)
        return lambda error: (arguments_of(error), *(getter(error) for getter in getters))
    if not adds_no_code(cls):
        return None
    return _refused if author.__module__.startswith("pydantic_core") else _arguments_and_attributes


def _nothing(_: object) -> Iterable[Any]:
    return ()


def _arguments_and_attributes(error: BaseException) -> Iterable[Any]:
    return arguments_of(error), instance_dict(error)


def _refused(error: Any) -> Iterable[Any]:
    """The values that a validation error of pydantic prints."""
    rows = cast("list[dict[str, Any]]", error.errors(include_url=False, include_context=False))
    return [row.get("input") for row in rows]


def _quotes_a_statement(cls: type) -> bool:
    """Whether the class prints a statement and its parameters after its message, as SQLAlchemy's does."""
    return any(
        above.__name__ == "StatementError" and above.__module__ == "sqlalchemy.exc" for above in cls.__mro__
    )


def items_of(value: Mapping[Any, Any]) -> Iterable[tuple[Any, Any]]:
    """The items of a mapping, those of a `dict` by its own method; none if an unknown author wrote its methods."""
    if issubclass(type(value), dict):
        return _dict_items(value)
    return value.items() if is_readable(value) else ()


def is_mapping(value: object) -> bool:
    """Whether a value is a mapping whose items can be read without running code of an unknown author."""
    kind = type(value)
    # To hash a class, as an abstract class does that is asked for it, may run code of its metaclass.
    return issubclass(kind, dict) or (
        has_ordinary_class(value) and issubclass(kind, Mapping) and is_readable(value)
    )


def as_dict(value: object) -> dict[Any, Any] | None:
    """A mapping as a plain `dict` of its first items; `None` if it is none, or an unknown author wrote its methods."""
    kind = type(value)
    if kind is dict:
        return cast("dict[Any, Any]", value)
    return dict(islice(items_of(cast("Any", value)), _MOST_ITEMS)) if is_mapping(value) else None


def sequence_of(value: object) -> Iterable[Any]:
    """The items of a list, tuple or set by the method of the built-in class, whatever a subclass overrides."""
    for cls, items in _ITERATORS:
        if issubclass(type(value), cls):
            return items(value)
    return ()


def is_printable(value: object, limit: int = _ENDLESS) -> bool:
    """Whether printing `value` takes at most `limit` characters, and runs code of known authors alone."""
    return _obstacle(value, limit) is None


def weighs(value: object, limit: int) -> bool:
    """Whether printing `value` takes more than `limit` characters. A small object can contain itself many times."""
    return _obstacle(value, limit) == "large"


def _obstacle(value: object, limit: int) -> str | None:
    """Why a value is not to be printed: `large` or `foreign`."""
    room = limit
    waiting: list[object] = [value]
    while waiting:
        if room < 0:
            return "large"
        item = waiting.pop()
        room -= 16
        kind = type(item)
        if kind is str:
            room -= len(cast("str", item))
        elif kind is dict:
            for pair in islice(_dict_items(item), 1 + max(room, 0) // 2):
                room -= 2
                waiting += pair
        elif kind is list or kind is tuple:
            inside = cast("list[object]", item)[: 1 + max(room, 0) // 2]
            room -= 2 * len(inside)
            waiting += inside
        elif item is not None and kind is not int and kind is not bool and kind is not float:
            reads = _holds(kind) if has_ordinary_class(item) else None
            if reads is None:
                return "foreign"
            before = len(waiting)
            waiting += islice(reads(item), 1 + max(room, 0) // 2)
            room -= 2 * (len(waiting) - before) + _length(item)
    return "large" if room < 0 else None


def _length(value: object) -> int:
    for cls in (str, bytes, bytearray):
        if issubclass(type(value), cls):
            return cls.__len__(cast("Any", value))
    return 0


@lru_cache(maxsize=4096)
def _holds(kind: type[Any]) -> Reads | None:
    """What objects of a class print besides themselves; `None` if printing them runs unknown code."""
    if not runs_known_code(kind, *_PRINTING):
        return None
    authors = {definer(kind, name) for name in _PRINTING}
    if issubclass(kind, BaseException):
        readers = [_reads(kind, "__str__"), _reads(kind, "__repr__")]
        return None if None in readers else lambda error: [read(error) for read in readers if read]
    contained = all(any(author is each for each in _SELF_CONTAINED) for author in authors)
    if not contained and not issubclass(kind, Enum) and not adds_no_code(kind):
        return None
    if issubclass(kind, dict):
        return lambda value: (part for pair in _dict_items(value) for part in pair)
    if issubclass(kind, _SEQUENCES):
        return sequence_of
    if contained:
        return _nothing
    if issubclass(kind, Enum):
        return lambda value: (stored(value, "_value_"),)
    if is_dataclass(kind):
        names = [field.name for field in fields(kind)[:_MOST_FIELDS]]
        return lambda value: (stored(value, name) for name in names)
    if is_known(kind) and (not is_pythons(kind) or _prints_itself_alone(kind)):
        return _nothing
    return get_referents


def _prints_itself_alone(kind: type) -> bool:
    return any(kind is each for each in _NAMES_ONLY) or kind.__module__.partition(".")[0] in _VALUES


def stored(value: object, name: str) -> Any:
    """An attribute as an object stores it, in its dictionary or a slot. No property is called."""
    attributes = safe_call(object.__getattribute__, None, value, "__dict__")
    if type(attributes) is dict and name in attributes:
        return cast("dict[str, Any]", attributes)[name]
    author = definer(type(value), name)
    slot = None if author is None else members_of(author)[name]
    return safe_call(slot.__get__, None, value) if type(slot) is MemberDescriptorType else None


class Named:
    """Stands in a text for a value that is not printed."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


def plain(value: object) -> Any:
    """`value` so that anybody can print it: what is large, or printed by unknown code, is named by its type."""
    return _plain(value, [_MOST_SHOWN], 0)


def _plain(value: object, room: list[int], depth: int) -> Any:
    kind = type(value)
    room[0] -= 1
    if issubclass(kind, str):
        return str.__str__(cast("str", value))[:_ENDLESS]
    if room[0] < 0 or depth > _DEEPEST:
        return Named("…")
    obstacle = _obstacle(value, _LARGEST)
    if obstacle is None:
        return value
    if obstacle == "large":
        return Named(f"<large {type_name(value)}>")
    if issubclass(kind, dict):
        pairs = islice(_dict_items(value), _MOST_SHOWN)
        return {_plain(key, room, depth + 1): _plain(inner, room, depth + 1) for key, inner in pairs}
    if issubclass(kind, list | tuple):
        items = [_plain(inner, room, depth + 1) for inner in islice(sequence_of(value), _MOST_SHOWN)]
        return items if issubclass(kind, list) else tuple(items)
    if issubclass(kind, BaseException):
        arguments = [_plain(inner, room, depth + 1) for inner in arguments_of(value)[:_MOST_FIELDS]]
        return Named(f"{type_name(value)}({', '.join(map(repr, arguments))})")
    if issubclass(kind, Enum) and type(name := stored(value, "_name_")) is str:
        return Named(f"{type_name(value)}.{name}")
    if issubclass(kind, int):
        return int.__index__(cast("int", value))
    return (
        float.__float__(cast("float", value)) if issubclass(kind, float) else Named(f"<{type_name(value)}>")
    )
