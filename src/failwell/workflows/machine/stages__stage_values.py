"""What the phases of a stage compute: the context, the names of templates, verdicts and outputs."""

from collections.abc import Mapping
from typing import Any, cast

from failwell.workflows.machine.context import ScopeNames, look_up
from failwell.workflows.machine.routing import error_view
from failwell.workflows.machine.run_state import Task
from failwell.workflows.machine.turn import Turn
from failwell.workflows.plan import Check, Node, ParallelSpec, PhaseName, StageSpec, Template
from failwell.workflows.template.names import whole_reference
from failwell.workflows.template.names__lookup import MISSING
from failwell.workflows.template.render import render
from failwell.workflows.template.render__condition import holds
from failwell.workflows.template.values import as_set_value


def spec_of(node: Node) -> StageSpec:
    """The spec of a stage."""
    assert isinstance(node.spec, StageSpec)
    return node.spec


def phase_of(task: Task) -> PhaseName:
    """The phase that a stage is in."""
    return (task.stage or {}).get("phase", "setup")


def is_skipped(task: Task) -> bool:
    """Whether the gate did not let the stage act."""
    return (task.stage or {}).get("gate", {}).get("verdict", "proceed") != "proceed"


def context_before(turn: Turn, task: Task) -> Mapping[str, Any]:
    """The context before this stage: what the stages before wrote."""
    return turn.state.scopes[task.scope].context


def context_of(turn: Turn, task: Task) -> Mapping[str, Any]:
    """The context of this attempt."""
    context: Mapping[str, Any] | None = (task.stage or {}).get("context")
    return context_before(turn, task) if context is None else context


def siblings_of(turn: Turn, task: Task) -> dict[str, Any]:
    """The results of the stages that ran side by side just before, in the order of the file."""
    scope = turn.state.scopes[task.scope]
    last = turn.plan(scope).nodes.get(scope.last or "")
    if last is None or not isinstance(last.spec, ParallelSpec):
        return {}
    return dict(scope.outputs[last.name]["outputs"])


def error_of(task: Task) -> dict[str, Any] | None:
    """The failure of a stage, as templates see it."""
    failure = task.failure if "failed" in (task.stage or {}) else None
    return None if failure is None else error_view(failure)


def names_of_stage(turn: Turn, task: Task, node: Node, *, unrestricted: bool = False) -> ScopeNames:
    """The names that the templates of a stage can use."""
    stage = task.stage or {}
    extra: dict[str, Any] = {
        "ctx": dict(context_of(turn, task)),
        "attempt": task.attempt,
        "feedback": stage.get("feedback", ""),
        "siblings": siblings_of(turn, task),
        "error": error_of(task),
    }
    if "act" in stage:
        extra["act"] = stage["act"]
    if "output" in stage:
        extra["output"] = stage["output"]
        extra[task.node] = {"output": stage["output"]}
    return turn.names(task, node, extra, unrestricted=unrestricted)


def value_of(value: Any, names: ScopeNames) -> Any:
    """A value of the file, rendered. A template that is one reference gives the value as it is."""
    if isinstance(value, Template):
        reference = whole_reference(value)
        referenced = MISSING if reference is None else look_up(reference, names)
        return as_set_value(render(value, names), "auto") if referenced is MISSING else referenced
    if isinstance(value, Mapping):
        return {key: value_of(inner, names) for key, inner in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [value_of(inner, names) for inner in cast("list[Any]", value)]
    return value


def verdict_of(checks: tuple[Check, ...], names: ScopeNames, otherwise: dict[str, Any]) -> dict[str, Any]:
    """What the first rule that holds says."""
    for check in checks:
        if check.when is None or holds(check.when, names):
            verdict: dict[str, Any] = {"verdict": check.verdict}
            if check.feedback is not None:
                verdict["feedback"] = render(check.feedback, names)
            if check.kind is not None:
                verdict["kind"] = check.kind
            return verdict
    return otherwise


def assertion(task: Task, spec: StageSpec, names: ScopeNames) -> dict[str, Any]:
    """The verdict of `assert`: that of the gate if it did not let the stage act, or that of the first rule that holds."""
    stage = task.stage or {}
    if is_skipped(task):
        return dict(stage["gate"])
    otherwise: dict[str, Any] = {"verdict": "ok"}
    if spec.completion_tool is not None and not stage["act"].get("completed"):
        otherwise = {"verdict": "retry", "feedback": f"call `{spec.completion_tool}` when the work is done"}
    if stage["act"]["capHit"]:
        otherwise = {
            "verdict": "retry",
            "feedback": f"it took {spec.turn_cap} calls of the model, which is its limit",
        }
    return verdict_of(spec.checks, names, otherwise)


def output_of(task: Task, spec: StageSpec, names: ScopeNames) -> Any:
    """The output of a stage: what `exit` computes, or the output of `act`."""
    is_complete = "failed" not in (task.stage or {}) and not is_skipped(task)
    if spec.exit is not None and is_complete:
        return {name: value_of(value, names) for name, value in spec.exit.items()}
    # A stage that did not act has no values to compute it from.
    act: Mapping[str, Any] = (task.stage or {}).get("act") or {}
    return act.get("output") or {}
