"""Shows on stderr how a run goes, one line for each thing that happened."""

import sys
from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from failwell.journal.event import Event

_WORDS = {
    "node:started": "started",
    "node:completed": "done",
    "node:failed": "failed",
    "node:retrying": "will be repeated",
    "node:waiting": "waits",
    "node:skipped": "skipped",
    "human_gate:paused": "asks",
}


@contextmanager
def progress(asked: Namespace) -> Generator["Plain"]:
    """Whoever tells people about the run, for as long as it goes on."""
    shows = not (asked.quiet or asked.silent or asked.progress == "none")
    yield Plain() if shows else Silent()


class Plain:
    """One line for each fact."""

    def heard(self, event: Event) -> None:
        """Tell one fact."""
        words = _WORDS.get(event.type)
        if words is not None:
            print(f"{event.data['path']}: {words}", file=sys.stderr)

    def pause(self) -> None:
        """Make room for a question."""

    def go_on(self) -> None:
        """The question was answered."""

    def noted(self, kind: str, data: dict[str, Any]) -> None:
        """Hear what is not worth a place in the journal."""


class Silent(Plain):
    """Says nothing."""

    def heard(self, event: Event) -> None:
        """Hear one fact."""
