"""Guarded access to foreign objects.

Attributes of a foreign exception can be properties that raise, do I/O or lie about their type.
Adapters read them through these helpers, so that one failure never becomes two. `KeyboardInterrupt`
and `SystemExit` always pass through.
"""

from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")
_D = TypeVar("_D")

_INT_LIMIT = 2**63
"""No code, line or length is larger; Python refuses to print what is much larger."""


def safe_call(function: Callable[..., _T], default: _D, *args: Any) -> _T | _D:
    """`function(*args)` on another library's objects, or `default` if their code raises.

    Only on paths that must not fail. `KeyboardInterrupt` and
    `SystemExit` pass through.
    """
    try:
        return function(*args)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001  (foreign code may raise anything, also outside `Exception`)
        return default


def safe_attribute(obj: object, name: str) -> Any:
    """`safe_getattr` for one name: most adapters read one at a time, and a call without options is quicker."""
    try:
        return getattr(obj, name, None)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001  (a property of a foreign object may raise anything at all)
        return None


def safe_getattr(obj: object, *names: str, default: Any = None) -> Any:
    """The first attribute among `names` that is there, readable and not `None`, else `default`."""
    if obj is None:
        return default
    for name in names:
        value = safe_attribute(obj, name)
        if value is not None:
            return value
    return default


def safe_getattrs(obj: object, names: tuple[str, ...]) -> list[Any]:
    """The value of each of `names`; `None` where an attribute is missing or its property raises."""
    try:
        return [getattr(obj, name, None) for name in names]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001  (one property raises; the others may still be readable)
        return [safe_attribute(obj, name) for name in names]


def str_attr(obj: object, *names: str, limit: int = 200) -> str | None:
    """The first of `names` that holds a non-empty string, cut to `limit`."""
    for name in names if obj is not None else ():
        text = plain_str(safe_attribute(obj, name), limit)
        if text is not None:
            return text
    return None


def int_attr(obj: object, *names: str) -> int | None:
    """The first of `names` that holds a whole number."""
    for name in names if obj is not None else ():
        number = plain_int(safe_attribute(obj, name))
        if number is not None:
            return number
    return None


def plain_str(value: Any, limit: int = 200) -> str | None:
    """`value` as a plain `str`, cut to `limit`; `None` if it is no string or blank."""
    if value is None or not issubclass(type(value), str):
        return None
    text: str = str.__str__(value)
    if not text or text.isspace():
        return None
    return text if len(text) <= limit else text[:limit]


def plain_int(value: Any) -> int | None:
    """`value` as a plain `int`; `None` if it is no whole number or larger than a reply could hold."""
    if value is None or type(value) is bool or not issubclass(type(value), int):
        return None
    number = value if type(value) is int else int.__index__(value)
    return number if abs(number) < _INT_LIMIT else None
