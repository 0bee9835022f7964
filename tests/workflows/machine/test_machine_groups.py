"""Groups: windows, failure modes, repeats of single members, and what is left of the others."""

from typing import Any

import pytest

from failwell.calls.backoff import Backoff
from failwell.workflows.machine.retry_policy import node_retry, route_retry
from failwell.workflows.plan import Limits, Member, Plan, Route
from tests.workflows.machine.stage import Stage, fails
from tests.workflows.plans import a_for_each, a_parallel, a_plan, a_script, a_set, a_text, on_error, to


def fan(*routes: Route, items: int = 5, limits: Limits | None = None, **fields: Any) -> Plan:
    body = a_script("item", args=("{{ x }}", "{{ _index }}"))
    group = a_for_each("fan", *routes, source="list.output", variable="x", body=body, **fields)
    first = a_set("list", to("fan"), value=list(range(items)))
    return a_plan(first, group, a_script("rescue"), a_script("after"), limits=limits or Limits())


def pair(*routes: Route, **fields: Any) -> Plan:
    group = a_parallel("group", *routes, members=("a", "b", "c"), **fields)
    return a_plan(group, *(a_script(name) for name in ("a", "b", "c", "rescue", "after")))


def test_members_run_side_by_side_and_their_outputs_stand_by_name() -> None:
    stage = Stage(pair()).begin()

    assert stage.most_at_once == 3
    assert stage.state.outputs["outputs"] == {"a": {"ok": "a"}, "b": {"ok": "b"}, "c": {"ok": "c"}}


def test_items_see_their_value_and_their_place() -> None:
    stage = Stage(fan(items=3)).begin()

    assert [request.call["args"] for request in stage.started] == [["0", "0"], ["1", "1"], ["2", "2"]]
    assert stage.state.outputs["count"] == 3


def test_a_window_slides_instead_of_waiting_for_its_slowest_item() -> None:
    stage = Stage(fan(max_concurrent=2), takes={"fan[0]": 10.0}).begin()

    times = {data["path"]: at for name, at, data in stage.facts if name == "node:started"}
    assert stage.most_at_once == 2
    assert times["fan[4]"] - times["fan[0]"] < 10.0


@pytest.mark.acceptance("relavium 49")
def test_no_more_leaves_run_at_once_than_the_whole_run_may() -> None:
    stage = Stage(fan(limits=Limits(max_parallel=2))).begin()

    assert stage.most_at_once == 2
    assert len(stage.ran) == 5
    assert stage.state.status == "completed"


@pytest.mark.acceptance("conductor 40")
def test_a_group_that_continues_on_errors_shows_them_to_templates() -> None:
    group = a_parallel("group", to("tell"), members=("a", "b"), failure_mode="continue_on_error")
    tell = a_set("tell", value="{{ group.errors.a.envelope.kind }}")
    plan = a_plan(group, a_script("a"), a_script("b"), tell, entry="group", output={"k": "{{ tell.output }}"})

    stage = Stage(plan, {"group/a": [fails("external.x")]}).begin()

    assert stage.state.outputs == {"k": "external.x"}


@pytest.mark.acceptance("conductor 41")
def test_the_first_failure_is_the_groups_own_when_nobody_takes_it() -> None:
    failures = {"group/b": [fails("external.x", message="b was first")], "group/a": [fails("external.y")]}
    stage = Stage(pair(), failures, takes={"group/a": 5.0, "group/c": 5.0}).begin()

    ended = stage.of("run:failed")[0]
    assert ended["error_type"] == "UnhandledWorkflowError"
    assert (ended["envelope"]["kind"], ended["envelope"]["message"]) == ("external.x", "b was first")
    assert [frame["node"] for frame in ended["frames"]] == ["b"]


@pytest.mark.acceptance("conductor 42")
@pytest.mark.parametrize("mode", ["fail_fast", "all_or_nothing"])
def test_a_groups_error_route_takes_a_members_failure(mode: str) -> None:
    routes = (on_error("external.x", to="rescue"), to("after"))

    parallel = Stage(pair(*routes, failure_mode=mode), {"group/b": [fails("external.x")]}).begin()
    each = Stage(fan(*routes, failure_mode=mode), {"fan[1]": [fails("external.x")]}).begin()

    assert parallel.ran[-1] == "rescue"
    assert each.ran[-1] == "rescue"


