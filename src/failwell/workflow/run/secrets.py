"""The secret inputs of a run: kept out of the journal, and passed to the scripts that may use them."""

import json
from collections.abc import Mapping
from typing import Any

from failwell.fault.axes import ActionKind
from failwell.fault.facts import UserAction
from failwell.files.mistakes import Mistake
from failwell.workflow.machine.run_state import State
from failwell.workflow.plan import Plan
from failwell.workflow.run.run_faults import WorkflowInvalid
from failwell.workflow.run_inputs import check_inputs


def split_inputs(file: str, plan: Plan, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The inputs as they are recorded, and the secrets by reference.

    Raises:
        WorkflowInvalid: an input is missing or mistyped.
    """
    inputs, mistakes = check_inputs(plan, values)
    if any(mistake.is_error for mistake in mistakes):
        raise WorkflowInvalid(file=file, mistakes=mistakes)
    secrets: dict[str, str] = {}
    for name, declared in plan.inputs.items():
        if declared.secret:
            ref = f"workflow.input.{name}"
            value = inputs[name]
            secrets[ref] = value if isinstance(value, str) else json.dumps(value)
            inputs[name] = {"secret": True, "ref": ref}
    return inputs, secrets


def resumed_secrets(state: State, plan: Plan, values: Mapping[str, Any]) -> dict[str, str]:
    """The secrets of a resumed run. The journal has none, so they are passed again or come from defaults."""
    secrets: dict[str, str] = {}
    mistakes: list[Mistake] = []
    for name, declared in plan.inputs.items():
        if not declared.secret or name not in state.scopes[""].inputs:
            continue
        only = Plan(name=plan.name, entry=plan.entry, nodes={}, inputs={name: declared})
        checked, input_mistakes = check_inputs(only, {name: values[name]} if name in values else {})
        mistakes += input_mistakes
        if name in checked:
            secrets[f"workflow.input.{name}"] = str(checked[name])
    if mistakes:
        raise WorkflowInvalid(
            file=plan.file,
            mistakes=mistakes,
            user_action=UserAction(
                ActionKind.CHANGE_INPUT, "pass the secret inputs again with `--input`; they are not stored"
            ),
        )
    return secrets
