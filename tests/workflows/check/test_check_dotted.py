"""References outside of templates, and explicit mode."""

import pytest

from tests.workflows.check.finding import errors, found, hints, warnings
from tests.workflows.plans import (
    a_for_each,
    a_parallel,
    a_plan,
    a_script,
    a_set,
    an_agent,
    an_input,
    on_error,
    some_inputs,
    some_questions,
    to,
)

NAMED = some_inputs(an_input("name"), an_input("items", "array"))


@pytest.mark.acceptance("conductor 31")
def test_explicit_mode_warns_about_what_is_not_declared() -> None:
    build = a_script("build", on_error(to="tell"), to())
    bare = a_plan(build, a_script("tell", args=["{{ build.error.kind }}"]), context_mode="explicit")
    granted = a_plan(
        build,
        a_script("tell", args=["{{ build.error.kind }}"], input=("build.error",)),
        context_mode="explicit",
    )

    assert warnings(bare) == ["`build.error` is not in the `input` of `tell`, which `explicit` mode requires"]
    assert hints(bare) == ["add `build.error` to its `input`"]
    assert found(granted) == []


@pytest.mark.acceptance("conductor 31")
def test_an_optional_error_of_a_node_that_may_never_fail_is_no_mistake() -> None:
    plan = a_plan(
        a_script("build", to("tell")),
        a_script("tell", args=["{{ build.error.kind | default('') }}"], input=("build.error?",)),
        context_mode="explicit",
    )

    assert found(plan) == []


def test_declaring_a_field_of_an_error_grants_all_of_it() -> None:
    plan = a_plan(
        a_script("build", on_error(to="tell"), to()),
        a_script("tell", args=["{{ build.error.details.x }}"], input=("build.error.kind",)),
        context_mode="explicit",
    )

    assert found(plan) == []


def test_declaring_a_field_grants_that_field_and_the_short_form_means_the_output() -> None:
    def with_input(declared: str) -> list[str]:
        return warnings(
            a_plan(
                a_script("build", to("tell")),
                an_agent("tell", prompt="{{ build.output.x.y }}", input=(declared,)),
                context_mode="explicit",
            )
        )

    assert with_input("build.output") == []
    assert with_input("build.output.x") == []
    assert with_input("build.x") == []
    assert with_input("build.output.z") == [
        "`build.output.x` is not in the `input` of `tell`, which `explicit` mode requires"
    ]


def test_routes_and_inputs_are_seen_in_explicit_mode_without_a_word() -> None:
    plan = a_plan(
        a_script("build", to("tell")),
        a_script("tell", to(when="{{ build.output.ok }}"), to(), args=["{{ workflow.input.name }}"]),
        context_mode="explicit",
        inputs=NAMED,
    )

    assert found(plan) == []


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("{{ build.output }}", "`{{ build.output }}` is not a reference"),
        ("build..output", "`build..output` is not a reference"),
        ("biuld.output", "no step is called `biuld`"),
        ("workflow.input.nmae", "the workflow has no input `nmae`"),
        ("workflow.output", "`workflow.output` is not a reference to an input"),
    ],
)
def test_a_declared_input_must_be_a_reference_to_something(reference: str, message: str) -> None:
    plan = a_plan(a_script("build", to("tell")), a_script("tell", input=(reference,)), inputs=NAMED)

    assert errors(plan) == [message]


def test_a_required_input_that_may_be_missing_is_a_warning() -> None:
    plan = a_plan(
        a_script("build", to("left", when="{{ output.ok }}"), to("tell")),
        a_script("left", to("tell")),
        a_script("tell", input=("left.output", "left.output?")),
    )

    assert warnings(plan) == ["`left.output` may not exist when `tell` starts"]


@pytest.mark.parametrize(
    ("env_from", "message"),
    [
        ({"TOKEN": "{{ workflow.input.name }}"}, "`{{ workflow.input.name }}` is not a reference"),
        ({"TOKEN": "workflow.input.nmae"}, "the workflow has no input `nmae`"),
        ({"TOKEN": "nobody.output.x"}, "no step is called `nobody`"),
        ({"A-B": "workflow.input.name"}, "`A-B` cannot be the name of a variable"),
    ],
)
def test_variables_come_from_inputs_and_outputs(env_from: dict[str, str], message: str) -> None:
    assert errors(a_plan(a_script("build", env_from=env_from), inputs=NAMED)) == [message]


def test_a_variable_is_given_in_one_way() -> None:
    script = a_script("build", env={"NAME": "x"}, env_from={"NAME": "workflow.input.name"})

    assert errors(a_plan(script, inputs=NAMED)) == ["`NAME` is in both `env` and `env_from` of `build`"]


def test_a_variable_that_the_engine_sets_is_not_seen() -> None:
    script = a_script("build", env={"CONDUCTOR_ERROR_OUT": "/elsewhere"})

    assert warnings(a_plan(script)) == [
        "the runtime sets `CONDUCTOR_ERROR_OUT` itself, so the value of `build` has no effect"
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("items", "`items` names no list of a step"),
        ("workflow.input", "`workflow.input` names no list of a step"),
        ("workflow.input.itmes", "the workflow has no input `itmes`"),
        ("nobody.output.files", "no step is called `nobody`"),
        ("{{ x }}", "`{{ x }}` is not a reference"),
    ],
)
def test_a_loop_has_a_list_to_go_over(source: str, message: str) -> None:
    assert errors(a_plan(a_for_each("fan", source=source), inputs=NAMED)) == [message]


def test_a_loop_inside_a_loop_goes_over_a_field_of_the_item() -> None:
    inner = a_for_each(
        "inner", source="item.parts", variable="part", body=a_set("one", value="{{ part }}{{ item }}")
    )

    assert found(a_plan(a_for_each("outer", body=inner), inputs=NAMED)) == []


def test_questions_may_come_from_a_step() -> None:
    plan = a_plan(a_set("shape", to("ask")), some_questions("ask", texts=(), source="shape.output.questions"))

    assert found(plan) == []


def test_the_source_of_a_loop_is_not_a_member_beside_it() -> None:
    plan = a_plan(
        a_parallel("both", members=("left", "fan")),
        a_set("left"),
        a_for_each("fan", source="left.output.files"),
    )

    assert errors(plan) == ["`left` runs beside `fan` in `both`, so it has no output yet"]
