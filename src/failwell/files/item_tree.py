"""The tree of a file: plain values, each with its place."""

from collections.abc import Iterator
from dataclasses import field, replace
from typing import Any

from failwell.errors.frozen import frozen


@frozen
class Place:
    """A position in a file, counted from 1."""

    file: str
    line: int
    column: int


@frozen
class Template:
    """A text that may contain `{{ }}`. Its includes are looked up in `folder`."""

    text: str
    place: Place | None = None
    folder: str | None = None
    first_line: int | None = None
    """The line of the file that the text begins on, if each of its lines is one of the file."""
    written: str | None = None
    """The lines of a folded block (`>`) as the file has them: in `text` they are joined."""
    is_plain: bool = field(init=False, repr=False)
    """Whether rendering returns the text unchanged."""

    def __post_init__(self) -> None:
        text = self.text
        is_plain = "{{" not in text and "{%" not in text and "{#" not in text
        object.__setattr__(self, "is_plain", is_plain)

    def place_of(self, line: int | None) -> Place | None:
        """The place of a line of the text, counted from 1; where the text begins if it is not known."""
        if self.place is None or line is None or self.first_line is None or self.written is not None:
            return self.place
        return Place(file=self.place.file, line=self.first_line + line - 1, column=1)

    def unfolded(self) -> "Template":
        """The same template with the lines that the file has, for the line of a mistake."""
        return self if self.written is None else replace(self, text=self.written, written=None)


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
        "first_line",
        "folder",
        "from_env",
        "height",
        "is_unread",
        "item_count",
        "keys",
        "line",
        "value",
        "written",
    )

    def __init__(self, value: Any, line: int, column: int, file: str, folder: str | None = None) -> None:
        self.value = value
        self.line = line
        """Counted from 0, as `column` is; `place` counts from 1."""
        self.column = column
        self.file = file
        self.folder = folder
        """The folder for the includes of a template, if it is not that of the root file."""
        self.first_line: int | None = None
        """The line of the first line of a block, counted from 1."""
        self.written: str | None = None
        """The lines of a folded block as the file has them."""
        self.keys: dict[str, tuple[int, int]] | None = None
        """Line and column of each key of a mapping."""
        self.from_env = False
        """Whether the value came from an environment variable and must not be quoted."""
        self.is_unread = False
        """Whether it is an include of a file that could not be read."""
        self.height = 1
        """Levels of nesting, including aliases and included files."""
        self.item_count = 1
        """Items in it; aliases and included files count as often as they are used."""

    @property
    def place(self) -> Place:
        """Where the value begins."""
        return Place(file=self.file, line=self.line + 1, column=self.column + 1)

    def key_place(self, key: str) -> Place:
        """The place of a key of this mapping."""
        line, column = self.keys[key] if self.keys and key in self.keys else (self.line, self.column)
        return Place(file=self.file, line=line + 1, column=column + 1)

    def plain(self) -> Any:
        """The value as plain JSON, without places."""
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
"""A path in the structure: `()` for the root, else `(path of the parent, key or index)`."""


def path_text(path: Path) -> str:
    """A path as messages show it: `agents[3].routes[1].on_error`."""
    steps: list[str | int] = []
    while path:
        path, step = path
        steps.append(step)
    text = ""
    for step in reversed(steps):
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
