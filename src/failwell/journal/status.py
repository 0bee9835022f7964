"""Where a run stands, folded from its facts: one small pure function that every store shares."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, cast

from failwell.journal.event import TERMINAL, Fact
from failwell.journal.faults import StreamEnded


class Status(StrEnum):
    """Where a run stands."""

    RUNNING = "running"
    WAITING = "waiting"
    """A person has to answer."""
    PARKED = "parked"
    """It goes on by itself after a time that somebody told."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    """Its process is gone. Never stored: whoever looks sees that the status is `running` and the lock free."""


ENDED: frozenset[str] = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
_ENDS = {
    "run:completed": Status.COMPLETED,
    "run:failed": Status.FAILED,
    "run:cancelled": Status.CANCELLED,
    "session:cancelled": Status.CANCELLED,
}
_STARTS = frozenset({"run:started", "run:resumed", "session:started"})
_GOES_ON = frozenset({"node:started", "route:taken"})
"""What shows that a paused run moves again in the process that paused it."""
_ANSWERED = "human_gate:answered"
"""A person answered while nobody drove the run; the answer counts when it is resumed."""
_MOVES = frozenset({*_ENDS, *_STARTS, *_GOES_ON, _ANSWERED, "run:paused"})


class Standing(NamedTuple):
    """What a listing says about a run without reading its events."""

    status: str = Status.RUNNING
    ended: float | None = None
    blocked_until: float | None = None
    gates: int = 0
    """Open questions to people when it last paused, less those answered since."""
    kind: str | None = None
    """Of the failure that ended it."""
    message: str | None = None
    node: str | None = None


def fold(run: str, standing: Standing, facts: Sequence[Fact]) -> Standing:
    """Where the run stands after `facts`; the same object if they move nothing.

    Raises:
        StreamEnded: one of them comes after the end.
    """
    for type_, at, data in facts:
        if standing.ended is not None:
            raise StreamEnded(run=run, ended_by=_ended_by(standing), refused=type_)
        if type_ in _MOVES:
            standing = _moved(standing, type_, at, data)
    return standing


def _moved(standing: Standing, type_: str, at: float, data: Mapping[str, Any]) -> Standing:
    if type_ in _GOES_ON:
        return Standing() if standing.status in (Status.WAITING, Status.PARKED) else standing
    if type_ == _ANSWERED:
        return standing._replace(gates=max(0, standing.gates - 1))
    if type_ in _STARTS:
        return Standing() if standing.status != Status.RUNNING else standing
    if type_ == "run:paused":
        return _paused(data)
    envelope = _mapping(_mapping(data.get("failure")).get("envelope"))
    return Standing(
        status=_ENDS[type_],
        ended=at,
        kind=_text(envelope.get("kind")),
        message=_text(envelope.get("message")) or _text(data.get("reason")),
        node=_text(data.get("node")),
    )


def _paused(data: Mapping[str, Any]) -> Standing:
    held: object = data.get("gates")
    gates = len(cast("list[object]", held)) if isinstance(held, list) else 0
    until: object = data.get("blocked_until")
    blocked = float(until) if isinstance(until, int | float) else None
    return Standing(status=Status.WAITING if gates else Status.PARKED, blocked_until=blocked, gates=gates)


def _ended_by(standing: Standing) -> str:
    return next((name for name, status in _ENDS.items() if status == standing.status), "its end")


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


assert frozenset(_ENDS) == TERMINAL, "every terminal event ends a run in some status"
