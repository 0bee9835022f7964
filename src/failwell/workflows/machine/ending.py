"""Ends executions: completes or fails a node, and follows its routes."""

from dataclasses import replace
from typing import Any, cast

from failwell.errors.fault import Fault
from failwell.errors.kind_registry import is_owned
from failwell.workflows.envelope import violation
from failwell.workflows.failure import Failure
from failwell.workflows.machine.closing import close_phase, end_run, stop_task
from failwell.workflows.machine.messages import CancelTimer, SetTimer
from failwell.workflows.machine.routing import (
    Repeat,
    error_route,
    error_view,
    has_success_routes,
    repeat_by_node,
    success_route,
)
from failwell.workflows.machine.run_state import Task
from failwell.workflows.machine.turn import Turn
from failwell.workflows.output_schemas import OutputSchemas, SchemaMismatch
from failwell.workflows.plan import END, GROUPS, Node, Route
from failwell.workflows.template.names import MISSING
from failwell.workflows.template.render import render, render_value

_COMPUTED = frozenset({"set", "workflow"})
"""Types of steps whose output is checked here. Executors check the output of the others."""
CANCELLED_MEMBER = "stopped because another member of its group failed"


def complete(turn: Turn, task: Task, output: Any, *, usage: Any = None, to: str | None = None) -> None:
    """Complete a node and follow its success route, or go to the step `to` that a person chose."""
    if task.type in _COMPUTED and (violated := _violation(turn, task, output)) is not None:
        fail(turn, task, replace(violated, output=output))
        return
    _cancel_time_limit(turn, task)
    elapsed = round((turn.at - task.started) * 1000)
    data: dict[str, Any] = {"path": task.path, "attempt": task.attempt, "duration_ms": elapsed}
    if task.type not in GROUPS:
        data["output"] = output
    if usage:
        data["usage"] = usage
    if task.parent is not None:
        turn.record("node:completed", data)
        notify_parent(turn, task)
        return
    node = turn.node(task)
    try:
        target, put_out = (to, None) if to is not None else _success(turn, task, node, output)
    except Fault as fault:
        fail(turn, task, replace(turn.failure_of(fault, task), output=output, usage=usage))
        return
    if target is None:
        no_route = turn.failure(
            "internal.no_route", f"none of the success routes of `{task.node}` holds", task=task
        )
        fail(turn, task, replace(no_route, output=output, usage=usage))
        return
    turn.record("node:completed", data)
    take_route(turn, task, target, put_out, on_error=None)
    notify_parent(turn, task)


def _violation(turn: Turn, task: Task, output: Any) -> Failure | None:
    """The failure of an output that does not match what its step declares."""
    schema = turn.node(task).output
    if schema is None:
        return None
    try:
        if not isinstance(output, dict):
            raise SchemaMismatch("it is not a mapping; name its values with `values`")  # noqa: TRY301
        OutputSchemas().check(schema, cast("dict[str, Any]", output), {})
    except SchemaMismatch as mismatch:
        extra = {} if mismatch.field is None else {"failed_field": mismatch.field}
        message, details = violation(task.node, task.type, str(mismatch), **extra)
        return turn.failure("internal.schema_violation", message, task=task, details=details)
    return None


def fail(turn: Turn, task: Task, failure: Failure, *, visible_output: Any = None) -> None:
    """Fail a node: run it again, follow an error route, or pass the failure to the enclosing workflow.

    Args:
        turn: The turn of the machine.
        task: The execution that failed.
        failure: How it failed, with its partial output.
        visible_output: The output that routes see if the failure has none.
    """
    _cancel_time_limit(turn, task)
    node = turn.node(task)
    output = visible_output if failure.output is MISSING else failure.output
    extra: dict[str, Any] = {} if failure.output is MISSING else {"output": failure.output}
    if failure.usage:
        extra["usage"] = failure.usage
    failure = _declared(turn, task, node, failure)
    if failure.output is not MISSING or failure.usage or (node.is_opted_in and not failure.typed):
        typed = failure.typed or node.is_opted_in
        failure = replace(failure, typed=typed, output=MISSING, usage=None)
    if turn.is_closing or is_stopping(turn, task):
        record_failed(turn, task, failure, extra)
        notify_parent(turn, task)
        return
    decided = repeat_by_node(turn, task, node, failure)
    if isinstance(decided, Repeat):
        repeat(turn, task, failure, decided, extra)
        return
    follow_failure(turn, task, decided, extra, output)


