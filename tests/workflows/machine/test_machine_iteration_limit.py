"""At an iteration limit: the run fails, or somebody who is there allows more steps."""

from typing import Any

import pytest

from failwell.workflows.machine.messages import Resume
from failwell.workflows.plan import Limits, Plan
from tests.workflows.machine.stage import Stage
from tests.workflows.plans import a_plan, a_script, a_workflow, on_error, to

GATE = "limit:work#4"


def a_loop(**fields: Any) -> Plan:
    work = a_script("work", to("work", when="{{ context.iteration < 7 }}"), to("$end"))
    return a_plan(work, limits=Limits(max_iterations=3), **fields)


def asking(plan: Plan, **options: Any) -> Stage:
    stage = Stage(plan, **options)
    stage.machine.can_ask = True
    return stage.begin()


def test_nobody_there_means_a_failure() -> None:
    stage = Stage(a_loop()).begin()

    assert stage.of("run:failed")[0]["envelope"]["kind"] == "limit.iterations"
    assert stage.ran == ["work"] * 3
    assert stage.asked == []


def test_more_steps_are_granted_as_often_as_somebody_asks_for_them() -> None:
    stage = asking(a_loop())
    assert stage.asked[0]["max_iterations"] == 3
    assert "`flow` has taken 3 steps" in stage.asked[0]["prompt"]
    assert stage.ran == ["work"] * 3

    stage.answer(GATE, "more", payload={"steps": 2})
    assert stage.ran == ["work"] * 5
    stage.answer("limit:work#6", "more", payload={"steps": 50})

    assert stage.state.status == "completed"
    assert stage.ran == ["work"] * 7
    assert stage.state.limits == {"max_iterations": 55}


@pytest.mark.parametrize("payload", [None, {}, {"steps": "many"}, {"steps": True}, 5])
def test_an_answer_without_a_number_grants_the_limit_once_more(payload: Any) -> None:
    stage = asking(a_loop())

    stage.answer(GATE, "more", payload=payload)

    assert stage.ran == ["work"] * 6


def test_stop_fails_the_run_as_without_a_person_and_it_can_be_continued() -> None:
    stage = asking(a_loop())

    stage.answer(GATE, "stop")

    assert stage.of("run:failed")[0]["envelope"]["kind"] == "limit.iterations"
    assert stage.of("run:failed")[0]["error_type"] == "LimitReached"


def test_the_limit_of_a_sub_workflow_is_raised_for_it_alone() -> None:
    work = a_script("work", to("work", when="{{ context.iteration < 5 }}"), to("$end"))
    inner = a_plan(work, name="child", file="child.yaml", limits=Limits(max_iterations=3))
    plan = a_plan(a_workflow("step", to("$end"), on_error("subworkflow.failed", to="late")), a_script("late"))
    stopped = asking(plan, others=[inner])
    stage = asking(plan, others=[inner])

    stopped.answer("limit:step/work#4", "stop")
    stage.answer("limit:step/work#4", "more")

    assert stopped.ran[-1] == "late"
    assert stage.ran == ["step/work"] * 5
    assert stage.state.limits == {"max_iterations step": 6}


def test_a_question_that_is_open_after_a_crash_is_answered_by_a_higher_limit() -> None:
    stage = asking(a_loop())
    stage.crash()

    stage.play(Resume(at=stage.now, limits={"max_iterations": 20}))

    assert stage.state.status == "completed"
    assert stage.of("human_gate:resumed")[0]["decided_by"] == "resume"


def test_a_question_that_is_open_after_a_crash_is_asked_again() -> None:
    stage = asking(a_loop())

    stage.crash_and_resume()
    stage.answer(GATE, "more", payload={"steps": 10})

    assert len(stage.asked) == 2
    assert stage.state.status == "completed"
