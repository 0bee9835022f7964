"""How long an attempt may run: what the job says, else its manifest, else an hour; and `none` for no limit."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from failwell.errors.faults import CapabilityConfigError, CapabilityInputError
from failwell.jobs.job import Job, JobId, JobRequest, JobState, check_request, with_timeout
from failwell.jobs.manifest import Manifest
from failwell.jobs.manifest_file import parse_manifest
from failwell.jobs.store.rows import job_values
from failwell.jobs.store.sqlite import JobStore
from failwell.store.event import Event
from tests.jobs.queues import a_capability, a_runtime, began, types
from tests.jobs.workers import run


@pytest.mark.parametrize(
    ("of_job", "of_manifest", "stored"),
    [
        (None, None, 3_600.0),
        (None, 90, 90),
        (None, "none", None),
        (30, "none", 30),
        (30, 90, 30),
        ("none", 90, None),
        ("none", None, None),
    ],
)
def test_the_job_decides_before_its_manifest_and_that_before_the_default(
    of_job: Any, of_manifest: Any, stored: float | None
) -> None:
    manifest = Manifest(name="worker", object="queueing:Worker", timeout=of_manifest)

    assert with_timeout(JobRequest(instance="worker", timeout=of_job), manifest).timeout == stored


def test_every_way_to_submit_stores_the_time_out_that_applies(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability("plain"), a_capability("brief", timeout=90)) as jobs:
            submitted = await jobs.submit("plain", {"value": 1})
            await jobs.call("brief", {"value": 1})
            unlimited = await jobs.submit("brief", {"value": 1}, timeout="none")
            async for _item in jobs.stream("plain", {"number": 1}, action="count_to"):
                pass
            again = await jobs.resubmit((await jobs.wait(unlimited.id)).id)
            await jobs.drained()
            stored = {job.id: job.request for job in jobs.store.jobs()}

            streamed = next(request for request in stored.values() if request.stream)
            called = next(request for request in stored.values() if request.timeout == 90)
            assert stored[submitted.id].timeout == streamed.timeout == 3_600
            assert (called.instance, called.action) == ("brief", "execute")
            assert [stored[job.id].timeout for job in (unlimited, again)] == [None, None]

    run(work())


def test_a_time_out_of_the_manifest_ends_an_attempt(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability(timeout=0.2)) as jobs:
            job = await jobs.submit("worker", {"path": str(go)}, action="until")
            ended = await jobs.wait(job.id)

            assert ended.state is JobState.FAILED
            assert ended.error is not None
            assert (ended.error.kind, ended.attempt) == ("worker.timeout", 1)
            assert await jobs.call("worker", {"value": 1}) == 1

    run(work())


def test_a_job_that_was_stored_without_a_time_out_keeps_none(tmp_path: Path) -> None:
    request = JobRequest(instance="worker", action="until", arguments={"path": str(tmp_path / "go")})
    old = Job(id=JobId("old"), request=request, state=JobState.PENDING, submitted=1_700_000_000.0)
    with closing(JobStore(tmp_path / "state")) as store:
        store.commit([job_values(old, None)], [Event(0, "submitted", 1_700_000_000.0, {}, old.id)])

    async def work() -> None:
        async with a_runtime(tmp_path, a_capability(timeout=0.2), measured=False) as jobs:
            await began(tmp_path / "go")
            (tmp_path / "go").touch()
            ended = await jobs.wait("old")

            assert (ended.state, ended.request.timeout) == (JobState.COMPLETED, None)
            assert types(jobs, "old") == ["submitted", "started", "completed"]
            assert ended.resubmission().timeout == "none"
            assert replace(ended, request=replace(request, timeout=5)).resubmission().timeout == 5

    run(work())


@pytest.mark.parametrize("timeout", ["never", 0, -1, True])
def test_anything_else_is_refused_by_name(timeout: Any) -> None:
    with pytest.raises(CapabilityInputError, match=r'`timeout` must be .*"none"') as of_job:
        check_request(JobRequest(instance="worker", timeout=timeout))
    with pytest.raises(CapabilityConfigError, match="`timeout`") as of_manifest:
        parse_manifest({"name": "worker", "object": "queueing:Worker", "timeout": timeout})

    assert of_job.value.fields_invalid == of_manifest.value.fields_invalid == ["timeout"]


def test_a_manifest_without_a_limit_says_none() -> None:
    read = parse_manifest({"name": "worker", "object": "a:b", "timeout": "none", "memory_limit": 400})

    assert (read.timeout, read.memory_limit) == ("none", 400)


def test_a_short_time_out_ends_its_attempt_beside_one_that_has_hours(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability(concurrency=2)) as jobs:
            long, short = tmp_path / "long", tmp_path / "short"
            lasting = await jobs.submit(
                "worker", {"path": str(long), "value": 1}, action="until", timeout=7_200
            )
            hurried = await jobs.submit("worker", {"path": str(short)}, action="until", timeout=0.2)

            ended = await jobs.wait(hurried.id)

            assert ended.error is not None
            assert ended.error.kind == "worker.timeout"
            long.touch()
            assert (await jobs.wait(lasting.id)).result == 1

    run(work())


def test_a_time_out_that_was_set_last_also_rings_after_an_earlier_one(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_capability(concurrency=2)) as jobs:
            arguments = [{"path": str(tmp_path / name)} for name in ("first", "second")]
            running = [
                await jobs.submit("worker", given, action="until", timeout=seconds)
                for given, seconds in zip(arguments, (0.2, 0.4), strict=True)
            ]

            reports = [(await jobs.wait(job.id)).error for job in running]

            assert [report and report.kind for report in reports] == ["worker.timeout"] * 2

    run(work())