def follow_failure(turn: Turn, task: Task, failure: Failure, extra: dict[str, Any], output: Any) -> None:
    """Follow the error routes of a node that is not run again by itself, or pass the failure on."""
    node = turn.node(task)
    if task.parent is not None:
        above = turn.state.tasks[task.parent]
        route = route_for(turn, task, above, failure, output)
        if isinstance(route, Repeat):
            repeat(turn, task, failure, route, extra)
            return
        record_failed(turn, task, failure, extra)
        notify_parent(turn, task)
        return
    route = route_for(turn, task, task, failure, output)
    if isinstance(route, Failure):
        record_failed(turn, task, route, extra)
        _unhandled(turn, task)
        return
    if isinstance(route, Repeat):
        repeat(turn, task, failure, route, extra)
        return
    record_failed(turn, task, failure, extra)
    _follow_error(turn, task, node, route, failure, output)


def _cancel_time_limit(turn: Turn, task: Task) -> None:
    if task.until is not None and task.status in ("group", "child"):
        turn.commands.append(CancelTimer(timer=task.path))


def notify_parent(turn: Turn, task: Task) -> None:
    """Tell the group or the enclosing workflow that a task without routes has ended."""
    if task.parent is not None:
        _member_ended(turn, task)
        turn.schedule(task.parent)
    elif task.scope and (turn.is_closing or is_stopping(turn, task)):
        _end_sub_workflow(turn, task)


def _end_sub_workflow(turn: Turn, task: Task) -> None:
    """Fail a sub-workflow that is being stopped, after its last task has ended."""
    above = turn.state.tasks.get(task.scope)
    if above is None or above.status == "failed":
        return
    late = above.failure
    if above.timed_out and late is not None:
        fail(turn, above, late)
        return
    last = turn.state.tasks.get(task.path)
    failure = last.failure if last is not None else None
    failure = failure or turn.failure("cancel.stage", CANCELLED_MEMBER, task=above)
    record_failed(turn, above, failure, {})
    notify_parent(turn, above)


def _member_ended(turn: Turn, task: Task) -> None:
    """Under `fail_fast`, the first failure stops the rest of the group."""
    assert task.parent is not None
    group = turn.state.groups[task.parent]
    above = turn.state.tasks[task.parent]
    if turn.state.tasks.get(task.path) is None or group.stopping or turn.is_closing:
        return
    spec: Any = turn.node(above).spec
    if spec.failure_mode == "fail_fast":
        turn.record("group:stopping", {"path": group.path, "because": task.path})
        for path in list(turn.state.groups[group.path].active):
            stop_task(turn, turn.state.tasks[path], "cancel.stage", CANCELLED_MEMBER)


def is_stopping(turn: Turn, task: Task) -> bool:
    """Whether a group or a sub-workflow above is being stopped."""
    state = turn.state
    at: Task | None = task
    while at is not None:
        if at.parent is not None:
            if state.groups[at.parent].stopping:
                return True
            at = state.tasks.get(at.parent)
        else:
            at = state.tasks.get(at.scope) if at.scope else None
            if at is not None and at.timed_out:
                return True
    return False


def _success(turn: Turn, task: Task, node: Node, output: Any) -> tuple[str | None, dict[str, Any] | None]:
    if not has_success_routes(node):
        return END, None
    names = turn.names(task, node, _result(node, task, output), unrestricted=True)
    route = success_route(node, names)
    if route is None:
        return None, None
    if route.halt is not None:
        return "$halt", {"message": render(route.halt, names)}
    return route.to, render_value(route.output, names) if route.output else None


def _result(node: Node, task: Task, output: Any) -> dict[str, Any]:
    """The names of a node's result for its routes, before the result is recorded."""
    slot = output if node.type in GROUPS else {"output": output}
    return {"output": output, task.node: slot}


def take_route(
    turn: Turn, task: Task, target: str, put_out: dict[str, Any] | None, *, on_error: str | None
) -> None:
    """Record the route that a node was left by, and continue there."""
    if target == "$halt":
        _halt(turn, task, (put_out or {})["message"], None)
        return
    data: dict[str, Any] = {"path": task.path, "scope": task.scope, "node": task.node, "to": target}
    if on_error is not None:
        data["on_error"] = on_error
    if put_out:
        data["output"] = put_out
    turn.record("route:taken", data)
    turn.schedule(task.scope)


