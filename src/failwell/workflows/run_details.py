"""The details of a run, folded from its events: each node, the open gates, how it ended.

Unknown event types and missing fields are ignored.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from failwell.store.event import Event
from failwell.store.status import as_mapping, as_text

_TAIL = 2_000
"""Characters of a failed script's stderr."""


@dataclass(slots=True)
class NodeRow:
    """The execution of one node."""

    path: str
    node: str = ""
    type: str = ""
    status: str = "running"
    """running, completed, failed, handled (failed, and a route took it), retrying, waiting, asking, skipped."""
    visits: int = 1
    attempts: int = 0
    """In the latest visit."""
    started: float | None = None
    ended: float | None = None
    until: float | None = None
    kind: str | None = None
    message: str | None = None
    stderr_tail: str | None = None
    """The end of a failed script's stderr."""
    exit_code: int | None = None
    """Of a script; the negative number of the signal that ended it."""
    item: str | None = None
    """The key of its item, in a `for_each`."""
    output: Any = None
    """What it returned in its latest visit. The output of a group is that of its members."""

    @property
    def seconds(self) -> float | None:
        """From the first start to the last end."""
        return None if self.started is None or self.ended is None else max(0.0, self.ended - self.started)


@dataclass(slots=True)
class RunDetails:
    """What the events of a run say."""

    nodes: dict[str, NodeRow] = field(default_factory=dict[str, NodeRow])
    """By path, in the order of their first start."""
    gates: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """The data of open gates, by gate."""
    inputs: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    continues: str | None = None
    """The ended run that this one continues."""
    continued_by: list[str] = field(default_factory=list[str])
    """The runs that continue this one. They are found by the store."""
    resumed: int = 0
    end: Event | None = None

    @property
    def secret_inputs(self) -> list[str]:
        """The names of inputs whose values are not recorded, so that a resume needs them again."""
        return [
            name for name, value in (self.inputs or {}).items() if as_mapping(value).get("secret") is True
        ]

    @property
    def failure(self) -> Mapping[str, Any] | None:
        """The failure that ended it."""
        return None if self.end is None else as_mapping(self.end.data.get("failure")) or None

    @property
    def errors_file(self) -> str | None:
        """The file that the failure was also written to."""
        return None if self.end is None else as_text(self.end.data.get("errors_file"))


def run_details(events: Iterable[Event]) -> RunDetails:
    """Fold the events of a run, from its start."""
    details = RunDetails()
    for event in events:
        fold = _FOLDS.get(event.type)
        if fold is not None:
            fold(details, event)
        if event.is_terminal:
            details.end = event
    return details


def _run_started(details: RunDetails, event: Event) -> None:
    details.inputs = as_mapping(event.data.get("inputs"))
    details.metadata = as_mapping(event.data.get("metadata"))
    details.continues = as_text(as_mapping(event.data.get("continues")).get("run"))


def _run_resumed(details: RunDetails, _event: Event) -> None:
    details.resumed += 1


def _row(details: RunDetails, event: Event) -> NodeRow:
    path = str(event.data.get("path", ""))
    row = details.nodes.get(path)
    if row is None:
        row = details.nodes[path] = NodeRow(path=path)
    return row


def _node_started(details: RunDetails, event: Event) -> None:
    row = _row(details, event)
    data = event.data
    visit = data.get("visit", 1)
    row.attempts = row.attempts + 1 if visit == row.visits else 1
    row.visits = visit
    row.node = str(data.get("node", row.node))
    row.type = str(data.get("type", row.type))
    row.item = as_text(data.get("item"))
    row.started = event.at if row.started is None else row.started
    row.status, row.ended, row.until = "running", None, None
    row.exit_code = row.output = None


def _ended(status: str) -> Callable[[RunDetails, Event], None]:
    def fold(details: RunDetails, event: Event) -> None:
        row = _row(details, event)
        row.status, row.ended, row.until = status, event.at, None
        if status == "completed":
            row.kind = row.message = row.stderr_tail = None
        row.output, row.exit_code = event.data.get("output"), exit_code_of(event.data)
        _note_failure(row, event)

    return fold


def _pending(status: str) -> Callable[[RunDetails, Event], None]:
    def fold(details: RunDetails, event: Event) -> None:
        row = _row(details, event)
        row.status = status
        until: object = event.data.get("until")
        row.until = float(until) if isinstance(until, int | float) else None
        row.started = event.at if row.started is None else row.started
        row.exit_code = exit_code_of(event.data)
        _note_failure(row, event)

    return fold


def exit_code_of(data: Mapping[str, Any]) -> int | None:
    """The exit code in the data of an event that ends a script, or one of its attempts."""
    match data:
        # An author's output may hold anything under this name, `true` included.
        case {"output": {"exit_code": int(code)}} if type(code) is int:
            return code
        case {"failure": {"envelope": {"details": {"exit_code": int(code)}}}} if type(code) is int:
            return code
        case {"exit_code": int(code)} if type(code) is int:
            return code
        case _:
            return None


def stderr_of(failure: Mapping[str, Any], output: object) -> str | None:
    """The end of a failed script's stderr, as text: as the failure holds it, or else the output."""
    details = as_mapping(as_mapping(failure.get("envelope")).get("details"))
    tail = as_text(failure.get("stderr_tail")) or as_text(details.get("stderr_tail"))
    if tail is not None:
        return tail
    printed = as_text(as_mapping(output).get("stderr"))
    if printed is None:
        return None
    from failwell.errors.redact import redact_text

    # Masked before it is cut, so that no part of a secret is left at the edge.
    end = printed[-2 * _TAIL :]
    return redact_text(end, 2 * len(end) + 100)[-_TAIL:]


def _note_failure(row: NodeRow, event: Event) -> None:
    failure = as_mapping(event.data.get("failure"))
    envelope = as_mapping(failure.get("envelope"))
    if envelope:
        row.stderr_tail = stderr_of(failure, event.data.get("output"))
        row.kind, row.message = as_text(envelope.get("kind")), as_text(envelope.get("message"))
    elif row.status == "skipped":
        row.message = as_text(event.data.get("reason"))


def _route_taken(details: RunDetails, event: Event) -> None:
    row = _row(details, event)
    if row.status == "failed" and event.data.get("on_error"):
        row.status = "handled"


def _gate_paused(details: RunDetails, event: Event) -> None:
    _pending("asking")(details, event)
    row = _row(details, event)
    row.node = row.node or str(event.data.get("node", ""))
    row.type = row.type or str(event.data.get("type", ""))
    details.gates[str(event.data.get("gate", row.path))] = event.data


def _gate_resumed(details: RunDetails, event: Event) -> None:
    row = _row(details, event)
    details.gates.pop(str(event.data.get("gate", row.path)), None)
    if row.status == "asking":
        row.status, row.ended = "completed", event.at


def _gate_answered(details: RunDetails, event: Event) -> None:
    details.gates.pop(str(event.data.get("gate", event.data.get("path"))), None)
    _row(details, event).message = "answered"


_FOLDS: dict[str, Callable[[RunDetails, Event], None]] = {
    "run:started": _run_started,
    "run:resumed": _run_resumed,
    "node:started": _node_started,
    "node:completed": _ended("completed"),
    "node:failed": _ended("failed"),
    "node:skipped": _ended("skipped"),
    "node:retrying": _pending("retrying"),
    "node:waiting": _pending("waiting"),
    "route:taken": _route_taken,
    "human_gate:paused": _gate_paused,
    "human_gate:answered": _gate_answered,
    "human_gate:resumed": _gate_resumed,
}
