"""Mistakes in workflow files: what is wrong, where, and what to write instead.

A mistake never holds a value that came from an environment variable: it speaks of the file as written.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Literal

from failwell.fault.frozen import frozen
from failwell.files.item_tree import Item, Path, Place, spelled

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

    def where(mistake: Mistake) -> tuple[bool, str, int, int]:
        place = mistake.place
        return (True, "", 0, 0) if place is None else (False, place.file, place.line, place.column)

    return tuple(sorted(mistakes, key=where))


def render(mistakes: Iterable[Mistake]) -> str:
    """The mistakes as plain text for a terminal, each with its source line and a caret under the place."""
    return "\n\n".join(_one(mistake) for mistake in mistakes)


def _one(mistake: Mistake) -> str:
    lines = [f"{mistake.severity}: {mistake.message}"]
    gutter = ""
    if mistake.place is not None:
        place = mistake.place
        number = str(place.line)
        gutter = " " * len(number)
        lines.append(f"{gutter}--> {_spot(place)}")
        if mistake.line:
            shown, caret = _window(mistake.line, place.column)
            lines += [f"{gutter} |", f"{number} | {shown}", f"{gutter} | {caret}"]
    lines += [f"{gutter} = also: {_spot(place)}" for place in mistake.also]
    if mistake.path:
        lines.append(f"{gutter} = at: {mistake.path}")
    if mistake.hint:
        lines.append(f"hint: {mistake.hint}")
    return "\n".join(line.rstrip() for line in lines)


def one_line(mistake: Mistake) -> str:
    """A mistake as one line: its place, or where it has none its path, the message and the hint."""
    message = mistake.message
    last = mistake.path.rpartition(".")[2].partition("[")[0]
    if mistake.path != last and message.startswith(f"`{last}` "):
        message = f"`{mistake.path}` {message.removeprefix(f'`{last}` ')}"
    elif mistake.place is None and mistake.path and f"`{last}`" not in message:
        message = f"`{mistake.path}`: {message}"
    where = "" if mistake.place is None else f"{_spot(mistake.place)}: "
    return f"{where}{message}{f' ({mistake.hint})' if mistake.hint else ''}"


def _spot(place: Place) -> str:
    return f"{place.file}:{place.line}:{place.column}"


def _window(line: str, column: int) -> tuple[str, str]:
    """As much of a source line as can be shown around a column, and the line for the caret."""
    shown = "".join(char if char.isprintable() else " " for char in line)
    start = 0
    if column > _LONGEST_LINE:
        start = column - _LONGEST_LINE // 2
    cut = shown[start : start + _LONGEST_LINE]
    before = "…" if start else ""
    after = "…" if len(shown) > start + _LONGEST_LINE else ""
    return f"{before}{cut}{after}", f"{' ' * (column - 1 - start + len(before))}^"


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
    where = f" ({_code(_spot(mistake.place))})" if mistake.place else ""
    lines = [f"- **{mistake.severity}**{where}: {mistake.message}"]
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

MOST = 200
"""Mistakes that are kept; a file with more is not read by anybody to the end."""
_LONGEST = 1000
"""Characters of a source line that are kept."""
_BREAKS = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""What YAML counts as the end of a line."""


class Problems:
    """Mistakes in the order they are found."""

    def __init__(self) -> None:
        self.found: list[Mistake] = []
        self.left_out = 0
        self.errors = 0
        """Every error that was added, those that are left out or repeated included."""
        self.unsure: set[str] = set()
        """What cannot be known about the file because of its mistakes, as topics that the shapes name."""
        self._seen: set[tuple[Place | str, str]] = set()

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
        """Keep one mistake, once: a part that is used twice through an alias is wrong only once."""
        self.errors += severity == "error"
        inner_path = path if isinstance(path, str) else spelled(path)
        if place is not None and not place.file:
            # Values that came from no file are told apart by their path.
            place = None
        key = (place or inner_path, message)
        if key in self._seen:
            return
        if len(self.found) >= MOST:
            self.left_out += 1
            return
        self._seen.add(key)
        self.found.append(
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

    def wrong(self, item: Item, path: Path, message: str, **options: Any) -> None:
        """Keep a mistake about a value; one that stands for a file that could not be read has its mistake already."""
        if item.is_unread:
            self.errors += 1
            return
        if len(self.found) >= MOST:
            self.left_out += 1
            self.errors += 1
            return
        self.add(message, item.place, path, **options)

    @property
    def is_full(self) -> bool:
        """Whether further mistakes would only be counted."""
        return len(self.found) >= MOST

    def finish(self, texts: Mapping[str, str]) -> tuple[Mistake, ...]:
        """All of them in order, with their source lines."""
        files = {mistake.place.file for mistake in self.found if mistake.place}
        split = {file: _BREAKS.split(texts[file]) for file in files if file in texts}
        done = [_with_line(mistake, split) for mistake in in_order(self.found)]
        if self.left_out:
            remark = f"{self.left_out} further mistakes are not shown; correct these first"
            done.append(Mistake(message=remark))
        return tuple(done)


def _near(line: str, column: int) -> str:
    """The source line if the place in it can be shown; a file may be one line of mebibytes."""
    return line[: _LONGEST + 200] if column <= _LONGEST else ""


def _with_line(mistake: Mistake, split: Mapping[str, list[str]]) -> Mistake:
    from failwell.report.redact import redact_text

    place = mistake.place
    lines = [] if place is None else split.get(place.file, [])
    if place is None or not 0 < place.line <= len(lines):
        return mistake
    return Mistake(
        message=mistake.message,
        kind=mistake.kind,
        place=place,
        path=mistake.path,
        hint=mistake.hint,
        severity=mistake.severity,
        # A key that was written into the file in clear is not repeated on a screen or in a log.
        line=redact_text(_near(lines[place.line - 1], place.column))[:_LONGEST],
        also=mistake.also,
        missing=mistake.missing,
    )
