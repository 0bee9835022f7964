"""Values in log records and events: what may be printed as it is, and what is replaced before anybody prints it.

Scalars stay. Plain containers are printed by Python if they are small, and masked as text; others are rebuilt,
bounded and masked. An exception is named, never quoted. Any other object was passed by the program to be printed. If code of an
unknown author prints it, the handler calls that code, as it would without failwell, through a text that is made, cut and masked
when it is first asked for.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeGuard, cast

from failwell.adapters.describe import describe
from failwell.delivery.plain_text import is_large
from failwell.errors.causes import type_name
from failwell.errors.foreign_code import runs_known_code
from failwell.errors.foreign_objects import safe_call, safe_getattr
from failwell.errors.masking.members import is_secret_member
from failwell.errors.redact import MARK, redact_text, redact_value
from failwell.errors.safe_str import is_printable, items_of, sequence_of, stored

MESSAGE_CAP = 16_000
"""Characters of a log message; the texts inside a report have their own, smaller cap."""

_SCALARS = (str, int, float, bool, type(None), complex)
_BYTES = (bytes, bytearray)
_CONTAINERS = (dict, list, tuple, set, frozenset)
_REBUILT = (*_CONTAINERS, *_BYTES, str, int, float)
"""Classes whose subclasses are read as the built-in class sees them."""
_CONVERSIONS = ("__int__", "__float__", "__index__", "__trunc__")
_MOST_ITEMS = 200
_LARGEST_INT = 10**300
_DEEPEST = 6


def is_exception(value: object) -> TypeGuard[BaseException]:
    """Whether `value` really is an exception. `isinstance` asks the object, which may lie, or raise."""
    return issubclass(type(value), BaseException)


def is_scalar(value: object) -> bool:
    """Whether `value` is printed as it is by everybody: a text, a number, nothing."""
    return _is_one_of(value, _SCALARS) and not (type(value) is int and abs(value) > _LARGEST_INT)


def _is_one_of(value: object, types: tuple[type, ...]) -> bool:
    # By identity: a metaclass may raise when it is hashed or compared.
    kind = type(value)
    return any(kind is each for each in types)


class Printable:
    """Stands for an argument of a log message while it is formatted: its text is made once, guarded and cut."""

    __slots__ = ("_text", "_value")

    def __init__(self, value: object) -> None:
        self._value = value
        self._text: str | None = None

    def __str__(self) -> str:
        if self._text is None:
            self._text = text_of(self._value)
        return self._text

    __repr__ = __str__

    def __int__(self) -> int:
        return int(_number(self._value))

    def __float__(self) -> float:
        return float(_number(self._value))


def printable(value: object) -> object:
    """`value` for a log message: itself if it is a scalar, else something that prints its bounded text."""
    if is_scalar(value):
        return value
    if issubclass(type(value), str):
        return str.__str__(cast("str", value))
    return Printable(value)


class DeferredText:
    """A text that is made when it is first printed, by whoever prints it, and is the same from then on.

    A copy of it that leaves the process, by pickle or otherwise, is the text itself.
    """

    __slots__ = ("_make", "_text")

    def __init__(self, make: Callable[[], str]) -> None:
        self._make: Callable[[], str] | None = make
        self._text = ""

    def __str__(self) -> str:
        make = self._make
        if make is not None:
            self._text = make()
            # What was printed is not needed any more, and must not be printed again: it may have changed.
            self._make = None
        return self._text

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


class MappedArguments(Mapping[str, Any]):
    """Stands for a mapping that a log message takes its values from, as printable ones."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return safe_member(name, printable(self._values[name]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return text_of(self._values)


def needs_unknown_code(value: object) -> bool:
    """Whether only code of an unknown author can print a value of a log message."""
    if is_scalar(value) or is_exception(value):
        return False
    kind = type(value)
    if issubclass(kind, _REBUILT):
        return False
    return not is_printable(value) or not runs_known_code(kind, *_CONVERSIONS)


