"""References in templates: unknown ones, and those to what may not be there."""

import pytest

from failwell.workflows.plan import END, Member
from tests.workflows.check.finding import errors, found, hints, warnings
from tests.workflows.plans import (
    a_for_each,
    a_gate,
    a_parallel,
    a_place,
    a_plan,
    a_script,
    a_set,
    a_terminate,
    a_text,
    an_agent,
    an_input,
    on_error,
    some_inputs,
    to,
)

ITEMS = some_inputs(an_input("items", "array"))


@pytest.mark.acceptance("conductor 31")
def test_an_unknown_node_in_a_template_is_an_error_at_the_template() -> None:
    plan = a_plan(a_script("build", to("tell")), a_script("tell", args=["ok", "{{ biuld.error.kind }}"]))

    [mistake] = found(plan)

    assert (mistake.message, mistake.is_error) == ("no step is called `biuld`", True)
    assert mistake.hint == "did you mean `build`?"
    assert mistake.path == "tell.args[1]"
    assert mistake.place == a_place()


@pytest.mark.parametrize(
    "plan",
    [
        a_plan(an_agent("a", prompt="{{ nobody.output }}")),
        a_plan(an_agent("a", system_prompt="{{ nobody.output }}")),
        a_plan(a_script("a", working_dir="{{ nobody.output }}")),
        a_plan(a_script("a", stdin="{{ nobody.output }}")),
        a_plan(a_set("a", values={"x": {"y": ["{{ nobody.output }}"]}})),
        a_plan(a_gate("a", prompt="{{ nobody.output }}")),
        a_plan(a_terminate("a", reason="{{ nobody.output }}")),
        a_plan(a_script("a", to(x="{{ nobody.output }}"))),
        a_plan(a_script("a", on_error(halt="{{ nobody.output }}"), to())),
        a_plan(a_script("a", to(when="{{ nobody.output }}"), to())),
        a_plan(a_script("a"), output={"x": "{{ nobody.output }}"}),
        a_plan(a_for_each("a", body=a_set("one", value="{{ nobody.output }}")), inputs=ITEMS),
    ],
)
def test_every_text_of_a_workflow_is_looked_at(plan: object) -> None:
    assert errors(plan) == ["no step is called `nobody`"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("hook", "message"),
    [
        ("{{ nobody.output }}", "no step is called `nobody`"),
        ("{{ workflow.executon_time }}", "`workflow` has no `executon_time`"),
        ("{{ 'open", "`workflow.hooks.on_error` cannot be read"),
    ],
)
def test_a_mistake_in_a_hook_is_a_warning(hook: str, message: str) -> None:
    plan = a_plan(a_script("a"), hooks={"on_error": a_text(hook)})

    assert errors(plan) == []
    assert [warning.startswith(message) for warning in warnings(plan)] == [True]


def test_a_hook_knows_what_conductor_documents() -> None:
    text = "{{ workflow.description }} {{ workflow.execution_time }} {{ workflow.iteration_count }} {{ workflow.error.agent }}"

    assert warnings(a_plan(a_script("a"), hooks={"on_error": a_text(text)})) == []


def test_an_unknown_input_is_an_error() -> None:
    plan = a_plan(a_script("build", args=["{{ workflow.input.nmae }}"]), inputs=some_inputs(an_input("name")))

    assert errors(plan) == ["the workflow has no input `nmae`"]
    assert hints(plan) == ["did you mean `name`?"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ workflow.inputs.x }}", "`workflow` has no `inputs`"),
        ("{{ context.iterations }}", "`context` has no `iterations`"),
        ("{{ failwell.attempt }}", "`failwell` has no `attempt`"),
    ],
)
def test_what_the_engine_offers_is_a_closed_list(text: str, message: str) -> None:
    assert errors(a_plan(a_script("build", args=[text]))) == [message]


@pytest.mark.parametrize(
    "text",
    ["{{ workflow.name }}{{ workflow.dir }}{{ workflow.file }}", "{{ context.iteration }}{{ context.history }}",
     "{{ failwell.retry_attempt }}{{ conductor.retry_attempt }}{{ failwell.run_id }}"],
)  # fmt: skip
def test_what_the_engine_offers_is_there(text: str) -> None:
    assert found(a_plan(a_script("build", args=[text]))) == []


