"""Runs whose process is gone: found by their free lock, and closed where nobody can take them up again.

A run that waits for a person or for a time has no process and needs none, so it is left alone.
"""

from collections.abc import Callable, Sequence
from typing import Any

from failwell.fault.base import Fault
from failwell.fault.frozen import frozen
from failwell.journal.event import Event
from failwell.journal.faults import Locked
from failwell.journal.status import Status
from failwell.journal.store import Run, Store
from failwell.report.describe import describe


class Interrupted(Fault, kind="internal.unknown"):
    """The process that ran the workflow ended without a word."""

    run: str

    def summary(self) -> str:
        return f"the process that ran `{self.run}` ended without a word"


@frozen
class Reconciled:
    """What came of one interrupted run."""

    run: str
    event: Event | None = None
    """The end that was recorded; `None` if it was left alone."""
    refusal: Fault | None = None
    """Why the store did not take it."""


def standing(store: Store, run: Run) -> str:
    """The run's status, or `interrupted` if it says `running` and nobody runs it."""
    if run.status == Status.RUNNING and not store.is_locked(run.id):
        return Status.INTERRUPTED
    return run.status


def interrupted(store: Store) -> list[Run]:
    """The runs whose process is gone, the newest first."""
    return [run for run in store.runs(statuses=(Status.RUNNING,)) if not store.is_locked(run.id)]


def can_resume(store: Store, run: Run) -> bool:
    """Whether the journal holds what a resume needs: the run's start."""
    first = next(iter(store.read(run.id, limit=1)), None)
    return first is not None and first.type == "run:started"


def reconcile(
    store: Store, run: str, *, at: float, resumable: Callable[[Store, Run], bool] = can_resume
) -> Event | None:
    """Record that `run` failed if its process is gone and it cannot be resumed; else leave it alone.

    Raises:
        UnknownRun: there is no such run.
        Fault: the store refuses.
    """
    try:
        with store.lock(run):
            # Read under the lock: whoever held it may have ended the run.
            found = store.run(run)
            if found.status != Status.RUNNING or resumable(store, found):
                return None
            return store.append(run, [("run:failed", at, _failed(found))])[0]
    except Locked:
        return None


def reconcile_all(
    store: Store, *, at: float, resumable: Callable[[Store, Run], bool] = can_resume
) -> Sequence[Reconciled]:
    """Reconcile every interrupted run; one that the store refuses does not stop the others."""
    results: list[Reconciled] = []
    for run in interrupted(store):
        try:
            results.append(Reconciled(run=run.id, event=reconcile(store, run.id, at=at, resumable=resumable)))
        except Fault as refusal:
            results.append(Reconciled(run=run.id, refusal=refusal))
    return results


def _failed(run: Run) -> dict[str, Any]:
    report = describe(Interrupted(run=run.id))
    frames: list[Any] = []
    envelope = {"kind": report.kind, "message": report.message, "details": dict(report.details)}
    failure = {"envelope": envelope, "report": report.to_dict(), "typed": False, "frames": frames}
    return {
        "failure": failure,
        "error_type": "Interrupted",
        "node": None,
        "frames": frames,
        "partial_outputs": {},
    }
