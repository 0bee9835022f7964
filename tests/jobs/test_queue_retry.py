"""Second attempts: after the wait that was told, after something was freed, and never against the policy."""

import os
import signal
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from failwell.adapters.describe import describe
from failwell.calls.backoff import Backoff
from failwell.calls.policy import GiveUp, Match, Policy, RetryState, Rule, Schedule, decide
from failwell.errors.fault import Fault
from failwell.errors.report import ErrorReport
from failwell.jobs.job import JobState
from failwell.jobs.queue.state import DEFAULT, Rules
from tests.jobs.queues import a_capability, a_runtime, began, forget_it_began, lines, types
from tests.jobs.workers import run, until

ONE_RETRY = Policy(
    rules=(Rule(match=Match(), schedule=Schedule(max_attempts=2, backoff=Backoff(curve="fixed", first=0.0))),)
)
OFF = Policy(rules=(Rule(match=Match(), retryable=False),))


@pytest.mark.acceptance("cjm-substrate 30")
def test_a_passing_failure_is_repeated_not_before_the_wait_that_was_told(tmp_path: Path) -> None:
    async def work() -> None:
        count = tmp_path / "count"
        async with a_runtime(tmp_path, a_capability(), rules=Rules(policy=ONE_RETRY)) as jobs:
            job = await jobs.submit(
                "worker", {"times": 1, "path": str(count), "after": 2.0}, action="fail_first"
            )
            ended = await jobs.wait(job.id)
            first, second = map(float, lines(count))

            assert second - first >= 2.0
            assert (ended.state, ended.attempt, ended.retry_count) == (JobState.COMPLETED, 2, 1)
            assert types(jobs, job) == ["submitted", "started", "retrying", "started", "completed"]

    run(work())


@pytest.mark.acceptance("cjm-substrate 30")
def test_with_the_policy_off_nothing_is_repeated(tmp_path: Path) -> None:
    async def work() -> None:
        count = tmp_path / "count"
        async with a_runtime(tmp_path, a_capability(), rules=Rules(policy=OFF)) as jobs:
            job = await jobs.submit("worker", {"times": 1, "path": str(count)}, action="fail_first")
            ended = await jobs.wait(job.id)

            assert (ended.state, ended.attempt) == (JobState.FAILED, 1)
            assert ended.error is not None
            assert ended.error.scene.job == job.id
            assert (ended.error.scene.capability, ended.error.scene.instance) == ("worker", "worker")

    run(work())


def test_a_job_may_say_itself_how_often_it_is_tried(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability(), rules=Rules(policy=ONE_RETRY)) as jobs:
            job = await jobs.submit(
                "worker",
                {"times": 9, "path": str(tmp_path / "count"), "after": 0.0},
                action="fail_first",
                control={"max_attempts": 3},
            )

            assert (await jobs.wait(job.id)).attempt == 3

    run(work())


