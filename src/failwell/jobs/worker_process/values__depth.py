"""The largest number of levels of a value that is sent between host and worker."""

from collections.abc import Iterable
from typing import Any, cast

DEEPEST = 200
"""Reading a value uses a few frames of the interpreter's stack for each level."""
_HOLDERS = (dict, list, tuple)


def is_too_deep(value: Any, brackets: int) -> bool:
    """Whether a value has too many levels for a frame of a worker; `brackets` is the number of opening brackets in its JSON."""
    if brackets <= DEEPEST:
        return False
    level: list[Any] = [[value]]
    for _ in range(DEEPEST + 1):
        # Level by level, and only containers: this costs a fraction of writing the JSON.
        level = [item for container in level for item in _within(container) if isinstance(item, _HOLDERS)]
        if not level:
            return False
    return True


def _within(container: Any) -> Iterable[Any]:
    return cast("dict[Any, Any]", container).values() if isinstance(container, dict) else container