@pytest.mark.acceptance("conductor 43", "relavium 43")
def test_fail_fast_stops_the_others_before_the_group_ends() -> None:
    stage = Stage(pair(), {"group/b": [fails()], "group/a": ["never"], "group/c": ["never"]}).begin()

    failed = {one["path"]: one["failure"]["envelope"]["kind"] for one in stage.of("node:failed")}
    assert failed == {
        "group/b": "external.x",
        "group/a": "cancel.stage",
        "group/c": "cancel.stage",
        "group": "external.x",
    }
    assert stage.of("run:failed")[0]["node"] == "group"


@pytest.mark.acceptance("relavium 43")
def test_a_member_that_waits_to_be_repeated_ends_with_its_own_failure() -> None:
    slow = a_script("a", retry=node_retry(max_attempts=3, backoff=Backoff(first=60.0)))
    group = a_parallel("group", members=("a", "b"))
    answers = {"group/a": [fails("internal.io_error")], "group/b": [fails("external.x")]}

    stage = Stage(a_plan(group, slow, a_script("b")), answers, takes={"group/b": 5.0}).begin()

    failed = {one["path"]: one["failure"]["envelope"]["kind"] for one in stage.of("node:failed")}
    assert failed["group/a"] == "internal.io_error"
    assert stage.of("run:failed")[0]["envelope"]["kind"] == "external.x"


@pytest.mark.acceptance("conductor 44")
def test_all_or_nothing_keeps_every_failure_and_routes_the_first() -> None:
    takes = {"group/a": 3.0, "group/b": 1.0, "group/c": 2.0}
    answers = {
        "group/a": [fails("external.a")],
        "group/b": [fails("external.b")],
        "group/c": [fails("external.c")],
    }

    stage = Stage(pair(failure_mode="all_or_nothing"), answers, takes=takes).begin()

    failure = stage.of("run:failed")[0]["failure"]
    assert failure["envelope"]["kind"] == "external.b"
    assert [one["envelope"]["kind"] for one in failure["others"]] == ["external.c", "external.a"]


@pytest.mark.acceptance("conductor 55")
def test_a_groups_retry_route_repeats_only_the_item_that_failed() -> None:
    again = route_retry(max_retries=2, backoff=Backoff(first=1.0, jitter=0.0))

    stage = Stage(fan(on_error(retry=again), to("after")), {"fan[1]": [fails()]}).begin()

    assert stage.ran.count("fan[1]") == 2
    assert all(stage.ran.count(f"fan[{index}]") == 1 for index in (0, 2, 3, 4))
    assert stage.ran[-1] == "after"


def test_an_item_that_used_up_its_repeats_counts_as_failed() -> None:
    again = route_retry(max_retries=2, backoff=Backoff(first=1.0, jitter=0.0))
    plan = fan(on_error(retry=again), on_error(to="rescue"), failure_mode="fail_fast")

    stage = Stage(plan, {"fan[1]": [fails()] * 5}).begin()

    assert stage.ran.count("fan[1]") == 3
    assert stage.ran[-1] == "rescue"


@pytest.mark.acceptance("conductor 67")
def test_outputs_stay_aligned_with_items_when_some_fail() -> None:
    plan = fan(failure_mode="continue_on_error", items=3)

    stage = Stage(plan, {"fan[1]": [fails()]}).begin()

    assert stage.state.outputs["outputs"] == [{"ok": "item"}, None, {"ok": "item"}]
    assert stage.state.outputs["keys"] == ["0", "1", "2"]
    assert list(stage.state.outputs["errors"]) == ["1"]


@pytest.mark.acceptance("conductor 67")
def test_two_items_with_one_key_are_an_error() -> None:
    items = [{"id": "x"}, {"id": "x"}]
    group = a_for_each("fan", source="list.output", variable="x", body=a_script("item"), key_by="id")

    stage = Stage(a_plan(a_set("list", to("fan"), value=items), group)).begin()

    assert stage.of("run:failed")[0]["envelope"]["kind"] == "validation.input_invalid"
    assert stage.ran == []


