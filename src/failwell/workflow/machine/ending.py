"""How executions end: well, badly, or because they were told to; and what follows from it."""

from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from failwell.fault.axes import Category
from failwell.fault.base import Fault
from failwell.fault.registry import is_owned
from failwell.report.describe import describe
from failwell.workflow.failure import Failure, derived_id, kind_of, moment, of_report
from failwell.workflow.machine.closing import end_run, stop_task
from failwell.workflow.machine.protocol import SetTimer
from failwell.workflow.machine.routing import error_route, has_success_routes, success_route, told_error
from failwell.workflow.machine.state import Task
from failwell.workflow.machine.turn import Turn
from failwell.workflow.plan import END, GROUPS, Node, Route
from failwell.workflow.template.render import render, render_value

CANCELLED_MEMBER = "stopped because another member of its group failed"


def complete(turn: Turn, task: Task, output: Any, *, usage: Any = None, to: str | None = None) -> None:
    """A node ended well: record it, and go where its routes lead (`to`, where a person chose)."""
    data: dict[str, Any] = {"path": task.path, "duration_ms": round((turn.at - task.started) * 1000)}
    if task.type not in GROUPS:
        data["output"] = output
    if usage:
        data["usage"] = usage
    if task.parent is not None:
        turn.record("node:completed", data)
        settled(turn, task)
        return
    node = turn.node(task)
    try:
        target, put_out = (to, None) if to is not None else _success(turn, task, node, output)
    except Fault as fault:
        fail(turn, task, of_fault(turn, task, fault), output=output, has_output=True, usage=usage)
        return
    if target is None:
        no_way = turn.failure(
            "internal.no_route",
            f"none of the success routes of `{task.node}` holds",
            task=task,
            typed=False,
        )
        fail(turn, task, no_way, output=output, has_output=True, usage=usage)
        return
    turn.record("node:completed", data)
    _take(turn, task, target, put_out, on_error=None)
    settled(turn, task)


def fail(
    turn: Turn,
    task: Task,
    failure: Failure,
    *,
    output: Any = None,
    has_output: bool = False,
    usage: Any = None,
) -> None:
    """A node failed: run it again, follow an error route, or let the failure climb."""
    node = turn.node(task)
    failure = _declared(turn, task, node, failure)
    if node.is_opted_in and not failure["typed"]:
        failure = {**failure, "typed": True}
    extra: dict[str, Any] = {}
    if has_output:
        extra["output"] = output
    if usage:
        extra["usage"] = usage
    if turn.is_closing or is_stopping(turn, task):
        _record_failed(turn, task, failure, extra)
        settled(turn, task)
        return
    if _again_by_itself(turn, task, node, failure, usage):
        return
    if task.parent is not None:
        above = turn.state.tasks[task.parent]
        route = _route(turn, above, turn.node(above), failure, output, task.retries)
        if isinstance(route, Route) and route.again is not None:
            _again_by_route(turn, task, route, failure, usage)
            return
        _record_failed(turn, task, failure, extra)
        settled(turn, task)
        return
    retries = task.retries if task.type not in GROUPS else 1_000_000  # its members had their repeats
    route = _route(turn, task, node, failure, output, retries)
    if isinstance(route, dict):
        _record_failed(turn, task, route, extra)
        _unhandled(turn, task)
        return
    if route is not None and route.again is not None:
        _again_by_route(turn, task, route, failure, usage)
        return
    _record_failed(turn, task, failure, extra)
    _follow_error(turn, task, node, route, failure, output)


def settled(turn: Turn, task: Task) -> None:
    """Something ended without routes of its own: tell its group, or whoever encloses it."""
    if task.parent is not None:
        _member_ended(turn, task)
        turn.owe(task.parent)
    elif task.scope and (turn.is_closing or is_stopping(turn, task)):
        _abandon(turn, task)


def _abandon(turn: Turn, task: Task) -> None:
    """A sub-workflow that is being stopped ends with what it was doing."""
    above = turn.state.tasks.get(task.scope)
    if above is None or above.status == "failed":
        return
    ended = turn.state.tasks.get(task.path)
    failed = ended.failure if ended is not None else None
    why = failed or turn.failure("cancel.stage", CANCELLED_MEMBER, task=above)
    _record_failed(turn, above, why, {})
    settled(turn, above)