def test_a_field_beside_output_is_an_error_that_says_where_it_is() -> None:
    plan = a_plan(a_script("build", to("tell")), a_script("tell", args=["{{ build.version }}"]))

    assert errors(plan) == ["`build` has no `version`"]
    assert hints(plan) == ["write `build.output.version`"]


def test_a_member_is_found_through_its_group() -> None:
    members = (a_set("left"), a_set("right"))
    direct = a_plan(a_parallel("both", to("tell")), *members, a_set("tell", value="{{ left.output }}"))
    through = a_plan(a_parallel("both", to("tell")), *members, a_set("tell", value="{{ both.outputs.left }}"))
    wrong = a_plan(a_parallel("both", to("tell")), *members, a_set("tell", value="{{ both.outputs.middle }}"))

    assert errors(direct) == ["`left` runs inside `both` and has no output of its own"]
    assert hints(direct) == ["write `both.outputs.left`"]
    assert found(through) == []
    assert errors(wrong) == ["`both` has no member `middle`"]


def test_what_every_path_passes_is_there() -> None:
    plan = a_plan(
        a_script("build", to("left", when="{{ output.ok }}"), to("right")),
        a_script("left", to("join")),
        a_script("right", to("join")),
        a_script("join", args=["{{ build.output.version }}"]),
        output={"version": "{{ join.output.version }}"},
    )

    assert found(plan) == []


def test_what_one_branch_alone_makes_may_be_missing_behind_it() -> None:
    plan = a_plan(
        a_script("build", to("left", when="{{ output.ok }}"), to("join")),
        a_script("left", to("join")),
        a_script("join", args=["{{ left.output.x }}", "{{ left.output.x | default('') }}"]),
    )

    assert warnings(plan) == [
        "`left.output` may not exist here: `left` does not complete on every path that leads here"
    ]


def test_an_output_of_the_workflow_must_come_from_every_end() -> None:
    plan = a_plan(
        a_script("build", to("left", when="{{ output.ok }}"), to()),
        a_script("left"),
        output={"x": "{{ left.output.x }}", "y": "{{ build.output.y }}"},
    )

    assert warnings(plan) == [
        "`left.output` may not exist here: `left` does not complete on every path that leads here"
    ]


def test_an_end_that_brings_its_own_output_does_not_need_the_workflows() -> None:
    plan = a_plan(
        a_script("build", to("left", when="{{ output.ok }}"), to(x="none")),
        a_script("left"),
        output={"x": "{{ left.output.x }}"},
    )

    assert found(plan) == []


def test_an_error_is_there_on_the_path_of_the_failure() -> None:
    plan = a_plan(
        a_script("build", on_error(to="tell"), to()), a_script("tell", args=["{{ build.error.message }}"])
    )

    assert found(plan) == []


def test_an_error_may_be_missing_where_success_leads_too() -> None:
    plan = a_plan(
        a_script("build", on_error(to="tell"), to("tell")), a_script("tell", args=["{{ build.error.kind }}"])
    )

    assert warnings(plan) == [
        "`build.error` may not exist here: `build` does not fail on every path that leads here"
    ]


def test_an_error_that_no_route_leads_on_from_never_exists() -> None:
    plan = a_plan(a_script("build", to("tell")), a_script("tell", args=["{{ build.error.kind }}"]))

    assert warnings(plan) == ["`build.error` never exists: the run ends when `build` fails"]


def test_a_failed_agent_leaves_no_output_but_a_script_leaves_what_it_printed() -> None:
    agent = a_plan(an_agent("write", on_error(to="tell"), to()), a_set("tell", value="{{ write.output.x }}"))
    script = a_plan(a_script("build", on_error(to="tell"), to()), a_set("tell", value="{{ build.output.x }}"))

    assert warnings(agent) == [
        "`write.output` may not exist here: `write` does not complete on every path that leads here"
    ]
    assert found(script) == []


