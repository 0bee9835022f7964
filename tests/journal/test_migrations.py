"""Databases of other versions: earlier ones are migrated and keep what they hold, newer ones are refused."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from failwell.adapters.describe import describe
from failwell.jobs.store.sqlite import SqliteJobs
from failwell.store.faults import StoreNewer, newer_fault
from failwell.store.sqlite.database import Database, migrate, migrations
from failwell.store.sqlite.run_store import SqliteStore
from tests.journal.building import completed
from tests.journal.children import finish, start

FIRST_RUN = """
INSERT INTO runs (id, subject, workflow, file, digest, started, status, pid, host, metadata)
    VALUES ('r1', 'run', 'nightly', 'flow.yaml', 'd', 1.0, 'running', 1, 'h', '{}');
INSERT INTO events (id, type, at, data) VALUES (4294967296, 'run:started', 1.0, '{"inputs":{}}');
INSERT INTO events (id, type, at, data) VALUES (4294967297, 'node:started', 2.0, '{"path":"build"}');
"""
OPENER = """
import sys
from failwell.store.sqlite.run_store import SqliteStore
input()
print(SqliteStore(sys.argv[1]).run("r1").events)
"""


def a_first_version(folder: Path) -> Path:
    """A database that has the first migration alone, with a run in it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "journal.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        migrate(raw, path, migrations()[:1])
        raw.executescript(FIRST_RUN)
    return path


def schema(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute("SELECT type, name FROM sqlite_master ORDER BY type, name").fetchall()


def test_a_run_of_the_first_version_is_kept_and_goes_on(tmp_path: Path) -> None:
    path = a_first_version(tmp_path / "old")
    with closing(SqliteStore(tmp_path / "old")) as store:
        read = [(event.seq, event.type) for event in store.read("r1")]
        status = store.run("r1").status
        ended = store.append("r1", [completed()])

    assert read == [(0, "run:started"), (1, "node:started")]
    assert (status, ended[0].seq) == ("interrupted", 2)
    Database(tmp_path / "new" / "journal.db").close()
    assert schema(path) == schema(tmp_path / "new" / "journal.db")


def test_the_job_queue_migrates_the_same_file(tmp_path: Path) -> None:
    a_first_version(tmp_path)

    with closing(SqliteJobs(tmp_path)) as jobs, closing(SqliteStore(tmp_path)) as store:
        assert jobs.counts()["pending"] == 0
        assert store.run("r1").events == 2


def test_processes_that_open_an_old_database_together_migrate_it_once(tmp_path: Path) -> None:
    a_first_version(tmp_path)
    openers = [start(OPENER, tmp_path) for _ in range(4)]

    for opener in openers:
        assert opener.stdin is not None
        opener.stdin.write("\n")
        opener.stdin.flush()

    assert [finish(opener).strip() for opener in openers] == ["2"] * 4


@pytest.mark.parametrize("opened", [SqliteStore, SqliteJobs], ids=["runs", "jobs"])
def test_a_newer_database_is_refused_by_name_and_versions(
    tmp_path: Path, opened: type[SqliteStore | SqliteJobs]
) -> None:
    path = a_first_version(tmp_path)
    latest = migrations()[-1].number
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(f"PRAGMA user_version = {latest + 1}")

    with pytest.raises(StoreNewer) as refusal:
        opened(tmp_path)

    report = describe(refusal.value)
    assert (report.kind, report.retryable) == ("session.resume_mismatch", False)
    assert str(refusal.value) == str(newer_fault(path, latest + 1, latest))
    for part in (str(path), f"version {latest + 1}", f"up to {latest}"):
        assert part in str(refusal.value)


def test_each_migration_has_a_number_of_its_own() -> None:
    numbers = [step.number for step in migrations()]

    assert numbers == list(range(1, len(numbers) + 1))
