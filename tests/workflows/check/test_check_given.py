"""The inputs of one run."""

from typing import Any

import pytest

from failwell.workflows.run_inputs import check_inputs
from failwell.workflows.template.values import TypedText
from tests.workflows.plans import a_plan, a_script, an_input, some_inputs


def given(values: dict[str, Any], *inputs: Any) -> tuple[dict[str, Any], list[str]]:
    taken, mistakes = check_inputs(a_plan(a_script(), inputs=some_inputs(*inputs)), values)
    assert all(mistake.is_error and mistake.hint for mistake in mistakes)
    return taken, [mistake.message for mistake in mistakes]


@pytest.mark.acceptance("conductor 63")
def test_a_missing_input_is_named() -> None:
    assert given({}, an_input("name")) == ({}, ["the input `name` (string) is required and missing"])


@pytest.mark.acceptance("conductor 63")
@pytest.mark.parametrize(
    ("type", "value", "called"),
    [
        ("string", 5, "a number"),
        ("number", True, "a boolean"),
        ("number", "5", "text"),
        ("boolean", 1, "a number"),
        ("array", {"a": 1}, "an object"),
        ("object", [1], "an array"),
        ("string", None, "null"),
    ],
)
def test_a_wrongly_typed_input_is_named_without_its_value(type: str, value: Any, called: str) -> None:  # noqa: A002
    _, messages = given({"x": value}, an_input("x", type))

    assert messages == [f"the input `x` must be of type {type}, but it is {called}"]


@pytest.mark.acceptance("conductor 63")
def test_an_undeclared_input_is_taken_and_named_with_the_near_one() -> None:
    values, mistakes = check_inputs(
        a_plan(a_script(), inputs=some_inputs(an_input("name"))), {"name": "x", "nmae": TypedText("5")}
    )

    assert values == {"name": "x", "nmae": 5}
    assert [(mistake.message, mistake.hint, mistake.severity) for mistake in mistakes] == [
        (
            "the workflow declares no input `nmae`; templates can use it as `workflow.input.nmae`",
            "did you mean `name`?",
            "warning",
        )
    ]


def test_defaults_are_filled_in() -> None:
    assert given({}, an_input("n", "number", required=False, default=3, has_default=True)) == ({"n": 3}, [])


def test_an_optional_input_without_a_default_is_the_zero_of_its_type() -> None:
    inputs = [
        an_input(name, name, required=False) for name in ("string", "number", "boolean", "array", "object")
    ]

    taken, mistakes = given({}, *inputs)

    assert taken == {"string": "", "number": 0, "boolean": False, "array": [], "object": {}}
    assert taken["boolean"] is False
    assert mistakes == []


def test_the_zero_of_one_run_is_not_the_zero_of_another() -> None:
    plan = a_plan(a_script(), inputs=some_inputs(an_input("x", "array", required=False)))

    first, _ = check_inputs(plan, {})
    first["x"].append(1)

    assert check_inputs(plan, {})[0] == {"x": []}