@pytest.mark.parametrize(
    ("key_by", "items", "keys"),
    [
        ("id", [{"id": "a"}, {"id": 2}], ["a", "2"]),
        ("x.id", [{"id": "a"}, {"id": "b"}], ["a", "b"]),
        ("x.id", [{"x": {"id": "a"}}, {"x": {"id": "b"}}], ["a", "b"]),
        ("meta.id", [{"meta": {"id": "a"}}, {}], ["a", "1"]),
        ("x", ["a", "b"], ["a", "b"]),
        ("id", [], []),
    ],
)
def test_a_key_is_read_from_the_item_or_from_the_loop_variable(
    key_by: str, items: list[object], keys: list[str]
) -> None:
    group = a_for_each("fan", source="list.output", variable="x", body=a_script("item"), key_by=key_by)

    stage = Stage(a_plan(a_set("list", to("fan"), value=items), group)).begin()

    assert stage.of("group:started")[0]["keys"] == keys


@pytest.mark.parametrize(("key_by", "name"), [("idd", "idd"), ("x.idd", "idd"), ("y.id", "y")])
def test_a_key_that_no_item_has_is_an_error_that_names_it(key_by: str, name: str) -> None:
    group = a_for_each("fan", source="list.output", variable="x", body=a_script("item"), key_by=key_by)

    stage = Stage(a_plan(a_set("list", to("fan"), value=[{"id": 1}, {"id": 2}]), group)).begin()

    message = stage.of("run:failed")[0]["envelope"]["message"]
    assert message.startswith(f"no item of `fan` has `{name}`, which its `key_by` names")
    assert stage.ran == []


def test_an_empty_list_is_a_group_without_members() -> None:
    stage = Stage(fan(to("after"), items=0)).begin()

    assert stage.ran == ["after"]


def test_groups_stand_inside_groups() -> None:
    inner = a_for_each("inner", source="x", variable="y", body=a_script("leaf", args=("{{ x }}{{ y }}",)))
    outer = a_for_each("outer", source="list.output", variable="x", body=inner)

    stage = Stage(a_plan(a_set("list", to("outer"), value=[["a", "b"], ["c"]]), outer)).begin()

    assert stage.ran == ["outer[0][0]", "outer[0][1]", "outer[1][0]"]
    assert stage.started[2].call["args"] == ["['c']c"]
    assert stage.state.outputs["outputs"][0]["count"] == 2


def test_fail_fast_reaches_into_groups_inside() -> None:
    inner = a_for_each("inner", source="list.output", variable="y", body=a_script("leaf"))
    group = a_parallel("group", members=("inner", "b"))
    plan = a_plan(a_set("list", to("group"), value=[1, 2, 3]), group, inner, a_script("b"))
    never = {f"group/inner[{index}]": ["never"] for index in range(3)}

    stage = Stage(plan, {**never, "group/b": [fails()]}).begin()

    assert stage.of("run:failed")[0]["envelope"]["kind"] == "external.x"
    assert len(stage.of("node:failed")) == 6


@pytest.mark.acceptance("relavium 50")
def test_a_member_whose_condition_does_not_hold_is_skipped_and_the_rest_is_joined_in_order() -> None:
    inner = a_parallel("inner", members=("c", "d"))
    group = a_parallel(
        "group", to("join"), members=(Member(name="a"), Member(name="inner", when=None), Member(name="b"))
    )
    group = a_parallel(
        "group",
        to("join"),
        members=(
            Member(name="a"),
            Member(name="inner", when=a_text("workflow.input.deep")),
            Member(name="b"),
        ),
    )
    join = a_set("join", value="{{ group.outputs | list | join('+') }}")
    plan = a_plan(group, inner, *(a_script(name) for name in "abcd"), join, output={"x": "{{ join.output }}"})

    stage = Stage(plan, takes={"group/a": 9.0}).begin(deep=False)

    skipped = {one["path"]: one["reason"] for one in stage.of("node:skipped")}
    assert skipped == {
        "group/inner": "branch_not_taken",
        "group/inner/c": "upstream_unreachable",
        "group/inner/d": "upstream_unreachable",
    }
    assert stage.state.outputs == {"x": "a+b"}
