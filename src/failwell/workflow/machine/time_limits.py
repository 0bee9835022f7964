"""The time limits of groups and sub-workflows: what is late is stopped with everything below it, and fails."""

from failwell.workflow.machine.closing import running_below, stop_task, while_running
from failwell.workflow.machine.ending import fail, is_stopping
from failwell.workflow.machine.messages import SetTimer
from failwell.workflow.machine.run_state import Task, below
from failwell.workflow.machine.turn import Turn
from failwell.workflow.plan import ForEachSpec, ParallelSpec, WorkflowSpec

LATE = "stopped because the time limit of its group or workflow was reached"


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
