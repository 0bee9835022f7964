"""A store in memory: the reference for every store, for tests.

Data is kept as JSON text, as in a file, so that nobody can change what was recorded.
"""

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Condition
from typing import Any

from failwell.store.event import Event, Fact, from_json, to_json
from failwell.store.faults import RunExists, UnknownRun
from failwell.store.folder import check_run_id
from failwell.store.locks import Holder, run_locked
from failwell.store.run_store import PruneResult, Run, Snapshot, Subject
from failwell.store.status import StatusFields, fold_status, mark_interrupted, prune_statuses

_LOOK_EVERY = 1.0


class _Stream:
    def __init__(self, about: dict[str, Any], sources: Mapping[str, str]) -> None:
        self.about = about
        self.sources = dict(sources)
        self.fields = StatusFields()
        self.events: list[tuple[str, float, str]] = []
        self.snapshots: dict[int, str] = {}


class MemoryStore:
    """A store in memory, for tests; see `failwell.store.run_store.Store`."""

    def __init__(self) -> None:
        self._streams: dict[str, _Stream] = {}
        self._locked: set[str] = set()
        self._changed = Condition()

    def create(
        self,
        run: str,
        *,
        at: float,
        workflow: str = "",
        file: str = "",
        digest: str = "",
        sources: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        subject: Subject = "run",
        facts: Sequence[Fact] = (),
    ) -> list[Event]:
        check_run_id(run)
        about = {"subject": subject, "workflow": workflow, "file": file, "digest": digest, "started": at}
        about["metadata"] = from_json(to_json(metadata or {}))
        with self._changed:
            if run in self._streams:
                raise RunExists(run=run)
            stream = _Stream(about, sources or {})
            events = self._add(run, stream, facts)
            self._streams[run] = stream
            return events

    def append(self, run: str, facts: Sequence[Fact]) -> list[Event]:
        with self._changed:
            events = self._add(run, self._stream(run), facts)
            self._changed.notify_all()
            return events

    def read(self, run: str, after: int = -1, limit: int | None = None) -> Iterator[Event]:
        stream = self._stream(run)
        end = None if limit is None else after + 1 + limit
        return (
            Event(seq, type_, at, from_json(data))
            for seq, (type_, at, data) in enumerate(stream.events[after + 1 : end], after + 1)
        )

    def tail(self, run: str, after: int = -1, give_up: Callable[[], bool] | None = None) -> Iterator[Event]:
        return self._follow(run, self._stream(run), after, give_up)

    def snapshot(self, run: str, seq: int, state: str) -> None:
        with self._changed:
            snapshots = self._stream(run).snapshots
            snapshots[seq] = state
            for old in sorted(snapshots)[:-2]:
                del snapshots[old]

    def latest_snapshot(self, run: str) -> Snapshot | None:
        snapshots = self._stream(run).snapshots
        return Snapshot(max(snapshots), snapshots[max(snapshots)]) if snapshots else None

    def run(self, run: str) -> Run:
        stream = self._stream(run)
        fields = stream.fields._asdict()
        updated = stream.events[-1][1] if stream.events else stream.about["started"]
        listed = Run(
            id=run, **stream.about, **fields, updated=updated, events=len(stream.events), pid=os.getpid()
        )
        return mark_interrupted(listed, self._holder)

    def runs(
        self,
        *,
        statuses: Sequence[str] = (),
        workflow: str | None = None,
        since: float | None = None,
        prefix: str = "",
        before: str | None = None,
        limit: int | None = None,
        subject: Subject = "run",
    ) -> list[Run]:
        matches = [
            run
            for run in map(self.run, list(self._streams))
            if run.subject == subject
            and (not statuses or run.status in statuses)
            and workflow in (None, run.workflow)
            and (since is None or run.started >= since)
            and run.id.startswith(prefix)
        ]
        matches.sort(key=lambda run: (run.started, run.id), reverse=True)
        if before is not None:
            page_end = self.run(before)
            matches = [run for run in matches if (run.started, run.id) < (page_end.started, page_end.id)]
        return matches[:limit]

    def continuations(self, run: str) -> list[str]:
        return [
            name for name, stream in self._streams.items() if stream.about["metadata"].get("continues") == run
        ]

    def sources(self, run: str) -> dict[str, str]:
        return dict(self._stream(run).sources)

    def replace_sources(self, run: str, sources: Mapping[str, str]) -> None:
        self._stream(run).sources = dict(sources)

    @contextmanager
    def lock(self, run: str) -> Generator[None]:
        check_run_id(run)
        with self._changed:
            if run in self._locked:
                raise run_locked(run, Holder(os.getpid()))
            self._locked.add(run)
        try:
            yield
        finally:
            self._locked.discard(run)

    def is_locked(self, run: str) -> bool:
        return run in self._locked

    def _holder(self, run: str) -> Holder | None:
        return Holder(os.getpid()) if run in self._locked else None

    def prune(
        self,
        *,
        before: float | None = None,
        keep: int = 0,
        statuses: Sequence[str] = (),
        dry_run: bool = False,
    ) -> PruneResult:
        candidates = [
            run
            for run in self.runs(statuses=prune_statuses(statuses))[keep:]
            if before is None or run.updated < before
        ]
        live = [run for run in candidates if run.id in self._locked]
        deleted = [run for run in candidates if run not in live]
        if not dry_run:
            for run in deleted:
                del self._streams[run.id]
        return PruneResult(
            runs=tuple(run.id for run in deleted),
            events=sum(run.events for run in deleted),
            kept_live=tuple(run.id for run in live),
        )

    def close(self) -> None:
        """Nothing is held open."""

    def _stream(self, run: str) -> _Stream:
        try:
            return self._streams[run]
        except KeyError:
            raise UnknownRun(run=run) from None

    def _follow(
        self, run: str, stream: _Stream, after: int, give_up: Callable[[], bool] | None
    ) -> Iterator[Event]:
        while True:
            for event in self.read(run, after):
                after = event.seq
                yield event
            with self._changed:
                if len(stream.events) > after + 1:
                    continue
                if stream.fields.ended is not None:
                    return
                woken = self._changed.wait(_LOOK_EVERY)
            if not woken and give_up is not None and give_up():
                return

    def _add(self, run: str, stream: _Stream, facts: Sequence[Fact]) -> list[Event]:
        fields = fold_status(run, stream.fields, facts)
        rows = [(type_, at, to_json(data)) for type_, at, data in facts]
        start = len(stream.events)
        stream.events += rows
        stream.fields = fields
        return [Event(seq, *fact) for seq, fact in enumerate(facts, start)]
