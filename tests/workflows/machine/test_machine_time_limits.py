"""Time limits of groups and sub-workflows: what is late is stopped, fails with its own kind, and routes take it."""

from typing import Any

import pytest

from failwell.workflows.machine.messages import Begin
from failwell.workflows.plan import Limits, Node, Plan
from tests.workflows.machine.stage import Stage, fails
from tests.workflows.plans import (
    a_for_each,
    a_gate,
    a_parallel,
    a_plan,
    a_script,
    a_set,
    a_wait,
    a_workflow,
    on_error,
    to,
)

KIND = "limit.step_timeout"


def child(*nodes: Node, **fields: Any) -> Plan:
    return a_plan(*nodes, name="child", file="child.yaml", **fields)


def a_pair(**fields: Any) -> Plan:
    return a_plan(
        a_parallel("both", to("$end"), on_error(KIND, to="late"), timeout=10.0, **fields),
        a_script("left"),
        a_script("right"),
        a_set("late", value="{{ both.error.kind }}/{{ both.outputs.left.ok }}"),
    )


def test_a_late_group_is_stopped_and_its_route_sees_what_was_done() -> None:
    stage = Stage(a_pair(), takes={"both/left": 2.0, "both/right": 60.0}).begin()

    assert stage.state.status == "completed"
    assert stage.state.scopes[""].outputs["late"] == f"{KIND}/left"
    timeout = stage.of("node:timeout")[0]
    assert (timeout["path"], timeout["limit"]) == ("both", 10.0)
    running = timeout["failure"]["envelope"]["details"]["running"]
    assert [(entry["path"], entry["seconds"]) for entry in running] == [("both/right", 10.0)]
    assert stage.now == 1_000_010.0


def test_a_group_in_time_is_not_touched_and_a_second_visit_has_its_own_time() -> None:
    plan = a_plan(
        a_parallel("both", to("again", when="{{ context.iteration < 4 }}"), to("$end"), timeout=10.0),
        a_script("left"),
        a_script("right"),
        a_wait("again", to("both"), duration=7.0),
        limits=Limits(max_iterations=20),
    )

    stage = Stage(plan, takes={"both/left": 6.0, "both/right": 6.0}).begin()

    assert stage.state.status == "completed"
    assert stage.of("node:timeout") == []


@pytest.mark.parametrize("mode", ["fail_fast", "continue_on_error", "all_or_nothing"])
def test_the_limit_of_a_loop_fails_it_in_every_failure_mode(mode: Any) -> None:
    body = a_script("one")
    fan = a_for_each("fan", body=body, max_concurrent=1, timeout=5.0, failure_mode=mode)

    stage = Stage(a_plan(fan), takes={f"fan[{index}]": 2.0 for index in range(9)}).begin(items=list(range(9)))

    assert stage.of("run:failed")[0]["envelope"]["kind"] == KIND
    assert stage.ran == ["fan[0]", "fan[1]", "fan[2]"]
    assert stage.of("run:failed")[0]["frames"][0]["node"] == "fan"


def test_a_failure_before_the_limit_is_the_one_that_counts() -> None:
    stage = Stage(
        a_pair(), {"both/left": [fails("external.x")]}, takes={"both/left": 2.0, "both/right": 60.0}
    ).begin()

    assert stage.of("run:failed")[0]["envelope"]["kind"] == "external.x"
    assert stage.of("node:timeout") == []


@pytest.mark.parametrize(
    "inner",
    [
        (a_script("leaf"),),
        (a_wait("leaf", duration=60.0),),
        (
            a_set("first", to("leaf"), value=1),
            a_parallel("leaf", members=("a", "b")),
            a_script("a"),
            a_wait("b", duration=60.0),
        ),
        (a_for_each("leaf", source="workflow.input.items", body=a_script("one")),),
    ],
    ids=["script", "wait", "group", "loop"],
)
def test_a_late_sub_workflow_is_stopped_wherever_it_is(inner: tuple[Node, ...]) -> None:
    plan = a_plan(
        a_workflow("step", to("$end"), on_error(KIND, to="late"), timeout=10.0, mapping={"items": [1, 2]}),
        a_set("late", value="{{ step.error.kind }}"),
    )
    takes: dict[str, float] = dict.fromkeys(
        ("step/leaf", "step/leaf/a", "step/leaf[0]", "step/leaf[1]"), 60.0
    )

    stage = Stage(plan, others=[child(*inner, inputs={})], takes=takes).begin()

    assert stage.state.scopes[""].outputs["late"] == KIND
    assert stage.now == 1_000_010.0


