"""Pending gates of a recorded run, their answers, and stopping a run, whichever process drives it; and answers by a function."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from failwell.agents.people.requests import Answer, Ask, Request, Select
from failwell.errors.fault import Fault
from failwell.errors.frozen import frozen
from failwell.store.folder import ENGINE, run_folder
from failwell.store.run_store import Run
from failwell.store.sqlite.run_store import SqliteStore
from failwell.workflows.running.gate_requests import GateRequest

if TYPE_CHECKING:
    from failwell.workflows.running.settings import GateAnswer

    OnGate = Callable[[str, Mapping[str, Any]], Awaitable[GateAnswer | None]]

_ANSWER = "answer"
FORCE_AFTER = 30.0
"""Seconds after which the process of a run that does not stop is killed."""


class GateRefused(Fault, kind="validation.input_invalid"):
    """An answer is not valid: the gate is not pending, or the value is not one of its options."""

    run: str
    gate: str
    reason: str

    def summary(self) -> str:
        """Why the answer is not valid."""
        return self.reason


class NotRunning(Fault, kind="validation.input_invalid"):
    """No process drives the run, so there is nothing to stop."""

    run: str
    status: str

    def summary(self) -> str:
        """Which run, and its status."""
        return f"no process is running `{self.run}`; its status is {self.status}"


class NotStopped(Fault, kind="session.locked"):
    """The process that drives a run could not be stopped."""

    run: str
    reason: str

    def summary(self) -> str:
        """Which run, and why."""
        return f"the process that runs `{self.run}` could not be stopped: {self.reason}"


class OtherEngine(Fault, kind="session.locked"):
    """A Temporal server has the run, so it cannot be changed here."""

    run: str

    def summary(self) -> str:
        """Which run, and where to change it."""
        return f"a Temporal server has run `{self.run}`: use `failwell gates answer` or `failwell stop`"


@frozen
class Gate:
    """One gate that a run waits for."""

    id: str
    run: str
    type: str | None
    prompt: str
    values: tuple[str, ...]
    """The values it can be answered with."""
    questions: tuple[Mapping[str, Any], ...] = field(default=())
    """For a `questions` node: each question with its `id` and `text`; answers go into the payload."""
    assignee: str | None = None
    answered: bool = False
    """An answer is recorded; it counts when the run is resumed."""

    def to_dict(self) -> dict[str, Any]:
        """The gate as JSON."""
        return {
            "id": self.id,
            "run": self.run,
            "type": self.type,
            "prompt": self.prompt,
            "values": list(self.values),
            "questions": [dict(question) for question in self.questions],
            "assignee": self.assignee,
            "answered": self.answered,
        }


def pending_gates(store: SqliteStore, run: str) -> list[Gate]:
    """The gates that a run waits for, and the other questions of the process that drives it.

    Raises:
        StoreCorrupt: what is recorded of the run or of a gate is not what a run records.
    """
    from failwell.store.faults import damaged_record_fault
    from failwell.workflows.running.gate_requests import gates_in
    from failwell.workflows.running.restoring import restore

    gates = gates_in(restore(store, run).tasks.values())
    try:
        recorded = [_gate(run, gate, question) for gate, question in gates.items()]
        return [*recorded, *_live_questions(store, run, frozenset(gates))]
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise damaged_record_fault(f"run `{run}`", error) from error


def _live_questions(store: SqliteStore, run: str, recorded: frozenset[str]) -> list[Gate]:
    """What the process that drives the run asks besides its gates, such as approvals of tool calls."""
    from failwell.workflows.running.control import send

    reply = send(run_folder(store.folder, run), {"do": "list"}) or {}
    return [
        Gate(
            id=_text(question["id"]),
            run=run,
            type=question["type"],
            prompt=_text(question["text"]),
            values=tuple(map(_text, question.get("values") or ())),
        )
        for question in reply.get("questions", ())
        if question["id"] not in recorded
    ]


def _gate(run: str, gate: str, question: Mapping[str, Any]) -> Gate:
    """A gate with texts where texts belong: its questions may be computed, and other versions may have recorded it."""
    from failwell.workflows.running.gate_requests import answers_of

    return Gate(
        id=gate,
        run=run,
        type=question.get("type"),
        prompt=_text(question.get("prompt")),
        values=tuple(_text(value) for value in answers_of(question)),
        questions=tuple(_question(entry) for entry in question.get("questions") or ()),
        assignee=question.get("assignee"),
        answered="answer" in question,
    )


def _question(entry: Mapping[str, Any]) -> dict[str, Any]:
    choices = [_text(choice) for choice in entry.get("choices") or ()]
    return {**entry, "id": _text(entry["id"]), "text": _text(entry["text"]), "choices": choices}


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else str(value)


def answer(
    store: SqliteStore,
    run: str,
    gate: str,
    value: str,
    *,
    by: str,
    comment: str = "",
    payload: Any = None,
) -> bool:
    """Answer a gate. `True` if a process drives the run and takes the answer now; else it is recorded for the resume.

    Raises:
        GateRefused: the gate is not pending, or the value does not fit.
    """
    from failwell.workflows.running.control import send

    message: dict[str, Any] = {"gate": gate, "decision": value, "by": by, "comment": comment}
    if payload is not None:
        message["payload"] = payload
    reply = send(run_folder(store.folder, run), {"do": "answer", **message})
    if reply is None:
        _record_answer(store, run, message)
        return False
    if not reply["ok"]:
        raise GateRefused(run=run, gate=gate, reason=reply["error"])
    return True


def _check_engine(store: SqliteStore, run: str) -> None:
    """Refuse to write into the copy of a run that another engine drives.

    Raises:
        OtherEngine: it does.
    """
    if (run_folder(store.folder, run) / ENGINE).exists() and store.run(run).ended is None:
        raise OtherEngine(run=run)


def _record_answer(store: SqliteStore, run: str, message: Mapping[str, Any]) -> None:
    from failwell.calls.clock import SYSTEM_CLOCK
    from failwell.workflows.running.audit import record_facts
    from failwell.workflows.running.gate_requests import gates_in, refusal
    from failwell.workflows.running.restoring import restore

    gate = message["gate"]
    _check_engine(store, run)
    with store.lock(run):
        tasks = restore(store, run).tasks.values()
        problem = refusal(gates_in(tasks), gate, message["decision"], message.get("payload"))
        if problem is not None:
            raise GateRefused(run=run, gate=gate, reason=problem)
        task = next(task for task in tasks if task.gate == gate)
        data = {
            "path": task.path,
            "gate": gate,
            "decision": message["decision"],
            "decided_by": message["by"],
        }
        data |= {name: message[name] for name in ("payload", "comment") if message.get(name)}
        facts = [("human_gate:answered", SYSTEM_CLOCK.now().timestamp(), data)]
        record_facts(store, run, facts)
        store.append(run, facts)


def cancel(
    store: SqliteStore, run: Run, *, by: str, reason: str = "user", force_after: float = FORCE_AFTER
) -> str:
    """Stop a running workflow, wait until it has ended, and return its final status.

    Its process is asked first. If the run has not ended after `force_after` seconds, the process is killed, and its
    guardian ends what its steps had started. A run that waits is cancelled, and one whose process died is recorded
    as failed.

    Raises:
        NotRunning: it has ended.
        NotStopped: its process is on another machine, or cannot be killed.
    """
    from failwell.calls.clock import SYSTEM_CLOCK
    from failwell.workflows.running.control import send

    deadline = SYSTEM_CLOCK.monotonic() + force_after
    folder = run_folder(store.folder, run.id)
    request = {"do": "cancel", "by": by, "reason": reason}

    def request_stop() -> bool:
        return send(folder, request, patience=min(force_after, 10.0)) is not None

    is_requested = request_stop()
    if not is_requested and not store.is_locked(run.id):
        _check_engine(store, run.id)
        if run.status == "interrupted":
            return _close_interrupted(store, run.id)
        if run.status in ("waiting", "parked"):
            _record_cancelled(store, run.id, by, reason)
            return store.run(run.id).status
        raise NotRunning(run=run.id, status=store.run(run.id).status)

    def give_up() -> bool:
        nonlocal is_requested
        # A run that has just begun may not listen yet.
        is_requested = is_requested or request_stop()
        return SYSTEM_CLOCK.monotonic() >= deadline or not store.is_locked(run.id)

    events = store.tail(run.id, run.events - 1, give_up=give_up)
    if not any(event.is_terminal for event in events) and store.run(run.id).ended is None:
        was_killed = _kill(store, run.id)
        _record_cancelled(store, run.id, by, reason, forced=was_killed)
    return store.run(run.id).status


def _kill(store: SqliteStore, run: str) -> bool:
    """Kill the process that drives the run, and wait until its lock is free. Returns whether there was one."""
    import os
    import signal
    from socket import gethostname

    from failwell.calls.clock import SYSTEM_CLOCK
    from failwell.store.locks import holder_of

    holder = holder_of(run_folder(store.folder, run))
    if holder is None:
        return False
    if holder.pid is None or holder.host != gethostname():
        raise NotStopped(run=run, reason=f"it is on the host `{holder.host or 'unknown'}`")
    try:
        os.kill(holder.pid, signal.SIGKILL)
    except ProcessLookupError:
        # It has just ended by itself.
        return False
    except PermissionError:
        raise NotStopped(run=run, reason=f"process {holder.pid} belongs to another user") from None
    for _ in range(500):
        if not store.is_locked(run):
            return True
        SYSTEM_CLOCK.sleep(0.01)
    raise NotStopped(run=run, reason=f"process {holder.pid} does not end")


def _record_cancelled(store: SqliteStore, run: str, by: str, reason: str, *, forced: bool = False) -> None:
    """Record the end of a run that no process drives: it waits, or its process was killed."""
    from failwell.calls.clock import SYSTEM_CLOCK

    data: dict[str, Any] = {"reason": reason, "by": by}
    if forced:
        data["forced"] = True
    with store.lock(run):
        if store.run(run).ended is None:
            store.append(run, [("run:cancelled", SYSTEM_CLOCK.now().timestamp(), data)])


def _close_interrupted(store: SqliteStore, run: str) -> str:
    from failwell.calls.clock import SYSTEM_CLOCK
    from failwell.store.status import close_interrupted

    close_interrupted(store, run, at=SYSTEM_CLOCK.now().timestamp())
    return store.run(run).status


class CallbackAnswerer:
    """An answerer that calls `on_gate` with the id and the question of a gate. Other requests look like gates to it."""

    name = "on_gate"

    def __init__(self, on_gate: "OnGate") -> None:
        self._on_gate = on_gate

    async def answer(self, request: Request) -> Answer | None:
        """What the function answers."""
        question = request.question if isinstance(request, GateRequest) else _as_gate(request)
        reply = await self._on_gate(request.id, question)
        if reply is None:
            return None
        if isinstance(request, Ask):
            payload: Mapping[str, Any] = reply.payload or {}
            return Answer(value=str(payload.get(_ANSWER) or ""), by=reply.by)
        value = request.value_of(reply.decision)
        return Answer(value=value, by=reply.by, comment=reply.comment, payload=reply.payload)


def _as_gate(request: Request) -> dict[str, Any]:
    """A request as the question of a gate. Whatever answers without reading takes the first option, the cautious one."""
    if isinstance(request, Ask):
        question: dict[str, Any] = {
            "id": _ANSWER,
            "text": request.text,
            "hint": "",
            "choices": [],
            "required": False,
        }
        return {
            "type": "questions",
            "prompt": "",
            "questions": [question],
            "options": [],
            "allow_back": False,
        }
    kind = "approval" if request.type == "approve" else request.type
    options = (
        [option.to_dict() for option in request.options]
        if isinstance(request, Select)
        else [{"label": value, "value": value} for value in request.values]
    )
    return {
        **{name: value for name, value in request.scope.items() if name in ("path", "node")},
        "type": kind,
        "prompt": request.text,
        "options": options,
    }
