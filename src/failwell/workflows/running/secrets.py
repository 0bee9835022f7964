"""The secret inputs of a run: kept out of the journal, and passed to the scripts that may use them."""

import json
import logging
from collections.abc import Mapping
from typing import Any

from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.masking.known_values import SHORTEST
from failwell.files.mistakes import Mistake
from failwell.workflows.machine.run_state import State
from failwell.workflows.plan import Plan
from failwell.workflows.run_inputs import check_inputs
from failwell.workflows.running.faults import WorkflowInvalid

_LOG = logging.getLogger("failwell.workflows")


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


def warn_of_short(secrets: Mapping[str, str]) -> None:
    """Log a warning for each secret that is too short to be masked in what steps print."""
    for ref, value in secrets.items():
        name = ref.rpartition(".")[2]
        if value and len(value) < SHORTEST:
            _LOG.warning(
                "the secret input `%s` has fewer than %d characters, so it is not masked in what steps print",
                name,
                SHORTEST,
            )
        elif _has_short_line(value):
            _LOG.warning(
                "the secret input `%s` has lines of fewer than %d characters; they are not masked one by one",
                name,
                SHORTEST,
            )


def _has_short_line(value: str) -> bool:
    """Whether a secret of several lines has one that is too short to be masked. Brackets alone are no secret."""
    lines = [line.strip() for line in value.splitlines()]
    return any(len(line) < SHORTEST and any(map(str.isalnum, line)) for line in lines)


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
