"""Sub-workflows: opens a scope for each, and returns its result to the enclosing workflow."""

from collections.abc import Mapping
from typing import Any, cast

from failwell.errors.fault import Fault
from failwell.workflows.failure import Failure
from failwell.workflows.machine.closing import complete_run, end_run
from failwell.workflows.machine.context import ScopeNames, is_secret
from failwell.workflows.machine.ending import complete, fail
from failwell.workflows.machine.limits import deadline, set_timer
from failwell.workflows.machine.run_state import Scope, Task
from failwell.workflows.machine.turn import Turn
from failwell.workflows.plan import Node, Plan, Template, TerminateSpec
from failwell.workflows.run_inputs import check_inputs
from failwell.workflows.template.render import TemplateFailed, render, render_value
from failwell.workflows.template.values import as_output


def open_scope(turn: Turn, task: Task, file: str, inputs: Mapping[str, Any] | None) -> None:
    """Start a sub-workflow whose plan is loaded. `None` passes on the inputs of the enclosing workflow."""
    plan = turn.plans[file]
    if inputs is None:
        above = turn.state.scopes[task.scope].inputs
        inputs = {name: value for name, value in above.items() if name in plan.inputs or not is_secret(value)}
    secrets = {name: value for name, value in inputs.items() if is_secret(value)}
    placeholders = {name: "" if name in secrets else value for name, value in inputs.items()}
    checked_inputs, mistakes = check_inputs(plan, placeholders)
    errors = [mistake.message for mistake in mistakes if mistake.is_error]
    if errors:
        words = "; ".join(errors)
        invalid = turn.failure(
            "subworkflow.failed",
            f"`{task.node}` cannot run `{plan.name}`: {words}",
            task=task,
            details={"file": file, "mistakes": errors},
        )
        fail(turn, task, invalid)
        return
    data: dict[str, Any] = {
        "path": task.path,
        "file": file,
        "workflow": plan.name,
        "digest": plan.digest,
        "entry": plan.entry,
        "inputs": {**checked_inputs, **secrets},
        "depth": turn.state.scopes[task.scope].depth + 1,
    }
    turn.record("workflow:started", data | deadline(turn, task, file))
    set_timer(turn, turn.state.tasks[task.path])
    turn.schedule(task.path)


def close_scope(turn: Turn, scope: Scope) -> None:
    """Complete the run, or the step that started this sub-workflow."""
    plan = turn.plan(scope)
    try:
        outputs = final_output(turn, plan, scope)
    except Fault as fault:
        _fail_outputs(turn, scope, fault)
        return
    if not scope.path:
        complete_run(turn, outputs)
        return
    turn.record("workflow:ended", {"path": scope.path})
    complete(turn, turn.state.tasks[scope.path], outputs)


def _fail_outputs(turn: Turn, scope: Scope, fault: Fault) -> None:
    """Fail a workflow whose output cannot be rendered."""
    if scope.path:
        above = turn.state.tasks[scope.path]
        fail(turn, above, turn.failure_of(fault, above))
        return
    end_run(turn, turn.failure_of(fault, None), error_type="ExecutionError", node=None)


def final_output(turn: Turn, plan: Plan, scope: Scope) -> Any:
    """The output of a workflow: its `output` block with the output of the last route, or that of its last node."""
    names = ScopeNames(turn.state.run, plan, scope, {})
    if scope.output is not None:
        return {**_existing_outputs(plan, scope.output, names), **_coerced(scope.output)}
    if plan.output:
        return {name: _render_outputs(value, names) for name, value in plan.output.items()}
    output: Any = scope.outputs.get(scope.last) if scope.last is not None else None
    return cast("dict[str, Any]", output) if isinstance(output, dict) else {"result": output}


def _existing_outputs(plan: Plan, written: Mapping[str, Any], names: ScopeNames) -> dict[str, Any]:
    """The outputs of the workflow that the last route does not write, without those whose values do not exist."""
    outputs: dict[str, Any] = {}
    for name, value in plan.output.items():
        if name in written:
            continue
        try:
            outputs[name] = _render_outputs(value, names)
        except TemplateFailed as failed:
            if not failed.is_undefined:
                raise
    return outputs


def _coerced(outputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: as_output(value) if isinstance(value, str) else value for name, value in outputs.items()}


def _render_outputs(value: Any, names: ScopeNames) -> Any:
    if isinstance(value, Template):
        return as_output(render(value, names))
    return render_value(value, names)


def terminate(turn: Turn, task: Task, node: Node, names: ScopeNames) -> None:
    """End a workflow at a `terminate` step."""
    spec = node.spec
    assert isinstance(spec, TerminateSpec)
    reason = render(spec.reason, names)
    outputs = None
    if spec.output_template is not None:
        outputs = {name: _render_outputs(value, names) for name, value in spec.output_template.items()}
    output: dict[str, Any] = {"status": spec.status, "reason": reason}
    completed = {"path": task.path, "attempt": task.attempt, "output": output, "duration_ms": 0}
    turn.record("node:completed", completed)
    if spec.status == "success":
        _complete_scope(turn, task, outputs)
        return
    details = {"reason": reason, "output": outputs, "node": task.node}
    failure = turn.failure("subworkflow.terminated", reason, task=task, details=details)
    failure = failure.with_frames(turn.frame(task, failure.kind))
    if task.scope:
        fail_scope(turn, task.scope, failure, as_is=True)
    else:
        end_run(
            turn, failure, error_type="WorkflowTerminated", node=task.path, is_explicit=True, outputs=outputs
        )


def _complete_scope(turn: Turn, task: Task, outputs: Any) -> None:
    scope = turn.state.scopes[task.scope]
    if outputs is None:
        close_scope(turn, scope)
    elif not task.scope:
        complete_run(turn, outputs)
    else:
        turn.record("workflow:ended", {"path": task.scope})
        complete(turn, turn.state.tasks[task.scope], outputs)


def fail_scope(turn: Turn, path: str, failure: Failure, *, as_is: bool = False) -> None:
    """Fail the step that started a sub-workflow, with a kind of its own."""
    above = turn.state.tasks[path]
    if as_is:
        fail(turn, above, failure)
        return
    wrapped = turn.failure(
        "subworkflow.failed",
        f"the sub-workflow of `{above.node}` failed: {failure.report.message}",
        task=above,
        details={"cause": failure.envelope, "file": turn.state.scopes[path].file},
    )
    fail(turn, above, wrapped.with_frames(*failure.report.frames))
