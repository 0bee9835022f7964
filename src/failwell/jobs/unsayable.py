"""Where a value holds what JSON cannot say. Looked for only once writing it down has failed."""

from collections.abc import Iterator
from math import isfinite
from typing import Any, cast

from failwell.jobs.child.depth import DEEPEST

_MOST = 10
"""Places that are named."""
_SHOWN = 40
"""Characters of a key."""


def unsayable(value: Any, place: str) -> dict[str, str]:
    """Every place in `value` that JSON cannot say, with what is wrong there; the first few if there are many."""
    found: dict[str, str] = {}
    waiting: list[tuple[Any, str, int]] = [(value, place, 0)]
    while waiting and len(found) < _MOST:
        one, where, depth = waiting.pop()
        wrong = _wrong(one)
        if wrong is not None:
            found[where] = wrong
        elif depth < DEEPEST:
            # In the order in which they stand: the last one in is the first one out.
            waiting.extend(reversed([(*held, depth + 1) for held in _within(one, where)]))
    return found


def _wrong(value: Any) -> str | None:
    if value is None or isinstance(value, bool | int):
        return None
    if isinstance(value, float):
        return None if isfinite(value) else f"is {value}, a number that JSON has no word for"
    if isinstance(value, str):
        return "holds half a surrogate pair, which no file can hold" if is_torn(value) else None
    if isinstance(value, list | tuple):
        return None
    if not isinstance(value, dict):
        return f"is of type {type(value).__name__}, which JSON cannot say"
    for key in cast("dict[Any, Any]", value):
        if not isinstance(key, str | int | float | bool | None):
            return f"has a key of type {type(key).__name__}, which JSON cannot say"
        if isinstance(key, float) and not isfinite(key):
            return f"has the key {key}, a number that JSON has no word for"
        if isinstance(key, str) and is_torn(key):
            return "has a key with half a surrogate pair, which no file can hold"
    return None


def _within(value: Any, place: str) -> Iterator[tuple[Any, str]]:
    if isinstance(value, dict):
        for key, one in cast("dict[Any, Any]", value).items():
            yield one, f"{place}.{str(key)[:_SHOWN]}"
    elif isinstance(value, list | tuple):
        for index, one in enumerate(cast("list[Any]", value)):
            yield one, f"{place}[{index}]"


def is_torn(text: str) -> bool:
    """Whether it holds half a surrogate pair: a text of Python's can, no file can."""
    return not text.isascii() and any("\ud800" <= one <= "\udfff" for one in text)
