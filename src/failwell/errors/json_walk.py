"""JSON values: one bounded walk for whoever changes or reads what is in a value.

It ends for a value that contains itself, and runs no code of an unknown author's mapping or list.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from failwell.errors.safe_str import as_dict, sequence_of

_DEEPEST = 300
_TOO_DEEP = "… [too deep]"


def map_values(
    value: Any,
    change: Callable[[Any], Any],
    *,
    key: Callable[[Any], Any] | None = None,
    deepest: int = _DEEPEST,
    most: int | None = None,
) -> Any:
    """`value` with everything in it changed that is neither a mapping nor a list. Tuples become lists.

    Args:
        value: Any value.
        change: Called with each value that is no container.
        key: Called with each key of a mapping; without it, keys stay.
        deepest: Levels of containers that are walked; what is deeper is left out, because nobody has looked at it.
        most: Members of each container that stay; all of them by default.
    """
    if value is None or isinstance(value, str | int | float):
        return change(value)
    members = as_dict(value)
    if members is None and not issubclass(type(value), list | tuple):
        return change(value)
    if deepest <= 0:
        return _TOO_DEEP
    below = deepest - 1
    if members is None:
        return [
            map_values(inner, change, key=key, deepest=below, most=most)
            for inner in islice(sequence_of(value), most)
        ]
    return {
        name if key is None else key(name): map_values(inner, change, key=key, deepest=below, most=most)
        for name, inner in islice(members.items(), most)
    }


def map_texts(value: Any, change: Callable[[str], str], *, keys: bool = True, deepest: int = _DEEPEST) -> Any:
    """`value` with every text in it changed; with `keys`, the texts that are keys too."""

    def change_text(leaf: Any) -> Any:
        return change(str.__str__(leaf)) if issubclass(type(leaf), str) else leaf

    return map_values(value, change_text, key=change_text if keys else None, deepest=deepest)


def texts_in(value: Any, *, keys: bool = True, deepest: int = _DEEPEST) -> Iterator[str]:
    """Every text in a value; with `keys`, the texts that are keys too."""
    found: list[str] = []

    def note(text: str) -> str:
        found.append(text)
        return text

    map_texts(value, note, keys=keys, deepest=deepest)
    yield from found