def _member_ended(turn: Turn, task: Task) -> None:
    """Under `fail_fast`, the first failure stops the rest of the group."""
    assert task.parent is not None
    group = turn.state.groups[task.parent]
    above = turn.state.tasks[task.parent]
    ended = turn.state.tasks.get(task.path)
    if ended is None or group.stopping or turn.is_closing:
        return
    spec: Any = turn.node(above).spec
    if spec.failure_mode == "fail_fast":
        turn.record("group:stopping", {"path": group.path, "because": task.path})
        for path in list(turn.state.groups[group.path].active):
            stop_task(turn, turn.state.tasks[path], "cancel.stage", CANCELLED_MEMBER)


def is_stopping(turn: Turn, task: Task) -> bool:
    """Whether a group above is being stopped."""
    state = turn.state
    at: Task | None = task
    while at is not None:
        if at.parent is not None:
            if state.groups[at.parent].stopping:
                return True
            at = state.tasks.get(at.parent)
        else:
            at = state.tasks.get(at.scope) if at.scope else None
    return False


def of_fault(turn: Turn, task: Task, fault: Fault) -> Failure:
    """The failure that a fault found while preparing or leaving a node stands for."""
    report = describe(fault, scene=turn.scene(task), at=moment(turn.at))
    own = derived_id(turn.at, turn.state.run, task.path, task.attempt, report.kind, turn.state.seq)
    return of_report(replace(report, id=own))


def _success(turn: Turn, task: Task, node: Node, output: Any) -> tuple[str | None, dict[str, Any] | None]:
    if not has_success_routes(node):
        return END, None
    names = turn.names(task, node, everything=True, **_result(node, task, output))
    route = success_route(node, names)
    if route is None:
        return None, None
    if route.halt is not None:
        return "$halt", {"message": render(route.halt, names)}
    return route.to, render_value(route.output, names) if route.output else None


def _result(node: Node, task: Task, output: Any) -> dict[str, Any]:
    """What a route sees of the node it leaves, although it is not on record yet."""
    slot = output if node.type in GROUPS else {"output": output}
    return {"output": output, task.node: slot}


def _take(
    turn: Turn, task: Task, target: str, put_out: dict[str, Any] | None, *, on_error: str | None
) -> None:
    if target == "$halt":
        _halt(turn, task, (put_out or {})["message"], None)
        return
    data: dict[str, Any] = {"path": task.path, "scope": task.scope, "node": task.node, "to": target}
    if on_error is not None:
        data["on_error"] = on_error
    if put_out:
        data["output"] = put_out
    turn.record("route:taken", data)
    turn.owe(task.scope)


def _halt(turn: Turn, task: Task, message: str, cause: Failure | None) -> None:
    details = {} if cause is None else {"cause": cause["envelope"]}
    halted = turn.failure("halt.intentional", message, task=task, details=details, typed=True)
    frames = [_frame(turn, task, "halt.intentional")] if cause is None else cause["frames"]
    end_run(turn, {**halted, "frames": frames}, error_type="HaltedOnPurpose", node=task.path)


def _route(
    turn: Turn, task: Task, node: Node, failure: Failure, output: Any, retries: int
) -> Route | Failure | None:
    """The route for a failure; the failure of a route's own condition counts as one more."""
    error = told_error(failure)
    slot: dict[str, Any] = {"error": error} if output is None else {"error": error, "output": output}
    if node.type in GROUPS and isinstance(output, dict):
        slot = {**cast("dict[str, Any]", output), "error": error}
    names = turn.names(task, node, everything=True, error=error, output=output, **{task.node: slot})
    try:
        return error_route(node, failure, names, retries)
    except Fault as fault:
        return of_fault(turn, task, fault)


def _follow_error(
    turn: Turn, task: Task, node: Node, route: Route | None, failure: Failure, output: Any
) -> None:
    if route is None or route.propagate:
        _unhandled(turn, task)
        return
    failed = turn.state.tasks[task.path].failure or failure
    names = turn.names(task, node, everything=True, error=told_error(failure), output=output)
    try:
        if route.halt is not None:
            _halt(turn, task, render(route.halt, names), failed)
            return
        put_out = render_value(route.output, names) if route.output else None
    except Fault as fault:
        broken = _framed(turn, task, of_fault(turn, task, fault))
        end_run(turn, broken, error_type="ExecutionError", node=task.path)
        return
    assert route.to is not None
    _take(turn, task, route.to, put_out, on_error=kind_of(failure))


def _unhandled(turn: Turn, task: Task) -> None:
    """No route took it: it climbs to the enclosing workflow, or ends the run."""
    failure = turn.state.tasks[task.path].failure
    assert failure is not None
    if task.scope:
        fail(turn, turn.state.tasks[task.scope], failure)
        return
    error_type = "UnhandledWorkflowError" if failure["typed"] else "ExecutionError"
    end_run(turn, failure, error_type=error_type, node=task.path)


