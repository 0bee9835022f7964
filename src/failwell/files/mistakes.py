"""Mistakes in files: what is wrong, where, and what to write instead.

A mistake never quotes the value of an environment variable, only the text of the file.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Literal

from failwell.errors.frozen import frozen
from failwell.files.item_tree import Item, Path, Place, path_text

Severity = Literal["error", "warning"]
_LONGEST_LINE = 160
"""Characters of a source line that are shown."""


@frozen
class Mistake:
    """One thing that is wrong in a file."""

    message: str
    kind: str = "validation.shape_invalid"
    place: Place | None = None
    path: str = ""
    """Where it is in the structure, such as `agents[3].routes[1].on_error`."""
    hint: str = ""
    severity: Severity = "error"
    line: str = ""
    """The source line, as written."""
    also: tuple[Place, ...] = field(default=())
    """Further places that belong to it, such as the first of two equal keys."""
    missing: str = ""
    """The key that is missing at `path`, if that is the mistake."""

    @property
    def is_error(self) -> bool:
        """Whether the file cannot be used because of it."""
        return self.severity == "error"

    @property
    def field(self) -> str:
        """The field that the mistake is about: `path`, and a key that is missing there."""
        return ".".join(part for part in (self.path, self.missing) if part)

    @property
    def id(self) -> str:
        """A short name that stays the same while the mistake does, wherever the line moves."""
        from hashlib import sha256

        file = self.place.file if self.place else ""
        text = f"{self.kind}\0{file}\0{self.path}\0{self.message}"
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def in_order(mistakes: Iterable[Mistake]) -> tuple[Mistake, ...]:
    """The mistakes by file and place; those without one come last."""

    def position(mistake: Mistake) -> tuple[bool, str, int, int]:
        place = mistake.place
        return (True, "", 0, 0) if place is None else (False, place.file, place.line, place.column)

    return tuple(sorted(mistakes, key=position))


def render(mistakes: Iterable[Mistake]) -> str:
    """The mistakes as plain text for a terminal, each with its source line and a caret under the place."""
    return "\n\n".join(_render_one(mistake) for mistake in mistakes)


def _render_one(mistake: Mistake) -> str:
    lines = [f"{mistake.severity}: {mistake.message}"]
    gutter = ""
    if mistake.place is not None:
        place = mistake.place
        number = str(place.line)
        gutter = " " * len(number)
        lines.append(f"{gutter}--> {_position(place)}")
        if mistake.line:
            source, caret = _window(mistake.line, place.column)
            lines += [f"{gutter} |", f"{number} | {source}", f"{gutter} | {caret}"]
    lines += [f"{gutter} = also: {_position(place)}" for place in mistake.also]
    if mistake.path:
        lines.append(f"{gutter} = at: {mistake.path}")
    if mistake.hint:
        lines.append(f"hint: {mistake.hint}")
    return "\n".join(line.rstrip() for line in lines)


def one_line(mistake: Mistake) -> str:
    """A mistake as one line: its place (or its path, if it has no place), the message and the hint."""
    message = mistake.message
    key = mistake.path.rpartition(".")[2].partition("[")[0]
    if mistake.path != key and message.startswith(f"`{key}` "):
        message = f"`{mistake.path}` {message.removeprefix(f'`{key}` ')}"
    elif mistake.place is None and mistake.path and f"`{key}`" not in message:
        message = f"`{mistake.path}`: {message}"
    position = "" if mistake.place is None else f"{_position(mistake.place)}: "
    return f"{position}{message}{f' ({mistake.hint})' if mistake.hint else ''}"


def _position(place: Place) -> str:
    return f"{place.file}:{place.line}:{place.column}"


def _window(line: str, column: int) -> tuple[str, str]:
    """The part of a source line around a column, and the line with the caret below it."""
    source = "".join(char if char.isprintable() else " " for char in line)
    start = 0
    if column > _LONGEST_LINE:
        start = column - _LONGEST_LINE // 2
    prefix = "…" if start else ""
    suffix = "…" if len(source) > start + _LONGEST_LINE else ""
    caret = f"{' ' * (column - 1 - start + len(prefix))}^"
    return f"{prefix}{source[start : start + _LONGEST_LINE]}{suffix}", caret


def to_json(mistakes: Iterable[Mistake]) -> list[dict[str, Any]]:
    """The mistakes as objects with an `id`, for programs."""
    return [_plain(mistake) for mistake in mistakes]


def _plain(mistake: Mistake) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "id": mistake.id,
        "kind": mistake.kind,
        "severity": mistake.severity,
        "message": mistake.message,
        "path": mistake.path,
    }
    if mistake.hint:
        plain["hint"] = mistake.hint
    if mistake.place is not None:
        plain |= _place(mistake.place)
        plain["source"] = mistake.line
    if mistake.also:
        plain["also"] = [_place(place) for place in mistake.also]
    return plain


def _place(place: Place) -> Mapping[str, str | int]:
    return {"file": place.file, "line": place.line, "column": place.column}


def to_markdown(mistakes: Iterable[Mistake]) -> str:
    """The mistakes as a Markdown list, for a pull request or a model."""
    return "\n".join(_item(mistake) for mistake in mistakes)


def _item(mistake: Mistake) -> str:
    position = f" ({_code(_position(mistake.place))})" if mistake.place else ""
    lines = [f"- **{mistake.severity}**{position}: {mistake.message}"]
    if mistake.path:
        lines.append(f"  - at {_code(mistake.path)}")
    if mistake.line.strip():
        lines.append(f"  - source: {_code(mistake.line.strip()[:_LONGEST_LINE])}")
    if mistake.hint:
        lines.append(f"  - hint: {mistake.hint}")
    return "\n".join(lines)


def _code(text: str) -> str:
    """A code span that no backtick in `text` can end."""
    longest = 0
    run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{text}{pad}{fence}"


# ---------------------------------------------------------------- collecting

MAX_MISTAKES = 200
"""Mistakes that are kept. Further ones are only counted."""
_LONGEST = 1000
"""Characters of a source line that are kept."""
_BREAKS = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""What YAML counts as the end of a line."""


