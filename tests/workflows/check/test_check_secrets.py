"""Secrets go where they are kept, and nowhere else."""

import pytest

from failwell.workflows.plan import Node, Notifications, Plan, Route
from tests.workflows.check.finding import errors, found, warnings
from tests.workflows.plans import (
    a_for_each,
    a_gate,
    a_notification,
    a_parallel,
    a_plan,
    a_script,
    a_set,
    a_terminate,
    a_text,
    a_tool,
    a_wait,
    a_workflow,
    an_agent,
    an_input,
    on_error,
    some_inputs,
    some_questions,
    to,
)

SECRET = some_inputs(an_input("token", secret=True), an_input("name"))
TOKEN = "{{ workflow.input.token }}"


@pytest.mark.acceptance("relavium 69")
@pytest.mark.parametrize(
    ("field", "plan"),
    [
        ("a.prompt", a_plan(an_agent("a", prompt=f"use {TOKEN}"), inputs=SECRET)),
        ("a.system_prompt", a_plan(an_agent("a", system_prompt=TOKEN), inputs=SECRET)),
        ("a.prompt", a_plan(a_gate("a", prompt=TOKEN), inputs=SECRET)),
        ("a.questions[0].text", a_plan(some_questions("a", texts=[TOKEN]), inputs=SECRET)),
        ("a.command", a_plan(a_script("a", command=TOKEN), inputs=SECRET)),
        ("a.args[1]", a_plan(a_script("a", args=["x", TOKEN]), inputs=SECRET)),
        ("a.working_dir", a_plan(a_script("a", working_dir=TOKEN), inputs=SECRET)),
        ("output.x", a_plan(a_script("a"), inputs=SECRET, output={"x": TOKEN})),
        ("a.payload.x", a_plan(a_notification("a", payload={"x": TOKEN}), inputs=SECRET)),
        ("a.routes[0].when", a_plan(a_script("a", to(when=TOKEN), to()), inputs=SECRET)),
        ("a.routes[0].output.x", a_plan(a_script("a", to(x=TOKEN)), inputs=SECRET)),
        ("a.routes[0].halt.message", a_plan(a_script("a", on_error(halt=TOKEN), to()), inputs=SECRET)),
        ("a.reason", a_plan(a_terminate("a", reason=TOKEN), inputs=SECRET)),
        ("a.reason", a_plan(a_wait("a", reason=TOKEN), inputs=SECRET)),
        ("a.arguments.x", a_plan(a_tool("a", arguments={"x": TOKEN}), inputs=SECRET)),
        ("workflow.hooks.on_start", a_plan(a_script("a"), inputs=SECRET, hooks={"on_start": a_text(TOKEN)})),
        ("workflow.metadata.x", a_plan(a_script("a"), inputs=SECRET, metadata={"x": a_text(TOKEN)})),
    ],
)
def test_a_secret_in_a_text_is_refused_and_its_place_is_named(field: str, plan: Plan) -> None:
    [mistake] = found(plan)

    assert mistake.message == f"the secret `workflow.input.token` would be used in `{field}`"
    assert (mistake.is_error, mistake.path) == (True, field)


@pytest.mark.acceptance("relavium 69")
@pytest.mark.parametrize(
    "agent",
    [
        an_agent("a", prompt="use {{ token }}"),
        an_agent("a", prompt="p", settings={"validator": {"criteria": a_text("{{ token }}")}}),
        an_agent("a", prompt="p", settings={"dialog": {"trigger_prompt": a_text(TOKEN)}}),
        an_agent("a", prompt="p", settings={"working_dir": a_text(TOKEN)}),
    ],
)
def test_a_secret_is_refused_in_every_text_of_an_agent_also_by_its_short_name(agent: Node) -> None:
    [mistake] = found(a_plan(agent, inputs=SECRET))

    assert mistake.message.startswith("the secret `")
    assert "token` would be used in `a." in mistake.message


@pytest.mark.acceptance("relavium 69")
def test_a_secret_is_followed_through_any_number_of_steps() -> None:
    plan = a_plan(
        a_set("one", to("two"), values={"key": TOKEN, "plain": "x"}),
        a_set("two", to("three"), value="{{ one.output.key }}"),
        a_set(
            "three",
            to("ask"),
            values={"deep": {"er": ["{{ two.output }}"]}, "plain": "{{ one.output.plain }}"},
        ),
        an_agent("ask", prompt="{{ three.output.deep }} {{ three.output.plain }}"),
        inputs=SECRET,
    )

    assert errors(plan) == [
        "the secret `three.output.deep` (from the input `token`) would be used in `ask.prompt`"
    ]


def test_what_does_not_hold_the_secret_is_free() -> None:
    plan = a_plan(
        a_set("one", to("ask"), values={"key": TOKEN, "plain": "{{ workflow.input.name }}"}),
        an_agent("ask", prompt="{{ one.output.plain }} {{ workflow.input.name }}"),
        inputs=SECRET,
    )

    assert found(plan) == []


def test_a_dump_of_all_inputs_holds_the_secret() -> None:
    plan = a_plan(an_agent("ask", prompt="{{ workflow.input | json }}"), inputs=SECRET)

    assert errors(plan) == ["the secret `workflow.input.token` would be used in `ask.prompt`"]


def test_a_script_may_have_it_in_its_environment() -> None:
    plan = a_plan(
        a_set("one", to("call"), value=TOKEN),
        a_script("call", env_from={"TOKEN": "workflow.input.token", "AGAIN": "one.output"}),
        inputs=SECRET,
    )

    assert found(plan) == []


