"""The status of a run, folded from its facts by one pure function that every store uses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from failwell.store.event import TERMINAL, Event, Fact
from failwell.store.faults import Interrupted, Locked, StreamEnded, UnknownStatus
from failwell.store.locks import Holder

if TYPE_CHECKING:
    from failwell.store.run_store import Run, Store


class Status(StrEnum):
    """The status of a run or a session."""

    RUNNING = "running"
    WAITING = "waiting"
    """A person has to answer."""
    PARKED = "parked"
    """It can be resumed after `blocked_until`."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    """Its process died. Never stored: `running` with a free lock is reported as this."""


ENDED: frozenset[str] = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
_ENDS = {
    "run:completed": Status.COMPLETED,
    "run:failed": Status.FAILED,
    "run:cancelled": Status.CANCELLED,
    "session:cancelled": Status.CANCELLED,
}
_STARTS = frozenset({"run:started", "run:resumed", "session:started", "session:resumed"})
_PROGRESS = frozenset({"node:started", "route:taken"})
"""Types that show that a paused run continues in the process that paused it."""
_ANSWER = "human_gate:answered"
"""An answer that was given while no process had the run; it counts when the run is resumed."""
_CLOSED = "session:closed"
"""Its process left the session in good order. It waits for the next input."""
_CHANGES = frozenset({*_ENDS, *_STARTS, *_PROGRESS, _ANSWER, _CLOSED, "run:paused"})

assert frozenset(_ENDS) == TERMINAL, "every terminal event ends a run in some status"


class StatusFields(NamedTuple):
    """The columns of a listing that follow from the events."""

    status: str = Status.RUNNING
    ended: float | None = None
    blocked_until: float | None = None
    gates: int = 0
    """Gates that were open when it last paused, less those answered since."""
    kind: str | None = None
    """Of the failure that ended it."""
    message: str | None = None
    node: str | None = None


def fold_status(run: str, fields: StatusFields, facts: Sequence[Fact]) -> StatusFields:
    """The fields after `facts`; the same object if nothing changes.

    Raises:
        StreamEnded: a fact follows the terminal one.
    """
    for type_, at, data in facts:
        if fields.ended is not None:
            raise StreamEnded(run=run, ended_by=_end_type(fields), refused=type_)
        if type_ in _CHANGES:
            fields = _after(fields, type_, at, data)
    return fields


def _after(fields: StatusFields, type_: str, at: float, data: Mapping[str, Any]) -> StatusFields:
    if type_ in _PROGRESS:
        return StatusFields() if fields.status in (Status.WAITING, Status.PARKED) else fields
    if type_ == _ANSWER:
        return fields._replace(gates=max(0, fields.gates - 1))
    if type_ in _STARTS:
        return StatusFields() if fields.status != Status.RUNNING else fields
    if type_ == "run:paused":
        return _paused(data)
    if type_ == _CLOSED:
        return StatusFields(status=Status.WAITING)
    envelope = as_mapping(as_mapping(data.get("failure")).get("envelope"))
    return StatusFields(
        status=_ENDS[type_],
        ended=at,
        kind=as_text(envelope.get("kind")),
        message=as_text(envelope.get("message")) or as_text(data.get("reason")),
        node=as_text(data.get("node")),
    )


def _paused(data: Mapping[str, Any]) -> StatusFields:
    open_gates: object = data.get("gates")
    gates = len(cast("list[object]", open_gates)) if isinstance(open_gates, list) else 0
    until: object = data.get("blocked_until")
    blocked = float(until) if isinstance(until, int | float) else None
    return StatusFields(status=Status.WAITING if gates else Status.PARKED, blocked_until=blocked, gates=gates)


def _end_type(fields: StatusFields) -> str:
    return next((type_ for type_, status in _ENDS.items() if status == fields.status), "its end")


def as_mapping(value: object) -> Mapping[str, Any]:
    """A `value` of an event if it is a mapping, else an empty one. Events may come from other versions."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def as_text(value: object) -> str | None:
    """A `value` of an event if it is a text with content, else `None`."""
    return value if isinstance(value, str) and value else None


# ---------------------------------------------------------------- runs whose process died


def mark_interrupted(run: "Run", holder_of: Callable[[str], Holder | None]) -> "Run":
    """`run`, if it says `running`: with the process that holds its lock, or as `interrupted` if none does."""
    if run.status != Status.RUNNING:
        return run
    holder = holder_of(run.id)
    if holder is None:
        return replace(run, status=Status.INTERRUPTED)
    return run if holder.pid in (None, run.pid) else replace(run, pid=holder.pid, host=holder.host)


def check_statuses(statuses: Sequence[str]) -> None:
    """Refuse a filter that no run can match.

    Raises:
        UnknownStatus: one of them is not a status.
    """
    valid = [status.value for status in Status]
    for status in statuses:
        if status not in valid:
            raise UnknownStatus(status=status, valid=valid, fields_invalid=["statuses"])


def stored_statuses(statuses: Sequence[str]) -> list[str]:
    """What to look for in a store to find runs that have one of these statuses."""
    return sorted({Status.RUNNING if status == Status.INTERRUPTED else status for status in statuses})


def prune_statuses(statuses: Sequence[str]) -> Sequence[str]:
    """The statuses that `prune` looks for: those that ended by default.

    `running` and `interrupted` go together. A run of either is deleted if its lock is free, and else reported
    as live.
    """
    unended = {Status.RUNNING, Status.INTERRUPTED}
    return sorted(unended.union(statuses)) if unended.intersection(statuses) else statuses or sorted(ENDED)


def close_interrupted(store: "Store", run: str, *, at: float) -> Event | None:
    """Record that `run` failed because its process died, and return that event.

    Nothing changes and `None` is returned for a run that has ended, waits, or is being written to.

    Raises:
        UnknownRun: there is no such run.
        Fault: the store refuses.
    """
    try:
        with store.lock(run):
            return record_interrupted(store, run, at=at)
    except Locked:
        return None


def record_interrupted(store: "Store", run: str, *, at: float) -> Event | None:
    """`close_interrupted`, for a caller that holds the run's lock."""
    # Read under the lock: whoever held it before may have ended the run.
    if store.run(run).status != Status.RUNNING:
        return None
    from failwell.adapters.describe import describe
    from failwell.errors.axes import ActionKind
    from failwell.errors.facts import UserAction

    advice = UserAction(ActionKind.RESUBMIT, "Resume the run; nodes that have finished are not run again.")
    report = describe(Interrupted(run=run, user_action=advice))
    frames: list[Any] = []
    envelope = {"kind": report.kind, "message": report.message, "details": dict(report.details)}
    data: dict[str, Any] = {
        "failure": {"envelope": envelope, "report": report.to_dict(), "typed": False, "frames": frames},
        "error_type": "Interrupted",
        "node": None,
        "frames": frames,
        "partial_outputs": {},
    }
    return store.append(run, [("run:failed", at, data)])[0]
