"""Error routes: kinds that exist and can come, routes that can be taken, failures that go somewhere."""

import pytest

from failwell.calls.backoff import Backoff
from failwell.errors.axes import Category
from failwell.errors.kind_registry import find_kind
from failwell.workflows.check.raisable_kinds import runtime_kinds
from failwell.workflows.machine.retry_policy import node_retry, route_retry
from failwell.workflows.plan import Plan, Route
from tests.workflows.check.finding import errors, found, hints, warnings
from tests.workflows.plans import (
    a_for_each,
    a_gate,
    a_kind,
    a_parallel,
    a_place,
    a_plan,
    a_script,
    a_set,
    a_terminate,
    a_workflow,
    an_agent,
    an_input,
    on_error,
    some_inputs,
    to,
)


def a_routed(*routes: Route, raises: tuple[str, ...] | None = None) -> Plan:
    """One script with these routes, and a place to go."""
    return a_plan(a_script("build", *routes, raises=raises), a_script("fix"))


@pytest.mark.acceptance("conductor 4")
def test_a_kind_that_is_not_among_the_declared_ones_is_an_error_that_names_both() -> None:
    plan = a_routed(on_error("x.z", to="fix"), on_error(to="fix"), to(), raises=("x.y",))

    assert errors(plan) == ["`build` has a route for `x.z`, but raises `x.y`"]


@pytest.mark.acceptance("conductor 4")
@pytest.mark.parametrize(
    "kind",
    ["internal.script_error", "internal.schema_violation", "internal.undeclared_kind", "internal.script_timeout",
     "internal.spawn_failed", "internal.template_error", "limit.iterations", "retry.exhausted", "resource.disk"],
)  # fmt: skip
def test_what_the_runtime_raises_for_a_script_need_not_be_declared(kind: str) -> None:
    plan = a_routed(on_error(kind, to="fix"), on_error("x.y", to="fix"), to(), raises=("x.y",))

    assert found(plan) == []


@pytest.mark.acceptance("conductor 4")
def test_a_catch_all_needs_no_declaration() -> None:
    assert found(a_routed(on_error(to="fix"), to(), raises=("x.y",))) == []


@pytest.mark.acceptance("conductor 5")
@pytest.mark.parametrize("kind", ["x.y", "_p.x", "external.git.fetch_failed", "internal_x.y"])
def test_without_a_declaration_any_kind_may_be_routed(kind: str) -> None:
    assert found(a_routed(on_error(kind, to="fix"), to())) == []


def test_a_kind_of_the_runtime_that_does_not_exist_is_an_error_with_the_near_one() -> None:
    plan = a_routed(on_error("internal.script_eror", to="fix"), to())

    assert errors(plan) == ["there is no kind `internal.script_eror`, and its prefix belongs to the runtime"]
    assert hints(plan) == ["did you mean `internal.script_error`?"]


def test_a_prefix_of_the_runtime_that_fits_nothing_is_an_error() -> None:
    plan = a_routed(on_error(prefixes=["provider.rate_limits."], to="fix"), to())

    assert errors(plan) == ["no kind of the runtime begins with `provider.rate_limits.`"]


def test_a_kind_that_this_type_of_node_never_raises_is_a_warning() -> None:
    plan = a_routed(on_error("provider.rate_limited", to="fix"), to())

    assert warnings(plan)[0] == "`build` is a script node and never raises `provider.rate_limited`"


def test_with_declared_kinds_one_that_never_comes_is_an_error() -> None:
    plan = a_routed(on_error("provider.rate_limited", to="fix"), on_error(to="fix"), to(), raises=("x.y",))

    assert errors(plan) == ["`build` is a script node and never raises `provider.rate_limited`"]


def test_a_cancel_is_not_a_failure_that_routes_are_asked_about() -> None:
    plan = a_routed(on_error("cancel.run", to="fix"), to())

    assert (
        warnings(plan)[0]
        == "`cancel.run` ends a run and is never routed, so this route of `build` is never taken"
    )


def test_a_set_step_raises_no_kinds_of_its_own() -> None:
    plan = a_plan(a_set("shape", on_error("x.y", to="fix"), to(), value="1"), a_script("fix"))

    assert (
        warnings(plan)[0] == "`shape` is a set node and raises no kinds of its own, so it never raises `x.y`"
    )


