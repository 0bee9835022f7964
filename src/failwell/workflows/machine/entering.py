"""Starts nodes. Steps that need nothing from outside complete here; for others a command is issued."""

from collections.abc import Callable
from typing import Any, Literal

from failwell.errors.fault import Fault
from failwell.errors.faults import Validation
from failwell.workflows.machine.context import ScopeNames, call_of, is_secret, look_up
from failwell.workflows.machine.ending import complete, fail
from failwell.workflows.machine.fold import LEAVES
from failwell.workflows.machine.gate_steps import ask_person, ask_questions, needs_approval
from failwell.workflows.machine.groups import begin_group
from failwell.workflows.machine.limits import is_limit_reached
from failwell.workflows.machine.messages import Open, Request, SetTimer
from failwell.workflows.machine.run_state import Task
from failwell.workflows.machine.scopes import open_scope, terminate
from failwell.workflows.machine.stages import begin_stage
from failwell.workflows.machine.turn import Turn
from failwell.workflows.plan import Node, NotificationSpec, SetSpec, Template, WaitSpec, WorkflowSpec
from failwell.workflows.template.names import MISSING, whole_reference
from failwell.workflows.template.render import render, render_value
from failwell.workflows.template.values import as_mapped, as_set_value, duration

MAX_DEPTH = 10
"""Levels of sub-workflows."""


def enter(turn: Turn, task: Task, node: Node, *, waits_as: str) -> None:
    """Start `task`. Without a free slot, `waits_as` is scheduled again when one is free."""
    if turn.is_closing:
        return
    if node.type in LEAVES and is_full(turn):
        turn.state.waiting.append(waits_as)
        return
    if task.parent is None and is_limit_reached(turn, task, node):
        return
    if node.type in LEAVES and needs_approval(turn, task, node):
        return
    turn.record("node:started", started(turn, task, node))
    begin(turn, turn.state.tasks[task.path])


def start_again(turn: Turn, task: Task, *, because: Literal["retry", "crash", "approval"]) -> None:
    """Run a node once more: its next attempt, or the same one after a crash or a person's approval."""
    node = turn.node(task)
    if because == "retry":
        task = task.but(attempt=task.attempt + 1, rerun=0)
        if task.parent is None and is_limit_reached(turn, task, node):
            return
    elif because == "crash":
        task = task.but(rerun=task.rerun + 1)
    data = started(turn, task, node)
    if because == "approval":
        data["approved"] = True
    turn.record("node:started", data)
    begin(turn, turn.state.tasks[task.path])


def begin(turn: Turn, task: Task) -> None:
    """Execute the node, according to its type."""
    node = turn.node(task)
    try:
        _BEGIN.get(node.type, _leaf)(turn, task, node, turn.names(task, node))
    except Fault as fault:
        fail(turn, task, turn.failure_of(fault, task))


def started(turn: Turn, task: Task, node: Node) -> dict[str, Any]:
    """The data of the fact that a node has started."""
    data: dict[str, Any] = {
        "path": task.path,
        "scope": task.scope,
        "node": task.node,
        "type": node.type,
        "visit": task.visit,
        "attempt": task.attempt,
        "key": turn.key(task),
    }
    if task.parent is not None:
        data["parent"], data["index"] = task.parent, task.index
    if task.item is not None:
        data["item"] = task.item
    if task.rerun:
        data["rerun"] = task.rerun
    if node.estimate_usd:
        data["reserve"] = node.estimate_usd
    return data


def is_full(turn: Turn) -> bool:
    """Whether the limit of concurrent leaves is reached."""
    limit = turn.plans[turn.state.file].limits.max_parallel
    return limit is not None and turn.state.leaves >= limit


def _leaf(turn: Turn, task: Task, node: Node, names: ScopeNames) -> None:
    plan = turn.plan(task.scope)
    request = Request(
        path=task.path,
        node=node,
        run=turn.state.run,
        workflow=plan.name,
        visit=task.visit,
        attempt=task.attempt,
        key=turn.key(task),
        item=task.item,
        file=plan.file,
        approved=task.approved,
        call=call_of(node, names, turn.state.metadata.get("cwd"), plan.instructions),
    )
    turn.commands.append(request)


def _set(turn: Turn, task: Task, node: Node, names: ScopeNames) -> None:
    spec = node.spec
    assert isinstance(spec, SetSpec)
    if spec.values is None:
        complete(turn, task, _computed(spec.value, spec.output_type, names))
    else:
        values = {name: _computed(value, spec.output_type, names) for name, value in spec.values.items()}
        complete(turn, task, values)