def _number(value: object) -> Any:
    """What an argument of `%d` is converted from."""
    kind = type(value)
    if issubclass(kind, int):
        return int.__index__(cast("int", value))
    if issubclass(kind, float):
        return float.__float__(cast("float", value))
    if issubclass(kind, _REBUILT) or is_exception(value):
        # A subclass may say that it is one.
        raise TypeError("no number")
    return value


def text_of(value: object) -> str:
    """The text of a value, bounded; secrets in it are not masked yet."""
    if is_exception(value):
        return named(value)
    if is_large(value):
        return f"<large {type(value).__name__}>"
    kind = type(value)
    if _is_one_of(value, _BYTES):
        return repr(value)
    if _is_one_of(value, _CONTAINERS):
        return repr(value) if _is_plain(value, [_MOST_ITEMS], 0) else str(redact_value(value))
    if issubclass(kind, _REBUILT):
        # A subclass may print anything; the built-in class knows what it holds.
        return str(redact_value(value))
    text = safe_call(str, None, value)
    if text is None:
        return f"<{type_name(value)}>"
    return str.__str__(text)[: 4 * MESSAGE_CAP]


def named(error: BaseException) -> str:
    """The type and the kind of an exception, in place of its text."""
    report = describe(error)
    return f"{report.error_type} ({report.kind})"


def safe_member(name: str, value: object) -> Any:
    """A named value as a log may print it: itself if it holds no secret, else masked."""
    if is_secret_member(name, value):
        return MARK
    kind = type(value)
    if issubclass(kind, str):
        text = redact_text(cast("str", value), MESSAGE_CAP)
        return value if text == str.__str__(cast("str", value)) else text
    if is_exception(value):
        return named(value)
    if _is_one_of(value, _BYTES):
        text = repr(cast("bytes", value)[:MESSAGE_CAP])
        return value if redact_text(text, MESSAGE_CAP) == text else redact_text(text, MESSAGE_CAP)
    if issubclass(kind, dict | list | tuple | set | frozenset):
        return value if _is_clean(value) else redact_value(value)
    fields = safe_getattr(kind, "__dataclass_fields__")
    if type(fields) is dict:
        held = {field: stored(value, field) for field in cast("dict[str, Any]", fields)}
        return value if _is_clean(held) else redact_value(held)
    return value


def rendered_member(name: str, value: object) -> Any:
    """`safe_member` for a value that is rendered next: an object becomes its text if that holds a secret.

    An object that code of an unknown author prints becomes a text that is made, and masked, when it is rendered.
    """
    safe = safe_member(name, value)
    if safe is not value or is_scalar(value) or _is_one_of(value, _CONTAINERS + _BYTES):
        return safe
    if needs_unknown_code(value):
        return DeferredText(lambda: redact_text(text_of(value), MESSAGE_CAP))
    text = text_of(value)
    masked = redact_text(text, MESSAGE_CAP)
    return value if masked == text else masked


def _is_clean(value: object) -> bool:
    """Whether a container is small, plain, and holds nothing that would be masked."""
    if not _is_plain(value, [_MOST_ITEMS], 0):
        return False
    text = repr(value)
    return redact_text(text, 2 * len(text) + 100) == text and _shown(redact_value(value))


def _shown(masked: Any) -> bool:
    return MARK not in str(masked)


def _is_plain(value: object, room: list[int], depth: int) -> bool:
    """Whether a value of a log record is built of built-in types alone, and small, so that it can be shown as it is."""
    room[0] -= 1
    kind = type(value)
    if room[0] < 0 or depth > _DEEPEST:
        return False
    if _is_one_of(value, _CONTAINERS):
        inside: Iterable[object]
        if kind is dict:
            inside = (part for pair in items_of(cast("dict[Any, Any]", value)) for part in pair)
        else:
            inside = sequence_of(value)
        return all(_is_plain(inner, room, depth + 1) for inner in inside)
    if kind is str or _is_one_of(value, _BYTES):
        room[0] -= len(cast("str", value)) // 100
        return room[0] >= 0
    return is_scalar(value)