def test_a_kind_near_a_declared_one_is_a_warning_and_others_are_fine() -> None:
    kinds = {"external.drift": a_kind("external.drift")}
    typo = a_plan(a_script("build", on_error("external.drfit", to="fix"), to()), a_script("fix"), kinds=kinds)
    other = a_plan(a_script("build", on_error("policy.budget", to="fix"), to()), a_script("fix"), kinds=kinds)

    assert warnings(typo) == ["`external.drfit` is not in `kinds:`, but `external.drift` is"]
    assert found(other) == []


def test_a_declared_kind_near_one_of_the_block_is_a_warning() -> None:
    plan = a_plan(
        a_script("build", on_error(to="fix"), to(), raises=("external.drfit",)),
        a_script("fix"),
        kinds={"external.drift": a_kind("external.drift")},
    )

    assert warnings(plan) == ["`external.drfit` is not in `kinds:`, but `external.drift` is"]


def test_a_route_behind_the_catch_all_is_never_taken() -> None:
    plan = a_routed(on_error(to="fix", line=3), on_error("x.y", to="fix", line=4), to())

    [mistake] = found(plan)

    assert mistake.message == (
        "this error route of `build` is never taken: the catch-all before it takes the same failures"
    )
    assert (mistake.place, mistake.also) == (a_place(4), (a_place(3),))


def test_a_second_route_for_the_same_kind_is_never_taken_unless_the_first_has_a_condition() -> None:
    twice = a_routed(on_error("x.y", to="fix"), on_error("x.y", to="fix"), to())
    asked = a_routed(on_error("x.y", to="fix", when="{{ true }}"), on_error("x.y", to="fix"), to())

    assert warnings(twice) == [
        "this error route of `build` is never taken: a route before it takes the same failures"
    ]
    assert found(asked) == []


def test_a_prefix_takes_its_kinds_from_later_routes() -> None:
    plan = a_routed(
        on_error(prefixes=["external."], to="fix"), on_error("external.a", "external.b", to="fix"), to()
    )

    assert warnings(plan) == [
        "this error route of `build` is never taken: a route before it takes the same failures"
    ]


def test_a_route_that_still_has_one_kind_left_is_fine() -> None:
    plan = a_routed(on_error("x.a", to="fix"), on_error("x.a", "x.b", to="fix"), to())

    assert found(plan) == []


def test_a_category_is_never_taken_where_no_kind_of_the_node_has_it() -> None:
    scripted = a_routed(
        on_error(categories=[Category.CAPACITY], to="fix"), on_error(to="fix"), to(), raises=("x.y",)
    )
    asked = a_plan(
        an_agent("write", on_error(categories=[Category.CAPACITY], to="fix"), on_error(to="fix"), to()),
        a_script("fix"),
    )

    assert warnings(scripted) == [
        "this error route of `build` is never taken: no failure of a script node matches it"
    ]
    assert found(asked) == []


def test_an_author_kind_has_the_category_that_the_file_gives_it() -> None:
    routes = (on_error(categories=[Category.CONTENT], to="fix"), on_error(to="fix"), to())
    bare = a_plan(a_script("build", *routes, raises=("x.y",)), a_script("fix"))
    given = a_plan(
        a_script("build", *routes, raises=("x.y",)),
        a_script("fix"),
        kinds={"x.y": a_kind("x.y", Category.CONTENT)},
    )

    assert warnings(bare) == [
        "this error route of `build` is never taken: no failure of a script node matches it"
    ]
    assert found(given) == []


def test_a_repeat_with_nowhere_to_go_afterwards_is_a_warning() -> None:
    alone = a_routed(on_error("x.y", retry=route_retry()), on_error("x.z", to="fix"), to())
    backed = a_routed(on_error("x.y", retry=route_retry()), on_error(to="fix"), to())

    assert warnings(alone) == ["when the retries of `build` are used up, no other route handles the failure"]
    assert found(backed) == []


def test_a_repeat_leaves_its_failures_to_the_routes_behind_it_but_not_to_another_repeat() -> None:
    plan = a_routed(
        on_error("x.y", retry=route_retry()),
        on_error("x.y", retry=route_retry()),
        on_error("x.y", to="fix"),
        to(),
    )

    assert warnings(plan) == [
        "this error route of `build` is never taken: a route before it takes the same failures"
    ]


