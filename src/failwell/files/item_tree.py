"""The tree of a file: plain values, each with its place."""

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from failwell.fault.frozen import frozen


@frozen
class Place:
    """Where something stands in a file, counted from 1."""

    file: str
    line: int
    column: int


@frozen
class Template:
    """A text that may hold `{{ }}`. `folder` is where its includes are looked for."""

    text: str
    place: Place | None = None
    folder: str | None = None
    is_plain: bool = field(init=False, repr=False)
    """Whether rendering would give the text itself."""

    def __post_init__(self) -> None:
        text = self.text
        is_plain = "{{" not in text and "{%" not in text and "{#" not in text
        object.__setattr__(self, "is_plain", is_plain)


def is_map(value: object) -> bool:
    """Whether a value is a mapping of items."""
    return type(value) is dict


def is_list(value: object) -> bool:
    """Whether a value is a list of items."""
    return type(value) is list


class Item:
    """One value of a file. `value` is a scalar, a list of items, or a dict of items by key."""

    __slots__ = (
        "column",
        "file",
        "folder",
        "height",
        "is_unread",
        "keys",
        "line",
        "value",
        "veiled",
        "weight",
    )

    def __init__(self, value: Any, line: int, column: int, file: str, folder: str | None = None) -> None:
        self.value = value
        self.line = line
        """Counted from 0, as `column` is; `place` counts from 1."""
        self.column = column
        self.file = file
        self.folder = folder
        """Where includes of a template start from, when that is not the folder of the root file."""
        self.keys: dict[str, tuple[int, int]] | None = None
        """Line and column of each key of a mapping."""
        self.veiled = False
        """Whether the value came from an environment variable and must not be quoted."""
        self.is_unread = False
        """Whether it stands for an included file that could not be read."""
        self.height = 1
        """How many levels it has, those behind aliases and in included files counted."""
        self.weight = 1
        """How many items it holds, aliases and included files counted as often as they are used."""

    @property
    def place(self) -> Place:
        """Where the value begins."""
        return Place(file=self.file, line=self.line + 1, column=self.column + 1)

    def key_place(self, key: str) -> Place:
        """Where a key of this mapping stands."""
        line, column = self.keys[key] if self.keys and key in self.keys else (self.line, self.column)
        return Place(file=self.file, line=line + 1, column=column + 1)

    def plain(self) -> Any:
        """The value as JSON, places forgotten."""
        value = self.value
        if is_map(value):
            return {key: child.plain() for key, child in value.items()}
        if is_list(value):
            return [child.plain() for child in value]
        return value

    def walk(self) -> Iterator["Item"]:
        """This item and everything below it."""
        todo = [self]
        while todo:
            item = todo.pop()
            yield item
            if is_map(item.value):
                todo.extend(item.value.values())
            elif is_list(item.value):
                todo.extend(item.value)


Path = tuple[Any, ...]
"""A place in the structure: `()` for the root, else `(path of the parent, key or index)`."""


def spelled(path: Path) -> str:
    """A path as it is shown: `agents[3].routes[1].on_error`."""
    steps: list[str | int] = []
    while path:
        path, step = path
        steps.append(step)
    text = ""
    for step in reversed(steps):
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
