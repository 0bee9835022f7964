"""Choosing stored jobs by their errors: damaged rows, and the index that is used."""

import sqlite3
from contextlib import closing
from pathlib import Path

from failwell.adapters.describe import describe
from failwell.jobs.batch import Bulk
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.store.job_filter import JobFilter, condition
from failwell.jobs.store.sqlite import JobStore

ROW = """INSERT INTO jobs (key, id, instance, state, priority, submitted, ended, attempt, charged, losses, request, error)
    VALUES (?, ?, 'worker', ?, 0, 1.0, ?, 1, 1, 0, '{"arguments":{}}', ?)"""


def _a_store_with_a_damaged_row(folder: Path) -> None:
    JobStore(folder).close()
    report = describe(ValueError("no"))
    with closing(sqlite3.connect(folder / "journal.db", isolation_level=None)) as raw:
        raw.execute(ROW, (1, "j1", "failed", 5.0, report.to_json()))
        raw.execute(ROW, (2, "j2", "failed", 6.0, "{broken"))
        raw.execute("UPDATE jobs SET request = '{broken' WHERE key = 2")
        raw.execute(ROW, (3, "j3", "completed", 7.0, None))


def test_the_kind_of_a_row_is_found_and_a_damaged_row_has_none(tmp_path: Path) -> None:
    _a_store_with_a_damaged_row(tmp_path / "state")
    (tmp_path / "worker.toml").write_text('name = "worker"\nobject = "a:b"\n')
    registry = CapabilityRegistry(tmp_path / "registry")
    registry.add(tmp_path / "worker.toml")
    with closing(JobStore(tmp_path / "state")) as store:
        bulk = Bulk(QueueClient(store, registry))
        totals = store.totals(JobFilter())
        chosen = store.select(JobFilter(kinds=("internal.",), since=4.0, until=6.0))
        result = bulk.retry(bulk.plan_retry(JobFilter()))

        assert {(total.state, total.kind, total.jobs) for total in totals} == {
            ("failed", "internal.bug", 1),
            ("failed", None, 1),
            ("completed", None, 1),
        }
        assert [job.id for job in chosen] == ["j1"]
        # A damaged row has lost its arguments, so it is not submitted again without them.
        assert (len(result.jobs), result.skipped) == (1, ("j2",))
        assert store.counts()["pending"] == 1


def test_a_choice_by_kind_or_fingerprint_uses_an_index(tmp_path: Path) -> None:
    with closing(JobStore(tmp_path)):
        pass
    with closing(sqlite3.connect(tmp_path / "journal.db")) as raw:

        def plan(chosen: JobFilter) -> str:
            where, values = condition(chosen)
            return str(
                raw.execute(f"EXPLAIN QUERY PLAN SELECT id FROM jobs WHERE {where}", values).fetchall()
            )

        by_kind = plan(JobFilter(states=("failed",), kinds=("provider.rate_limited",)))
        by_fingerprint = plan(JobFilter(fingerprint="f1-ab"))
        retried = plan(JobFilter(states=("failed",), is_retried=True))

    assert "USING INDEX jobs_by_kind" in by_kind
    assert "USING INDEX jobs_by_fingerprint" in by_fingerprint
    assert "jobs_by_once" in retried
