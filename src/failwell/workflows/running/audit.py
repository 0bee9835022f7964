"""What the audit holds of a run besides its agents: retries of nodes, gates and their answers, errors that were ignored."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from failwell.calls.suppress import Suppressed, call_hook, scoped_observer
from failwell.store.run_store import Store
from failwell.store.sqlite.run_store import SqliteStore

if TYPE_CHECKING:
    from failwell.store.event import Fact

_T = TypeVar("_T")
_FIELDS: dict[str, tuple[str, ...]] = {
    "node:retrying": ("path", "node", "attempt", "delay", "by"),
    "human_gate:paused": ("path", "node", "gate", "type", "prompt"),
    "human_gate:resumed": ("path", "gate", "decision", "decided_by", "comment"),
    "human_gate:answered": ("path", "gate", "decision", "decided_by", "comment"),
    "stage:failed": ("path", "phase", "attempt"),
    "stage:queued": ("path", "node"),
    "stage:dequeued": ("node",),
    "limit:raised": ("path", "limit", "value"),
    "run:cancelled": ("reason", "by"),
}
"""Type of event → the fields that are recorded."""
AUDITED = frozenset(_FIELDS)
"""The types of events that the audit holds too."""


def record_facts(store: Store, run: str, facts: "Sequence[Fact]") -> None:
    """Record those facts that the audit holds. They are written before anything follows from them.

    Raises:
        Fault: the audit cannot be written.
    """
    for type_, _, data in facts:
        fields = _FIELDS.get(type_)
        if fields is not None and isinstance(store, SqliteStore):
            recorded = {name: data[name] for name in fields if data.get(name) is not None}
            store.audit.append(type_, {**recorded, **_failure(data)}, run=run)


def _failure(data: Mapping[str, Any]) -> dict[str, Any]:
    """The kind of a node's failure, and what was decided about it."""
    match data:
        case {"failure": {"envelope": {"kind": str(kind)}}, "delay": delay}:
            return {"kind": kind, "reason": f"retrying in {delay} s, as {data.get('by', 'its route')} says"}
        case {"failure": {"envelope": {"kind": str(kind)}}}:
            return {"kind": kind}
        case _:
            return {}


def audit_suppressed(store: Store, run: str) -> None:
    """Record every error that this task and those that it starts ignore on purpose from now on."""
    if isinstance(store, SqliteStore):
        scoped_observer.set(partial(_record_suppressed, store, run))


def call_audited_hook(
    store: SqliteStore, run: str, hook: Callable[[_T], object], value: _T, reason: str
) -> None:
    """`call_hook`, where what is ignored is recorded for this run or session."""
    token = scoped_observer.set(partial(_record_suppressed, store, run))
    try:
        call_hook(hook, value, reason=reason)
    finally:
        scoped_observer.reset(token)


def _record_suppressed(store: SqliteStore, run: str, event: Suppressed) -> None:
    facts = {"reason": event.reason, "cause": event.cause, "error": event.report.id}
    store.audit.append("error:suppressed", facts, run=run)
