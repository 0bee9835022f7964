"""What a host commits: starts, completions, counts, and what belongs to another host."""

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
from failwell.jobs.store.sqlite import JobStore
from failwell.store.event import Event


def _started() -> Job:
    job = new_job(JobRequest(instance="worker", arguments={"number": 1}), 1.0)
    return job.moved(JobState.RUNNING, attempt=1, started=job.submitted)


def _start(store: JobStore, job: Job, host: int) -> Job:
    events = [Event(0, word, 1.0, {}, job.id) for word in ("submitted", "started")]
    done = store.commit([job_values(job, None)], events, host=host)
    return replace(job, key=done.keys[job.id])


def _complete(store: JobStore, job: Job, host: int) -> None:
    ended = job.moved(JobState.COMPLETED, result={"é": [1, None]}, ended=job.submitted)
    event = Event(0, "completed", 1.0, {}, job.id)
    store.commit([job_values(ended, "running")], [event], host=host)


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


@pytest.mark.parametrize("counts", [None, "no JSON", "[1,2]", "{}"])
def test_counts_that_another_program_damaged_are_counted_again(tmp_path: Path, counts: str | None) -> None:
    with closing(JobStore(tmp_path)) as store, store.hosting(1) as host:
        first = _start(store, _started(), host.key)
        _note(tmp_path, counts)
        _start(store, _started(), host.key)
        _note(tmp_path, counts)
        _complete(store, first, host.key)

        assert store.counts() == {**dict.fromkeys(store.counts(), 0), "running": 1, "completed": 1}


def test_the_last_completion_of_a_group_submits_its_callback(tmp_path: Path) -> None:
    with closing(JobStore(tmp_path)) as store, store.hosting(1) as host:
        before = _start(store, _started(), host.key)
        job = _started()
        part = GroupPart("g", JobRequest(instance="report"), is_last=True)
        key = store.commit([job_values(job, None)], group=part, host=host.key).keys[job.id]
        _complete(store, before, host.key)
        _complete(store, replace(job, key=key), host.key)

        [group] = store.groups()
        assert (group.completed, group.callback_job is not None) == (1, True)


def test_the_completion_of_a_job_that_another_host_owns_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with closing(JobStore(tmp_path)) as store, store.hosting(1) as host:
        job = _start(store, _started(), host.key)
        before = _tables(tmp_path)

        with pytest.raises(LeaseLost):
            _complete(store, job, host.key + 1)

        assert _tables(tmp_path) == before


def test_the_start_of_a_pending_job_writes_every_column_that_changed(tmp_path: Path) -> None:
    """Several of them in one commit, each as one that is read back and written whole."""
    pending = [new_job(JobRequest(instance="worker", arguments={"number": n}), 1.0) for n in range(3)]
    with closing(JobStore(tmp_path)) as store, store.hosting(1) as host:
        blocked = [replace(job, block_reason="`worker` is full") for job in pending]
        done = store.commit([job_values(job, None) for job in blocked], host=host.key)
        started = [
            replace(
                job.moved(JobState.RUNNING, attempt=1, started=job.submitted),
                key=done.keys[job.id],
                request=replace(job.request, priority=7),
                charged=1,
            )
            for job in pending
        ]
        events = [Event(0, "started", 1.0, {}, job.id) for job in started]
        store.commit([job_values(job, "pending") for job in started], events, host=host.key)

        assert [store.find(job.id) for job in started] == started
        assert store.counts() == {**dict.fromkeys(store.counts(), 0), "running": 3}
        assert [[event.type for event in store.events(job=job.id)] for job in started] == [["started"]] * 3


def test_the_start_of_a_job_of_another_host_is_refused(tmp_path: Path) -> None:
    job = new_job(JobRequest(instance="worker"), 1.0)
    with closing(JobStore(tmp_path)) as store, store.hosting(1) as host:
        key = store.commit([job_values(job, None)], host=host.key).keys[job.id]
        started = replace(job.moved(JobState.RUNNING, attempt=1, started=job.submitted), key=key)

        with pytest.raises(LeaseLost):
            store.commit([job_values(started, "pending")], host=host.key + 1)

        assert store.find(job.id) == replace(job, key=key)
