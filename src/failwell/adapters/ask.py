"""Reading from objects that may bite.

Attributes of foreign exceptions can be properties that raise, do I/O or lie about their type.
Every doorway reads through here, so none of them can turn one failure into two.
"""

from typing import Any

_LONGEST_NUMBER = 2**63
"""No code, line or length is larger; Python refuses to print what is much larger."""


def ask(thing: object, *names: str, default: Any = None) -> Any:
    """The first of `names` that `thing` answers with something other than `None`."""
    if thing is None:
        return default
    for name in names:
        try:
            value = getattr(thing, name, None)
        except BaseException:  # noqa: BLE001, S112  (a property of a foreign object may raise anything at all)
            continue
        if value is not None:
            return value
    return default


def ask_str(thing: object, *names: str, limit: int = 200) -> str | None:
    """The first of `names` that holds a non-empty string, cut to `limit`."""
    for name in names if thing is not None else ():
        value = ask(thing, name)
        if value is not None and issubclass(type(value), str) and (text := str.__str__(value)).strip():
            return text[:limit]
    return None


def ask_int(thing: object, *names: str) -> int | None:
    """The first of `names` that holds a whole number."""
    for name in names if thing is not None else ():
        value = ask(thing, name)
        if (
            value is not None
            and issubclass(type(value), int)
            and type(value) is not bool
            and abs(value) < _LONGEST_NUMBER
        ):
            return int(value)
    return None
