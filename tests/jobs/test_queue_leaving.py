"""Leaving while something is under way: an instance that is unloaded, a queue that stops, a caller who goes."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from failwell.errors.faults import CapabilityNotLoadedError
from failwell.jobs.faults import QueueStopped
from failwell.jobs.job import JobState
from failwell.jobs.workers.protocol import WorkerState
from failwell.jobs.workers.supervisor import SupervisedWorker
from tests.jobs.queues import a_capability, a_gpu, a_runtime, began, types
from tests.jobs.workers import run, until


@pytest.mark.parametrize("measured", [True, False])
def test_unloading_an_instance_that_is_being_started_puts_its_job_back_and_frees_the_lane(
    tmp_path: Path, measured: bool
) -> None:
    async def work() -> None:
        slow = tmp_path / "slow"
        async with a_runtime(tmp_path, a_capability(), measured=measured, lanes=1) as jobs:
            jobs.register(a_capability("starter", "SlowStart"), config={"slow_if": str(slow)})
            if measured:
                await jobs.call("starter", action="pid")
                await jobs.worker("starter").stop()
            slow.touch()
            job = await jobs.submit("starter")
            await until(lambda: jobs.worker("starter").state is WorkerState.STARTING)
            await jobs.unload("starter")

            assert jobs.job(job.id).state in (JobState.PENDING, JobState.WAITING)
            assert jobs.queue.state.running == 0
            assert await asyncio.wait_for(jobs.call("worker", {"value": 1}), 20) == 1
            with pytest.raises(CapabilityNotLoadedError):
                await jobs.submit("starter")
            slow.unlink()
            jobs.register(a_capability("starter", "SlowStart"), config={"slow_if": str(slow)})
            assert (await jobs.wait(job.id, timeout=20)).state is JobState.COMPLETED

    run(work())


def test_unloading_twice_at_once_while_a_job_runs_is_one_unloading(tmp_path: Path) -> None:
    async def work() -> None:
        go = tmp_path / "go"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            job = await jobs.submit("worker", {"path": str(go)}, action="until")
            await began(go)
            await asyncio.gather(jobs.unload("worker"), jobs.unload("worker"))

            assert "worker" not in jobs.instances
            assert jobs.queue.state.running == 0
            assert types(jobs, job)[:3] == ["submitted", "started", "retrying"]

    run(work())


def test_who_begins_to_wait_while_the_workers_are_being_stopped_is_told_so(tmp_path: Path) -> None:
    async def work() -> None:
        gpu = a_gpu(tmp_path)
        async with a_runtime(tmp_path, measured=False, drain=0.1) as jobs:
            jobs.register(a_capability("model", "Stubborn", stop_grace=1.0), config={"gpu": str(gpu)})
            await jobs.call("model", action="pid")
            jobs.pause()
            job = await jobs.submit("model", action="pid")
            early = asyncio.create_task(jobs.drained())
            worker, inside = jobs.worker("model"), jobs
            late = asyncio.create_task(_after(worker, lambda: inside.wait(job.id)))
            drained = asyncio.create_task(_after(worker, inside.drained))
        for waiting in (early, late, drained):
            with pytest.raises(QueueStopped):
                await asyncio.wait_for(waiting, 5)

    run(work())


async def _after(worker: SupervisedWorker, what: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    await until(lambda: worker.state is WorkerState.STOPPING)
    return await what()
