"""Sub-workflows: failures keep their kind on the way up, and every boundary leaves a frame."""

from typing import Any

import pytest

from failwell.calls.backoff import Backoff
from failwell.workflows.machine.retry_policy import node_retry
from failwell.workflows.plan import Node, Plan
from tests.workflows.machine.stage import Stage, fails
from tests.workflows.plans import (
    a_for_each,
    a_plan,
    a_script,
    a_set,
    a_terminate,
    a_workflow,
    an_input,
    on_error,
    some_inputs,
    to,
)


def child(*nodes: Node, name: str = "child", **fields: Any) -> Plan:
    return a_plan(*nodes, name=name, file=f"{name}.yaml", **fields)


def test_a_child_gets_its_inputs_and_its_output_is_the_steps() -> None:
    leaf = a_script("leaf", args=("{{ workflow.input.n }}",))
    inner = child(leaf, output={"got": "{{ leaf.output.ok }}"}, inputs=some_inputs(an_input("n", "number")))
    plan = a_plan(
        a_workflow("step", path="child.yaml", mapping={"n": "{{ 1 + 1 }}"}),
        output={"x": "{{ step.output.got }}"},
    )

    stage = Stage(plan, others=[inner]).begin()

    assert stage.started[0].path == "step/leaf"
    assert stage.started[0].call["args"] == ["2"]
    assert stage.state.outputs == {"x": "leaf"}


@pytest.mark.acceptance("conductor 45")
def test_a_childs_failure_is_caught_above_by_its_own_kind() -> None:
    plan = a_plan(
        a_workflow("step", on_error("external.x", to="rescue"), path="child.yaml"), a_script("rescue")
    )

    stage = Stage(plan, {"step/leaf": [fails("external.x")]}, others=[child(a_script("leaf"))]).begin()

    assert stage.ran == ["step/leaf", "rescue"]


@pytest.mark.acceptance("conductor 46")
def test_the_deepest_failure_reaches_the_root_with_a_frame_for_each_boundary() -> None:
    low = child(a_script("leaf"), name="low")
    middle = child(a_workflow("down", path="low.yaml"), name="middle")
    plan = a_plan(a_workflow("step", path="middle.yaml"), name="top")

    stage = Stage(plan, {"step/down/leaf": [fails("external.x")]}, others=[low, middle]).begin()

    ended = stage.of("run:failed")[0]
    assert ended["envelope"]["kind"] == "external.x"
    assert [(frame["workflow"], frame["node"]) for frame in ended["frames"]] == [
        ("low", "leaf"),
        ("middle", "down"),
        ("top", "step"),
    ]


@pytest.mark.acceptance("conductor 47")
def test_the_frame_of_an_item_names_its_key() -> None:
    body = a_workflow("each", path="child.yaml", mapping={})
    group = a_for_each("fan", source="list.output", variable="x", body=body, key_by="id")
    plan = a_plan(a_set("list", to("fan"), value=[{"id": "one"}, {"id": "two"}]), group)

    stage = Stage(plan, {"fan[1]/leaf": [fails()]}, others=[child(a_script("leaf"))]).begin()

    frames = stage.of("run:failed")[0]["frames"]
    assert [(frame["node"], frame.get("item")) for frame in frames] == [("leaf", None), ("each", "two")]


@pytest.mark.acceptance("conductor 48")
def test_a_child_that_terminates_itself_has_a_kind_of_its_own() -> None:
    inner = child(a_terminate("stop", status="failed", reason="no stock"))
    step = a_workflow("step", on_error("subworkflow.terminated", to="tell"), path="child.yaml")
    tell = a_set("tell", value="{{ step.error.details.reason }}")

    stage = Stage(a_plan(step, tell, output={"why": "{{ tell.output }}"}), others=[inner]).begin()

    assert stage.state.outputs == {"why": "no stock"}


@pytest.mark.acceptance("conductor 58")
def test_propagate_hands_a_failure_to_the_caller() -> None:
    inner = child(a_script("leaf", on_error(propagate=True), to("more")), a_script("more"))
    plan = a_plan(
        a_workflow("step", on_error("external.x", to="rescue"), path="child.yaml"), a_script("rescue")
    )

    stage = Stage(plan, {"step/leaf": [fails("external.x")]}, others=[inner]).begin()

    assert stage.ran == ["step/leaf", "rescue"]
    assert len(stage.of("node:failed")[1]["failure"]["frames"]) == 2


@pytest.mark.acceptance("conductor 57")
def test_a_halt_in_a_child_ends_the_whole_run() -> None:
    inner = child(a_script("leaf", on_error(halt="enough")))
    plan = a_plan(a_workflow("step", on_error(to="rescue"), path="child.yaml"), a_script("rescue"))

    stage = Stage(plan, {"step/leaf": [fails()]}, others=[inner]).begin()

    assert stage.ran == ["step/leaf"]
    assert stage.of("run:failed")[0]["envelope"]["kind"] == "halt.intentional"


def test_a_terminated_root_fails_on_purpose() -> None:
    stage = Stage(a_plan(a_terminate("stop", status="failed", reason="enough"))).begin()

    ended = stage.of("run:failed")[0]
    assert ended["error_type"] == "WorkflowTerminated"
    assert ended["is_explicit"] is True
    assert ended["typed"] is False


def test_a_terminate_with_success_puts_out_its_own_template() -> None:
    plan = a_plan(
        a_terminate("stop", status="success", reason="done", output_template={"x": "1"}), output={"x": "2"}
    )

    assert Stage(plan).begin().state.outputs == {"x": 1}


def test_a_child_that_runs_away_fails_as_a_whole() -> None:
    loop = child(a_script("a", to("b")), a_script("b", to("a")))
    plan = a_plan(
        a_workflow("step", on_error("subworkflow.failed", to="rescue"), path="child.yaml"), a_script("rescue")
    )

    stage = Stage(plan, others=[loop]).begin()

    assert stage.ran[-1] == "rescue"
    assert stage.of("node:failed")[0]["failure"]["envelope"]["details"]["cause"]["kind"] == "limit.iterations"


def test_retries_of_a_step_around_a_child_do_not_multiply_those_of_its_steps() -> None:
    backoff = Backoff(first=1.0)
    leaf = child(a_script("leaf", retry=node_retry(2, backoff)))

    def ran(*, repeat_exhausted: bool = False) -> list[str]:
        retry = node_retry(3, backoff, repeat_exhausted=repeat_exhausted)
        plan = a_plan(a_workflow("step", path="child.yaml", retry=retry))
        return Stage(plan, {"step/leaf": [fails("internal.io_error")] * 9}, others=[leaf]).begin().ran

    assert ran() == ["step/leaf"] * 2
    assert ran(repeat_exhausted=True) == ["step/leaf"] * 6
