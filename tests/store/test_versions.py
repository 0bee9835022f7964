"""The tables of a database: created once by whoever opens it first; those of a newer version are refused."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from failwell.adapters.describe import describe
from failwell.jobs.store.sqlite import JobStore
from failwell.store.faults import StoreNewer, newer_fault
from failwell.store.sqlite.database import VERSION
from failwell.store.sqlite.run_store import SqliteStore
from failwell.store.sqlite_limits import SqliteLimits
from tests.store.children import finish, start

OPENER = """
import sys
from failwell.store.sqlite.run_store import SqliteStore
input()
print(SqliteStore(sys.argv[1]).runs())
"""


def _tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as raw:
        return {row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_processes_that_open_a_new_database_together_create_its_tables_once(tmp_path: Path) -> None:
    openers = [start(OPENER, tmp_path) for _ in range(4)]

    for opener in openers:
        assert opener.stdin is not None
        opener.stdin.write("\n")
        opener.stdin.flush()

    assert [finish(opener).strip() for opener in openers] == ["[]"] * 4


def test_each_database_has_only_its_own_tables(tmp_path: Path) -> None:
    with closing(JobStore(tmp_path)), closing(SqliteLimits(tmp_path)) as limits:
        limits.read()

    assert {"runs", "jobs", "effects", "audit"} < _tables(tmp_path / "journal.db")
    assert _tables(tmp_path / "limits.db") == {"limits"}


@pytest.mark.parametrize("opened", [SqliteStore, JobStore], ids=["runs", "jobs"])
def test_a_newer_database_is_refused_by_name_and_versions(
    tmp_path: Path, opened: type[SqliteStore | JobStore]
) -> None:
    opened(tmp_path).close()
    path = tmp_path / "journal.db"
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(f"PRAGMA user_version = {VERSION + 1}")

    with pytest.raises(StoreNewer) as refusal:
        opened(tmp_path)

    report = describe(refusal.value)
    assert (report.kind, report.retryable) == ("session.resume_mismatch", False)
    assert str(refusal.value) == str(newer_fault(path, VERSION + 1, VERSION))
    for part in (str(path), f"version {VERSION + 1}", f"up to {VERSION}"):
        assert part in str(refusal.value)