def _record_failed(turn: Turn, task: Task, failure: Failure, extra: dict[str, Any]) -> None:
    failed = failure if task.type in GROUPS else _framed(turn, task, failure)
    turn.record("node:failed", {"path": task.path, "attempt": task.attempt, "failure": failed, **extra})


def _framed(turn: Turn, task: Task, failure: Failure) -> Failure:
    return {**failure, "frames": [*failure["frames"], _frame(turn, task, kind_of(failure))]}


def _frame(turn: Turn, task: Task, kind: str) -> dict[str, Any]:
    frame: dict[str, Any] = {
        "workflow": turn.plan(task.scope).name,
        "node": task.node,
        "type": task.type,
        "kind": kind,
        "iteration": task.visit,
    }
    if task.item is not None:
        frame["item"] = task.item
    return frame


def _declared(turn: Turn, task: Task, node: Node, failure: Failure) -> Failure:
    """An author's kind that the node did not announce is said to be undeclared."""
    kind = kind_of(failure)
    if not node.raises or kind in node.raises or is_owned(kind):
        return failure
    envelope = failure["envelope"]
    wrapped = turn.failure(
        "internal.undeclared_kind",
        f"`{task.node}` raised `{kind}`, which is not among the kinds it declares",
        task=task,
        details={
            "original_kind": kind,
            "original_message": envelope["message"],
            "original_details": envelope["details"],
            "declared": list(node.raises),
        },
        typed=True,
    )
    return {**wrapped, "frames": failure["frames"]}


def _again_by_itself(turn: Turn, task: Task, node: Node, failure: Failure, usage: Any) -> bool:
    """The node's own `retry` block, which comes before any route."""
    retry = node.retry
    if retry is None:
        return False
    if retry.retry_on is not None and not _admits(retry.retry_on, failure):
        return False
    # Whoever names the very kind has consented to a repeat; otherwise the category decides.
    if not _may_repeat(node, failure) and kind_of(failure) not in (retry.retry_on or ()):
        return False
    told = _told_wait(turn, failure)
    is_parked = told is not None and told > _park_after(turn, task)
    spent = task.attempt - task.retries - task.parked
    if spent >= retry.max_attempts and not is_parked:
        return False
    delay = told if told is not None else retry.backoff.wait(spent, turn.jitter)
    _retry(turn, task, failure, delay, by="parking" if is_parked else "node", usage=usage)
    return True


def _may_repeat(node: Node, failure: Failure) -> bool:
    report = failure["report"]
    category = report["category"]
    if category == Category.AMBIGUOUS:
        return node.idempotent
    if category == Category.CAPACITY:
        return "not_before" in report
    return category == Category.RESOURCE or bool(report["retryable"])


def _admits(retry_on: tuple[str, ...], failure: Failure) -> bool:
    kind = kind_of(failure)
    category = failure["report"]["category"]
    for entry in retry_on:
        if entry in (kind, category) or (entry == "provider_error" and kind.startswith("provider.")):
            return True
        if entry == "timeout" and kind.endswith(("timeout", ".outcome_unknown")):
            return True
    return False


def _again_by_route(turn: Turn, task: Task, route: Route, failure: Failure, usage: Any) -> None:
    assert route.again is not None
    told = _told_wait(turn, failure)
    is_parked = told is not None and told > _park_after(turn, task)
    delay = told if told is not None else route.again.backoff.wait(task.retries + 1, turn.jitter)
    _retry(turn, task, failure, delay, by="parking" if is_parked else "route", usage=usage)


def _retry(turn: Turn, task: Task, failure: Failure, delay: float, *, by: str, usage: Any) -> None:
    data: dict[str, Any] = {
        "path": task.path,
        "attempt": task.attempt,
        "failure": failure,
        "delay": round(delay, 3),
        "until": turn.at + delay,
        "by": by,
    }
    if usage:
        data["usage"] = usage
    turn.record("node:retrying", data)
    turn.commands.append(SetTimer(timer=task.path, at=turn.at + delay))


def _told_wait(turn: Turn, failure: Failure) -> float | None:
    """The seconds that the failing side asked for, counted from now."""
    report = failure["report"]
    told = report.get("not_before")
    if told is None:
        return None
    return max(0.0, datetime.fromisoformat(report["occurred_at"]).timestamp() + told["after"] - turn.at)


def _park_after(turn: Turn, task: Task) -> float:
    return turn.plan(task.scope).limits.park_after_seconds
