"""JSON values: one walk that changes every text in a value, and reading without numbers that JSON does not have.

The walk stops at `deepest` levels, so a value that contains itself ends too.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

_DEEPEST = 300
_TOO_DEEP = "… [too deep]"


def map_texts(value: Any, change: Callable[[str], str], *, keys: bool = True, deepest: int = _DEEPEST) -> Any:
    """`value` with every text in it changed; with `keys`, the texts that are keys too. Tuples become lists."""
    if isinstance(value, str):
        return change(value)
    if deepest <= 0 and isinstance(value, Mapping | list | tuple):
        # Nobody has changed the texts in it, so it cannot stay.
        return _TOO_DEEP
    if isinstance(value, Mapping):
        return {
            change(key) if keys and isinstance(key, str) else key: map_texts(
                inner, change, keys=keys, deepest=deepest - 1
            )
            for key, inner in cast("Mapping[Any, Any]", value).items()
        }
    if isinstance(value, list | tuple):
        return [
            map_texts(inner, change, keys=keys, deepest=deepest - 1) for inner in cast("list[Any]", value)
        ]
    return value


class NotFinite(ValueError):
    """A JSON text holds a number that JSON cannot represent; `number` is how it is written."""

    def __init__(self, number: str) -> None:
        super().__init__(f"`{number}` is no number that JSON can represent")
        self.number = number


_MAY_BE_INFINITE = re.compile(r"[eE]\+?[0-9]{3}|[0-9]{309}")


def load_finite(text: str) -> Any:
    """The value of a JSON text without `NaN` and without infinities, which Python reads by default.

    Raises:
        NotFinite: it holds one of them, and is JSON otherwise.
        ValueError, RecursionError: as `json.loads` raises them.
    """
    from json import loads

    # A function for every float is slow, so it is called only where one may be infinite.
    to_float = _finite if _MAY_BE_INFINITE.search(text) else None
    try:
        return loads(text, parse_constant=_refuse, parse_float=to_float)
    except NotFinite:
        # A mistake behind the number makes the text no JSON at all.
        loads(text)
        raise


def _refuse(word: str) -> Any:
    raise NotFinite(word)


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:
        raise NotFinite(text[:40])
    return number
