"""Folds facts into a state. What each type of fact changes is defined here only.

Folding needs no plan and no template engine, because a fact holds the result of each decision. So a run
can be resumed from its journal alone, and with a later version of its file.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from failwell.workflows.failure import Failure, stored_template_error
from failwell.workflows.machine.run_state import (
    Group,
    Scope,
    State,
    StoredFailure,
    Task,
    below,
    failure_in,
    item_path,
)

Data = Mapping[str, Any]
LEAVES: frozenset[str] = frozenset({"script", "agent", "job", "tool", "stage"})
_FROM_OUTSIDE = frozenset({"human_gate:answered"})
"""Facts that are recorded while no process drives the run. They do not count as activity."""


def fold(facts: Iterable[tuple[str, float, Mapping[str, Any]]], state: State | None = None) -> State:
    """Write `facts`, each a type, a time and its data, into the state of a run, by default into an empty one."""
    state = State() if state is None else state
    for kind, at, data in facts:
        apply(state, kind, at, data)
    return state


def apply(state: State, kind: str, at: float, data: Data) -> None:
    """Write one fact into the state of a run. An unknown type changes nothing."""
    state.seq += 1
    if kind not in _FROM_OUTSIDE:
        state.at = at
    fold_fact = _FOLDS.get(kind)
    if fold_fact is not None:
        fold_fact(state, at, data)


def _run_started(state: State, at: float, data: Data) -> None:
    continued = data.get("state")
    if continued is not None:
        previous = State.from_dict(continued)
        for name in ("scopes", "groups", "tasks", "spent", "usage", "warned", "active", "limits"):
            setattr(state, name, getattr(previous, name))
    else:
        state.scopes[""] = Scope("", data["file"], data["inputs"], data["entry"], 0)
    state.run, state.file = data["run"], data["file"]
    state.metadata = data.get("metadata", {})
    state.status = "running"
    state.started = state.begun = at


def _run_resumed(state: State, at: float, data: Data) -> None:
    state.begun = at
    state.active = data["active"]
    state.limits = {**state.limits, **data.get("limits", {})}
    state.paused = False
    idle = data.get("idle", 0.0)
    for task in state.tasks.values():
        if task.until is not None and task.status in ("group", "child"):
            # Time in which no process drove the run does not count.
            state.tasks[task.path] = task.but(until=task.until + idle)


def _node_started(state: State, at: float, data: Data) -> None:
    path, scope = data["path"], data["scope"]
    previous = state.tasks.get(path)
    if previous is not None and previous.visit == data["visit"]:
        task = previous.but(
            status="running",
            attempt=data["attempt"],
            rerun=data.get("rerun", 0),
            reserve=data.get("reserve", 0.0),
            until=None,
            timed_out=False,
        )
    else:
        task = Task(
            path=path,
            scope=scope,
            node=data["node"],
            type=data["type"],
            status="running",
            visit=data["visit"],
            attempt=data["attempt"],
            started=at,
            parent=data.get("parent"),
            index=data.get("index"),
            item=data.get("item"),
            reserve=data.get("reserve", 0.0),
        )
    state.tasks[path] = task
    if task.type in LEAVES and (previous is None or previous.status != "running"):
        state.leaves += 1
    if task.parent is None:
        record = state.scopes[scope]
        record.visits[task.node] = task.visit
        if not data.get("rerun") and not data.get("approved"):
            record.iterations += 1
    else:
        group = state.groups[task.parent]
        group.active[path] = True
        if task.index is not None and task.index >= group.next:
            group.next = task.index + 1
    state.paused = False


def _leave(state: State, task: Task) -> None:
    if task.type in LEAVES and task.status == "running":
        state.leaves -= 1


def _spend(state: State, usage: Data | None) -> None:
    if not usage:
        return
    state.spent += usage.get("cost_usd") or 0.0
    totals = dict(state.usage)
    for name in ("input_tokens", "output_tokens"):
        if usage.get(name):
            totals[name] = totals.get(name, 0) + usage[name]
    state.usage = totals


def _node_completed(state: State, _at: float, data: Data) -> None:
    path = data["path"]
    task = state.tasks[path]
    _leave(state, task)
    _spend(state, data.get("usage"))
    group = state.groups.get(path)
    output = group_output(group) if group is not None else data.get("output")
    forget(state, path)
    if task.parent is not None:
        _settle_member(state, task, {"output": output})
        return
    scope = state.scopes[task.scope]
    scope.outputs[task.node] = output
    scope.errors.pop(task.node, None)
    scope.history.append(task.node)


def _node_failed(state: State, _at: float, data: Data) -> None:
    path = data["path"]
    task = state.tasks[path]
    _leave(state, task)
    _spend(state, data.get("usage"))
    failure: StoredFailure = data["failure"]
    state.tasks[path] = task.but(status="failed", stored=failure, until=None, gate=None, asked=None)
    if task.parent is not None:
        _settle_member(state, task, {"failure": failure, "output": data.get("output")})
        return
    scope = state.scopes[task.scope]
    scope.errors[task.node] = (
        failure.template_error if isinstance(failure, Failure) else stored_template_error(failure)
    )
    group = state.groups.get(path)
    if group is not None:
        scope.outputs[task.node] = group_output(group)
    elif "output" in data:
        scope.outputs[task.node] = data["output"]
    else:
        scope.outputs.pop(task.node, None)


def _settle_member(state: State, task: Task, result: Data) -> None:
    assert task.parent is not None
    assert task.index is not None
    group = state.groups[task.parent]
    group.active.pop(task.path, None)
    group.results[str(task.index)] = result
    if "failure" in result:
        group.failures.append(task.index)


def _node_retrying(state: State, _at: float, data: Data) -> None:
    task = state.tasks[data["path"]]
    _leave(state, task)
    _spend(state, data.get("usage"))
    _forget_below(state, task.path)
    state.tasks[task.path] = task.but(
        status="retrying",
        until=data["until"],
        stored=data["failure"],
        retries=task.retries + (data["by"] == "route"),
        route_retries=_route_retries(task, data),
        parked=task.parked + (data["by"] == "parking"),
        # The next attempt begins with its first phase, and knows what the last one was told.
        stage=None if task.stage is None else {"feedback": _feedback(task.stage)},
    )


def _feedback(stage: Mapping[str, Any]) -> str:
    """What the next attempt is told: the feedback of the last verdict, also if an attempt since came to none."""
    verdict: Mapping[str, Any] | None = stage.get("verdict")
    return stage.get("feedback", "") if verdict is None else verdict.get("feedback", "")


def _route_retries(task: Task, data: Data) -> Mapping[str, int] | None:
    route = data.get("route")
    if route is None:
        return task.route_retries
    counts = task.route_retries or {}
    return {**counts, str(route): counts.get(str(route), 0) + 1}


def _node_waiting(state: State, _at: float, data: Data) -> None:
    state.tasks[data["path"]] = state.tasks[data["path"]].but(status="waiting", until=data["until"])


def _node_skipped(state: State, _at: float, data: Data) -> None:
    parent = data.get("parent")
    if parent is not None and parent in state.groups:
        state.groups[parent].results[str(data["index"])] = {"skipped": data["reason"]}


def _route_taken(state: State, _at: float, data: Data) -> None:
    path = data["path"]
    scope = state.scopes[data["scope"]]
    failed = state.tasks.get(path)
    if failed is not None:
        # A route handled the failure: the node is over, and nothing below it is needed any more.
        scope.history.append(failed.node)
        forget(state, path)
    if scope.late == data.get("node"):
        scope.late = None
    scope.cursor = data["to"]
    scope.output = data.get("output")


def _phase_started(state: State, _at: float, data: Data) -> None:
    task = state.tasks[data["path"]]
    state.tasks[task.path] = task.but(stage={**(task.stage or {}), "phase": data["phase"], "open": True})


def _phase_ended(state: State, _at: float, data: Data) -> None:
    task = state.tasks[data["path"]]
    _spend(state, data.get("usage"))
    stage: dict[str, Any] = {**(task.stage or {}), "open": False, **data.get("result", {})}
    state.tasks[task.path] = task.but(stage=stage)
    if data["phase"] == "next" and task.parent is None:
        state.scopes[task.scope].context = stage.get("context", {})


def _stage_failed(state: State, _at: float, data: Data) -> None:
    task = state.tasks[data["path"]]
    stage = {**(task.stage or {}), "failed": data["phase"]}
    state.tasks[task.path] = task.but(stage=stage, stored=data["failure"])


def _stage_queued(state: State, _at: float, data: Data) -> None:
    scope = state.scopes[data["scope"]]
    scope.later.append(data["node"])


def _stage_dequeued(state: State, _at: float, data: Data) -> None:
    scope = state.scopes[data["scope"]]
    del scope.later[0]
    scope.cursor = scope.late = data["node"]


def _group_started(state: State, _at: float, data: Data) -> None:
    path = data["path"]
    state.groups[path] = Group(path, data["type"], data["keys"], data.get("items"), data["keyed"])
    state.tasks[path] = state.tasks[path].but(status="group", until=data.get("until"))


def _node_timeout(state: State, _at: float, data: Data) -> None:
    path = data["path"]
    state.tasks[path] = state.tasks[path].but(timed_out=True, stored=data["failure"])
    if path in state.groups:
        state.groups[path].stopping = True


def _group_stopping(state: State, _at: float, data: Data) -> None:
    state.groups[data["path"]].stopping = True


def _workflow_opening(state: State, _at: float, data: Data) -> None:
    state.tasks[data["path"]] = state.tasks[data["path"]].but(status="opening")


def _workflow_started(state: State, _at: float, data: Data) -> None:
    path = data["path"]
    state.tasks[path] = state.tasks[path].but(status="child", until=data.get("until"))
    state.scopes[path] = Scope(path, data["file"], data["inputs"], data["entry"], data["depth"])


def _workflow_ended(state: State, _at: float, data: Data) -> None:
    scope = state.scopes[data["path"]]
    scope.ended = True
    scope.cursor = None


def _gate_paused(state: State, _at: float, data: Data) -> None:
    task = state.tasks[data["path"]]
    _leave(state, task)
    status = "budget" if data["type"] in ("budget", "limit") else "gate"
    state.tasks[task.path] = task.but(
        status=status, gate=data["gate"], until=data.get("expires_at"), asked=data
    )


def _gate_answered(state: State, _at: float, data: Data) -> None:
    """An answer that arrived while no process drove the run; it takes effect when the run is resumed."""
    task = state.tasks[data["path"]]
    state.tasks[task.path] = task.but(asked={**(task.asked or {}), "answer": data})


def _gate_resumed(state: State, _at: float, data: Data) -> None:
    task = state.tasks[data["path"]]
    approved = task.status == "budget" and data["decision"] == "approved"
    state.tasks[task.path] = task.but(gate=None, until=None, asked=None, approved=task.approved or approved)
    state.paused = False


def _budget_paused(state: State, _at: float, data: Data) -> None:
    """Counts what a leaf had spent when it was paused; the gate that follows has the rest."""
    _spend(state, data.get("usage"))


def _budget_warning(state: State, _at: float, _data: Data) -> None:
    state.warned = True


def _limit_raised(state: State, _at: float, data: Data) -> None:
    state.limits = {**state.limits, data["limit"]: data["value"]}


def _run_paused(state: State, _at: float, _data: Data) -> None:
    state.paused = True


def _run_cancelling(state: State, _at: float, data: Data) -> None:
    state.cancel = data


def _run_ending(state: State, _at: float, data: Data) -> None:
    state.ending = data


def _ended(status: str) -> Callable[[State, float, Data], None]:
    def write(state: State, at: float, data: Data) -> None:
        state.status = status
        state.outputs = data.get("outputs")
        state.active += max(0.0, at - state.begun)
        state.owed, state.waiting = [], []

    return write


def group_output(group: Group) -> dict[str, Any]:
    """A group's result for templates: outputs at their indices, failures by key."""
    errors: dict[str, Any] = {}
    by_key: dict[str, Any] = {}
    in_order: list[Any] = []
    for index, key in enumerate(group.keys):
        result = group.results.get(str(index)) or {}
        failed = failure_in(result) if "failure" in result else None
        if failed is not None:
            report, envelope = failed.report, failed.template_error
            errors[key] = {
                "agent_name": key,
                "item_key": key,
                "index": index,
                "exception_type": report.error_type,
                "message": envelope["message"],
                "suggestion": report.user_action.detail,
                "envelope": envelope,
            }
        elif "output" in result:
            by_key[key] = result["output"]
        in_order.append(result.get("output") if failed is None else None)
    output: dict[str, Any] = {
        "type": group.type,
        "outputs": by_key if group.keyed else in_order,
        "errors": errors,
    }
    if group.type != "parallel":
        output["count"] = len(group.keys)
        output["keys"] = group.keys
    return output


