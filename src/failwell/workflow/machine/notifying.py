"""Domain events of the workflow's own: checked against their declaration, then told."""

from typing import Any

from failwell.fault.classes import Validation
from failwell.workflow.machine.context import ScopeNames
from failwell.workflow.machine.ending import complete
from failwell.workflow.machine.state import Task
from failwell.workflow.machine.turn import Turn
from failwell.workflow.plan import Node, NotificationSpec, Template
from failwell.workflow.template.coerce import as_mapped
from failwell.workflow.template.render import render, render_value


def notify(turn: Turn, task: Task, node: Node, names: ScopeNames) -> None:
    """Emit one notification. Its payload must match the declared schema."""
    spec = node.spec
    assert isinstance(spec, NotificationSpec)
    plan = turn.plan(task.scope)
    declared = plan.notifications
    known = None if declared is None else declared.types.get(spec.emit)
    if declared is None or known is None:
        raise Validation(
            kind="validation.config_invalid", message=f"`{spec.emit}` is not a declared notification type"
        )
    payload = {name: _value(value, names) for name, value in spec.payload.items()}
    _check(known.payload, payload, spec.emit)
    inputs = turn.state.scopes[""].inputs
    data: dict[str, Any] = {
        "path": task.path,
        "emission_id": f"{turn.state.run}:{task.path}:{task.visit}",
        "schema_id": f"{declared.namespace}.{spec.emit}@{known.version}",
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

    first = next(iter(validator_for(schema).iter_errors(payload)), None)
    if first is not None:
        place = "/".join(str(part) for part in first.instance_path) or "the payload"
        raise Validation(
            kind="internal.schema_violation",
            message=f"the payload of `{emit}` does not match its declaration at {place}",
        )
