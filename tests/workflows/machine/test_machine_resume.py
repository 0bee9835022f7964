"""Taking a run up again: from its facts alone, at any moment, without doing anything twice."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell.calls.backoff import Backoff
from failwell.workflows.machine.fold import fold
from failwell.workflows.machine.messages import Begin
from failwell.workflows.machine.retry_policy import route_retry
from failwell.workflows.plan import Plan
from tests.workflows.machine.stage import Stage, cancel, fails
from tests.workflows.plans import a_for_each, a_parallel, a_plan, a_script, a_set, a_workflow, on_error, to


def rich_plan() -> tuple[Plan, Plan]:
    """Twelve nodes with groups and a child."""
    inner = a_plan(
        a_script("fetch", to("parse")),
        a_script("parse"),
        name="child",
        file="child.yaml",
        output={"p": "{{ parse.output.ok }}"},
    )
    again = route_retry(max_retries=3, backoff=Backoff(first=1.0, jitter=0.0))
    plan = a_plan(
        a_script("start", to("list")),
        a_set("list", to("fan"), value=[1, 2, 3]),
        a_for_each(
            "fan",
            to("group"),
            source="list.output",
            variable="x",
            body=a_workflow("each", path="child.yaml", mapping={}),
            max_concurrent=2,
        ),
        a_parallel("group", to("flaky"), members=("left", "right")),
        a_script("left"),
        a_script("right"),
        a_script("flaky", to("last"), on_error(retry=again)),
        a_script("last"),
        output={"last": "{{ last.output.ok }}", "n": "{{ fan.count }}"},
    )
    return plan, inner


@pytest.mark.acceptance("relavium 59", "conductor 61")
def test_what_ran_when_the_host_died_runs_again_under_the_same_key() -> None:
    stage = Stage(a_plan(a_script("a", to("b")), a_script("b")), {"b": ["never"]}).begin()

    stage.crash_and_resume()

    first, second = (request for request in stage.started if request.path == "b")
    assert stage.ran == ["a", "b", "b"]
    assert first.key == second.key
    assert stage.of("node:started")[-1]["rerun"] == 1
    assert stage.types.count("run:started") == 1


@pytest.mark.slow
@given(st.data())
def test_a_crash_after_any_write_changes_nothing_in_the_end(data: st.DataObject) -> None:
    plan, inner = rich_plan()
    answers = {"flaky": [fails()]}
    undisturbed = Stage(plan, {"flaky": [fails()]}, others=[inner]).begin()
    stage = Stage(plan, answers, others=[inner])
    begin = Begin(at=stage.now, run="run1", file=plan.file, inputs={})
    cuts = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=3))

    for cut in cuts:
        stage.play_some(cut, *(() if stage.facts else (begin,)))
        if stage.state.is_over or not stage.facts:
            break
        stage.crash_and_resume_for(data.draw(st.integers(0, 40)))
    if not stage.facts:
        stage.play(begin)
    elif not stage.state.is_over:
        stage.crash_and_resume()

    done = [one["path"] for one in stage.of("node:completed")]
    assert stage.state.outputs == undisturbed.state.outputs
    assert sorted(done) == sorted(one["path"] for one in undisturbed.of("node:completed"))
    for path in set(done):
        assert _starts_after_completion(stage, path) == 0


def _starts_after_completion(stage: Stage, path: str) -> int:
    done = False
    again = 0
    for kind, _, data in stage.facts:
        if data.get("path") != path:
            continue
        if kind == "node:completed":
            done = True
        elif kind == "node:started" and done:
            again += 1
    return again


@pytest.mark.acceptance("conductor 61")
def test_a_failed_run_goes_on_at_the_node_that_failed() -> None:
    plan = a_plan(
        a_script("a", to("b")),
        a_script("b", to("c")),
        a_script("c"),
        output={"h": "{{ context.history | join(' ') }}"},
    )
    failed = Stage(plan, {"b": [fails()]}).begin()

    gone_on = failed.go_on()

    assert gone_on.ran == ["b", "c"]
    assert gone_on.state.outputs == {"h": "a b c"}


def test_a_failed_group_goes_on_with_the_items_that_had_not_ended() -> None:
    plan, inner = rich_plan()
    failed = Stage(plan, {"fan[1]/parse": [fails()], "fan[0]/parse": ["never"]}, others=[inner]).begin()
    assert failed.state.status == "failed"

    gone_on = failed.go_on()

    assert gone_on.state.status == "completed"
    assert "fan[1]/fetch" not in gone_on.ran
    assert "fan[1]/parse" in gone_on.ran
    assert "start" not in gone_on.ran


def test_a_cancelled_run_can_go_on() -> None:
    plan, inner = rich_plan()
    stopped = (
        Stage(plan, {"left": ["never"]}, others=[inner], takes={"group/left": 50.0})
        .later(12.0, cancel)
        .begin()
    )
    assert stopped.types[-1] == "run:cancelled"

    gone_on = stopped.go_on()

    assert gone_on.state.status == "completed"
    assert "start" not in gone_on.ran


@pytest.mark.acceptance("conductor 60")
def test_a_handled_failure_survives_the_journal() -> None:
    plan = a_plan(
        a_script("a", on_error(to="b")),
        a_script("b", to("c")),
        a_set("c", value="{{ a.error.kind }}"),
        output={"k": "{{ c.output }}"},
    )
    stage = Stage(plan, {"a": [fails("external.x")], "b": ["never"]}).begin()

    stage.crash_and_resume()

    assert stage.state.outputs == {"k": "external.x"}


def test_a_state_without_an_error_map_is_one_without_errors() -> None:
    stage = Stage(a_plan(a_script("a"))).begin()

    state = fold(json.loads(json.dumps(stage.facts)))

    assert dict(state.scopes[""].errors.items()) == {}