def test_a_node_knows_its_own_output_in_its_routes_and_not_before() -> None:
    routed = a_plan(a_script("build", to(when="{{ build.output.ok and output.ok }}"), to("build")))
    early = a_plan(a_script("build", to(when="{{ output.ok }}"), to("build"), args=["{{ build.output.ok }}"]))

    assert found(routed) == []
    assert warnings(early) == [
        "`build.output` may not exist here: `build` does not complete on every path that leads here"
    ]


def test_error_is_a_name_of_error_routes_alone() -> None:
    fails = a_plan(a_script("build", on_error(to=END, when="{{ error.kind == 'x.y' }}"), on_error(to=END)))
    goes = a_plan(a_script("build", to(when="{{ error.kind }}"), to()))

    assert found(fails) == []
    assert errors(goes) == ["no step is called `error`"]


def test_names_of_a_loop_are_known_in_its_body_and_nowhere_else() -> None:
    inside = a_plan(
        a_for_each("fan", body=a_script("one", args=["{{ item.name }}{{ _index }}{{ _key }}"])), inputs=ITEMS
    )
    outside = a_plan(a_for_each("fan", to("tell")), a_set("tell", value="{{ item }}"), inputs=ITEMS)

    assert found(inside) == []
    assert errors(outside) == ["no step is called `item`"]


def test_the_output_of_a_member_that_may_not_run_or_may_fail_may_be_missing() -> None:
    members = (Member(name="left", when=a_text("{{ workflow.name }}")), Member(name="right"))
    conditional = a_plan(
        a_parallel("both", to("tell"), members=members),
        a_set("left"),
        a_set("right"),
        a_set("tell", value="{{ both.outputs.left }}{{ both.outputs.right }}"),
    )
    lenient = a_plan(
        a_parallel("both", to("tell"), failure_mode="continue_on_error"),
        a_set("left"),
        a_set("right"),
        a_set("tell", value="{{ both.outputs.left }}{{ both.errors }}{{ both.count }}"),
    )

    assert warnings(conditional) == [
        "`both.outputs.left` may not exist here: `left` runs only when its condition holds"
    ]
    assert warnings(lenient) == ["`both.outputs.left` may not exist here: `both` continues when `left` fails"]


def test_a_bare_condition_may_name_keys_of_the_output() -> None:
    plan = a_plan(a_script("build", to(when="score > 3 and build_output.ok"), to()))

    assert found(plan) == []


def test_a_bare_condition_about_a_step_that_does_not_exist_is_a_warning_unless_a_step_is_spelt_nearly_so() -> (
    None
):
    misspelt = a_plan(a_script("build", to(when="biuld.output.score > 3"), to()))
    other = a_plan(a_script("build", to(when="nobody.output.score > 3"), to()))

    assert errors(misspelt) == ["no step is called `biuld`"]
    assert warnings(other) == ["no step is called `nobody`"]


@pytest.mark.parametrize(
    "text",
    ["{{ nobody.output | default('') }}", "{{ biuld | default('') }}", "{{ biuld.output.x is defined }}"],
)
def test_a_misspelt_step_is_an_error_also_with_a_default(text: str) -> None:
    plan = a_plan(a_script("build", args=[text]))

    assert errors(plan) == [f"no step is called `{text.split()[1].split('.', maxsplit=1)[0]}`"]


def test_an_input_may_be_named_alone_and_a_step_wins() -> None:
    inputs = some_inputs(an_input("task"))
    text = a_script("build", args=["{{ task }}"])

    assert found(a_plan(text, inputs=inputs)) == []
    assert errors(a_plan(text, inputs=inputs, context_mode="explicit")) == ["no step is called `task`"]
    assert errors(a_plan(a_script("build", args=["{{ tsk }}"]), inputs=inputs)) == ["no step is called `tsk`"]
    assert warnings(a_plan(text)) == ["no step is called `task`, and the workflow declares no inputs"]


def test_a_guarded_name_that_looks_like_no_step_is_a_warning() -> None:
    plan = a_plan(a_script("build", args=["{{ nobody | default('') }}"]))

    assert warnings(plan) == ["no step is called `nobody`"]


BRANCHES = (
    a_script("first", to("b", when="output.exit_code == 1"), to("c")),
    a_script("b", to("join")),
    a_script("c", to("join")),
)


