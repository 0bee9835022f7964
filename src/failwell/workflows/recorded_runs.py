"""Recorded runs from Python: list them, read one and its logs, answer its gates, stop it."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from failwell.store.folder import JOURNAL, state_folder
from failwell.store.run_store import Run
from failwell.store.status import check_statuses

if TYPE_CHECKING:
    from failwell.store.event import Event
    from failwell.store.output_log import LogEntry
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
    from failwell.workflows.recorded_runs__run_logs import run_output

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
    from failwell.store.faults__journal_faults import UnknownRun

    with _open_journal(store) as journal:
        if journal is None:
            raise UnknownRun(run=run_id)
        yield journal, journal.run(run_id)
