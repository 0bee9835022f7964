# pyright: reportPrivateUsage=false
"""Jobs that are submitted for later, and keys that are free again once their job has ended."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time

import pytest

from failwell.errors.faults import CapabilityInputError
from failwell.jobs.job import JobRequest, JobState, check_request
from tests.jobs.queues import a_capability, a_runtime, lines
from tests.jobs.workers import run, until

HOUR = timedelta(hours=1)


def test_a_job_for_later_holds_no_lane_and_runs_when_it_is_due(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability(), lanes=1) as jobs:
            later = await jobs.submit("worker", {"value": 1}, not_before=datetime.now(UTC) + HOUR)
            soon = await jobs.submit(
                "worker", {"value": 2}, not_before=datetime.now(UTC) + timedelta(seconds=0.2)
            )
            assert await jobs.call("worker", {"value": 3}) == 3
            assert jobs.job(later.id).not_before == later.not_before
            waits = [job.id for job in jobs.waiting()]
            ended = await jobs.wait(soon.id, timeout=10)

            assert set(waits) == {later.id, soon.id}
            assert soon.not_before is not None
            assert ended.started_at is not None
            assert ended.started_at >= soon.not_before
            assert jobs.job(later.id).state is JobState.PENDING
            assert jobs.cancel(later.id)

    run(work())


def test_the_next_host_keeps_the_time_of_a_job(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            due = datetime.now(UTC) + HOUR
            later = await jobs.submit("worker", {"value": 1}, not_before=due)
        async with a_runtime(tmp_path, a_capability()) as jobs:
            assert await jobs.call("worker", {"value": 2}) == 2
            assert jobs.job(later.id).state is JobState.PENDING
            stored = jobs.store.find(later.id)
            assert stored is not None
            assert (stored.not_before, stored.request.not_before) == (due, due)

    run(work())


def test_a_clock_that_is_set_back_lets_no_job_start_before_its_time(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            due = datetime.now(UTC) + timedelta(seconds=0.1)
            job = await jobs.submit("worker", {"value": 1}, not_before=due)
            jobs.queue.state.now = lambda: time() - 0.5
            ended = await jobs.wait(job.id, timeout=10)

            assert ended.completed_at is not None
            assert ended.completed_at >= due

    run(work())


def test_a_job_for_later_does_not_overtake_those_that_wait_when_it_is_due(tmp_path: Path) -> None:
    async def work() -> None:
        log = tmp_path / "log"
        async with a_runtime(tmp_path, lanes=1) as jobs:
            jobs.register(a_capability(), config={"log": str(log)})
            await jobs.call("worker", {"value": "measured"})
            jobs.pause()
            later = await jobs.submit(
                "worker", {"value": "later"}, not_before=datetime.now(UTC) + timedelta(seconds=0.1)
            )
            first = await jobs.submit("worker", {"value": "first"})
            await until(lambda: jobs.job(later.id).not_before is None)
            jobs.resume()
            for job in (later, first):
                await jobs.wait(job.id)

            assert lines(log) == ["measured", "first", "later"]

    run(work())


def test_a_key_until_its_job_has_ended_is_free_again_and_one_for_ever_is_not(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability()) as jobs:
            jobs.pause()
            first = await jobs.submit("worker", {"value": 1}, key="k", unique="ended")
            same = await jobs.submit("worker", {"value": 2}, key="k", unique="ended")
            jobs.resume()
            await jobs.wait(first.id)
            second = await jobs.submit("worker", {"value": 3}, key="k", unique="ended")
            failing = {"times": 9, "path": str(tmp_path / "count")}
            once = {"max_attempts": 1}
            failed = await jobs.submit("worker", failing, action="fail_first", key="for ever", control=once)
            ended = await jobs.wait(failed.id)
            again = await jobs.submit("worker", failing, action="fail_first", key="for ever", control=once)

            assert same.id == first.id
            assert second.id != first.id
            assert (await jobs.wait(second.id)).result == 3
            stored = jobs.store.find(first.id)
            assert stored is not None
            assert (stored.request.key, stored.request.unique) == ("k", "ended")
            assert ended.state is JobState.FAILED
            assert again.id == failed.id

    run(work())


def test_times_and_keys_that_cannot_be_are_refused_by_name() -> None:
    now = datetime.now(UTC)
    cases = {
        "not_before": JobRequest(instance="a", not_before=datetime(2030, 1, 1)),  # noqa: DTZ001
        "deadline": JobRequest(instance="a", not_before=now + HOUR, deadline=now),
        "unique": JobRequest(instance="a", key="k", unique="sometimes"),
    }
    for field, request in cases.items():
        with pytest.raises(CapabilityInputError) as refusal:
            check_request(request)
        assert refusal.value.fields_invalid == (field,) or field in str(refusal.value)
    with pytest.raises(CapabilityInputError, match="there is no `key`"):
        check_request(JobRequest(instance="a", unique="ended"))