def _computed(value: Any, output_type: Any, names: ScopeNames) -> Any:
    if isinstance(value, Template):
        reference = whole_reference(value)
        if reference is not None and is_secret(referenced := look_up(reference, names)):
            return referenced
        return as_set_value(render(value, names), output_type)
    if isinstance(value, dict):
        return {key: _computed(part, "auto", names) for key, part in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, (list, tuple)):
        return [_computed(part, "auto", names) for part in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def _wait(turn: Turn, task: Task, node: Node, names: ScopeNames) -> None:
    spec = node.spec
    assert isinstance(spec, WaitSpec)
    duration_spec = spec.duration
    seconds = duration(render(duration_spec, names)) if isinstance(duration_spec, Template) else duration_spec
    data: dict[str, Any] = {"path": task.path, "until": turn.at + seconds, "seconds": seconds}
    if spec.reason is not None:
        data["reason"] = render(spec.reason, names)
    turn.record("node:waiting", data)
    turn.commands.append(SetTimer(timer=task.path, at=turn.at + seconds))


def _workflow(turn: Turn, task: Task, node: Node, names: ScopeNames) -> None:
    spec = node.spec
    assert isinstance(spec, WorkflowSpec)
    scope = turn.state.scopes[task.scope]
    depth = scope.depth + 1
    limit = min(MAX_DEPTH, spec.max_depth)
    if depth > limit:
        too_deep = turn.failure(
            "subworkflow.failed",
            f"`{task.node}` would nest workflows {depth} deep; {limit} is the limit",
            task=task,
            details={"depth": depth, "max_depth": limit},
        )
        fail(turn, task, too_deep)
        return
    inputs = None
    if spec.input_mapping is not None:
        inputs = {name: _mapped(value, names) for name, value in spec.input_mapping.items()}
    file = render(spec.path, names)
    loaded = _loaded_file(turn, task, file)
    if loaded is not None:
        open_scope(turn, task, loaded, inputs)
        return
    turn.record("workflow:opening", {"path": task.path, "file": file})
    turn.commands.append(Open(path=task.path, file=file, folder=turn.plan(scope).folder))


def _mapped(value: Any, names: ScopeNames) -> Any:
    if not isinstance(value, Template):
        return render_value(value, names)
    reference = whole_reference(value)
    if reference is not None:
        referenced = look_up(reference, names)
        if referenced is not MISSING and not isinstance(referenced, str):
            return referenced
    return as_mapped(render(value, names))


def _loaded_file(turn: Turn, task: Task, file: str) -> str | None:
    """The path of a sub-workflow's file if its plan is loaded already."""
    from posixpath import join, normpath

    path = normpath(join(turn.plan(task.scope).folder, file))
    return path if path in turn.plans else None


def notify(turn: Turn, task: Task, node: Node, names: ScopeNames) -> None:
    """Emit one notification. Its payload must match the declared schema."""
    spec = node.spec
    assert isinstance(spec, NotificationSpec)
    plan = turn.plan(task.scope)
    declared = plan.notifications
    notification = None if declared is None else declared.types.get(spec.emit)
    if declared is None or notification is None:
        raise Validation(
            kind="validation.config_invalid", message=f"`{spec.emit}` is not a declared notification type"
        )
    payload = {name: _value(value, names) for name, value in spec.payload.items()}
    _check(notification.payload, payload, spec.emit)
    inputs = turn.state.scopes[""].inputs
    data: dict[str, Any] = {
        "path": task.path,
        "emission_id": f"{turn.state.run}:{task.path}:{task.visit}",
        "schema_id": f"{declared.namespace}.{spec.emit}@{notification.version}",
        "correlation": {name: inputs.get(name) for name in declared.correlation},
        "payload": payload,
    }
    turn.record("notification", data)
    complete(turn, task, {})


def _value(value: Any, names: ScopeNames) -> Any:
    if isinstance(value, Template):
        return as_mapped(render(value, names))
    return render_value(value, names)


def _check(schema: Any, payload: dict[str, Any], emit: str) -> None:
    from jsonschema_rs import validator_for

    error = next(iter(validator_for(schema).iter_errors(payload)), None)
    if error is not None:
        place = "/".join(str(part) for part in error.instance_path) or "the payload"
        raise Validation(
            kind="internal.schema_violation",
            message=f"the payload of `{emit}` does not match its declaration at {place}",
        )


_BEGIN: dict[str, Callable[[Turn, Task, Node, ScopeNames], None]] = {
    "set": _set,
    "stage": begin_stage,
    "wait": _wait,
    "workflow": _workflow,
    "human_gate": ask_person,
    "questions": ask_questions,
    "parallel": begin_group,
    "for_each": begin_group,
    "notification": notify,
    "terminate": terminate,
}