def _halt(turn: Turn, task: Task, message: str, cause: Failure | None) -> None:
    details = {} if cause is None else {"cause": cause.envelope}
    halted = turn.failure("halt.intentional", message, task=task, details=details, typed=True)
    frames = (turn.frame(task, halted.kind),) if cause is None else cause.report.frames
    end_run(turn, halted.with_frames(*frames), error_type="HaltedOnPurpose", node=task.path)


def route_for(
    turn: Turn, task: Task, owner: Task, failure: Failure, output: Any
) -> Route | Repeat | Failure | None:
    """The route of `owner` (the task or its group) for a failure of `task`.

    A route whose condition cannot be evaluated fails the node with that.
    """
    node = turn.node(owner)
    error = error_view(failure)
    slot: dict[str, Any] = {"error": error} if output is None else {"error": error, "output": output}
    if node.type in GROUPS and isinstance(output, dict):
        slot = {**cast("dict[str, Any]", output), "error": error}
    extra: dict[str, Any] = {"error": error, "output": output, owner.node: slot}
    names = turn.names(owner, node, extra, unrestricted=True)
    try:
        # The members of a group have had their repeats when the group fails.
        may_repeat = owner is not task or task.type not in GROUPS
        return error_route(turn, task, node, failure, names, may_repeat=may_repeat)
    except Fault as fault:
        return turn.failure_of(fault, owner)


def _follow_error(
    turn: Turn, task: Task, node: Node, route: Route | None, failure: Failure, output: Any
) -> None:
    if route is None or route.propagate:
        _unhandled(turn, task)
        return
    recorded = turn.state.tasks[task.path].failure or failure
    names = turn.names(task, node, {"error": error_view(failure), "output": output}, unrestricted=True)
    try:
        if route.halt is not None:
            _halt(turn, task, render(route.halt, names), recorded)
            return
        put_out = render_value(route.output, names) if route.output else None
    except Fault as fault:
        broken = turn.failure_of(fault, task)
        broken = broken.with_frames(turn.frame(task, broken.kind))
        end_run(turn, broken, error_type="ExecutionError", node=task.path)
        return
    assert route.to is not None
    take_route(turn, task, route.to, put_out, on_error=failure.kind)


def _unhandled(turn: Turn, task: Task) -> None:
    """Pass a failure that no route handled to the enclosing workflow, or end the run."""
    failure = turn.state.tasks[task.path].failure
    assert failure is not None
    if task.scope:
        fail(turn, turn.state.tasks[task.scope], failure)
        return
    error_type = "UnhandledWorkflowError" if failure.typed else "ExecutionError"
    end_run(turn, failure, error_type=error_type, node=task.path)


def record_failed(turn: Turn, task: Task, failure: Failure, extra: dict[str, Any]) -> None:
    """Record that a node has failed."""
    close_phase(turn, task, failure)
    if task.type not in GROUPS:
        failure = failure.with_frames(turn.frame(task, failure.kind))
    turn.record("node:failed", {"path": task.path, "attempt": task.attempt, "failure": failure, **extra})


def _declared(turn: Turn, task: Task, node: Node, failure: Failure) -> Failure:
    """The failure itself, or `internal.undeclared_kind` for an author's kind that the node did not declare."""
    kind = failure.kind
    if not node.raises or kind in node.raises or is_owned(kind):
        return failure
    wrapped = turn.failure(
        "internal.undeclared_kind",
        f"`{task.node}` raised `{kind}`, which is not among the kinds it declares",
        task=task,
        details={
            "original_kind": kind,
            "original_message": failure.report.message,
            "original_details": dict(failure.report.details),
            "declared": list(node.raises),
        },
        typed=True,
    )
    return replace(wrapped.with_frames(*failure.report.frames), others=failure.others)


def repeat(turn: Turn, task: Task, failure: Failure, decided: Repeat, extra: dict[str, Any]) -> None:
    """Record that a node runs again, and set the timer for it."""
    data: dict[str, Any] = {
        "path": task.path,
        "attempt": task.attempt,
        "failure": failure,
        "delay": round(decided.delay, 3),
        "until": turn.at + decided.delay,
        "by": decided.by,
    }
    if decided.route is not None:
        data["route"] = decided.route
    if "usage" in extra:
        data["usage"] = extra["usage"]
    output = extra.get("output")
    if isinstance(output, dict) and "exit_code" in output:
        data["exit_code"] = output["exit_code"]
    turn.record("node:retrying", data)
    turn.commands.append(SetTimer(timer=task.path, at=turn.at + decided.delay))
