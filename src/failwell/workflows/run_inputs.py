"""Checks the inputs of a run against the declared ones."""

from collections.abc import Callable, Mapping
from typing import Any

from failwell.files.mistakes import Mistake
from failwell.files.suggestions import Near, choices
from failwell.workflows.check.findings import error, warning
from failwell.workflows.plan import Input, Plan
from failwell.workflows.template.values import TypedText, as_input

_ZERO: dict[str, Callable[[], Any]] = {
    "string": str,
    "number": int,
    "boolean": bool,
    "array": list,
    "object": dict,
}
"""Type → value of an optional input without a default."""
_TYPE_NAMES = {
    "str": "text", "bool": "a boolean", "int": "a number", "float": "a number", "list": "an array", "dict": "an object",
}  # fmt: skip


def check_inputs(plan: Plan, values: Mapping[str, Any]) -> tuple[dict[str, Any], list[Mistake]]:
    """The inputs with defaults, and every mistake in `values`. Inputs that are not declared are taken, with a warning.

    A mistake names an input and its type, and never a value, which may be a secret.
    """
    inputs: dict[str, Any] = {}
    mistakes: list[Mistake] = []
    for name, declared in plan.inputs.items():
        if name in values:
            value = values[name]
            if isinstance(value, TypedText):
                value = as_input(str(value), declared.type)
            if fits(declared, value):
                inputs[name] = value
            else:
                mistakes.append(_wrong_type(declared, value))
        elif declared.has_default:
            inputs[name] = declared.default
        elif declared.required:
            mistakes.append(_missing(declared))
        else:
            inputs[name] = _ZERO[declared.type]()
    for name, value in values.items():
        if name not in plan.inputs:
            inputs[name] = as_input(str(value)) if isinstance(value, TypedText) else value
    return inputs, mistakes + undeclared_inputs(plan, values)


def undeclared_inputs(plan: Plan, values: Mapping[str, Any]) -> list[Mistake]:
    """A warning for each input that the workflow does not declare."""
    undeclared = [name for name in values if name not in plan.inputs]
    if not undeclared:
        return []
    near = Near()
    return [
        warning(
            None,
            f"the workflow declares no input `{name}`; templates can use it as `workflow.input.{name}`",
            path=f"workflow.input.{name}",
            hint=choices(
                near(name, plan.inputs, "inputs"), plan.inputs, "declare it, so that its type is checked"
            ),
        )
        for name in undeclared
    ]


def fits(declared: Input, value: Any) -> bool:
    """Whether `value` is of the declared type. An optional input may also be null."""
    if value is None:
        return not declared.required
    return has_type(value, declared.type)


def has_type(value: object, json_type: str) -> bool:
    """Whether a JSON value has the type that an input of a workflow declares. Booleans are not numbers."""
    match json_type:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, Mapping)


def _missing(declared: Input) -> Mistake:
    example = {"string": "TEXT", "number": "5", "boolean": "true", "array": "'[…]'", "object": "'{…}'"}
    return error(
        declared.place,
        f"the input `{declared.name}` ({declared.type}) is required and missing",
        path=f"workflow.input.{declared.name}",
        hint=f"add `-i {declared.name}={example[declared.type]}`",
    )


def _wrong_type(declared: Input, value: Any) -> Mistake:
    actual = "null" if value is None else _TYPE_NAMES.get(type(value).__name__, "something else")
    return error(
        declared.place,
        f"the input `{declared.name}` must be of type {declared.type}, but it is {actual}",
        path=f"workflow.input.{declared.name}",
        hint=f"pass {_example(declared)}",
    )


def _example(declared: Input) -> str:
    match declared.type:
        case "string":
            return "text"
        case "number":
            return "a number such as `5`"
        case "boolean":
            return "`true` or `false`"
        case "array":
            return 'a JSON array such as `["a"]`'
        case "object":
            return 'a JSON object such as `{"a": 1}`'
