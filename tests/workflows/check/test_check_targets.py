"""Names that a run goes to, and nodes that it never comes to."""

from failwell.workflows.plan import END
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
    an_input,
    on_error,
    some_inputs,
    some_questions,
    to,
)

ITEMS = some_inputs(an_input("items", "array"))


def test_a_plain_workflow_has_no_mistakes() -> None:
    plan = a_plan(a_script("build", to("test")), a_script("test"))

    assert found(plan) == []


def test_an_unknown_entry_point_is_an_error_that_names_the_near_one() -> None:
    plan = a_plan(a_script("build"), entry="biuld")

    assert errors(plan) == ["the entry point leads to `biuld`, and no step has that name"]
    assert "did you mean `build`?" in hints(plan)


def test_a_workflow_that_begins_at_its_end_is_refused() -> None:
    assert errors(a_plan(a_script("build"), entry=END)) == ["the entry point is `$end`, so nothing would run"]


def test_an_unknown_route_target_is_an_error_at_the_route() -> None:
    plan = a_plan(a_script("build", to("tset", line=7)), a_script("test"))

    [mistake] = [one for one in found(plan) if one.is_error]

    assert mistake.message == "a route of `build` leads to `tset`, and no step has that name"
    assert mistake.place == a_place(7)
    assert mistake.path == "build.routes[0].to"
    assert mistake.hint == "did you mean `test`?"


def test_the_target_of_an_error_route_is_checked_too() -> None:
    plan = a_plan(a_script("build", on_error(to="nowhere"), to()))

    assert errors(plan) == ["a route of `build` leads to `nowhere`, and no step has that name"]


def test_the_options_of_a_gate_lead_somewhere() -> None:
    plan = a_plan(a_gate("approve", options={"yes": END, "no": "redo"}))

    assert errors(plan) == ["option `no` of `approve` leads to `redo`, and no step has that name"]


def test_a_gate_offers_each_value_once_and_chooses_among_its_own() -> None:
    gate = a_gate("approve", options={"yes": END}, timeout=5.0, timeout_option="yse", reject=("no",))

    assert errors(a_plan(gate)) == [
        "`approve` offers no option with the value `yse`",
        "`approve` offers no option with the value `no`",
    ]


def test_an_option_for_a_timeout_that_never_comes_is_a_warning() -> None:
    gate = a_gate("approve", options={"yes": END}, timeout_option="yes")

    assert warnings(a_plan(gate)) == ["`approve` has a `timeout_option`, but no timeout"]


def test_the_abort_route_of_questions_leads_somewhere() -> None:
    plan = a_plan(some_questions("ask", abort_route="away"))

    assert errors(plan) == ["the abort route of `ask` leads to `away`, and no step has that name"]


def test_nobody_goes_into_the_body_of_a_loop() -> None:
    plan = a_plan(a_script("build", to("one")), a_for_each("fan"), inputs=ITEMS)

    assert errors(plan) == [
        "a route of `build` leads to `one`, which is the body of `fan` and runs only there"
    ]
    assert "lead to `fan`" in hints(plan)


def test_nobody_goes_to_a_member_of_a_group() -> None:
    plan = a_plan(a_script("build", to("left")), a_parallel("both"), a_set("left"), a_set("right"))

    assert errors(plan) == [
        "a route of `build` leads to `left`, which is a member of `both` and runs only there"
    ]


def test_a_node_that_nothing_leads_to_is_a_warning() -> None:
    plan = a_plan(a_script("build"), a_script("orphan"))

    assert warnings(plan) == ["nothing leads to `orphan`"]


def test_error_routes_options_and_aborts_lead_to_nodes() -> None:
    plan = a_plan(
        a_script("build", on_error(to="repair"), to("ask")),
        a_script("repair"),
        some_questions("ask", to("approve"), abort_route="away"),
        a_gate("approve", options={"yes": "ship"}),
        a_script("ship"),
        a_terminate("away"),
    )

    assert found(plan) == []


def test_members_belong_to_their_group_and_are_reached_with_it() -> None:
    reached = a_plan(a_parallel("both"), a_set("left"), a_set("right"))
    alone = a_plan(a_script("build"), a_parallel("both"), a_set("left"), a_set("right"))

    assert found(reached) == []
    assert warnings(alone) == ["nothing leads to `both`"]
