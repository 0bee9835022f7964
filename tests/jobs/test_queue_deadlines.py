"""Time limits and deadlines hold whatever a job waits for: a place, its worker, or whoever takes its items."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.errors.fault import Fault
from failwell.jobs.job import JobState
from failwell.jobs.manifest import Manifest
from tests.jobs.queues import a_runtime, began, lines, types
from tests.jobs.workers import SAMPLES, run, until


def a_slow_one(**fields: object) -> Manifest:
    return Manifest(name="slow", object="timing:Slow", path=(SAMPLES,), cancel_grace=5.0, **fields)  # pyright: ignore[reportArgumentType]


def soon(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def test_a_deadline_that_has_passed_is_told_without_running_anything(tmp_path: Path) -> None:
    async def work() -> None:
        log = tmp_path / "log"
        async with a_runtime(tmp_path) as jobs:
            jobs.register(a_slow_one(), config={"log": str(log)})
            await jobs.call("slow", {"value": "first"})
            late = await jobs.submit("slow", {"value": "late"}, deadline=soon(-3600))
            ended = await jobs.wait(late.id)

            assert ended.error is not None
            assert (ended.state, ended.error.kind, ended.attempt) == (JobState.FAILED, "limit.run_timeout", 0)
            assert types(jobs, late) == ["submitted", "failed"]
            assert lines(log) == ["first"]

    run(work())


def test_a_worker_that_starts_beyond_a_jobs_deadline_serves_the_next_one(tmp_path: Path) -> None:
    async def work() -> None:
        log, gate = tmp_path / "log", tmp_path / "gate"
        async with a_runtime(tmp_path) as jobs:
            jobs.register(a_slow_one(), config={"log": str(log), "gate": str(gate)})
            late = await jobs.submit("slow", {"value": "late"}, deadline=soon(0.5))
            ended = await jobs.wait(late.id)
            worker = jobs.worker("slow")
            pid = worker.pid
            gate.touch()

            assert ended.error is not None
            assert (ended.state, ended.error.kind) == (JobState.FAILED, "limit.run_timeout")
            assert await jobs.call("slow", action="pid") == pid
            assert worker.generation == 1
            assert lines(log) == []

    run(work())


@pytest.mark.slow
def test_a_worker_that_starts_in_time_leaves_the_job_what_is_left_of_its_deadline(tmp_path: Path) -> None:
    async def work() -> None:
        gate, go = tmp_path / "gate", tmp_path / "go"
        async with a_runtime(tmp_path) as jobs:
            jobs.register(a_slow_one(), config={"gate": str(gate)})
            deadline = soon(1.5)
            job = await jobs.submit("slow", {"path": str(go)}, action="until", deadline=deadline)
            await began(gate)
            await until(lambda: datetime.now(UTC) > deadline - timedelta(seconds=0.8))
            gate.touch()
            await began(go)
            pid = jobs.worker("slow").pid
            ended = await jobs.wait(job.id)

            assert ended.error is not None
            assert (ended.state, ended.error.kind) == (JobState.FAILED, "limit.run_timeout")
            assert ended.completed_at is not None
            assert deadline <= ended.completed_at < deadline + timedelta(seconds=0.6)
            assert await jobs.call("slow", action="pid") == pid

    run(work())


def test_a_time_limit_shorter_than_the_deadline_is_told_as_a_time_limit(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_slow_one()) as jobs:
            job = await jobs.submit(
                "slow", {"path": str(tmp_path / "go")}, action="until", timeout=0.1, deadline=soon(60)
            )
            ended = await jobs.wait(job.id)

            assert ended.error is not None
            assert ended.error.kind == "worker.timeout"

    run(work())


def test_a_job_that_is_cancelled_while_its_worker_starts_for_it_tells_its_phases(tmp_path: Path) -> None:
    async def work() -> None:
        gate = tmp_path / "gate"
        async with a_runtime(tmp_path) as jobs:
            jobs.register(a_slow_one(), config={"gate": str(gate)})
            job = await jobs.submit("slow", deadline=soon(60))
            await began(gate)
            jobs.cancel(job.id)
            ended = await jobs.wait(job.id)
            gate.touch()

            assert ended.state is JobState.CANCELLED
            assert types(jobs, job) == [
                "submitted",
                "started",
                "cancelling",
                "cancel_phase",
                "cancel_phase",
                "cancelled",
            ]

    run(work())


@pytest.mark.parametrize(
    ("number", "wishes", "kind"),
    [
        pytest.param(1000, {"timeout": 0.3}, "worker.timeout", id="time limit"),
        # All of them were made, the last ones wait in vain.
        pytest.param(30, {"timeout": 0.3}, "worker.timeout", id="time limit, made in time"),
        pytest.param(1000, {"seconds": 0.3}, "limit.run_timeout", id="deadline"),
    ],
)
def test_a_stream_that_nobody_takes_ends_in_time_and_its_worker_goes_on(
    tmp_path: Path, number: int, wishes: dict[str, float], kind: str
) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_slow_one(), lanes=1) as jobs:
            pid = await jobs.call("slow", action="pid")
            limits: dict[str, Any] = (
                {"deadline": soon(wishes["seconds"])} if "seconds" in wishes else dict(wishes)
            )
            items = jobs.stream("slow", {"number": number}, action="count_to", **limits)
            first = await anext(items)
            job = next(iter(jobs.queue.state.live))
            ended = await jobs.wait(job, timeout=10)
            rest: list[int] = []
            with pytest.raises(Fault) as caught:
                rest.extend([item async for item in items])

            assert (first, ended.state) == (0, JobState.FAILED)
            assert describe(caught.value).kind == kind
            assert await jobs.call("slow", action="pid") == pid

    run(work())


def test_a_stream_that_nobody_takes_can_be_cancelled(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_slow_one(), lanes=1) as jobs:
            items = jobs.stream("slow", {"number": 1000}, action="count_to")
            await anext(items)
            job = next(iter(jobs.queue.state.live))
            jobs.cancel(job)
            ended = await jobs.wait(job, timeout=10)
            await items.aclose()

            assert ended.state is JobState.CANCELLED

    run(work())


def test_a_stream_may_be_left_after_its_runtime_has_ended(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_slow_one(), drain=0.0) as jobs:
            items = jobs.stream("slow", {"number": 1000}, action="count_to")
            await anext(items)
            job = next(iter(jobs.queue.state.live))
        await items.aclose()

        async with a_runtime(tmp_path) as later:
            ended = await later.wait(job)

        assert ended.error is not None
        assert (ended.state, ended.cancel_requested_at) == (JobState.FAILED, None)

    run(work())