class MistakeLog:
    """Collects the mistakes of a file while it is read."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []
        self.left_out = 0
        self.errors = 0
        """How many errors were added, including repeated ones and those above the limit."""
        self.unknown_topics: set[str] = set()
        """Topics, named by the shapes, that are not known in full because of a mistake."""
        self._seen: set[tuple[object, str]] = set()

    def add(
        self,
        message: str,
        place: Place | None,
        path: Path | str = (),
        *,
        hint: str = "",
        kind: str = "validation.shape_invalid",
        severity: Severity = "error",
        also: tuple[Place, ...] = (),
        missing: str = "",
    ) -> None:
        """Add a mistake. The same mistake at the same place, reached through two aliases, is added once."""
        self.errors += severity == "error"
        inner_path = path if isinstance(path, str) else path_text(path)
        if place is not None and not place.file:
            # Values that do not come from a file are identified by their path.
            place = None
        key = (inner_path if place is None else (place.file, place.line, place.column), message)
        if key in self._seen:
            return
        if len(self.mistakes) >= MAX_MISTAKES:
            self.left_out += 1
            return
        self._seen.add(key)
        self.mistakes.append(
            Mistake(
                message=message,
                place=place,
                path=inner_path,
                hint=hint,
                kind=kind,
                severity=severity,
                also=also,
                missing=missing,
            )
        )

    def add_at(self, item: Item, path: Path, message: str, **options: Any) -> None:
        """Add a mistake about a value. An included file that could not be read has been reported already."""
        if item.is_unread:
            self.errors += 1
            return
        if len(self.mistakes) >= MAX_MISTAKES:
            self.left_out += 1
            self.errors += 1
            return
        self.add(message, item.place, path, **options)

    @property
    def is_full(self) -> bool:
        """Whether further mistakes would only be counted."""
        return len(self.mistakes) >= MAX_MISTAKES

    def finish(self, texts: Mapping[str, str]) -> tuple[Mistake, ...]:
        """All mistakes in order, with their source lines."""
        files = {mistake.place.file for mistake in self.mistakes if mistake.place}
        lines = {file: _BREAKS.split(texts[file]) for file in files if file in texts}
        ordered = [_with_line(mistake, lines) for mistake in in_order(self.mistakes)]
        if self.left_out:
            remark = f"{self.left_out} further mistakes are not shown; correct these first"
            ordered.append(Mistake(message=remark))
        return tuple(ordered)


def _near(line: str, column: int) -> str:
    """The beginning of a source line, or nothing if the column lies behind it. A line may have megabytes."""
    return line[: _LONGEST + 200] if column <= _LONGEST else ""


def _with_line(mistake: Mistake, lines_of: Mapping[str, list[str]]) -> Mistake:
    from failwell.errors.redact import redact_text

    place = mistake.place
    lines = [] if place is None else lines_of.get(place.file, [])
    if place is None or not 0 < place.line <= len(lines):
        return mistake
    return Mistake(
        message=mistake.message,
        kind=mistake.kind,
        place=place,
        path=mistake.path,
        hint=mistake.hint,
        severity=mistake.severity,
        # A secret that is written in the file must not reach a screen or a log.
        line=redact_text(_near(lines[place.line - 1], place.column))[:_LONGEST],
        also=mistake.also,
        missing=mistake.missing,
    )