@pytest.mark.parametrize(
    "text",
    [
        "{{ b.output.x | default('') }}",
        "{{ b.output.x | default(c.output.x) }}",
        "{{ b.output.x if b is defined else c.output.x }}",
        "{{ b.output.x if b else c.output.x }}",
        "{{ c.output.x if b is not defined else b.output.x }}",
        "{% if b %}{{ b.output.x }}{% else %}{{ c.output.x }}{% endif %}",
        "{% if b is defined %}{{ b.output.x }}{% elif c %}{{ c.output.x }}{% endif %}",
        "{% if not b %}{{ c.output.x }}{% endif %}",
        "{{ b and b.output.x > 3 }}",
        "{% for i in [1] %}{% else %}{% endfor %}{{ first.output.x }}",
    ],
)
def test_a_guard_of_a_step_that_may_not_have_run_is_understood(text: str) -> None:
    assert found(a_plan(*BRANCHES, a_script("join", args=[text]))) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{{ c.output.x }}", "c"),
        ("{{ b.output.x if b is defined }}{{ c.output.x }}", "c"),
        ("{% if b %}{{ c.output.x }}{% endif %}", "c"),
        ("{{ b.output.x if first else c.output.x | default('') }}", "b"),
    ],
)
def test_what_no_guard_covers_is_a_warning(text: str, name: str) -> None:
    plan = a_plan(*BRANCHES, a_script("join", args=[text]))

    (message,) = warnings(plan)
    assert message.startswith(f"`{name}.output` may not exist here")


def test_a_member_that_a_condition_asks_for_is_not_warned_about() -> None:
    group = a_parallel("both", to("join"), members=["x", "y"], failure_mode="continue_on_error")
    text = "{{ both.outputs.x if 'x' in both.outputs else '' }}"

    assert (
        found(a_plan(group, a_script("x"), a_script("y"), a_script("join", args=[text]), entry="both")) == []
    )


def test_only_the_step_before_is_seen_in_last_only_mode() -> None:
    nodes = (
        a_script("build", to("test")),
        a_script("test", to("ship"), args=["{{ build.output.x }}"]),
        a_script("ship", args=["{{ build.output.x }}"]),
    )

    assert found(a_plan(*nodes)) == []
    assert warnings(a_plan(*nodes, context_mode="last_only")) == [
        "`build` may not be visible here: in `last_only` mode only the previous step is, and that may be `test`"
    ]


def test_a_template_that_cannot_be_parsed_is_an_error() -> None:
    plan = a_plan(a_script("build", args=["{{ workflow.name"]))

    [message] = errors(plan)

    assert message.startswith("`build.args[0]` cannot be read: ")


@pytest.mark.parametrize(
    ("granted", "used", "is_sure"),
    [
        ("review.output.draft?", "{{ review.output.draft or 0 }}", False),
        ("review.output.draft?", "{{ review.output.draft | default(0) }}", True),
        ("review.output?", "{% if review is defined %}{{ review.output.draft }}{% endif %}", True),
        ("review.error?", "{{ review.error }}", False),
        ("review.output.draft", "{{ review.output.draft }}", False),
    ],
)
def test_an_optional_input_of_a_step_that_may_not_have_run_needs_a_guard(
    granted: str, used: str, is_sure: bool
) -> None:
    plan = a_plan(
        a_script("write", to("review"), args=[used], input=(granted,)),
        a_script("review", to("write", when="{{ output.again }}"), to(), on_error(to="write")),
        context_mode="explicit",
    )

    doubted = [message for message in warnings(plan) if "may not exist here" in message]

    assert (doubted == []) is is_sure


@pytest.mark.parametrize(
    ("granted", "used", "is_sure"),
    [
        ("review.error?", "{{ review.error }}", True),
        ("review.error.kind?", "{{ review.error.kind }}", False),
        ("review.error", "{{ review.error }}", False),
    ],
)
def test_an_optional_error_of_a_step_that_ran_is_null_where_there_is_none(
    granted: str, used: str, is_sure: bool
) -> None:
    plan = a_plan(
        a_script("review", to("write"), on_error(to="write")),
        a_script("write", args=[used], input=(granted,)),
        context_mode="explicit",
    )

    doubted = [message for message in warnings(plan) if "may not exist here" in message]

    assert (doubted == []) is is_sure
