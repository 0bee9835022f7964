"""The start and the completion of a job, each written by one statement: the same as by a transaction of several."""

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from failwell.jobs.faults import LeaseLost
from failwell.jobs.job import Job, JobRequest, JobState, new_job
from failwell.jobs.store.groups import GroupPart
from failwell.jobs.store.rows import job_values
from failwell.jobs.store.sqlite import SqliteJobs
from failwell.store.event import Event
from tests.jobs.queues import a_capability, a_runtime


def _started() -> Job:
    job = new_job(JobRequest(instance="worker", arguments={"number": 1}), 1.0)
    return job.moved(JobState.RUNNING, attempt=1, started_at=job.submitted_at)


def _start(
    store: SqliteJobs, job: Job, host: int, *, numbered: bool = False, in_one: bool | None = None
) -> Job:
    events = [Event(0, word, 1.0, {}, job.id) for word in ("submitted", "started")]
    done = store.commit([job_values(job, None)], events, host=host, numbered=numbered)
    # One statement does not return the number of the last event.
    assert in_one is None or in_one is (done.last is None)
    return replace(job, key=done.keys[job.id])


def _complete(
    store: SqliteJobs, job: Job, host: int, *, numbered: bool = False, in_one: bool | None = None
) -> None:
    ended = job.moved(JobState.COMPLETED, result={"é": [1, None]}, completed_at=job.submitted_at)
    event = Event(0, "completed", 1.0, {}, job.id)
    done = store.commit([job_values(ended, JobState.RUNNING)], [event], host=host, numbered=numbered)
    assert in_one is None or in_one is (done.last is None)


def _tables(state: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(state / "journal.db")) as raw:
        return {
            table: raw.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
            for table in ("jobs", "job_events")
        }


def _note(state: Path, counts: str | None) -> None:
    with closing(sqlite3.connect(state / "journal.db")) as raw, raw:
        raw.execute(
            "INSERT INTO job_events (type, at, data, counts) VALUES ('noted', 1.0, '{}', ?)", (counts,)
        )


def test_one_statement_writes_what_a_transaction_of_several_writes(tmp_path: Path) -> None:
    jobs = [_started() for _ in range(3)]
    tables: list[dict[str, list[Any]]] = []
    for name, numbered in (("several", True), ("one", False)):
        with closing(SqliteJobs(tmp_path / name)) as store, store.hosting(1) as host:
            store.commit(events=[Event(0, "worker:started", 1.0, {})])
            stored = [_start(store, job, host.key, numbered=numbered, in_one=not numbered) for job in jobs]
            _complete(store, stored[1], host.key, numbered=numbered, in_one=not numbered)
            assert store.counts() == {**dict.fromkeys(store.counts(), 0), "running": 2, "completed": 1}
            assert [event.type for event in store.events(job=jobs[1].id)] == [
                "submitted",
                "started",
                "completed",
            ]
            found = store.find(jobs[1].id)
        assert found is not None
        assert (found.state, found.result) == (JobState.COMPLETED, {"é": [1, None]})
        tables.append(_tables(tmp_path / name))

    assert tables[0] == tables[1]


def test_one_statement_is_what_a_host_writes_while_nobody_listens(tmp_path: Path) -> None:
    """The number of the latest event is asked for again by the first listener."""

    async def scene() -> None:
        async with a_runtime(tmp_path, a_capability()) as runtime:
            await runtime.call("worker", {"value": 1})
            before = runtime.queue.hub.last
            await runtime.call("worker", {"value": 2})
            with runtime.events() as events:
                assert runtime.queue.hub.last == before + 3
                await runtime.call("worker", {"value": 3})
                heard = [await anext(events) for _ in range(3)]
            assert [(event.seq - before, event.type) for event in heard] == [
                (4, "submitted"), (5, "started"), (6, "completed"),
            ]  # fmt: skip

    asyncio.run(scene())


@pytest.mark.parametrize("counts", [None, "no JSON", "[1,2]", "{}"])
def test_counts_that_another_program_damaged_are_counted_again(tmp_path: Path, counts: str | None) -> None:
    with closing(SqliteJobs(tmp_path)) as store, store.hosting(1) as host:
        first = _start(store, _started(), host.key)
        _note(tmp_path, counts)
        _start(store, _started(), host.key)
        _note(tmp_path, counts)
        _complete(store, first, host.key)

        assert store.counts() == {**dict.fromkeys(store.counts(), 0), "running": 1, "completed": 1}


def test_the_last_completion_of_a_group_submits_its_callback(tmp_path: Path) -> None:
    with closing(SqliteJobs(tmp_path)) as store, store.hosting(1) as host:
        before = _start(store, _started(), host.key)
        job = _started()
        part = GroupPart("g", JobRequest(instance="report"), is_last=True)
        key = store.commit([job_values(job, None)], group=part, host=host.key).keys[job.id]
        _complete(store, before, host.key)
        _complete(store, replace(job, key=key), host.key)

        [group] = store.groups()
        assert (group.completed, group.callback_job is not None) == (1, True)


def test_the_completion_of_a_job_that_another_host_owns_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with closing(SqliteJobs(tmp_path)) as store, store.hosting(1) as host:
        job = _start(store, _started(), host.key)
        before = _tables(tmp_path)

        with pytest.raises(LeaseLost):
            _complete(store, job, host.key + 1)

        assert _tables(tmp_path) == before


def test_the_start_of_a_pending_job_writes_every_column_that_changed(tmp_path: Path) -> None:
    """Several of them in one commit, each as one that is read back and written whole."""
    pending = [new_job(JobRequest(instance="worker", arguments={"number": n}), 1.0) for n in range(3)]
    with closing(SqliteJobs(tmp_path)) as store, store.hosting(1) as host:
        blocked = [replace(job, block_reason="`worker` is full") for job in pending]
        done = store.commit([job_values(job, None) for job in blocked], host=host.key)
        started = [
            replace(
                job.moved(JobState.RUNNING, attempt=1, started_at=job.submitted_at),
                key=done.keys[job.id],
                request=replace(job.request, priority=7),
                charged=1,
            )
            for job in pending
        ]
        events = [Event(0, "started", 1.0, {}, job.id) for job in started]
        store.commit([job_values(job, JobState.PENDING) for job in started], events, host=host.key)

        assert [store.find(job.id) for job in started] == started
        assert store.counts() == {**dict.fromkeys(store.counts(), 0), "running": 3}
        assert [[event.type for event in store.events(job=job.id)] for job in started] == [["started"]] * 3


def test_the_start_of_a_job_of_another_host_is_refused(tmp_path: Path) -> None:
    job = new_job(JobRequest(instance="worker"), 1.0)
    with closing(SqliteJobs(tmp_path)) as store, store.hosting(1) as host:
        key = store.commit([job_values(job, None)], host=host.key).keys[job.id]
        started = replace(job.moved(JobState.RUNNING, attempt=1, started_at=job.submitted_at), key=key)

        with pytest.raises(LeaseLost):
            store.commit([job_values(started, JobState.PENDING)], host=host.key + 1)

        assert store.find(job.id) == replace(job, key=key)
