"""An attempt that was lost with its host is on record, and takes nothing from what the job may try."""

from pathlib import Path

from failwell.jobs.job import JobState
from failwell.jobs.store.sqlite import JobStore
from tests.jobs.queues import a_capability, a_runtime, change_stored, lines, types
from tests.jobs.workers import run


def test_a_job_whose_host_died_under_it_may_still_try_as_often_as_it_was_allowed(tmp_path: Path) -> None:
    async def work() -> None:
        count = tmp_path / "count"
        async with a_runtime(tmp_path, a_capability()) as jobs:
            jobs.pause()
            job = await jobs.submit(
                "worker",
                {"times": 1, "path": str(count), "kind": "transient", "after": 0.01},
                action="fail_first",
                control={"max_attempts": 2},
            )
        store = JobStore(tmp_path / "state")
        change_stored(store, state=JobState.RUNNING, attempt=1, charged=1, started=1.0)
        store.close()
        async with a_runtime(tmp_path, a_capability()) as jobs:
            ended = await jobs.wait(job.id, timeout=20)

            assert ended.state is JobState.COMPLETED
            assert ended.attempt == 3
            assert len(lines(count)) == 2
            assert types(jobs, job) == [
                "submitted",
                "requeued",
                "started",
                "retrying",
                "started",
                "completed",
            ]

    run(work())
