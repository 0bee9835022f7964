"""What a model says in one turn, the same for every provider."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class LabTurn:
    """One reply of a scripted model: what it thinks, says and calls. Any part may be left out."""

    text: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Tool calls, each a name and its arguments."""
    thinking: str = ""
    """What a reasoning model thinks first. Chat completions do not show it."""

    def arguments(self) -> list[tuple[str, str]]:
        """The names of the calls, and their arguments as JSON."""
        return [(name, json.dumps(dict(arguments))) for name, arguments in self.calls]


@dataclass(slots=True)
class Pieces:
    """A text in the pieces in which a stream sends it."""

    text: str
    size: int = field(default=12)

    def __iter__(self) -> Iterator[str]:
        return (self.text[start : start + self.size] for start in range(0, len(self.text), self.size))
