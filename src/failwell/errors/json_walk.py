"""JSON values: one walk that changes every text in a value.

The walk stops at `deepest` levels, so a value that contains itself ends too.
"""

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
