"""Limits that end a part of a run: the time of groups and sub-workflows, the steps of a workflow, unknown costs.

What is late is stopped with everything below it, and fails. At the limit of steps a run or a sub-workflow fails, or a
person allows it more.
"""

from collections.abc import Mapping
from typing import Any, cast

from failwell.workflows.failure import Failure
from failwell.workflows.machine.closing import end_run, running_below, stop_task, while_running
from failwell.workflows.machine.ending import fail, is_stopping
from failwell.workflows.machine.messages import Answered, Ask, SetTimer
from failwell.workflows.machine.run_state import Task, below
from failwell.workflows.machine.turn import Turn
from failwell.workflows.plan import ForEachSpec, Node, ParallelSpec, WorkflowSpec

LATE = "stopped because the time limit of its group or workflow was reached"
MORE, STOP = "more", "stop"
_MOST_STEPS = 100_000
"""Steps that one answer can add."""


def time_limit(turn: Turn, task: Task, file: str | None = None) -> float | None:
    """The time limit of a group or a sub-workflow in seconds; `file` is that of the sub-workflow."""
    spec = turn.node(task).spec
    if not isinstance(spec, ParallelSpec | ForEachSpec | WorkflowSpec):
        return None
    limits = [spec.timeout]
    scope = turn.state.scopes.get(task.path)
    file = file or (None if scope is None else scope.file)
    if file is not None and file in turn.plans:
        # The file's own limit holds wherever it is run from.
        limits.append(turn.plans[file].limits.timeout_seconds)
    return min((limit for limit in limits if limit is not None), default=None)


def deadline(turn: Turn, task: Task, file: str | None = None) -> dict[str, float]:
    """What a fact that starts a group or a sub-workflow says about its time limit."""
    limit = time_limit(turn, task, file)
    return {} if limit is None else {"until": turn.at + limit}


def set_timer(turn: Turn, task: Task) -> None:
    """Set the timer of a group or a sub-workflow that has a time limit."""
    until = task.until
    if until is None:
        # A run that continues a failed one has the whole time again.
        until = deadline(turn, task).get("until")
    if until is not None:
        turn.commands.append(SetTimer(timer=task.path, at=until))


def time_is_up(turn: Turn, task: Task) -> None:
    """Stop everything below a group or a sub-workflow, and fail it. What is being stopped already is left alone."""
    limit = time_limit(turn, task)
    group = turn.state.groups.get(task.path)
    if limit is None or task.timed_out or is_stopping(turn, task) or (group is not None and group.stopping):
        return
    running = running_below(turn, task.path)
    failure = turn.failure(
        "limit.step_timeout",
        f"`{task.node}` reached its time limit of {limit:g} s{while_running(running)}",
        task=task,
        details={"timeout_seconds": limit, "running": running},
    )
    if group is not None:
        # Other failures of a group have the frames of its members.
        failure = failure.with_frames(turn.frame(task, failure.kind))
    turn.record("node:timeout", {"path": task.path, "limit": limit, "failure": failure})
    if group is not None:
        for path in list(group.active):
            stop_task(turn, turn.state.tasks[path], "cancel.stage", LATE)
        turn.schedule(task.path)
        return
    cursor = turn.state.scopes[task.path].cursor
    current = None if cursor is None else turn.state.tasks.get(below(task.path, cursor))
    if current is None or stop_task(turn, current, "cancel.stage", LATE):
        fail(turn, turn.state.tasks[task.path], failure)


# ---------------------------------------------------------------- iterations


def is_limit_reached(turn: Turn, task: Task, node: Node) -> bool:
    """Whether this step exceeds the iteration limit. If so, a person is asked, or the run or the sub-workflow fails."""
    if turn.state.scopes[task.scope].iterations < iteration_limit(turn, task.scope):
        return False
    if turn.can_ask:
        _ask(turn, task, node)
    else:
        fail_at_limit(turn, task, _failure(turn, task))
    return True


def iteration_limit(turn: Turn, scope: str) -> int:
    """The limit of a scope: as a person raised it, or as the file has it."""
    raised = turn.state.limits.get(_name(scope))
    return turn.plan(scope).max_iterations if raised is None else raised


def _name(scope: str) -> str:
    """The name of a scope's limit among the raised ones; that of the root is the one that `resume` raises."""
    return f"max_iterations {scope}" if scope else "max_iterations"


def _failure(turn: Turn, task: Task) -> Failure:
    limit = iteration_limit(turn, task.scope)
    return turn.failure(
        "limit.iterations",
        f"`{turn.plan(task.scope).name}` has taken {limit} steps, which is its limit, before `{task.node}`",
        task=task,
        details={"max_iterations": limit, "node": task.node},
    )


def fail_at_limit(turn: Turn, task: Task, failure: Failure) -> None:
    """End the run at a limit, or fail the sub-workflow that reached it."""
    if task.scope:
        from failwell.workflows.machine.scopes import fail_scope

        fail_scope(turn, task.scope, failure)
    else:
        end_run(turn, failure, error_type="LimitReached", node=task.path)


def _ask(turn: Turn, task: Task, node: Node) -> None:
    from failwell.workflows.machine.entering import started
    from failwell.workflows.machine.gate_steps import gate_id

    turn.record("node:started", started(turn, task, node))
    limit = iteration_limit(turn, task.scope)
    name = turn.plan(task.scope).name
    data: dict[str, Any] = {
        "path": task.path,
        "node": task.node,
        "gate": gate_id(task, "limit:"),
        "type": "limit",
        "prompt": f"`{name}` has taken {limit} steps, which is its limit. How many more, from `{task.node}` on?",
        "options": [{"label": "more steps", "value": MORE}, {"label": "stop", "value": STOP}],
        "max_iterations": limit,
    }
    turn.record("human_gate:paused", data)
    turn.commands.append(Ask(gate=data["gate"], question=data))


def decide_limit(turn: Turn, task: Task, event: Answered) -> None:
    """Apply an answer: continue with more steps, or fail as without a person."""
    from failwell.workflows.machine.entering import start_again

    if event.decision != MORE:
        failure = _failure(turn, task)
        turn.record("node:failed", {"path": task.path, "attempt": task.attempt, "failure": failure})
        fail_at_limit(turn, task, failure)
        return
    limit = iteration_limit(turn, task.scope)
    # The step that was asked about counts already.
    least = turn.state.scopes[task.scope].iterations
    raised = max(least, limit + _steps(event.payload, turn.plan(task.scope).max_iterations))
    turn.record("limit:raised", {"path": task.path, "limit": _name(task.scope), "value": raised})
    start_again(turn, task, because="approval")


def _steps(payload: Any, default: int) -> int:
    values = cast("dict[str, Any]", payload) if isinstance(payload, dict) else {}
    steps = values.get("steps")
    if isinstance(steps, int) and not isinstance(steps, bool):
        return min(max(steps, 0), _MOST_STEPS)
    return default


def unpriced_usage(turn: Turn, task: Task, usage: Mapping[str, Any] | None) -> Failure | None:
    """The failure of a leaf that used a model and does not say what that cost, under a budget that stops the run."""
    limits = turn.plans[turn.state.file].limits
    if not usage or "cost_usd" in usage or limits.on_exceed == "warn" or limits.unpriced == "allow":
        return None
    if turn.state.limits.get("budget_usd", limits.budget_usd) is None:
        return None
    return turn.failure(
        "validation.config_invalid",
        f"`{task.node}` used a model and did not say what it cost, so the budget cannot count it; "
        "report `cost_usd`, or set `limits.unpriced: allow`",
        task=task,
        details={"usage": dict(usage)},
    )
