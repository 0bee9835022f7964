"""TOML text → a tree in which every key and value has its place.

The parser of the standard library returns values without places, so the text is scanned a second time for the
positions. The scan only runs on texts that the parser accepted, and does not validate.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any, cast

from failwell.files.item_tree import Item, Place
from failwell.files.mistakes import MistakeLog

_Steps = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r"""\"{3}(?:[^\\]|\\.)*?\"{3,5}(?!")|'{3}.*?'{3,5}(?!')|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""", re.DOTALL
)
_SCALAR = re.compile(r"[^,\]}\n#]+")
_PLACE = re.compile(r"\s*\(at line (\d+), column (\d+)\)$")


def read_toml(text: str, file: str, log: MistakeLog) -> Item | None:
    """The tree of one document, or `None` if it cannot be read."""
    from tomllib import TOMLDecodeError, loads

    try:
        values = loads(text)
    except TOMLDecodeError as error:
        match = _PLACE.search(str(error))
        line, column = (match[1], match[2]) if match else (text.count("\n") + 1, 1)
        place = Place(file=file, line=int(line), column=int(column))
        reason = _PLACE.sub("", str(error))[:200]
        log.add(f"the file is not TOML: {reason}", place, hint="correct it at that place")
        return None
    except RecursionError:
        log.add("the file is not TOML: nesting is too deep", None, hint="flatten it")
        return None
    try:
        return _Tree(text, file).item(values, ())
    except RecursionError:
        # The values are valid; only their places are lost.
        return from_values(values)


def from_values(values: object, file: str = "") -> Item:
    """Plain values as a tree without places."""
    item = Item(values, 0, 0, file)
    if isinstance(values, Mapping):
        mapping = cast("Mapping[object, object]", values)
        item.value = {str(key): from_values(value, file) for key, value in mapping.items()}
        item.keys = {}
    elif isinstance(values, list | tuple):
        item.value = [from_values(value, file) for value in cast("list[object]", values)]
    elif isinstance(values, date | datetime | time):
        item.value = values.isoformat()
    return item


class _Tree:
    """The places in one text, and the items built from them."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.keys: dict[_Steps, int] = {}
        self.values: dict[_Steps, int] = {}
        self.sizes: dict[_Steps, int] = {}
        """How many tables each array of tables has so far."""
        self.at = 0
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.scan()

    def item(self, value: Any, steps: _Steps) -> Item:
        """One value with its place. A table that is only mentioned by inner tables has the place of its key."""
        offset = self.values.get(steps, self.keys.get(steps, 0))
        line, column = self.place(offset)
        item = Item(value, line, column, self.file)
        if isinstance(value, dict):
            mapping = cast("dict[str, Any]", value)
            item.value = {key: self.item(inner, (*steps, key)) for key, inner in mapping.items()}
            item.keys = {
                key: self.place(self.keys[*steps, key]) for key in mapping if (*steps, key) in self.keys
            }
        elif isinstance(value, list):
            entries = cast("list[Any]", value)
            item.value = [self.item(inner, (*steps, index)) for index, inner in enumerate(entries)]
        elif isinstance(value, date | datetime | time):
            item.value = value.isoformat()
        return item

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, counted from 0."""
        line = bisect_right(self.lines, offset) - 1
        return line, offset - self.lines[line]

    def scan(self) -> None:
        """Record the place of every key and value."""
        table: _Steps = ()
        while True:
            self.skip()
            if self.at >= len(self.text):
                return
            if self.text[self.at] != "[":
                self.entry(table)
                continue
            start = self.at
            is_array = self.text.startswith("[[", start)
            self.at += 2 if is_array else 1
            table = ()
            for offset, key in self.dotted():
                table = self.within((*table, key))
                self.keys.setdefault(table, offset)
            self.at += 2 if is_array else 1
            if is_array:
                array = table[:-1] if table and isinstance(table[-1], int) else table
                index = self.sizes.get(array, 0)
                self.sizes[array] = index + 1
                table = (*array, index)
            self.values[table] = start

    def within(self, steps: _Steps) -> _Steps:
        """The last table of an array of tables, where `steps` leads to one."""
        return (*steps, self.sizes[steps] - 1) if steps in self.sizes else steps

    def skip(self) -> None:
        """Skip white space and comments."""
        match = _BLANK.match(self.text, self.at)
        self.at = self.at if match is None else match.end()

    def entry(self, table: _Steps) -> None:
        """One `key = value`."""
        steps = table
        for offset, key in self.dotted():
            steps = (*steps, key)
            self.keys.setdefault(steps, offset)
        self.at += 1  # the equals sign
        self.value(steps)

    def dotted(self) -> list[tuple[int, str]]:
        """The parts of a dotted key, each with its place, up to an equals sign or a bracket."""
        parts: list[tuple[int, str]] = []
        while True:
            self.skip()
            start = self.at
            if self.text[start] in "\"'":
                match = _STRING.match(self.text, start)
                key = _unquoted(match[0]) if match else ""
            else:
                match = _BARE_KEY.match(self.text, start)
                key = match[0] if match else ""
            self.at = start + 1 if match is None else match.end()
            parts.append((start, key))
            self.skip()
            if self.at >= len(self.text) or self.text[self.at] != ".":
                return parts
            self.at += 1

    def value(self, steps: _Steps) -> None:
        """One value, and everything inside it."""
        self.skip()
        self.values[steps] = self.at
        opening = self.text[self.at : self.at + 1]
        if opening == "[":
            self.at += 1
            index = 0
            while self.more("]"):
                self.value((*steps, index))
                index += 1
        elif opening == "{":
            self.at += 1
            while self.more("}"):
                self.entry(steps)
        else:
            match = (_STRING if opening in "\"'" else _SCALAR).match(self.text, self.at)
            self.at = self.at + 1 if match is None else match.end()

    def more(self, closing: str) -> bool:
        """Whether another entry follows before `closing`. Skips `closing` otherwise."""
        self.skip()
        while self.at < len(self.text) and self.text[self.at] == ",":
            self.at += 1
            self.skip()
        if self.at < len(self.text) and self.text[self.at] != closing:
            return True
        self.at += 1
        return False


def _unquoted(text: str) -> str:
    from tomllib import loads

    return str(loads(f"key = {text}")["key"])
