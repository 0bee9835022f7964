"""Executors, limits, the inputs of sub-workflows, and filters that do not exist."""

import pytest

from failwell.workflows.check.rules import check
from failwell.workflows.plan import Limits
from tests.workflows.check.finding import ALL, errors, found, hints, warnings
from tests.workflows.plans import (
    a_for_each,
    a_job,
    a_plan,
    a_script,
    a_tool,
    a_wait,
    a_workflow,
    an_agent,
    an_input,
    some_inputs,
    to,
)


@pytest.mark.parametrize(("node", "extra"), [(an_agent("x"), "agents"), (a_tool("x"), "agents")])
def test_a_node_that_nothing_here_can_run_names_what_is_missing(node: object, extra: str) -> None:
    plan = a_plan(node)  # type: ignore[arg-type]

    [mistake] = check(plan, available=frozenset({"job"}))

    assert f"needs the extra `{extra}`" in mistake.message
    assert mistake.hint == f"install `failwell[{extra}]`"
    assert check(plan, available=ALL) == []


def test_jobs_run_wherever_workflows_do() -> None:
    assert check(a_plan(a_job("x"))) == []


def test_the_body_of_a_loop_needs_its_executor_too() -> None:
    plan = a_plan(a_for_each("fan", body=an_agent("one")), inputs=some_inputs(an_input("items", "array")))

    assert [one.path for one in check(plan, available=())] == ["fan.agent.type"]


def test_a_limit_that_the_shortest_run_breaks_is_a_warning() -> None:
    nodes = (a_script("a", to("b", when="{{ output.x }}"), to("c")), a_script("b", to("c")), a_script("c"))

    assert found(a_plan(*nodes, limits=Limits(max_iterations=2))) == []
    assert warnings(a_plan(*nodes, limits=Limits(max_iterations=1))) == [
        "the shortest run takes 2 steps, but `max_iterations` is 1"
    ]


def test_time_that_a_step_alone_may_take_is_a_warning() -> None:
    plan = a_plan(
        a_wait("pause", to("build"), duration=120.0),
        a_script("build", timeout=61.0),
        limits=Limits(timeout_seconds=60),
    )

    assert warnings(plan) == [
        "`pause` waits 120 s, but the whole run has 60 s",
        "`build` may take 61 s, but the whole run has 60 s",
    ]


def test_money_that_one_step_alone_is_expected_to_cost_is_a_warning() -> None:
    plan = a_plan(a_script("build", estimate_usd=3.0), limits=Limits(budget_usd=2.0))

    assert warnings(plan) == ["`build` is expected to cost $3, but the whole run has $2"]


def test_what_a_sub_workflow_is_given_fits_its_inputs() -> None:
    child = a_plan(
        a_script("x"), inputs=some_inputs(an_input("name"), an_input("size", "number", required=False))
    )
    children = {"child.yaml": child}

    def with_mapping(mapping: dict[str, str] | None) -> list[str]:
        parent = a_plan(a_workflow("child", mapping=mapping), inputs=some_inputs(an_input("other")))
        return errors(parent, children=children)

    assert with_mapping({"name": "x"}) == []
    assert with_mapping({}) == ["`child.yaml` needs the input `name`, and `child` does not pass it"]
    assert with_mapping(None) == ["`child.yaml` needs the input `name`, and `child` does not pass it"]
    assert with_mapping({"nmae": "x", "name": "x"}) == []
    assert warnings(a_plan(a_workflow("child", mapping={"nmae": "x", "name": "x"})), children=children) == [
        "`child.yaml` declares no input `nmae`"
    ]
    assert "did you mean `name`?" in hints(
        a_plan(a_workflow("child", mapping={"nmae": "x", "name": "x"})), children=children
    )


@pytest.mark.parametrize(
    ("text", "sort", "word"),
    [
        ("{{ [1] | nosuch }}", "unknown filter", "`|`"),
        ("{{ [1] | sort | nosuch(2) }}", "unknown filter", "`|`"),
        ("{{ 1 is nosuch }}", "unknown test", "`is`"),
        ("{{ 1 is not nosuch }}", "unknown test", "`is`"),
        ("{% if 0 %}{{ 1 | nosuch }}{% endif %}", "unknown filter", "`|`"),
    ],
)
def test_a_filter_or_a_test_that_does_not_exist_is_found_before_the_run(
    text: str, sort: str, word: str
) -> None:
    plan = a_plan(a_script("a", args=[text]))

    assert errors(plan) == [f"`a.args[0]` cannot be read: {sort} on line 1: `nosuch`"]
    assert word in hints(plan)[0]


@pytest.mark.parametrize(
    "text",
    [
        "{{ [1] | map('string') | join(', ') | json }}",
        "{{ 1 is not defined or 1 is none or 1 is in [1] or 2 is divisibleby(2) or true is True }}",
        "{% for key, value in {'a': 1} | items %}{{ key }}{% endfor %}",
        "{{ 'x | nosuch is nosuch' }} | nosuch",
    ],
)
def test_filters_and_tests_that_exist_are_let_pass(text: str) -> None:
    assert errors(a_plan(a_script("a", args=[text]))) == []