def test_what_a_loop_in_the_worker_has_exhausted_is_not_repeated_unless_the_policy_says_so(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        once, twice = tmp_path / "once", tmp_path / "twice"
        async with a_runtime(tmp_path / "a", a_capability(), rules=Rules(policy=ONE_RETRY)) as jobs:
            job = await jobs.submit("worker", {"path": str(once)}, action="ask_in_a_loop")
            ended = await jobs.wait(job.id)
            assert (ended.attempt, len(lines(once))) == (1, 2)
            assert ended.error is not None
            assert [(row.layer, row.exhausted) for row in ended.error.attempts] == [
                ("ask", None),
                ("ask", True),
            ]

        insists = replace(ONE_RETRY, repeat_exhausted=True)
        async with a_runtime(tmp_path / "b", a_capability(), rules=Rules(policy=insists)) as jobs:
            job = await jobs.submit("worker", {"path": str(twice)}, action="ask_in_a_loop")
            ended = await jobs.wait(job.id)
            assert (ended.attempt, len(lines(twice))) == (2, 4)
            assert ended.error is not None
            last = ended.error.attempts[-1]
            assert (last.layer, last.number, last.exhausted) == ("job", 2, True)

    run(work())


def test_a_policy_whose_predicate_raises_is_an_event_and_ends_the_job(tmp_path: Path) -> None:
    def broken(report: ErrorReport) -> bool:
        raise KeyError(report.kind)

    policy = Policy(rules=(Rule(match=Match.of(when=broken), name="mine"),))

    async def work() -> None:
        async with a_runtime(tmp_path, a_capability(), rules=Rules(policy=policy)) as jobs:
            job = await jobs.submit(
                "worker", {"times": 1, "path": str(tmp_path / "count")}, action="fail_first"
            )
            ended = await jobs.wait(job.id)

            assert (ended.state, ended.attempt) == (JobState.FAILED, 1)
            (event,) = [event for event in jobs.store.events(job=job.id) if event.type == "policy_failed"]
            assert "rule `mine` raised KeyError" in event.data["why"]

    run(work())


@pytest.mark.acceptance("cjm-substrate 51")
def test_a_lasting_shortage_is_tried_twice_and_recorded_with_its_numbers(tmp_path: Path) -> None:
    async def work() -> None:
        count = tmp_path / "count"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            job = await jobs.submit(
                "worker", {"times": 9, "path": str(count), "kind": "resource"}, action="fail_first"
            )
            ended = await jobs.wait(job.id)

            assert len(lines(count)) == 2
            assert (ended.state, ended.attempt, ended.retry_count) == (JobState.FAILED, 2, 1)
            assert types(jobs, job).count("retrying") == 1
            kept = jobs.store.find(job.id)
            assert kept is not None
            assert kept.error == ended.error
            assert ended.error is not None
            assert ended.error.category.job == "resource"
            assert ended.error.resource_shortfall is not None
            assert (ended.error.resource_shortfall.needed, ended.error.resource_shortfall.available) == (
                16000,
                8000,
            )

    run(work())


def test_a_killed_worker_gives_its_job_another_try(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability(), rules=Rules(policy=ONE_RETRY)) as jobs:
            killed = await jobs.submit("worker", {"path": str(tmp_path / "a"), "times": 1}, action="die")
            ended = await jobs.wait(killed.id)

            assert (ended.state, ended.result, ended.attempt) == (JobState.COMPLETED, "alive", 2)
            told = [event for event in jobs.store.events() if event.type == "worker:died"]
            assert [event.data["jobs"] for event in told] == [[killed.id]]
            assert told[0].data["kind"] == "worker.oom"

    run(work())


def test_a_time_limit_is_kept_and_not_tried_again(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            before = await jobs.call("worker", action="pid")
            job = await jobs.submit("worker", {"path": str(go)}, action="until", timeout=0.2)
            ended = await jobs.wait(job.id)

            assert (ended.state, ended.attempt) == (JobState.FAILED, 1)
            assert ended.error is not None
            assert ended.error.kind == "worker.timeout"
            assert await jobs.call("worker", action="pid") == before

    run(work())


def test_a_job_that_waits_beyond_its_deadline_fails_without_running(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            await jobs.submit("worker", {"path": str(go)}, action="until")
            await began(go)
            soon = datetime.now(UTC) + timedelta(seconds=0.1)
            late = await jobs.submit("worker", {"value": 1}, deadline=soon)
            ended = await jobs.wait(late.id)
            go.touch()

            assert ended.error is not None
            assert (ended.state, ended.error.kind) == (JobState.FAILED, "limit.run_timeout")
            assert types(jobs, late) == ["submitted", "failed"]

    run(work())


def test_a_cancel_during_the_second_attempt_reaches_the_new_process(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability(), rules=Rules(policy=ONE_RETRY)) as jobs:
            job = await jobs.submit("worker", {"path": str(go)}, action="until")
            await began(go)
            pid = jobs.worker("worker").pid
            assert pid is not None
            forget_it_began(go)
            os.kill(pid, signal.SIGSEGV)
            await began(go)
            await until(lambda: jobs.job(job.id).progress == 0.5)

            assert jobs.cancel(job.id)
            ended = await jobs.wait(job.id)

            assert (ended.state, ended.attempt) == (JobState.CANCELLED, 2)
            phases = [
                event.data["phase"] for event in jobs.store.events(job=job.id) if event.type == "cancel_phase"
            ]
            assert phases == ["cooperative", "completed"]

    run(work())


def test_a_jobs_own_number_of_attempts_allows_nothing_that_the_policy_never_repeats() -> None:
    report = describe(Fault(kind="worker.timeout", message="it broke"))

    assert isinstance(decide(DEFAULT, report, RetryState(attempts=1, max_attempts=3)), GiveUp)


def test_a_job_that_loses_its_worker_to_another_job_is_repeated_and_not_charged(tmp_path: Path) -> None:
    async def work() -> None:
        deaf, beside = tmp_path / "deaf", tmp_path / "beside"
        two = a_capability(concurrency=2)
        async with a_runtime(tmp_path, two, rules=Rules(policy=OFF)) as jobs:
            first = await jobs.submit("worker", {"path": str(deaf)}, action="deaf")
            other = await jobs.submit("worker", {"path": str(beside), "value": "done"}, action="until")
            await began(deaf)
            await began(beside)
            forget_it_began(beside)
            jobs.cancel(first.id, grace=0.05)
            await began(beside)
            beside.touch()
            ended = await jobs.wait(other.id, timeout=20)

            assert (await jobs.wait(first.id)).state is JobState.CANCELLED
            assert (ended.state, ended.result, ended.attempt) == (JobState.COMPLETED, "done", 2)
            assert ended.charged == 1
            (event,) = [one for one in jobs.store.events(job=other.id) if one.type == "retrying"]
            assert event.data["why"] == "its worker was replaced"

    run(work())


def test_memory_that_a_limit_refuses_is_a_shortage_and_is_tried_twice(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            job = await jobs.submit("worker", {"mb": 400}, action="eat")
            ended = await jobs.wait(job.id)

            assert ended.error is not None
            assert (ended.state, ended.attempt) == (JobState.FAILED, 2)
            assert ended.error.kind == "resource.system_memory"

    run(work())
