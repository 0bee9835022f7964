"""Values in log records and events: what may be printed as it is, and what is replaced before anybody prints it.

Scalars stay. Plain containers are printed by Python if they are small, and masked as text; others are rebuilt,
bounded and masked. An exception is named, never quoted. Any other object was passed by the program to be printed: its
`__str__` is called once, and what it returns is cut and masked.
"""

from collections.abc import Iterable
from typing import Any, TypeGuard, cast

from failwell.adapters.printed import items_of, sequence_of
from failwell.adapters.safe_getattr import safe_call, safe_getattr
from failwell.delivery.plain_text import is_large
from failwell.fault.links import type_name
from failwell.report.describe import describe
from failwell.report.masking.members import is_secret_member
from failwell.report.redact import MARK, redact_text, redact_value

MESSAGE_CAP = 16_000
"""Characters of a log message; the texts inside a report have their own, smaller cap."""

_SCALARS = (str, int, float, bool, type(None), complex)
_BYTES = (bytes, bytearray)
_CONTAINERS = (dict, list, tuple, set, frozenset)
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
        return int(cast("Any", self._value))

    def __float__(self) -> float:
        return float(cast("Any", self._value))


def printable(value: object) -> object:
    """`value` for a log message: itself if it is a scalar, else something that prints its bounded text."""
    if is_scalar(value):
        return value
    if issubclass(type(value), str):
        return str.__str__(cast("str", value))
    return Printable(value)


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
    if issubclass(kind, dict | list | tuple | set | frozenset | bytes | bytearray | int | float):
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
        return value if text == value else text
    if is_exception(value):
        return named(value)
    if _is_one_of(value, _BYTES):
        text = repr(cast("bytes", value)[:MESSAGE_CAP])
        return value if redact_text(text, MESSAGE_CAP) == text else redact_text(text, MESSAGE_CAP)
    if issubclass(kind, dict | list | tuple | set | frozenset):
        return value if _is_clean(value) else redact_value(value)
    fields = safe_getattr(kind, "__dataclass_fields__")
    if type(fields) is dict:
        stored = {
            field: safe_call(object.__getattribute__, None, value, field)
            for field in cast("dict[str, Any]", fields)
        }
        return value if _is_clean(stored) else redact_value(stored)
    return value


def rendered_member(name: str, value: object) -> Any:
    """`safe_member` for a value that is rendered next: an object whose text holds a secret becomes that text, masked."""
    safe = safe_member(name, value)
    if safe is not value or is_scalar(value) or _is_one_of(value, _CONTAINERS + _BYTES):
        return safe
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
