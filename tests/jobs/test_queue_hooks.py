"""Switching an instance on and off: its hooks are told, and none of them keeps anybody waiting for ever."""

from pathlib import Path

import pytest

from failwell.jobs.job import JobState
from failwell.jobs.manifest import Manifest
from failwell.jobs.queue import attempts as queue_attempts
from failwell.jobs.runtime import Runtime
from tests.jobs.queues import a_runtime, began, types
from tests.jobs.workers import SAMPLES, failure, run, until


def a_hanging_one(stall_after: float = 60.0) -> Manifest:
    return Manifest(
        name="slow", object="timing:Slow", path=(SAMPLES,), stop_grace=0.2, stall_after=stall_after
    )


def failed_hooks(jobs: Runtime) -> list[str]:
    return [event.data["kind"] for event in jobs.store.events() if event.type == "worker:hook_failed"]


@pytest.fixture(autouse=True)
def _short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_attempts, "HOOK_SECONDS", 0.3)


def test_a_disable_hook_that_hangs_ends_its_worker_and_nothing_else(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path) as jobs:
            jobs.register(a_hanging_one(), config={"hangs": "disable"})
            before = await jobs.call("slow", action="pid")
            assert await jobs.disable("slow")
            assert jobs.worker("slow").pid is None
            assert await jobs.enable("slow")

            assert failed_hooks(jobs) == ["worker.timeout"]
            assert await jobs.call("slow", action="pid") != before

    run(work())


def test_an_enable_hook_that_hangs_loses_no_job_that_came_behind_it(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path) as jobs:
            jobs.register(a_hanging_one(), config={"hangs": "enable"})
            running = await jobs.submit("slow", {"path": str(go)}, action="until")
            await began(go)
            job = await jobs.submit("slow", {"value": 7})
            await jobs.disable("slow")
            go.touch()
            await jobs.wait(running.id)
            await jobs.enable("slow")
            ended = await jobs.wait(job.id)

            assert (ended.state, ended.result) == (JobState.COMPLETED, 7)
            assert types(jobs, job).count("failed") == 0
            assert failed_hooks(jobs) == ["worker.timeout"]

    run(work())


def test_a_hook_that_hangs_after_the_last_job_keeps_no_lane(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path) as jobs:
            jobs.register(a_hanging_one(), config={"hangs": "disable"})
            job = await jobs.submit("slow", {"path": str(go)}, action="until")
            await began(go)
            await jobs.disable("slow")
            go.touch()
            await jobs.wait(job.id)
            await until(lambda: failed_hooks(jobs) == ["worker.timeout"])
            await until(lambda: jobs.worker("slow").pid is None)
            await jobs.enable("slow")

            assert await jobs.call("slow", {"value": 1}) == 1

    run(work())


@pytest.mark.slow
def test_a_change_of_configuration_that_hangs_is_told_and_changes_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path) as jobs:
            jobs.register(a_hanging_one(stall_after=0.4), config={"hangs": ""})
            before = await jobs.call("slow", action="pid")
            fault = await failure(jobs.configure("slow", {"hangs": "configure"}))

            assert str(fault.kind) == "worker.stalled"
            assert jobs.worker("slow").config == {"hangs": ""}
            assert await jobs.call("slow", action="pid") != before

    run(work())


def test_a_change_of_configuration_waits_for_a_job_that_shows_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path, a_hanging_one(stall_after=0.4)) as jobs:
            before = await jobs.call("slow", action="pid")
            job = await jobs.submit("slow", {"seconds": 1.2}, action="nap")
            await until(lambda: bool(jobs.worker("slow").in_flight))
            await jobs.configure("slow", {"hangs": "never"})
            ended = await jobs.wait(job.id)

            assert (ended.state, ended.result) == (JobState.COMPLETED, before)
            assert await jobs.call("slow", action="pid") == before

    run(work())
