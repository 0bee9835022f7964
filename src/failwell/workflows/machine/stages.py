"""Takes a stage through its phases: setup, init, checkGate, act, assert, exit, next.

Every phase is a pair of facts, `phase:started` and `phase:ended`, also if it fails. A run that is resumed continues with
the phase that was open. A failed attempt runs again from `setup` as the stage's retry policy decides; after the last
one, `exit` and `next` still run, and the stage's resolution decides what follows.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from failwell.errors.fault import Fault
from failwell.errors.faults import Validation
from failwell.errors.kind_registry import is_kind, is_owned
from failwell.workflows.failure import Failure
from failwell.workflows.machine.closing import close_phase
from failwell.workflows.machine.context import ScopeNames, look_up, render_text
from failwell.workflows.machine.ending import (
    complete,
    follow_failure,
    is_stopping,
    notify_parent,
    record_failed,
    repeat,
    route_for,
    take_route,
)
from failwell.workflows.machine.limits import fail_at_limit
from failwell.workflows.machine.messages import Request
from failwell.workflows.machine.routing import (
    Repeat,
    error_view,
    has_success_routes,
    repeat_by_node,
    success_route,
)
from failwell.workflows.machine.run_state import Task
from failwell.workflows.machine.turn import Turn
from failwell.workflows.plan import END, PHASES, Check, Node, ParallelSpec, PhaseName, StageSpec, Template
from failwell.workflows.template.names import MISSING, whole_reference
from failwell.workflows.template.render import holds, render, render_value
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


REFUSED = "validation.assertion_failed"
"""The kind of an attempt that `checkGate` or `assert` did not accept."""
_VERDICTS: Mapping[str, frozenset[str]] = {
    "checkGate": frozenset({"proceed", "retry", "skip"}),
    "assert": frozenset({"ok", "retry", "skip", "fail"}),
}


def begin_stage(turn: Turn, task: Task, node: Node, _names: ScopeNames) -> None:
    """Start a stage with its first phase, or continue with the one that was open."""
    stage = task.stage or {}
    phase: PhaseName | None = stage.get("phase")
    if phase is None:
        spec = spec_of(node)
        if task.visit > spec.visit_cap:
            _too_many_visits(turn, task, spec)
            return
        _run(turn, task, "setup")
    elif stage.get("open"):
        _perform(turn, task, phase)
    else:
        _follow(turn, task, phase)


def end_phase(
    turn: Turn, task: Task, output: Any, usage: Mapping[str, Any] | None, unpriced: Failure | None
) -> None:
    """Apply the result of a phase that the driver ran; `unpriced` if a budget cannot count what it used."""
    phase = phase_of(task)
    if unpriced is not None:
        fail_phase(turn, task, replace(unpriced, usage=usage))
        return
    try:
        result = _checked_result(turn, task, phase, output)
    except Fault as fault:
        fail_phase(turn, task, replace(turn.failure_of(fault, task), usage=usage))
        return
    _end(turn, task, phase, result, usage)
    _follow(turn, turn.state.tasks[task.path], phase)


def fail_phase(turn: Turn, task: Task, failure: Failure) -> None:
    """Apply the failure of the phase that is open."""
    usage, failure = failure.usage, replace(failure, output=MISSING, usage=None, typed=True)
    close_phase(turn, task, failure, usage)
    may_repeat = phase_of(task) not in ("exit", "next")
    _attempt_failed(turn, turn.state.tasks[task.path], failure, may_repeat=may_repeat)


def _too_many_visits(turn: Turn, task: Task, spec: StageSpec) -> None:
    failure = turn.failure(
        "limit.visits",
        f"`{task.node}` was visited {spec.visit_cap} times, which is its limit",
        task=task,
        details={"stage": task.node, "visitCap": spec.visit_cap},
    )
    turn.record("node:failed", {"path": task.path, "attempt": task.attempt, "failure": failure})
    fail_at_limit(turn, task, failure)


# ---------------------------------------------------------------- one phase


def _run(turn: Turn, task: Task, phase: PhaseName) -> None:
    turn.record(
        "phase:started", {"path": task.path, "phase": phase, "attempt": task.attempt, "visit": task.visit}
    )
    _perform(turn, turn.state.tasks[task.path], phase)


def _perform(turn: Turn, task: Task, phase: PhaseName) -> None:
    """Do the work of a phase, or ask the driver to."""
    node = turn.node(task)
    spec = spec_of(node)
    names = names_of_stage(turn, task, node)
    try:
        if phase == "act" and is_skipped(task):
            result: dict[str, Any] = {"act": {"output": None, "capHit": False, "skipped": True}}
        elif phase in spec.code or phase == "act":
            turn.commands.append(_request(turn, task, node, phase, names))
            return
        else:
            result = _computed(turn, task, node, phase, names)
    except Fault as fault:
        fail_phase(turn, task, turn.failure_of(fault, task))
        return
    _end(turn, task, phase, result, None)
    _follow(turn, turn.state.tasks[task.path], phase)


def _computed(turn: Turn, task: Task, node: Node, phase: PhaseName, names: ScopeNames) -> dict[str, Any]:
    """The result of a phase that needs nothing from outside."""
    spec = spec_of(node)
    match phase:
        case "setup":
            values = {name: value_of(value, names) for name, value in spec.setup.items()}
            return {"context": {**context_before(turn, task), **values}}
        case "init":
            # Rendered to see that it can be; prompts are not recorded.
            render_text(spec.body, names)
            render_text(spec.prompt, names)
            return {}
        case "checkGate":
            return {"gate": verdict_of(spec.gate, names, {"verdict": "proceed"})}
        case "assert":
            return {"verdict": assertion(task, spec, names)}
        case "exit":
            return {"output": output_of(task, spec, names)}
        case _:
            return _target(turn, task, node)


def _end(
    turn: Turn, task: Task, phase: PhaseName, result: dict[str, Any], usage: Mapping[str, Any] | None
) -> None:
    data: dict[str, Any] = {"path": task.path, "phase": phase, "attempt": task.attempt, "result": result}
    if usage:
        data["usage"] = dict(usage)
    turn.record("phase:ended", data)


def _request(turn: Turn, task: Task, node: Node, phase: PhaseName, names: ScopeNames) -> Request:
    spec, plan, stage = spec_of(node), turn.plan(task.scope), task.stage or {}
    call: dict[str, Any] = {
        "phase": phase,
        "attempt": task.attempt,
        "feedback": stage.get("feedback", ""),
        "folder": turn.state.metadata.get("cwd"),
        "settings": render_value(spec.settings, names),
        "timeout": spec.timeout,
    }
    if phase == "act":
        call |= {
            "prompt": _prompt(render_text(spec.prompt, names), stage.get("feedback", "")),
            "system_prompt": render_text(spec.body, names),
            "model": render_text(spec.model, names),
            "instructions": [render(template, names) for template in plan.instructions],
        }
    else:
        call |= {"code": spec.code[phase], "context": dict(context_of(turn, task)), "act": stage.get("act")}
        call |= {"siblings": siblings_of(turn, task), "error": error_of(task)}
    return Request(
        path=task.path,
        node=node,
        run=turn.state.run,
        workflow=plan.name,
        visit=task.visit,
        attempt=task.attempt,
        key=f"{turn.key(task)}/{phase}",
        item=task.item,
        file=plan.file,
        approved=task.approved,
        call={**call, "rerun": task.rerun},
    )


def _prompt(prompt: str | None, feedback: str) -> str:
    """The prompt of an attempt, with what `assert` said about the one before."""
    parts = [prompt or "", f"The previous attempt was not accepted: {feedback}" if feedback else ""]
    return "\n\n".join(part for part in parts if part)


def _checked_result(turn: Turn, task: Task, phase: PhaseName, output: Any) -> dict[str, Any]:
    """What code of a stage returned, in the form that the phase needs."""
    if phase == "act":
        return {"act": output}
    values = cast("dict[str, Any]", output)
    if phase in _VERDICTS:
        verdict = values["verdict"]
        if verdict not in _VERDICTS[phase]:
            words = ", ".join(sorted(_VERDICTS[phase]))
            raise _refusal(f"`{phase}` of `{task.node}` must return one of {words}")
        kind = values.get("kind")
        if kind is not None and (verdict != "fail" or not is_kind(kind) or is_owned(kind)):
            raise _refusal(f"`{phase}` of `{task.node}` may name a kind of its own, for the verdict `fail`")
        return {"gate" if phase == "checkGate" else "verdict": values}
    if phase == "next":
        targets = [route.to for route in turn.node(task).routes if route.on_error is None]
        if values["to"] not in targets:
            raise _refusal(f"`next` of `{task.node}` must return one of {', '.join(map(str, targets))}")
        return _target(turn, task, turn.node(task), values["to"])
    return values


def _refusal(message: str) -> Fault:
    return Validation(kind="validation.config_invalid", message=message, caller_facing=True)


# ---------------------------------------------------------------- between phases


def _follow(turn: Turn, task: Task, phase: PhaseName) -> None:
    """Continue after a phase that has ended well."""
    stage = task.stage or {}
    if turn.is_closing or is_stopping(turn, task):
        stopped = turn.failure("cancel.stage", f"`{task.node}` was stopped", task=task)
        record_failed(turn, task, stopped, {})
        notify_parent(turn, task)
        return
    if phase == "assert" and "failed" not in stage:
        verdict: Mapping[str, Any] = stage["verdict"]
        refused = verdict["verdict"] in ("retry", "fail")
        if refused or (verdict["verdict"] == "skip" and task.parent is not None):
            _attempt_failed(
                turn, task, _refused(turn, task, verdict), may_repeat=verdict["verdict"] == "retry"
            )
            return
    if phase == "next":
        _leave(turn, task)
        return
    _run(turn, task, PHASES[PHASES.index(phase) + 1])


def _refused(turn: Turn, task: Task, verdict: Mapping[str, Any]) -> Failure:
    """The failure of an attempt that was not accepted."""
    words = {
        "retry": "is to be tried again",
        "fail": "did not pass its assertion",
        "skip": "was skipped, and its group needs every member",
    }[verdict["verdict"]]
    feedback = verdict.get("feedback", "")
    kind = verdict.get("kind") or REFUSED
    declared = turn.plan(task.scope).kinds.get(kind)
    return turn.failure(
        kind,
        f"`{task.node}` {words}{f': {feedback}' if feedback else ''}",
        task=task,
        details={"stage": task.node, "verdict": verdict["verdict"], "feedback": feedback},
        typed=True,
        category=None if declared is None else declared.category,
    )


def _attempt_failed(turn: Turn, task: Task, failure: Failure, *, may_repeat: bool) -> None:
    """Run the stage again from `setup`, or leave it by its last phases."""
    if turn.is_closing or is_stopping(turn, task):
        record_failed(turn, task, failure, {})
        notify_parent(turn, task)
        return
    phase = phase_of(task)
    if "failed" not in (task.stage or {}):
        decided = repeat_by_node(turn, task, turn.node(task), failure) if may_repeat else failure
        if isinstance(decided, Repeat):
            repeat(turn, task, failure, decided, {})
            return
        data = {"path": task.path, "phase": phase, "attempt": task.attempt, "failure": decided}
        turn.record("stage:failed", data)
        task = turn.state.tasks[task.path]
    if phase == "next":
        _leave(turn, task)
    else:
        _run(turn, task, "next" if phase == "exit" else "exit")


def _leave(turn: Turn, task: Task) -> None:
    """Leave a stage after `next`: to its successor, by an error route, or as its resolution says."""
    stage = task.stage or {}
    failure = task.failure if "failed" in stage else None
    if failure is None:
        complete(turn, task, stage.get("output"), to=stage.get("to"))
        return
    resolution = stage.get("resolution")
    target = stage.get("to")
    if resolution in ("skip", "retry-later") and target is not None:
        record_failed(turn, task, failure, {})
        if resolution == "retry-later":
            turn.record("stage:queued", {"path": task.path, "scope": task.scope, "node": task.node})
        take_route(turn, task, target, None, on_error=failure.kind)
        return
    follow_failure(turn, task, failure, {}, None)


def _target(turn: Turn, task: Task, node: Node, chosen: str | None = None) -> dict[str, Any]:
    """The result of `next`: the successor, which code may have chosen, and of a failed stage how it is resolved."""
    spec, stage = spec_of(node), task.stage or {}
    if task.parent is not None:
        return {}
    is_late = turn.state.scopes[task.scope].late == task.node
    if "failed" not in stage:
        return {"to": END if is_late else chosen or _successor(turn, task, node)}
    failure = task.failure
    assert failure is not None
    route = route_for(turn, task, task, failure, None)
    if route is not None:
        return {"resolution": "route"}
    # A stage that may not be visited again cannot run later.
    if spec.resolution == "abort-workflow" or (
        spec.resolution == "retry-later" and task.visit >= spec.visit_cap
    ):
        return {"resolution": "abort-workflow"}
    return {"resolution": spec.resolution, "to": END if is_late else chosen or _successor(turn, task, node)}


def _successor(turn: Turn, task: Task, node: Node) -> str:
    if not has_success_routes(node):
        return END
    route = success_route(node, names_of_stage(turn, task, node, unrestricted=True))
    if route is None or route.to is None:
        raise Validation(
            kind="internal.no_route",
            message=f"none of the successors of `{task.node}` holds",
            caller_facing=True,
        )
    return route.to
