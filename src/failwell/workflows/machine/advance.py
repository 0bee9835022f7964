"""`Machine.advance(state, event)`: every change of a run happens here.

It reads nothing but its arguments: the same state and event give the same result in any process. It writes to the state
that is passed in. A turn applies the event, then processes pending scopes and groups until only the driver can continue,
or until the turn has enough facts to be written.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from failwell.workflows.failure import Failure
from failwell.workflows.machine.closing import (
    cancel_run,
    close_run,
    end_run,
    finish_turn,
    hook,
    repeat_question,
    running_below,
    while_running,
)
from failwell.workflows.machine.ending import CANCELLED_MEMBER, complete, fail, is_stopping
from failwell.workflows.machine.entering import begin, enter, is_full, start_again
from failwell.workflows.machine.fold import LEAVES
from failwell.workflows.machine.gate_steps import answer, gate_timed_out, needs_approval, pauses_for_budget
from failwell.workflows.machine.groups import pump_group, retry_items
from failwell.workflows.machine.limits import MORE, iteration_limit, set_timer, time_is_up, unpriced_usage
from failwell.workflows.machine.messages import (
    RUN_TIMER,
    Answered,
    Begin,
    Cancel,
    Command,
    Continue,
    Done,
    Event,
    Failed,
    Opened,
    Resume,
    SetTimer,
    Stopped,
    Tick,
    TimerFired,
)
from failwell.workflows.machine.run_state import ACTIVE, State, Task, below
from failwell.workflows.machine.scopes import close_scope
from failwell.workflows.machine.stages import end_phase, fail_phase
from failwell.workflows.machine.turn import Library, Turn
from failwell.workflows.plan import END


class Machine:
    """Advances runs of some plans. Plans of sub-workflows may be added during a run."""

    __slots__ = ("can_ask", "plans")

    def __init__(self, plans: Library, *, can_ask: bool = False) -> None:
        self.plans = plans
        self.can_ask = can_ask
        """Whether a person is asked for more steps at an iteration limit, instead of failing the run."""

    def advance(self, state: State, event: Event) -> Turn:
        """Handle `event`: change `state`, and return the facts to record and then the commands."""
        turn = Turn(state, self.plans, event.at, event.jitter, can_ask=self.can_ask)
        if not turn.state.is_over:
            _apply_event(turn, event)
            _process_pending(turn)
            finish_turn(turn)
        if turn.pending and not turn.state.is_over:
            turn.commands.append(Continue())
        turn.state.owed = [] if turn.state.is_over else list(turn.pending)
        return turn

    def close(self, state: State, event: Event, failure: Failure | None) -> Turn:
        """The turn that ends a run at once; `event` was not handled. Only a run that is being cancelled needs no failure.

        It follows no route and evaluates no template. What was running runs again when the run is continued.
        """
        turn = Turn(state, self.plans, event.at, event.jitter)
        if isinstance(event, Begin):
            _record_start(turn, event)
        elif isinstance(event, Resume):
            _record_resume(turn, event)
        close_run(turn, failure)
        return turn


def _process_pending(turn: Turn) -> None:
    while turn.pending and not turn.is_full:
        path = turn.pending.popleft()
        group = turn.state.groups.get(path)
        if group is not None:
            pump_group(turn, group, enter)
        elif path in turn.state.scopes:
            _pump_scope(turn, path)
        else:
            _timer_fired(turn, path)


def _pump_scope(turn: Turn, path: str) -> None:
    scope = turn.state.scopes[path]
    if scope.ended or scope.cursor is None or turn.is_closing:
        return
    if path and turn.state.tasks[path].status != "child":
        # It has failed, for example by its time limit, while its last step ended.
        return
    if scope.cursor == END and scope.later:
        turn.record("stage:dequeued", {"scope": path, "node": scope.later[0]})
        turn.schedule(path)
        return
    if scope.cursor == END:
        close_scope(turn, scope)
        return
    at = below(path, scope.cursor)
    if at in turn.state.tasks:
        return
    node = turn.plan(scope).nodes[scope.cursor]
    visit = (scope.visits.get(node.name) or 0) + 1
    task = Task(
        path=at,
        scope=path,
        node=node.name,
        type=node.type,
        status="running",
        visit=visit,
        attempt=1,
        started=turn.at,
    )
    enter(turn, task, node, waits_as=path)


def _apply_event(turn: Turn, event: Event) -> None:
    match event:
        case Begin():
            _begin(turn, event)
        case Resume():
            _resume(turn, event)
        case Done() | Failed() | Stopped():
            _leaf_ended(turn, event)
        case Opened():
            _opened(turn, event)
        case TimerFired():
            _timer_fired(turn, event.timer)
        case Answered():
            answer(turn, event)
        case Cancel():
            cancel_run(turn, event.reason, event.by)
        case Tick():
            pass


def _begin(turn: Turn, event: Begin) -> None:
    _record_start(turn, event)
    hook(turn, "on_start")
    _arm_run_timer(turn)
    if event.continues is None:
        turn.schedule("")
    else:
        _restart_tasks(turn)


def _record_start(turn: Turn, event: Begin) -> None:
    plan = turn.plans[event.file]
    data: dict[str, Any] = {
        "run": event.run,
        "workflow": plan.name,
        "file": event.file,
        "digest": plan.digest,
        "entry": plan.entry,
        "inputs": dict(event.inputs),
        "metadata": {**plan.metadata, **event.metadata},
    }
    if event.continues is not None:
        data["continues"] = dict(event.continues)
        data["state"] = event.state
    turn.record("run:started", data)


def _resume(turn: Turn, event: Resume) -> None:
    _record_resume(turn, event)
    _arm_run_timer(turn)
    _restart_tasks(turn)


def _record_resume(turn: Turn, event: Resume) -> None:
    state = turn.state
    # Only the time in which a process drove the run counts; it ends with the last fact.
    worked = state.active + max(0.0, state.at - state.begun)
    idle = round(max(0.0, turn.at - state.at), 3)
    data: dict[str, Any] = {"from_seq": state.seq - 1, "by": event.by, "active": worked, "idle": idle}
    if event.accepted_changes:
        data["accepted_changes"] = True
    if event.limits:
        data["limits"] = dict(event.limits)
    turn.record("run:resumed", data)


def _restart_tasks(turn: Turn) -> None:
    """Run what was running again, and set the timers and gates of what was waiting."""
    state = turn.state
    turn.pending.clear()
    state.waiting = []
    for task in list(state.tasks.values()):
        match task.status:
            case "running" | "opening" if is_stopping(turn, task):
                fail(turn, task, turn.failure("cancel.stage", CANCELLED_MEMBER, task=task))
            case "running" | "opening":
                start_again(turn, task, because="crash")
            case "group" | "child":
                set_timer(turn, task)
            case "retrying" | "waiting":
                turn.commands.append(SetTimer(timer=task.path, at=task.until or turn.at))
            case "gate" | "budget":
                _reopen_gate(turn, task)
            case _:
                pass
    turn.pending.extend([*state.groups, *state.scopes])


def _reopen_gate(turn: Turn, task: Task) -> None:
    decision = (task.asked or {}).get("answer")
    if decision is not None:
        event = Answered(
            at=turn.at,
            gate=decision["gate"],
            decision=decision["decision"],
            by=decision["decided_by"],
            payload=decision.get("payload"),
            comment=decision.get("comment", ""),
        )
        answer(turn, event)
        return
    if (task.asked or {}).get("type") == "limit":
        limit = iteration_limit(turn, task.scope)
        if task.gate is not None and turn.state.scopes[task.scope].iterations <= limit:
            # `resume --raise-limit` has answered it.
            answer(
                turn, Answered(at=turn.at, gate=task.gate, decision=MORE, by="resume", payload={"steps": 0})
            )
            return
    repeat_question(turn, task)
    if task.until is not None:
        turn.commands.append(SetTimer(timer=task.path, at=task.until))


def _arm_run_timer(turn: Turn) -> None:
    state = turn.state
    limit = state.limits.get("timeout_seconds", turn.plans[state.file].limits.timeout_seconds)
    if limit is not None:
        turn.commands.append(SetTimer(timer=RUN_TIMER, at=turn.at + max(0.0, limit - state.active)))


def _leaf_ended(turn: Turn, event: Done | Failed | Stopped) -> None:
    task = turn.state.tasks.get(event.path)
    if task is None or task.status not in ("running", "opening"):
        return
    if isinstance(event, Done):
        unpriced = unpriced_usage(turn, task, event.usage)
        if task.type == "stage":
            end_phase(turn, task, event.output, event.usage, unpriced)
        elif unpriced is None:
            complete(turn, task, event.output, usage=event.usage)
        else:
            fail(turn, task, replace(unpriced, output=event.output, usage=event.usage))
    elif isinstance(event, Failed):
        if not pauses_for_budget(turn, task, event.failure):
            _fail_leaf(turn, task, event.failure)
    else:
        kind = "cancel.run" if turn.is_closing else "cancel.stage"
        _fail_leaf(turn, task, turn.failure(kind, f"`{task.node}` was stopped", task=task))
    _free_slot(turn)


def _fail_leaf(turn: Turn, task: Task, failure: Failure) -> None:
    if task.type == "stage":
        fail_phase(turn, task, failure)
    else:
        fail(turn, task, failure)


def _free_slot(turn: Turn) -> None:
    waiting, turn.state.waiting = turn.state.waiting, []
    for path in dict.fromkeys(waiting):
        turn.schedule(path)


def _opened(turn: Turn, event: Opened) -> None:
    task = turn.state.tasks.get(event.path)
    if task is not None and task.status == "opening":
        if turn.is_closing:
            fail(turn, task, turn.failure("cancel.run", f"`{task.node}` was stopped", task=task))
            return
        begin(turn, task)


def _timer_fired(turn: Turn, timer: str) -> None:
    if timer == RUN_TIMER:
        _run_timed_out(turn)
        return
    task = turn.state.tasks.get(timer)
    if task is None or turn.is_closing or (task.until is not None and turn.at < task.until - 0.001):
        return
    if task.status == "retrying":
        _retry_now(turn, task)
    elif task.status == "waiting":
        complete(turn, task, {"waited_seconds": round(turn.at - task.started, 3)})
    elif task.status == "gate":
        gate_timed_out(turn, task)
    elif task.status in ("group", "child"):
        time_is_up(turn, task)


def _retry_now(turn: Turn, task: Task) -> None:
    node = turn.node(task)
    if node.type in LEAVES and is_full(turn):
        turn.state.waiting.append(task.path)
    elif node.type not in LEAVES or not needs_approval(turn, task.but(attempt=task.attempt + 1), node):
        start_again(turn, task, because="retry")


def _run_timed_out(turn: Turn) -> None:
    state = turn.state
    if turn.is_closing:
        return
    limit = state.limits.get("timeout_seconds", turn.plans[state.file].limits.timeout_seconds)
    elapsed = state.active + max(0.0, turn.at - state.begun)
    running = running_below(turn, "")
    turn.record("run:timeout", {"elapsed": round(elapsed, 3), "limit": limit, "running": running})
    late = turn.failure(
        "limit.run_timeout",
        f"the run reached its time limit of {limit:g} s{while_running(running)}",
        details={"timeout_seconds": limit, "running": running},
    )
    end_run(turn, late, error_type="LimitReached", node=None)


def revive(state: State) -> None:
    """Make the state of a run that has failed the one that a new run continues with: what failed runs again."""
    for group in state.groups.values():
        retry_items(group)
    for path, task in list(state.tasks.items()):
        status = "group" if path in state.groups else "child" if path in state.scopes else None
        if status is not None:
            state.tasks[path] = task.but(status=status, stored=None, until=None, timed_out=False)
            if task.parent is not None:
                state.groups[task.parent].active[path] = True
        elif task.status in ("failed", *ACTIVE):
            del state.tasks[path]
            if task.parent is not None:
                state.groups[task.parent].active.pop(path, None)
            elif task.type == "stage":
                # It is the same visit, so that its cap does not keep a run from being continued.
                state.scopes[task.scope].visits[task.node] = task.visit - 1
    state.cancel = state.ending = None


Facts = list[tuple[str, float, Mapping[str, Any]]]
"""The type, the time and the data of each fact."""
MAX_FACTS = 1_024
"""A batch ends after this many facts, so that they are recorded together in bounded time."""


class Defect(NamedTuple):
    """An event that the machine could not handle."""

    event: Event
    error: Exception


def take_turns(
    machine: Machine,
    state: State,
    queue: deque[Event],
    *,
    now: Callable[[], float],
    jitter: Callable[[], float],
) -> tuple[Facts, list[Command], Defect | None]:
    """Advance `state` by the events of `queue`, which are removed from it. Returns what to record, and what to carry out then.

    With a defect there are no commands, the facts end before its event, and the state is not usable: fold what is
    recorded and the facts again.
    """
    facts: Facts = []
    commands: list[Command] = []
    while queue and len(facts) < MAX_FACTS:
        event = queue.popleft()
        try:
            turn = machine.advance(state, event)
        except Exception as error:  # noqa: BLE001  (whatever the machine raises, its driver closes the run)
            return facts, [], Defect(event, error)
        facts.extend((kind, event.at, data) for kind, data in turn.facts)
        commands.extend(turn.commands)
        if commands and isinstance(commands[-1], Continue):
            commands.pop()
            queue.append(Tick(at=now(), jitter=jitter()))
    return facts, commands, None
