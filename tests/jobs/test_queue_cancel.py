"""Cancelling jobs through the queue: asked first, by force after that, and nobody else is touched."""

import asyncio
from pathlib import Path
from time import monotonic

import pytest

from failwell.jobs.faults import QueueStopped
from failwell.jobs.job import Job, JobState
from failwell.jobs.runtime import Runtime
from tests.jobs.queues import a_capability, a_runtime, began
from tests.jobs.workers import is_alive, run, until

SLACK = 1.0
"""What a busy machine may add to a time."""


def phases(jobs: Runtime, job: Job) -> list[str]:
    """The phases of its cancellation, in the order in which they were put on record."""
    return [one.data["phase"] for one in jobs.store.events(job=job.id) if one.type == "cancel_phase"]


@pytest.mark.acceptance("cjm-substrate 33")
def test_a_running_job_that_listens_is_cancelled_and_its_process_stays(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            before = await jobs.call("worker", action="pid")
            job = await jobs.submit("worker", {"path": str(go)}, action="until")
            await began(go)

            assert jobs.cancel(job.id)
            ended = await jobs.wait(job.id)

            assert ended.state is JobState.CANCELLED
            kept = jobs.store.find(job.id)
            assert kept is not None
            assert kept.state is JobState.CANCELLED
            assert (jobs.counts()["cancelled"], jobs.counts()["failed"]) == (1, 0)
            assert phases(jobs, job) == ["cooperative", "completed"]
            assert await jobs.call("worker", action="pid") == before

    run(work())


@pytest.mark.acceptance("cjm-substrate 34")
def test_a_running_job_that_does_not_listen_is_ended_with_its_process_in_time(tmp_path: Path) -> None:
    async def work() -> None:
        deaf, limit = tmp_path / "deaf", 0.5
        async with a_runtime(tmp_path, a_capability()) as jobs:
            begun = monotonic()
            await jobs.worker("worker").restart()
            reload = monotonic() - begun
            before = await jobs.call("worker", action="pid")
            job = await jobs.submit("worker", {"path": str(deaf)}, action="deaf")
            await began(deaf)

            begun = monotonic()
            assert jobs.cancel(job.id, grace=limit)
            ended = await jobs.wait(job.id)
            told = monotonic() - begun
            after = await jobs.call("worker", action="pid")
            total = monotonic() - begun

            assert ended.state is JobState.CANCELLED
            assert (jobs.counts()["cancelled"], jobs.counts()["failed"]) == (1, 0)
            assert phases(jobs, job) == ["cooperative", "force", "reloading", "completed"]
            assert after != before
            assert not is_alive(before)
            assert limit <= told <= total
            assert total < limit + reload + SLACK

    run(work())


@pytest.mark.acceptance("cjm-substrate 36")
@pytest.mark.parametrize("action", ["until", "deaf"])
def test_the_neighbour_of_a_cancelled_job_completes(tmp_path: Path, action: str) -> None:
    async def work() -> None:
        go, other = tmp_path / "go", tmp_path / "other"
        async with a_runtime(tmp_path, a_capability(concurrency=2)) as jobs:
            await jobs.call("worker", action="pid")
            neighbour = await jobs.submit("worker", {"path": str(other), "value": "kept"}, action="until")
            job = await jobs.submit("worker", {"path": str(go)}, action=action)
            await began(other)
            await began(go)
            jobs.cancel(job.id, grace=0.1 if action == "deaf" else None)
            cancelled = await jobs.wait(job.id)
            other.touch()
            ended = await jobs.wait(neighbour.id)

            assert cancelled.state is JobState.CANCELLED
            assert (ended.state, ended.result) == (JobState.COMPLETED, "kept")
            # The process of one that does not listen goes; whoever shared it is repeated.
            assert ended.attempt == (1 if action == "until" else 2)

    run(work())


@pytest.mark.acceptance("cjm-substrate 37")
def test_the_job_after_a_cancelled_one_begins_afresh(tmp_path: Path) -> None:
    async def work() -> None:
        go, after = tmp_path / "go", tmp_path / "after"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            before = await jobs.call("worker", action="pid")
            job = await jobs.submit("worker", {"path": str(go)}, action="until")
            await until(lambda: jobs.job(job.id).progress == 0.5)
            following = await jobs.submit("worker", {"path": str(after), "value": 2}, action="until")
            heard = jobs.events(following.id)
            jobs.cancel(job.id)
            await jobs.wait(job.id)
            await began(after)
            await until(lambda: jobs.job(following.id).progress == 0.5)
            after.touch()
            ended = await jobs.wait(following.id)
            told = [event async for event in heard]

            assert (ended.state, ended.result, ended.attempt) == (JobState.COMPLETED, 2, 1)
            assert await jobs.call("worker", action="pid") == before
            assert ended.cancel_phase is None
            assert ended.cancel_requested_at is None
            assert following.progress == 0.0
            assert [event.data["fraction"] for event in told if event.type == "progress"] == [0.5]
            assert [event.type for event in told if event.seq] == ["started", "completed"]

    run(work())


@pytest.mark.acceptance("cjm-substrate 38")
def test_cancelling_what_is_over_or_unknown_is_refused_and_leaves_no_trace(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            done = await jobs.submit("worker", {"value": 1})
            failing = {"times": 1, "path": str(tmp_path / "count")}
            failed = await jobs.submit("worker", failing, action="fail_first", control={"max_attempts": 1})
            ended = [await jobs.wait(job.id) for job in (done, failed)]
            last = jobs.store.last_event()
            heard = jobs.events()

            refused = [jobs.cancel(job) for job in (done.id, failed.id, "nobody", "")]
            await jobs.call("worker", {"value": 2})
            heard.end()

            assert refused == [False, False, False, False]
            assert [jobs.job(job.id) for job in ended] == ended
            about = [event.type async for event in heard if event.seq]
            assert about == ["submitted", "started", "completed"]
            assert jobs.store.last_event() == last + 3

    run(work())


@pytest.mark.acceptance("cjm-substrate 41")
def test_a_cancel_that_is_still_waited_for_when_the_queue_stops_is_kept(tmp_path: Path) -> None:
    async def work() -> None:
        deaf = tmp_path / "deaf"
        async with a_runtime(tmp_path, a_capability(stop_grace=0.1), drain=0.2) as jobs:
            job = await jobs.submit("worker", {"path": str(deaf)}, action="deaf")
            await began(deaf)
            jobs.cancel(job.id, grace=60.0)
            waiter = asyncio.ensure_future(jobs.wait(job.id))
            await asyncio.sleep(0)
            begun = monotonic()
            waiter.add_done_callback(lambda _: took.append(monotonic() - begun))
            took: list[float] = []
        await asyncio.wait([waiter])
        async with a_runtime(tmp_path) as jobs:
            ended = await jobs.wait(job.id)

        assert isinstance(waiter.exception(), QueueStopped)
        assert took[0] < 0.2 + SLACK
        assert ended.state is JobState.CANCELLED

    run(work())