def test_the_limit_of_the_childs_own_file_holds_too() -> None:
    plan = a_plan(a_workflow("step", timeout=100.0))
    inner = child(a_script("leaf"), limits=Limits(timeout_seconds=3.0))

    stage = Stage(plan, others=[inner], takes={"step/leaf": 60.0}).begin()

    assert stage.of("run:failed")[0]["envelope"]["details"]["timeout_seconds"] == 3.0


def test_a_retried_sub_workflow_has_the_whole_time_again() -> None:
    from failwell.calls.backoff import Backoff
    from failwell.workflows.machine.retry_policy import route_retry

    retry = route_retry(1, Backoff(first=1.0))
    plan = a_plan(a_workflow("step", to("$end"), on_error(KIND, retry=retry), timeout=10.0))

    stage = Stage(plan, others=[child(a_script("leaf"))], takes={"step/leaf": 60.0}).begin()

    assert stage.ran == ["step/leaf", "step/leaf"]
    assert len(stage.of("node:timeout")) == 2


def test_an_outer_limit_ends_what_is_nested_and_an_inner_one_can_be_routed() -> None:
    inner = child(
        a_parallel("pair", to("$end"), on_error(KIND, to="slow"), members=("a", "b"), timeout=4.0),
        a_script("a"),
        a_script("b"),
        a_script("slow"),
    )
    plan = a_plan(a_workflow("step", to("$end"), on_error(KIND, to="late"), timeout=10.0), a_script("late"))
    takes = {"step/pair/a": 60.0, "step/slow": 60.0}

    stage = Stage(plan, others=[inner], takes=takes).begin()

    assert [fact["path"] for fact in stage.of("node:timeout")] == ["step/pair", "step"]
    assert stage.ran[-1] == "late"
    assert stage.state.status == "completed"


def test_a_gate_below_a_limit_is_withdrawn() -> None:
    plan = a_plan(a_workflow("step", to("$end"), on_error(KIND, to="late"), timeout=10.0), a_script("late"))

    stage = Stage(plan, others=[child(a_gate("ask", options={"yes": "$end"}))]).begin()
    stage.answer("step/ask", "yes")

    assert stage.ran == ["late"]
    assert stage.state.status == "completed"


def test_time_without_a_process_does_not_count() -> None:
    stage = Stage(a_pair(), {"both/right": ["never"]}, takes={"both/left": 2.0})
    stage.play_some(2, Begin(at=stage.now, run="run1", file=stage.plan.file, inputs={}))
    stage.now += 3600.0
    stage.crash_and_resume()

    assert stage.state.status == "completed"
    assert stage.of("node:timeout") == []


@pytest.mark.parametrize("turns", range(1, 9))
def test_a_crash_at_any_turn_ends_the_same(turns: int) -> None:
    inner = child(a_parallel("pair", members=("a", "b")), a_script("a"), a_script("b"))
    plan = a_plan(a_workflow("step", to("$end"), on_error(KIND, to="late"), timeout=10.0), a_script("late"))
    takes = {"step/pair/a": 60.0, "step/pair/b": 2.0}
    stage = Stage(plan, others=[inner], takes=takes)

    stage.play_some(turns, Begin(at=stage.now, run="run1", file=plan.file, inputs={}))
    stage.crash_and_resume()

    assert stage.state.status == "completed"
    assert stage.ran[-1] == "late"
    assert len(stage.of("node:timeout")) == 1


def test_a_run_that_failed_by_it_is_continued_with_the_whole_time_again() -> None:
    plan = a_plan(a_workflow("step", timeout=10.0))
    stage = Stage(
        plan, {"step/leaf": ["never", "never", {"ok": 1}]}, others=[child(a_script("leaf"))]
    ).begin()
    assert stage.of("run:failed")[0]["envelope"]["kind"] == KIND

    second = stage.go_on()
    third = second.go_on()

    assert second.of("run:failed")[0]["envelope"]["kind"] == KIND
    assert third.state.status == "completed"
