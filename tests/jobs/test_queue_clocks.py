# pyright: reportPrivateUsage=false
"""Somebody sets the clock of the machine: who waits is neither overtaken nor kept waiting for it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time

from failwell.jobs.job import JobState
from failwell.jobs.runtime import Runtime
from tests.jobs.queues import a_capability, a_runtime, lines, types
from tests.jobs.workers import run, until

HOUR = 3600.0


def set_clock(jobs: Runtime, seconds: float) -> None:
    """Let the queue see a wall clock that differs by so much."""
    jobs.queue.state.now = lambda: time() + seconds


def test_a_clock_that_is_set_back_lets_nobody_overtake_who_waits(tmp_path: Path) -> None:
    async def work() -> None:
        log = tmp_path / "log"
        async with a_runtime(tmp_path, lanes=1) as jobs:
            jobs.register(a_capability(), config={"log": str(log)})
            await jobs.call("worker", {"value": "measured"})
            jobs.pause()
            before = [await jobs.submit("worker", {"value": name}) for name in ("a", "b")]
            set_clock(jobs, -HOUR)
            after = [await jobs.submit("worker", {"value": name}) for name in ("c", "d")]
            jobs.resume()
            for job in (*before, *after):
                await jobs.wait(job.id)

            assert lines(log) == ["measured", "a", "b", "c", "d"]

    run(work())


def test_a_clock_that_is_set_back_lengthens_no_wait(tmp_path: Path) -> None:
    async def work() -> None:
        count = tmp_path / "count"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            job = await jobs.submit(
                "worker", {"times": 1, "path": str(count), "after": 0.5}, action="fail_first"
            )
            await until(lambda: jobs.job(job.id).state is JobState.WAITING)
            set_clock(jobs, -HOUR)
            ended = await jobs.wait(job.id, timeout=10)
            first, second = map(float, lines(count))

            assert ended.state is JobState.COMPLETED
            assert second - first >= 0.5

    run(work())


def test_a_clock_that_is_set_back_gives_a_deadline_more_time_and_forward_less(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            jobs.pause()
            set_clock(jobs, -0.4)
            soon = datetime.now(UTC) + timedelta(seconds=0.2)
            kept = await jobs.submit("worker", {"value": 1}, deadline=soon)
            set_clock(jobs, -HOUR)
            later = await jobs.submit("worker", {"value": 2}, deadline=soon - timedelta(seconds=HOUR))
            await jobs.wait(later.id, timeout=10)
            was = jobs.job(kept.id).state
            jobs.resume()
            ended = await jobs.wait(kept.id)
            set_clock(jobs, HOUR)
            late = await jobs.submit("worker", {"value": 3}, deadline=soon + timedelta(seconds=HOUR / 2))

            assert (was, ended.state) == (JobState.PENDING, JobState.COMPLETED)
            assert (await jobs.wait(late.id)).state is JobState.FAILED
            assert types(jobs, later) == types(jobs, late) == ["submitted", "failed"]

    run(work())


def test_a_job_whose_start_and_deadline_come_at_once_ends_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            jobs.pause()
            start = datetime.now(UTC) + timedelta(seconds=0.3)
            late = await jobs.submit(
                "worker", {"value": 1}, not_before=start, deadline=start + timedelta(microseconds=1)
            )
            # Both timers ring in one turn of the loop, after the deadline.
            set_clock(jobs, HOUR)
            await jobs.wait(late.id)
            set_clock(jobs, 0)
            jobs.resume()
            await jobs.call("worker", {"value": 2})

            assert types(jobs, late) == ["submitted", "failed"]

    run(work())
