"""The log of the queue: events of a job by its row, counts by the latest event, and how much a commit writes."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from failwell.jobs.job import Job, JobRequest, JobState, new_job
from failwell.jobs.store.rows import job_values
from failwell.jobs.store.sqlite import JobStore
from failwell.store.event import Event

_FRAME = 4096 + 24
"""Bytes of a page in the write-ahead log."""


def _submitted(store: JobStore, *jobs: Job, host: int | None = None) -> list[Job]:
    events = [Event(0, "submitted", 1.0, {}, job.id) for job in jobs]
    store.commit([job_values(job, None) for job in jobs], events, host=host)
    return [found for job in jobs if (found := store.find(job.id)) is not None]


def _job(number: int = 0) -> Job:
    return new_job(JobRequest(instance="worker", arguments={"number": number}), 1.0)


def _types(store: JobStore, job: str, after: int = 0) -> list[str]:
    return [event.type for event in store.events(after, job=job)]


def test_the_events_of_a_job_are_those_of_all_commits_also_without_its_row(tmp_path: Path) -> None:
    with closing(JobStore(tmp_path / "state")) as store:
        first, second = _submitted(store, _job(1), _job(2))
        running = first.moved(JobState.RUNNING, attempt=1)
        store.commit(
            [job_values(running, first.state.value)],
            [Event(0, "reordered", 2.0, {}, first.id), Event(0, "started", 2.0, {}, first.id)],
        )
        store.commit(events=[Event(0, "noted", 3.0, {}, second.id), Event(0, "worker:started", 3.0, {})])

        assert _types(store, first.id) == ["submitted", "reordered", "started"]
        assert _types(store, first.id, after=3) == ["started"]
        assert _types(store, second.id) == ["submitted", "noted"]
        assert [event.job for event in store.events()] == [
            first.id, second.id, first.id, first.id, second.id, "",
        ]  # fmt: skip


def test_counts_are_exact_without_an_event_and_after_another_program_wrote_the_latest_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state" / "journal.db"
    with closing(JobStore(tmp_path / "state")) as store:
        assert set(store.counts().values()) == {0}
        [job] = _submitted(store, _job())
        store.commit([job_values(job.moved(JobState.CANCELLED), job.state.value)])
        assert {state for state, number in store.counts().items() if number} == {"cancelled"}
        with closing(sqlite3.connect(path)) as raw, raw:
            raw.execute("INSERT INTO job_events (type, at, data) VALUES ('noted', 1.0, '{}')")
        assert store.counts()["cancelled"] == 1
        _submitted(store, _job())
        assert (store.counts()["cancelled"], store.counts()["pending"]) == (1, 1)


def test_a_job_of_a_host_writes_three_pages_at_its_start_and_two_at_its_end(tmp_path: Path) -> None:
    """One page each of jobs, ids and events; an index or a table more would cost every job a page."""
    log = tmp_path / "state" / "journal.db-wal"
    with closing(JobStore(tmp_path / "state")) as store, store.hosting(1) as host:
        pages: Sequence[int] = ()
        # The first commits also change the sizes of the tables.
        for number in range(3):
            new = _job(number).moved(JobState.RUNNING, attempt=1)
            before = log.stat().st_size
            _events = [Event(0, word, 1.0, {}, new.id) for word in ("submitted", "started")]
            key = store.commit([job_values(new, None)], _events, host=host.key).keys[new.id]
            between = log.stat().st_size
            ended = new.moved(JobState.COMPLETED, result=number, key=key)
            store.commit(
                [job_values(ended, "running")],
                [Event(0, "completed", 2.0, {}, new.id)],
                host=host.key,
            )
            pages = ((between - before) // _FRAME, (log.stat().st_size - between) // _FRAME)

        assert pages == (3, 2)
