"""The list that mistakes are put on while a file is read: bounded, and each with its source line."""

import re
from collections.abc import Mapping
from typing import Any

from failwell.workflow.mistakes import Mistake, Severity, in_order
from failwell.workflow.plan import Place
from failwell.workflow.source.tree import Item, Path, spelled

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
        self._said: set[tuple[Place | None, str]] = set()

    def add(
        self,
        message: str,
        place: Place | None,
        at: Path | str = (),
        *,
        hint: str = "",
        kind: str = "validation.shape_invalid",
        severity: Severity = "error",
        also: tuple[Place, ...] = (),
    ) -> None:
        """Keep one mistake, once: a part that is used twice through an alias is wrong only once."""
        if (place, message) in self._said:
            return
        if len(self.found) >= MOST:
            self.left_out += 1
            return
        self._said.add((place, message))
        path = at if isinstance(at, str) else spelled(at)
        self.found.append(
            Mistake(
                message=message,
                place=place,
                path=path,
                hint=hint,
                kind=kind,
                severity=severity,
                also=also,
            )
        )

    def wrong(self, item: Item, at: Path, message: str, **more: Any) -> None:
        """Keep a mistake about a value."""
        if len(self.found) >= MOST:
            self.left_out += 1
            return
        self.add(message, item.place, at, **more)

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
            more = f"{self.left_out} further mistakes are not shown; correct these first"
            done.append(Mistake(message=more))
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
    )
