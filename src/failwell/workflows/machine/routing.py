"""Chooses the route that leaves a node, and decides whether a failed node runs again."""

from dataclasses import replace
from typing import Any, NamedTuple

from failwell.calls.policy import (
    Decision,
    GiveUp,
    Park,
    Policy,
    Retry,
    RetryState,
    decide,
    decision_text,
    exhausted_inside,
)
from failwell.errors.axes import Blame
from failwell.errors.report import Attempt
from failwell.workflows.failure import Failure
from failwell.workflows.machine.context import ScopeNames
from failwell.workflows.machine.run_state import Task
from failwell.workflows.machine.turn import Turn
from failwell.workflows.plan import Node, Route
from failwell.workflows.template.render import holds

_BUG = "internal.bug"


class Repeat(NamedTuple):
    """The node runs again after `delay` seconds."""

    delay: float
    by: str
    """The cause: `node`, `route`, or `parking` for a delay that uses up no attempt."""
    route: int | None = None
    """The index of the route that decided it."""


def error_view(failure: Failure) -> dict[str, Any]:
    """The `error` that templates see: the envelope, and how the failure was classified."""
    report = failure.report
    return {
        **failure.template_error,
        "category": report.category.value,
        "certainty": report.certainty.value,
        "blame": report.blame.value,
        "retryable": report.retryable,
    }


def success_route(node: Node, names: ScopeNames) -> Route | None:
    """The first success route that holds."""
    for route in node.routes:
        if route.on_error is None and (route.when is None or holds(route.when, names)):
            return route
    return None


def has_success_routes(node: Node) -> bool:
    """Whether a node has success routes. Without one, success leads to the end."""
    return any(route.on_error is None for route in node.routes)


def error_route(
    turn: Turn, task: Task, node: Node, failure: Failure, names: ScopeNames, *, may_repeat: bool = True
) -> Route | Repeat | None:
    """The first error route that matches and holds. A retry that is used up is passed over."""
    report = failure.report
    is_own_defect = report.kind == _BUG and report.blame is Blame.OURSELVES
    for index, route in enumerate(node.routes):
        if route.on_error is None or not route.on_error.fits(report):
            continue
        if is_own_defect and _BUG not in route.on_error.kinds:
            # A handler for whatever may fail is not written for a defect of failwell.
            continue
        repeat = None
        if route.retry is not None:
            repeat = _repeat_by_route(turn, task, index, route.retry, failure) if may_repeat else None
            if repeat is None:
                continue
        if route.when is None or holds(route.when, names):
            return repeat or route
    return None


def repeat_by_node(turn: Turn, task: Task, node: Node, failure: Failure) -> Repeat | Failure:
    """What the node's own `retry` decides, before any route: a repeat, or the failure.

    A failure that has used up the retries of the node says so, and a `retry` of a step around it does not
    begin again by itself.
    """
    if node.retry is None:
        return failure
    # An author who names the very kind consents to a repeat whose outcome is unknown.
    is_safe = node.idempotent or any(failure.kind in rule.match.kinds for rule in node.retry.rules)
    tries = RetryState(
        attempts=task.attempt - task.retries - task.parked,
        idempotent=is_safe or None,
        exhausted=exhausted_inside(failure.report),
    )
    decision = _decision(turn, task, node.retry, failure, tries)
    if isinstance(decision, GiveUp) and decision.exhausted and tries.exhausted is None:
        report = failure.report
        row = Attempt(
            number=tries.attempts, kind=report.kind, certainty=report.certainty, reason=decision_text(decision),
            layer=task.node, exhausted=True,
        )  # fmt: skip
        return replace(failure, report=replace(report, attempts=(*report.attempts, row)))
    return _repeat(decision, "node") or failure


def _repeat_by_route(turn: Turn, task: Task, index: int, policy: Policy, failure: Failure) -> Repeat | None:
    counts = task.route_retries or {}
    tries = RetryState(attempts=counts.get(str(index), 0) + 1, idempotent=True)
    repeat = _repeat(_decision(turn, task, policy, failure, tries), "route")
    return repeat if repeat is None or repeat.by == "parking" else repeat._replace(route=index)


def _decision(turn: Turn, task: Task, policy: Policy, failure: Failure, tries: RetryState) -> Decision:
    limit = turn.plan(task.scope).limits.park_after_seconds
    elapsed = turn.at - failure.report.occurred_at.timestamp()
    return decide(
        replace(policy, in_process_limit=limit), failure.report, tries._replace(elapsed=elapsed), turn.jitter
    )


def _repeat(decision: Decision, by: str) -> Repeat | None:
    match decision:
        case Retry(after=delay):
            return Repeat(delay, by)
        case Park(after=delay):
            return Repeat(delay, "parking")
        case _:
            return None
