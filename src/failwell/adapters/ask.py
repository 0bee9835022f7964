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


def ask_each(thing: object, names: tuple[str, ...]) -> list[Any]:
    """What `thing` answers to each of `names`: `None` where it has no answer, or bites."""
    try:
        return [getattr(thing, name, None) for name in names]
    except BaseException:  # noqa: BLE001  (one of them bites; the others may still answer)
        return [ask(thing, name) for name in names]


def ask_str(thing: object, *names: str, limit: int = 200) -> str | None:
    """The first of `names` that holds a non-empty string, cut to `limit`."""
    for name in names if thing is not None else ():
        text = told(ask(thing, name), limit)
        if text is not None:
            return text
    return None


def told(value: Any, limit: int = 200) -> str | None:
    """`value` as a plain string, cut to `limit`, if it is one that says anything."""
    if value is None or not issubclass(type(value), str):
        return None
    text: str = str.__str__(value)
    if not text or text.isspace():
        return None
    return text if len(text) <= limit else text[:limit]


def ask_int(thing: object, *names: str) -> int | None:
    """The first of `names` that holds a whole number."""
    for name in names if thing is not None else ():
        number = whole(ask(thing, name))
        if number is not None:
            return number
    return None


def whole(value: Any) -> int | None:
    """`value` as a plain number, if it is a whole one that a reply could hold."""
    if value is None or type(value) is bool or not issubclass(type(value), int):
        return None
    return int(value) if abs(value) < _LONGEST_NUMBER else None