def test_declared_kinds_that_nobody_takes_are_a_warning_in_a_root_alone() -> None:
    plan = a_routed(on_error("x.y", to="fix"), to(), raises=("x.y", "x.z"))

    assert warnings(plan) == ["`build` raises `x.z`, and no route handles it"]
    assert warnings(plan, as_root=False) == []


def test_the_kinds_of_members_come_out_of_their_group() -> None:
    members = (a_script("left", raises=("x.y",)), a_script("right", raises=("x.z",)))
    taken = a_plan(
        a_parallel("both", on_error("x.y", to="fix"), on_error("x.z", to="fix"), to()),
        *members,
        a_script("fix"),
    )
    open_ = a_plan(a_parallel("both", on_error("x.y", to="fix"), to()), *members, a_script("fix"))
    wrong = a_plan(
        a_parallel("both", on_error("x.w", to="fix"), on_error(to="fix"), to()), *members, a_script("fix")
    )

    assert found(taken) == []
    assert warnings(open_) == ["`both` raises `x.z`, and no route handles it"]
    assert errors(wrong) == ["`both` has a route for `x.w`, but raises `x.y`, `x.z`"]


def test_a_loop_over_sub_workflows_may_raise_anything_of_its_children() -> None:
    plan = a_plan(
        a_for_each(
            "fan",
            on_error("provider.rate_limited", "subworkflow.terminated", "x.y", to="fix"),
            to(),
            body=a_workflow("one", mapping={}),
        ),
        a_script("fix"),
        inputs=some_inputs(an_input("items", "array")),
    )

    assert found(plan) == []


def test_a_route_behind_one_without_a_condition_is_never_taken() -> None:
    plan = a_routed(to("fix"), to(when="{{ output.ok }}"))

    assert warnings(plan) == ["this route of `build` is never taken: one before it has no `when`"]


def test_conditions_without_a_last_resort_are_a_warning() -> None:
    plan = a_routed(to("fix", when="{{ output.ok }}"))

    assert warnings(plan) == ["every route of `build` has a `when`; if none holds, the run fails"]


@pytest.mark.acceptance("conductor 56")
def test_only_a_workflow_with_a_caller_may_propagate() -> None:
    plan = a_routed(on_error(propagate=True, line=9), to("fix"))

    [mistake] = found(plan)

    assert mistake.message == "`build` propagates a failure, but this workflow has no caller"
    assert (mistake.is_error, mistake.place) == (True, a_place(9))
    assert found(plan, as_root=False) == []


def test_a_person_is_not_asked_again_by_itself() -> None:
    retry = node_retry(max_attempts=2, backoff=Backoff())
    gate = a_gate(
        "approve", on_error(retry=route_retry()), on_error(to="fix"), options={"yes": "fix"}, retry=retry
    )

    what = "`approve` is answered by a person and cannot be retried"
    assert errors(a_plan(gate, a_script("fix"))) == [what, what]


def test_the_options_of_a_gate_are_its_only_ways_out_of_success() -> None:
    plan = a_plan(a_gate("approve", to("fix"), options={"yes": "fix"}), a_script("fix"))

    assert errors(plan) == ["`approve` (human_gate) cannot have success routes: its options have the routes"]


def test_raises_on_a_node_that_raises_nothing_of_its_own_says_nothing() -> None:
    plan = a_plan(a_set("shape", value="1", raises=("x.y",)))

    assert "a set node raises no kinds of its own, so `raises` of `shape` has no effect" in warnings(plan)


def test_an_agent_raises_what_providers_and_tools_do() -> None:
    plan = a_plan(
        an_agent("write", on_error("provider.exhausted", "tool.denied", to="stop"), to()), a_terminate()
    )

    assert found(plan) == []


def test_every_runtime_kind_that_a_type_can_raise_is_registered() -> None:
    for node_type in ("agent", "script", "job", "tool", "set", "workflow", "human_gate"):
        assert all(find_kind(kind) is not None for kind in runtime_kinds(node_type))
        assert "internal.template_error" in runtime_kinds(node_type)
