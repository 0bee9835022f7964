"""Recorded runs from Python: list them, read one and its logs, answer its gates, stop it."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from heapq import merge
from pathlib import Path
from typing import TYPE_CHECKING, Any

from failwell.store.folder import JOURNAL, run_folder, state_folder
from failwell.store.output_log import LogEntry, OutputReader, entry_of, follow_output, recorded_output
from failwell.store.run_store import Run
from failwell.store.status import check_statuses

if TYPE_CHECKING:
    from failwell.jobs.store.sqlite import JobStore
    from failwell.store.event import Event
    from failwell.store.sqlite.run_store import SqliteStore
    from failwell.workflows.gates import Gate


def list_runs(
    *,
    store: str | Path | None = None,
    statuses: Sequence[str] = (),
    workflow: str | None = None,
    since: datetime | None = None,
    limit: int | None = 50,
) -> list[Run]:
    """Recorded runs that match every filter, the newest first.

    Args:
        store: The state folder (default: `FAILWELL_STORE`, else the user's own).
        statuses: `running`, `waiting`, `parked`, `interrupted`, `completed`, `failed`, `cancelled`.
        workflow: The name of a workflow.
        since: Only runs that started since then.
        limit: The most runs to return.

    Raises:
        UnknownStatus: one of `statuses` is not a status; the message lists those there are.
    """
    check_statuses(statuses)
    with _open_journal(store) as journal:
        if journal is None:
            return []
        return journal.runs(
            statuses=statuses,
            workflow=workflow,
            since=None if since is None else since.timestamp(),
            limit=limit,
        )


def get_run(run_id: str, *, store: str | Path | None = None) -> Run:
    """One recorded run.

    Raises:
        UnknownRun: it is not recorded.
    """
    with _existing(run_id, store) as (_journal, run):
        return run


def read_events(run_id: str, *, store: str | Path | None = None, after: int = -1) -> "list[Event]":
    """The recorded events of a run with a number higher than `after`.

    Raises:
        UnknownRun: it is not recorded.
    """
    with _existing(run_id, store) as (journal, _run):
        return list(journal.read(run_id, after))


def read_logs(
    run_id: str, step: str | None = None, *, store: str | Path | None = None, follow: bool = False
) -> "Iterator[LogEntry]":
    """What the steps of a run printed on stdout and stderr, in order.

    Args:
        run_id: The run.
        step: Only this step, with everything below it: its name, or its path in events.
        store: The state folder.
        follow: Whether to go on until the run ends, or no process drives it.

    Raises:
        UnknownRun: it is not recorded.
    """
    get_run(run_id, store=store)

    def entries() -> "Generator[LogEntry]":
        with _existing(run_id, store) as (journal, _run):
            yield from run_output(journal, run_id, step=step, follow=follow)

    return entries()


def list_gates(run_id: str, *, store: str | Path | None = None) -> "list[Gate]":
    """The gates that a run waits for.

    Raises:
        UnknownRun: it is not recorded.
    """
    from failwell.workflows.gates import pending_gates

    with _existing(run_id, store) as (journal, _run):
        return pending_gates(journal, run_id)


def answer_gate(
    run_id: str,
    gate: str,
    value: str,
    *,
    by: str,
    comment: str = "",
    payload: Any = None,
    store: str | Path | None = None,
) -> bool:
    """Answer a gate. `True` if a running process takes the answer now; else resume the run to use it.

    Args:
        run_id: The run.
        gate: The gate, as `list_gates` names it.
        value: One of the gate's values.
        by: Who answers; recorded.
        comment: A comment; recorded.
        payload: More input, or the answers of a `questions` node by id.
        store: The state folder.

    Raises:
        UnknownRun: the run is not recorded.
        GateRefused: the gate is not pending, or the value does not fit.
    """
    from failwell.workflows.gates import answer

    with _existing(run_id, store) as (journal, _run):
        return answer(journal, run_id, gate, value, by=by, comment=comment, payload=payload)


def cancel_run(
    run_id: str,
    *,
    by: str = "",
    reason: str = "user",
    force_after: float = 30.0,
    store: str | Path | None = None,
) -> str:
    """Stop a workflow that runs or waits, wait until it has ended, and return its final status.

    Args:
        run_id: The run.
        by: Who stops it; recorded.
        reason: Why; recorded.
        force_after: Seconds after which its process is killed, with everything that its steps started.
        store: The state folder.

    Raises:
        UnknownRun: it is not recorded.
        NotRunning: it has ended.
        NotStopped: its process is on another machine, or cannot be killed.
    """
    from failwell.workflows.gates import cancel

    with _existing(run_id, store) as (journal, run):
        return cancel(journal, run, by=by, reason=reason, force_after=force_after)


@contextmanager
def _open_journal(store: str | Path | None) -> "Generator[SqliteStore | None]":
    """The journal whose runs a caller lists or answers; `None` if there is none, and none is created."""
    folder = state_folder(None if store is None else str(store))
    if not (folder / JOURNAL).exists():
        yield None
        return
    from failwell.store.sqlite.run_store import SqliteStore

    journal = SqliteStore(folder, read_when_full=True)
    try:
        yield journal
    finally:
        journal.close()


@contextmanager
def _existing(run_id: str, store: str | Path | None) -> "Generator[tuple[SqliteStore, Run]]":
    from failwell.store.faults import UnknownRun

    with _open_journal(store) as journal:
        if journal is None:
            raise UnknownRun(run=run_id)
        yield journal, journal.run(run_id)


def run_output(
    store: "SqliteStore", run: str, *, step: str | None = None, follow: bool = False
) -> Iterator[LogEntry]:
    """What the steps of a run printed, in order.

    Args:
        store: The journal.
        run: The run.
        step: Only this step, with everything below it: a name, or a path as `runs show` prints it.
        follow: Whether to go on until the run ends or no process drives it.
    """
    for output in _output(store, run, follow=follow):
        if step is None or is_step(output, step):
            yield output


def is_step(output: LogEntry, step: str) -> bool:
    """Whether `step` names the step that printed this, a step above it, or its item."""
    path = output.path
    return not path or step in (path, output.node) or path.startswith((f"{step}/", f"{step}["))


def _output(store: "SqliteStore", run: str, *, follow: bool) -> Generator[LogEntry]:
    folder = run_folder(store.folder, run)
    jobs = _JobLines(store, run)

    def is_over() -> bool:
        return store.run(run).ended is not None or not store.is_locked(run)

    try:
        if follow and not is_over():
            yield from follow_output(folder, is_over, jobs.read)
            return
        reader = OutputReader(folder)
        try:
            entries = reader.read() if reader.exists else recorded_output(store.read(run))
            yield from merge(entries, jobs.read(), key=lambda entry: entry.at)
        finally:
            reader.close()
    finally:
        jobs.close()


class _JobLines:
    """What the `job` steps of a run printed: the queue stores the last lines of each job."""

    def __init__(self, store: "SqliteStore", run: str) -> None:
        self._store, self._run = store, run
        self._after = -1
        self._steps: dict[str, Mapping[str, Any]] = {}
        self._last: dict[str, int] = {}
        self._jobs: JobStore | None = None

    def read(self) -> list[LogEntry]:
        """The lines that were added since the last call, the oldest first."""
        for event in self._store.read(self._run, self._after):
            self._after = event.seq
            if event.type == "node:started" and event.data.get("type") == "job":
                self._steps[str(event.data.get("key"))] = event.data
        entries = [entry for key, step in self._steps.items() for entry in self._lines(key, step)]
        return sorted(entries, key=lambda entry: entry.at)

    def close(self) -> None:
        """Close the queue's store."""
        if self._jobs is not None:
            self._jobs.close()

    def _lines(self, key: str, step: Mapping[str, Any]) -> Iterator[LogEntry]:
        from failwell.jobs.output import read_lines
        from failwell.jobs.store.sqlite import JobStore

        self._jobs = self._jobs or JobStore(self._store.folder)
        job = self._jobs.find_by_key(key)
        if job is None:
            return
        last = self._last.get(job.id, 0)
        for line in read_lines(self._jobs.folder, job.id, last):
            if line.n > last + 1:
                yield entry_of(step, line.at, gap=f"{line.n - last - 1} earlier lines were not kept")
            last = line.n
            level = f"{line.level.lower()}: " if line.stream == "log" else ""
            stream = "stdout" if line.stream == "stdout" else "stderr"
            yield entry_of(step, line.at, stream=stream, text=f"{level}{line.text}\n")
        self._last[job.id] = last
