"""How many levels a value may have that is sent between host and worker."""

from collections.abc import Iterable
from typing import Any, cast

DEEPEST = 200
"""Whoever reads it takes a few steps of the interpreter's stack for each level."""
_HOLDERS = (dict, list, tuple)


def is_too_deep(value: Any, brackets: int) -> bool:
    """Whether a value has too many levels; `brackets` is how many were opened when it was written as JSON."""
    if brackets <= DEEPEST:
        return False
    level: list[Any] = [[value]]
    for _ in range(DEEPEST + 1):
        # Level by level, and by what holds something alone: it costs a fraction of the writing.
        level = [one for held in level for one in _within(held) if isinstance(one, _HOLDERS)]
        if not level:
            return False
    return True


def _within(held: Any) -> Iterable[Any]:
    return cast("dict[Any, Any]", held).values() if isinstance(held, dict) else held
