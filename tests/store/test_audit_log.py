"""The audit: numbers without gaps, a chain of hashes, no deletion, no secrets, several writers."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from json import dumps
from pathlib import Path

import pytest

from failwell.errors.fault import Fault
from failwell.errors.redact import register_secret
from failwell.store.audit import FIRST
from failwell.store.sqlite.run_store import SqliteStore


@pytest.fixture
def store(tmp_path: Path):
    opened = SqliteStore(tmp_path)
    yield opened
    opened.close()


def write(store: SqliteStore, count: int) -> None:
    audit = store.audit.bind("run-1", node="answer")
    for number in range(count):
        audit.record("tool:called", tool=f"tool-{number}")


def tamper(store: SqliteStore, *statements: str) -> None:
    """What somebody with the file and a SQLite shell can do."""
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("DROP TRIGGER audit_is_never_changed")
        connection.execute("DROP TRIGGER audit_is_never_deleted")
        for statement in statements:
            connection.execute(statement)


def test_records_are_numbered_without_gaps_and_each_holds_the_hash_of_the_one_before(
    store: SqliteStore,
) -> None:
    write(store, 3)

    records = list(store.audit.records())

    assert [record.seq for record in records] == [1, 2, 3]
    assert [record.previous for record in records] == [FIRST, records[0].hash, records[1].hash]
    assert records[2].data == {"node": "answer", "tool": "tool-2"}
    check = store.audit.verify()
    assert (check.records, check.head, check.problems) == (3, records[2].hash, ())


def test_the_database_refuses_to_change_or_delete_a_record(store: SqliteStore) -> None:
    write(store, 2)

    with closing(sqlite3.connect(store.path)) as connection, connection:
        for statement in ("DELETE FROM audit", "UPDATE audit SET type = 'x' WHERE seq = 1"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(statement)

    assert store.audit.verify().records == 2


def rehashed(store: SqliteStore) -> str:
    """Record 2 with other data and a hash that fits them."""
    record = list(store.audit.records())[1]
    data = '{"tool":"other"}'
    row = [2, record.at, record.type, record.run, data, record.previous]
    digest = sha256(dumps(row, separators=(",", ":")).encode()).hexdigest()
    return f"UPDATE audit SET data = '{data}', hash = '{digest}' WHERE seq = 2"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE audit SET data = '{}' WHERE seq = 2", (2, "record 2 was changed")),
        ("UPDATE audit SET at = at - 1 WHERE seq = 4", (4, "record 4 was changed")),
        ("", (3, "record 3 does not follow record 2")),
        ("DELETE FROM audit WHERE seq = 2", (2, "record 2 is missing")),
        ("DELETE FROM audit WHERE seq <= 2", (1, "records 1 to 2 are missing")),
        ("DELETE FROM audit WHERE seq >= 3", (3, "records 3 to 4 are missing")),
    ],
)
def test_tampering_is_found_and_named_by_its_number(
    store: SqliteStore, change: str, problem: tuple[int, str]
) -> None:
    write(store, 4)

    tamper(store, change or rehashed(store))

    problems = store.audit.verify().problems
    assert [(found.seq, found.problem) for found in problems] == [problem]


def test_a_rewritten_chain_is_found_by_a_hash_that_was_noted_elsewhere(store: SqliteStore) -> None:
    write(store, 2)
    noted = (2, store.audit.verify().head)
    tamper(store, "DELETE FROM audit", "DELETE FROM sqlite_sequence WHERE name = 'audit'")
    assert [found.seq for found in store.audit.verify(noted).problems] == [1]

    write(store, 2)

    assert store.audit.verify().problems == ()
    assert [found.problem for found in store.audit.verify(noted).problems] == [
        "record 2 is not the expected one"
    ]


def test_no_record_holds_a_secret_and_a_long_text_loses_only_the_secret(store: SqliteStore) -> None:
    register_secret("maple-anchor-77")
    lines = "\n".join(f"line {number}: key maple-anchor-77 was refused" for number in range(10))

    store.audit.bind("run-1").record(
        "model:failed", text=lines, note="maple-anchor-77", inner={"a": ["maple-anchor-77"]}
    )

    [record] = store.audit.records()
    assert "maple" not in dumps(record.to_dict())
    assert record.data["text"].count("was refused") == 10
    assert record.data["text"].startswith("line 0: key ")
    assert len(record.data["text"].splitlines()) == 10


def test_threads_and_processes_write_one_chain(store: SqliteStore) -> None:
    code = (
        "import sys; from failwell.store.sqlite.run_store import SqliteStore\n"
        "audit = SqliteStore(sys.argv[1]).audit.bind('run-2')\n"
        "for number in range(50): audit.record('tool:called', number=number)"
    )
    others = [subprocess.Popen([sys.executable, "-c", code, str(store.folder)]) for _ in range(2)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, [store] * 4, [10] * 4))

    assert [process.wait() for process in others] == [0, 0]
    check = store.audit.verify()
    assert (check.records, check.problems) == (140, ())
    assert store.audit.runs("run", 5) in (["run-1", "run-2"], ["run-2", "run-1"])


def test_a_record_that_cannot_be_written_is_a_fault(store: SqliteStore) -> None:
    tamper(store, "DROP TABLE audit")

    with pytest.raises(Fault):
        store.audit.bind("run-1").record("tool:called")


def test_pruned_runs_keep_their_records(store: SqliteStore) -> None:
    store.create("run-1", at=1.0, facts=[("run:started", 1.0, {}), ("run:completed", 2.0, {})])
    write(store, 1)

    assert store.prune(before=10.0).runs == ("run-1",)

    assert [record.run for record in store.audit.records(run="run-1")] == ["run-1"]