def test_a_script_would_read_the_mark_of_a_secret_and_not_its_value() -> None:
    plan = a_plan(a_script("call", stdin=TOKEN), inputs=SECRET)

    assert errors(plan) == ["the secret `workflow.input.token` would be used in `call.stdin`"]


def test_nothing_can_be_made_of_a_secret_on_its_way() -> None:
    plan = a_plan(
        a_set("one", to("call"), values={"header": f"Bearer {TOKEN}", "alone": TOKEN}),
        a_script("call", env_from={"HEADER": "one.output.header"}),
        inputs=SECRET,
    )

    assert errors(plan) == ["`one.values.header` combines the secret `workflow.input.token` with other text"]


def test_a_loop_over_secrets_has_secret_items() -> None:
    inputs = some_inputs(an_input("tokens", "array", secret=True))
    plan = a_plan(
        a_for_each("fan", source="workflow.input.tokens", body=a_script("one", args=["{{ item.key }}"])),
        inputs=inputs,
    )

    assert errors(plan) == [
        "the secret `item` (from the input `tokens`) would be used in `fan.agent.args[0]`"
    ]


def test_an_item_of_another_loop_is_free_though_it_has_the_same_name() -> None:
    inputs = some_inputs(an_input("tokens", "array", secret=True), an_input("items", "array"))
    plan = a_plan(
        a_for_each(
            "keys",
            to("fan"),
            source="workflow.input.tokens",
            body=a_script("one", env_from={"KEY": "item.key"}),
        ),
        a_for_each("fan", source="workflow.input.items", body=a_script("one", args=["{{ item }}"])),
        inputs=inputs,
    )

    assert found(plan) == []


@pytest.mark.parametrize(
    ("route", "field", "shown"),
    [
        (to(x="{{ output.key }}"), "routes[0].output.x", "one.output.key"),
        (to(when="{{ output.key }}"), "routes[0].when", "one.output.key"),
        (to(when="key == 'x'"), "routes[0].when", "one.output.key"),
        (to(when="one_output.key == 'x'"), "routes[0].when", "one.output.key"),
        (to(when="workflow_input.token == 'x'"), "routes[0].when", "workflow.input.token"),
    ],
)
def test_a_route_cannot_tell_a_secret_under_another_name(route: Route, field: str, shown: str) -> None:
    plan = a_plan(a_set("one", route, to(), values={"key": TOKEN, "other": "x"}), inputs=SECRET)

    [message] = errors(plan)

    assert message.startswith(f"the secret `{shown}`")
    assert message.endswith(f"would be used in `one.{field}`")


def test_what_a_member_passes_on_is_in_the_record_of_its_group() -> None:
    plan = a_plan(
        a_parallel("both", to("ask")),
        a_set("left", value=TOKEN),
        a_set("right"),
        an_agent("ask", prompt="{{ both.outputs.left }}"),
        inputs=SECRET,
    )

    assert errors(plan) == [
        "the secret `both.outputs` (from the input `token`) would be used in `ask.prompt`"
    ]


def test_a_sub_workflow_takes_a_secret_for_a_secret_input_alone() -> None:
    def handed_to(child: Plan, **mapping: str) -> list[str]:
        parent = a_plan(a_workflow("child", path="child.yaml", mapping=mapping or None), inputs=SECRET)
        return errors(parent, children={"child.yaml": child})

    kept = a_plan(a_script("x"), inputs=some_inputs(an_input("token", secret=True)))
    open_ = a_plan(a_script("x"), inputs=some_inputs(an_input("token")))
    message = "goes to the input `token` of `child.yaml`, which is not secret"

    assert handed_to(kept, token=TOKEN) == []
    assert handed_to(kept) == []
    assert handed_to(open_, token=TOKEN) == [f"the secret `workflow.input.token` {message}"]
    assert handed_to(open_) == [f"the secret `token` {message}"]


def test_a_secret_is_not_passed_to_an_input_that_is_not_declared() -> None:
    children = {"child.yaml": a_plan(a_script("x"))}
    mapped = a_plan(a_workflow("child", path="child.yaml", mapping={"token": TOKEN}), inputs=SECRET)
    whole = a_plan(a_workflow("child", path="child.yaml"), inputs=SECRET)

    assert errors(mapped, children=children) == [
        "the secret `workflow.input.token` goes to the input `token` of `child.yaml`, which is not secret"
    ]
    assert errors(whole, children=children) == []


def test_a_sub_workflow_that_is_chosen_later_cannot_be_given_a_secret() -> None:
    path = "{{ workflow.input.name }}.yaml"
    mapped = a_plan(a_workflow("child", path=path, mapping={"x": TOKEN}), inputs=SECRET)
    whole = a_plan(a_workflow("child", path=path), inputs=SECRET)

    assert errors(mapped) == [
        "the secret `workflow.input.token` goes to a sub-workflow that is only known at run time"
    ]
    assert warnings(whole) == [
        "`child` passes the secret `token` to a sub-workflow that is only known at run time"
    ]


def test_a_secret_is_nothing_to_correlate_notifications_by() -> None:
    plan = a_plan(
        a_script("a"),
        inputs=SECRET,
        notifications=Notifications(namespace="x", correlation=("workflow.input.token",)),
    )

    assert errors(plan) == ["the secret `workflow.input.token` would be sent with every notification"]
