"""What a job costs does not grow with the number of jobs: counted in instructions of SQLite, not in time."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from failwell.jobs.job import JobRequest, JobState, new_job
from failwell.jobs.store.records import Want
from failwell.jobs.store.rows import job_values
from failwell.jobs.store.sqlite import JobStore
from failwell.store.event import Event

CHUNK = 2_000
EACH = 20


def _submit(store: JobStore, many: int) -> None:
    jobs = [new_job(JobRequest(instance="worker", arguments={"number": n}), 1.0) for n in range(many)]
    store.commit(
        [job_values(job, None) for job in jobs], [Event(0, "submitted", 1.0, {}, job.id) for job in jobs]
    )


def _lives(store: JobStore, host: int) -> None:
    """Some jobs from their submission to their end, each with what a host and a client ask of the store."""
    for _ in range(EACH):
        _submit(store, 1)
        [(job, _)] = store.claim(host, {"worker": Want(1)}, 1, 2.0)
        running = job.moved(JobState.RUNNING, attempt=1, charged=1, started=2.0)
        store.commit([job_values(running, "pending")], [Event(0, "started", 2.0, {}, job.id)], host=host)
        ended = running.moved(JobState.COMPLETED, result=1, ended=3.0)
        store.commit([job_values(ended, "running")], [Event(0, "completed", 3.0, {}, job.id)], host=host)
        found = store.find(job.id)
        assert found is not None
        assert replace(found, progress=0.0) == ended
        assert len(store.events(job=job.id)) == 3
        assert store.unowned().instances == ["worker"]
        assert store.counts()["running"] == 0


def _instructions(store: JobStore, work: Callable[[], None]) -> int:
    """How many instructions SQLite executes, in hundreds."""
    ticks: list[None] = []

    def tick() -> int:
        ticks.append(None)
        return 0

    connection = store._database.connection  # pyright: ignore[reportPrivateUsage]
    connection.set_progress_handler(tick, 100)
    work()
    connection.set_progress_handler(None, 0)
    return len(ticks)


@pytest.mark.parametrize("few", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_job_among_ten_times_as_many_costs_no_more(tmp_path: Path, few: int) -> None:
    with closing(JobStore(tmp_path)) as store, store.hosting(1) as host:
        costs: list[int] = []
        stored = 0
        for size in (few, 10 * few):
            while stored < size:
                _submit(store, min(CHUNK, size - stored))
                stored += min(CHUNK, size - stored)
            costs.append(_instructions(store, lambda: _lives(store, host.key)))

    assert 100 < costs[1] <= 1.5 * costs[0], costs
