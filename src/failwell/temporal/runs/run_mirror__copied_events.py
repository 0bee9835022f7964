"""Copies the events of a run on a server into the local journal, with the files that a local run has beside it."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.store.event import Event, Fact
from failwell.store.output_log import OutputLog, recorded_output
from failwell.store.run_store import Store, append_with_retry
from failwell.workflows.running.files import WRITTEN, write_event

_ENDS = ("node:completed", "node:failed")


class CopiedEvents:
    """The local copy of one run. The caller holds the run's lock."""

    def __init__(
        self, store: Store, run: str, workflow: str, folder: Path, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._store, self._run, self._workflow = store, run, workflow
        self._folder, self._clock = folder, clock
        self._output = OutputLog(folder)
        self._started: dict[str, Event] | None = None
        """Step that runs → its start, which says whose output it is."""

    async def add(self, facts: Sequence[Fact], lines: Sequence[Mapping[str, Any]] = ()) -> list[Event]:
        """Record facts, log `lines` and what scripts printed, write what other programs read, and return the events.

        Raises:
            Fault: the store refuses them.
        """
        started = self._running_steps()
        for line in lines:
            self._output.add(line)
        drafts = (Event(-1, kind, at, data) for kind, at, data in facts)
        for entry in recorded_output(chain(started.values(), drafts)):
            self._output.add(entry.to_dict())
        # What was printed is in the log before its step ends: a follower stops at the end of the run.
        self._output.flush()
        events = await append_with_retry(self._store, self._run, facts, clock=self._clock)
        for event in events:
            self._note_step(started, event)
            if event.type in WRITTEN:
                write_event(self._folder, self._run, self._workflow, event)
        return events

    def close(self) -> None:
        """Close the files."""
        self._output.close()

    def _running_steps(self) -> dict[str, Event]:
        if self._started is None:
            self._started = {}
            for event in self._store.read(self._run):
                self._note_step(self._started, event)
        return self._started

    def _note_step(self, started: dict[str, Event], event: Event) -> None:
        path = str(event.data.get("path", ""))
        if event.type == "node:started":
            started[path] = event
        elif event.type in _ENDS:
            started.pop(path, None)
