"""Two workers in processes of their own share jobs; one is killed, and nothing is lost."""

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("temporalio")

from failwell.temporal import AsyncClient
from tests.temporal.worker_process import wait_until, worker_process
from tests.temporal_server import server, task_queue

JOBS = 500
KILLED_AFTER = 120


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_500_jobs_of_two_capabilities_complete_although_one_of_two_workers_is_killed(tmp_path: Path) -> None:
    queue = task_queue()
    address = server().address
    numbers = range(JOBS // 2)

    async def work() -> tuple[list[int], list[str]]:
        async with AsyncClient(address=address, task_queue=queue) as client:
            doubles = await client.submit_many("double", [{"number": number} for number in numbers])
            shouts = await client.submit_many("shout", [{"text": f"job {number}"} for number in numbers])
            waits = [asyncio.ensure_future(job.result()) for job in (*doubles, *shouts)]
            while sum(wait.done() for wait in waits) < KILLED_AFTER:
                await asyncio.wait([wait for wait in waits if not wait.done()], return_when="FIRST_COMPLETED")
            second.kill()
            results = await asyncio.gather(*waits)
            return results[: len(doubles)], results[len(doubles) :]

    with (
        worker_process(address, queue, tmp_path / "first") as first,
        worker_process(address, queue, tmp_path / "second") as second,
    ):
        doubled, shouted = asyncio.run(work())
        assert first.process.poll() is None

    assert doubled == [2 * number for number in numbers]
    assert shouted == [f"JOB {number}" for number in numbers]
    # Both had a share before the second one died.
    assert all(_jobs_in(tmp_path / name) for name in ("first", "second"))


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_job_whose_worker_is_killed_is_started_on_another_machine(tmp_path: Path) -> None:
    queue, mark, file = task_queue(), tmp_path / "mark", tmp_path / "file"

    async def submit() -> str:
        async with AsyncClient(address=server().address, task_queue=queue) as client:
            job = await client.submit("wait_for", file=str(file), mark=str(mark))
            await asyncio.to_thread(wait_until, mark.exists)
            first.kill()
            file.touch()
            with worker_process(server().address, queue, tmp_path / "second"):
                return await job.result(100)

    with worker_process(server().address, queue, tmp_path / "first") as first:
        result = asyncio.run(submit())

    assert result == "done"
    assert len(mark.read_text().split()) == 2


def _jobs_in(folder: Path) -> int:
    """How many jobs the store of a worker has completed."""
    from failwell.jobs.store.sqlite import JobStore

    store = JobStore(folder)
    try:
        return store.counts()["completed"]
    finally:
        store.close()
