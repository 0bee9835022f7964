"""What people decide: gates, questions, budgets; and decisions that come late, twice or never."""

from typing import Any

import pytest

from failwell.calls.backoff import Backoff
from failwell.errors.facts import NotBefore
from failwell.workflows.failure import moment
from failwell.workflows.machine.messages import Answered
from failwell.workflows.machine.retry_policy import route_retry
from failwell.workflows.plan import Limits, Plan
from tests.workflows.machine.stage import Stage, Used, fails
from tests.workflows.plans import a_gate, a_parallel, a_plan, a_script, a_set, on_error, some_questions, to


def gate_plan(**fields: Any) -> Plan:
    gate = a_gate("approve", options={"yes": "ship", "no": "$end"}, **fields)
    return a_plan(gate, a_script("ship"))


def test_a_gate_waits_and_goes_where_the_answer_leads() -> None:
    stage = Stage(gate_plan()).begin()
    assert stage.idle is not None
    assert stage.idle.gates == ("approve",)
    assert stage.of("run:paused") == [{"gates": ["approve"], "pending_gate_count": 1}]

    stage.answer("approve", "yes", payload={"note": "fine"})

    assert stage.ran == ["ship"]
    assert stage.of("node:completed")[0]["output"] == {
        "selected": "yes",
        "additional_input": {"note": "fine"},
    }


def test_the_time_until_somebody_answered_is_no_time_worked_on() -> None:
    stage = Stage(gate_plan()).begin()
    answered = {"path": "approve", "gate": "approve", "decision": "yes", "decided_by": "a person"}

    # An hour later, with nobody at the run; then somebody takes it up.
    stage.now += 3600.0
    stage.facts.append(("human_gate:answered", stage.now, answered))
    stage.crash_and_resume()

    assert stage.state.status == "completed"
    assert stage.of("run:resumed")[0]["active"] < 60.0
    assert stage.of("run:completed")[0]["duration"] < 60.0


@pytest.mark.acceptance("relavium 58")
def test_a_decision_that_comes_twice_counts_once() -> None:
    stage = Stage(gate_plan()).begin()

    stage.answer("approve", "yes")
    facts = len(stage.facts)
    stage.answer("approve", "no")

    assert stage.ran == ["ship"]
    assert len(stage.facts) == facts


@pytest.mark.acceptance("relavium 57")
def test_a_gate_that_nobody_answers_in_time_fails_the_run() -> None:
    stage = Stage(gate_plan(timeout=60.0)).begin()

    assert stage.of("run:failed")[0]["envelope"]["kind"] == "limit.run_timeout"


@pytest.mark.acceptance("relavium 57")
def test_a_gate_with_an_option_for_that_takes_it_when_the_time_is_up() -> None:
    stage = Stage(gate_plan(timeout=60.0, timeout_option="yes")).begin()

    assert stage.of("human_gate:resumed")[0]["decided_by"] == "timeout"
    assert stage.ran == ["ship"]


def test_a_rejection_can_fail_the_run() -> None:
    stage = Stage(gate_plan(reject=("no",))).begin()

    stage.answer("approve", "no")

    assert stage.of("run:failed")[0]["envelope"]["kind"] == "halt.intentional"


def test_questions_are_answered_together() -> None:
    stage = Stage(
        a_plan(some_questions("ask", to("after"), texts=("Who?", "Why?")), a_script("after"))
    ).begin()

    stage.answer("ask", "answered", payload={"q0": "me", "q1": "so"})

    output = stage.of("node:completed")[0]["output"]
    assert output["answers"] == {"q0": "me", "q1": "so"}
    assert output["answered_count"] == 2
    assert stage.ran == ["after"]


def test_what_is_not_answered_has_its_default() -> None:
    listed = a_set("list", to("ask"), value=["Who?", {"id": "why", "text": "Why?", "default": "so"}])
    stage = Stage(a_plan(listed, some_questions("ask", source="list.output"))).begin()

    stage.answer("ask", "answered", payload={"q1": "me", "why": None})

    output = stage.of("node:completed")[-1]["output"]
    assert output["answers"] == {"q1": "me", "why": "so"}
    assert [one["answer"] for one in output["items"]] == ["me", "so"]


def spender(**limits: Any) -> Plan:
    limits.setdefault("on_exceed", "pause_for_approval")
    nodes = (a_script("a", to("b"), estimate_usd=0.6), a_script("b", estimate_usd=0.6))
    return a_plan(*nodes, limits=Limits(budget_usd=1.0, **limits))


def used(cost: float) -> Used:
    return Used({"ok": True}, {"cost_usd": cost})


def test_a_budget_pause_asks_and_goes_on_when_approved() -> None:
    stage = Stage(spender(), {"a": [used(0.6)]}).begin()
    assert stage.types[-3:] == ["budget:paused", "human_gate:paused", "run:paused"]
    assert stage.of("budget:paused")[0]["gate"] == stage.of("human_gate:paused")[0]["gate"]

    stage.answer("budget:b", "approved")

    assert stage.ran == ["a", "b"]
    assert stage.state.status == "completed"


@pytest.mark.acceptance("relavium 61")
def test_an_approval_that_was_stored_before_a_crash_is_no_output() -> None:
    stage = Stage(spender(), {"a": [used(0.6)]}).begin()
    stage.feed(Answered(at=stage.now, gate="budget:b", decision="approved", by="ada"))

    stage.crash_and_resume()

    assert stage.ran == ["a", "b"]
    assert stage.of("node:completed")[-1]["output"] == {"ok": "b"}


def test_a_refused_budget_ends_the_run() -> None:
    stage = Stage(spender(), {"a": [used(0.6)]}).begin()

    stage.answer("budget:b", "rejected")

    assert stage.of("run:failed")[0]["envelope"]["kind"] == "limit.budget_exceeded"
    assert stage.ran == ["a"]


def test_a_budget_may_only_warn_and_does_so_once() -> None:
    stage = Stage(spender(on_exceed="warn"), {"a": [used(5.0)], "b": [used(5.0)]}).begin()

    assert len(stage.of("budget:warning")) == 1
    assert stage.of("budget:warning")[0]["threshold_pct"] == 100
    assert stage.state.status == "completed"


def test_parallel_branches_reserve_what_they_expect_to_spend() -> None:
    group = a_parallel("group", members=("a", "b"), failure_mode="all_or_nothing")
    plan = a_plan(
        group,
        a_script("a", estimate_usd=0.6),
        a_script("b", estimate_usd=0.6),
        limits=Limits(budget_usd=1.0, on_exceed="fail"),
    )

    stage = Stage(plan, {"group/a": [used(0.6)]}).begin()

    assert stage.ran == ["group/a"]
    assert stage.of("run:failed")[0]["envelope"]["kind"] == "limit.budget_exceeded"


def test_a_told_wait_beyond_the_limit_is_parked_and_uses_no_attempt() -> None:
    again = route_retry(max_retries=1, backoff=Backoff(first=1.0, jitter=0.0))

    def far(at: float) -> object:
        return fails("external.quota", category="capacity", not_before=NotBefore(after=3600.0), at=moment(at))

    answers = {"a": [far(1_000_001.0), far(1_003_602.0), fails("external.x")]}
    stage = Stage(a_plan(a_script("a", on_error(retry=again))), answers).begin()

    assert stage.idle is not None
    assert stage.idle.blocked_until is not None
    assert [one["by"] for one in stage.of("node:retrying")] == ["parking", "parking", "route"]
    assert stage.ran == ["a"] * 4
