"""The iteration limit: a run or a sub-workflow that reaches it fails, or a person allows it more steps."""

from typing import Any, cast

from failwell.workflow.failure import Failure
from failwell.workflow.machine.closing import end_run
from failwell.workflow.machine.messages import Answered, Ask
from failwell.workflow.machine.run_state import Task
from failwell.workflow.machine.turn import Turn
from failwell.workflow.plan import Node

MORE, STOP = "more", "stop"
_MOST_STEPS = 100_000
"""Steps that one answer can add."""


def is_limit_reached(turn: Turn, task: Task, node: Node) -> bool:
    """Whether this step exceeds the iteration limit. If so, a person is asked, or the run or the sub-workflow fails."""
    if turn.state.scopes[task.scope].iterations < iteration_limit(turn, task.scope):
        return False
    if turn.can_ask:
        _ask(turn, task, node)
    else:
        _fail(turn, task, _failure(turn, task))
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


def _fail(turn: Turn, task: Task, failure: Failure) -> None:
    if task.scope:
        from failwell.workflow.machine.scopes import fail_scope

        fail_scope(turn, task.scope, failure)
    else:
        end_run(turn, failure, error_type="LimitReached", node=task.path)


def _ask(turn: Turn, task: Task, node: Node) -> None:
    from failwell.workflow.machine.entering import started
    from failwell.workflow.machine.gate_steps import gate_id

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
    from failwell.workflow.machine.entering import start_again

    if event.decision != MORE:
        failure = _failure(turn, task)
        turn.record("node:failed", {"path": task.path, "attempt": task.attempt, "failure": failure})
        _fail(turn, task, failure)
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