def forget(state: State, path: str) -> None:
    """Remove an execution and what failed below it from the state."""
    state.tasks.pop(path, None)
    _forget_below(state, path)


def _forget_below(state: State, path: str) -> None:
    group = state.groups.pop(path, None)
    if group is not None:
        for index in group.failures:
            forget(state, member_path(group, index))
    scope = state.scopes.pop(path, None)
    if scope is not None and scope.cursor is not None:
        forget(state, below(path, scope.cursor))


def member_path(group: Group, index: int) -> str:
    """The path of a group's member."""
    return below(group.path, group.keys[index]) if group.type == "parallel" else item_path(group.path, index)


_FOLDS: dict[str, Callable[[State, float, Data], None]] = {
    "run:started": _run_started,
    "run:resumed": _run_resumed,
    "node:started": _node_started,
    "node:completed": _node_completed,
    "node:failed": _node_failed,
    "node:retrying": _node_retrying,
    "node:waiting": _node_waiting,
    "node:skipped": _node_skipped,
    "node:timeout": _node_timeout,
    "route:taken": _route_taken,
    "phase:started": _phase_started,
    "phase:ended": _phase_ended,
    "stage:failed": _stage_failed,
    "stage:queued": _stage_queued,
    "stage:dequeued": _stage_dequeued,
    "group:started": _group_started,
    "group:stopping": _group_stopping,
    "workflow:opening": _workflow_opening,
    "workflow:started": _workflow_started,
    "workflow:ended": _workflow_ended,
    "human_gate:paused": _gate_paused,
    "human_gate:answered": _gate_answered,
    "human_gate:resumed": _gate_resumed,
    "budget:paused": _budget_paused,
    "budget:warning": _budget_warning,
    "limit:raised": _limit_raised,
    "run:paused": _run_paused,
    "run:cancelling": _run_cancelling,
    "run:ending": _run_ending,
    "run:completed": _ended("completed"),
    "run:failed": _ended("failed"),
    "run:cancelled": _ended("cancelled"),
}
