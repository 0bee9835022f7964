"""What the journal in SQLite says when its file, its disk or its version is not as it should be."""

import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from failwell.adapters.describe import describe
from failwell.errors.fault import Fault
from failwell.errors.kind_registry import kind
from failwell.store.faults import StoreCorrupt, StoreFull, StoreNewer, StoreUnavailable, sqlite_fault
from failwell.store.sqlite.database import (
    CHECKPOINT_EVERY,
    Checkpointer,
)
from failwell.store.sqlite.run_store import SqliteStore
from tests.store.building import a_fact, a_run, completed
from tests.store.children import ROOT, finish, start

FILLER = """
import sys
from resource import RLIMIT_FSIZE, getrlimit, setrlimit
from failwell.store.sqlite.run_store import SqliteStore
store = SqliteStore(sys.argv[1])
store.create("r1", at=1.0, facts=[("run:started", 1.0, {})])
most, hard = getrlimit(RLIMIT_FSIZE)
setrlimit(RLIMIT_FSIZE, (400_000, hard))
told = 0
try:
    while True:
        told = store.append("r1", [("node:completed", 1.0, {"pad": "x" * 2000})] * int(sys.argv[2]))[-1].seq
except Exception as error:
    print(type(error).__name__, error.kind)
print(told, store.run("r1").events)
setrlimit(RLIMIT_FSIZE, (most, hard))
print(store.append("r1", [("node:completed", 1.0, {})])[0].seq)
"""


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def a_journal(folder: Path, events: int = 3) -> Path:
    with closing(SqliteStore(folder)) as store:
        a_run(store, "r1", *[a_fact(pad="x" * 500)] * events)
        return store.path


@pytest.mark.parametrize("size", [3, 20], ids=["one statement", "a transaction"])
def test_a_full_disk_is_said_to_be_full_and_nothing_is_lost_or_halved(tmp_path: Path, size: int) -> None:
    fault, counts, following, *_ = finish(start(FILLER, tmp_path / "state", str(size))).splitlines()

    told, events = map(int, counts.split())
    assert fault == "StoreFull resource.disk"
    assert events == told + 1
    assert int(following) == events
    assert sorted(path.name for path in (tmp_path / "state").iterdir() if path.name.startswith(".")) == []


def test_a_journal_kept_busy_by_another_is_unavailable_and_worth_another_try(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path, busy=0.01)) as store:
        a_run(store)
        with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailable) as refusal:
                store.append("r1", [a_fact()])
            read_meanwhile = store.run("r1").events
            other.execute("ROLLBACK")

        report = describe(refusal.value)
        assert report.retryable
        assert kind(report.kind).policy == "store"
        assert read_meanwhile == 1
        assert store.append("r1", [a_fact()])[0].seq == 1


def test_a_journal_that_may_not_be_written_is_not_tried_again(tmp_path: Path) -> None:
    path = a_journal(tmp_path)
    with (
        closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as read_only,
        pytest.raises(sqlite3.Error) as refusal,
    ):
        read_only.execute("DELETE FROM runs")

    fault = sqlite_fault(refusal.value, path)

    assert fault.kind == "session.store_unavailable"
    assert not describe(fault).retryable
    assert "--store DIR" in str(fault.user_action)


@pytest.mark.parametrize("content", [b"not a database, but long enough to be read as the head of one" * 20])
def test_a_file_that_is_no_journal_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "journal.db"
    path.write_bytes(content)

    with pytest.raises(StoreCorrupt, match="damaged, or is no journal"):
        SqliteStore(tmp_path)

    assert path.read_bytes() == content


def test_a_damaged_journal_is_said_to_be_damaged(tmp_path: Path) -> None:
    path = a_journal(tmp_path, events=200)
    with path.open("r+b") as file:
        file.seek(4096 * 12)
        file.write(b"\xff" * 4096 * 12)

    with pytest.raises(StoreCorrupt) as refusal, closing(SqliteStore(tmp_path)) as store:
        list(store.read("r1"))

    assert refusal.value.kind == "session.store_corrupt"


def test_an_event_that_is_no_json_any_more_is_damage(tmp_path: Path) -> None:
    path = a_journal(tmp_path)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE events SET data = '{' WHERE seq = 2")

    with closing(SqliteStore(tmp_path)) as store, pytest.raises(StoreCorrupt) as refusal:
        list(store.read("r1"))

    assert refusal.value.details == {"seq": 2}


def test_a_closed_store_says_so_in_its_own_words(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    a_run(store)
    store.close()

    with pytest.raises(StoreUnavailable):
        store.append("r1", [a_fact()])


def test_a_state_folder_that_is_a_file_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")

    with pytest.raises(Fault) as refusal:
        SqliteStore(tmp_path / "state")

    assert refusal.value.kind == "session.store_unavailable"
    assert "FAILWELL_STORE" in str(refusal.value.user_action)


def test_a_journal_of_a_newer_version_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = a_journal(tmp_path)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA user_version = 999")
        raw.execute("PRAGMA journal_mode = DELETE")
    before = path.read_bytes()

    with pytest.raises(StoreNewer, match="version 999") as refusal:
        SqliteStore(tmp_path)

    assert "pip install -U failwell" in str(refusal.value.user_action)
    assert path.read_bytes() == before


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_only_the_owner_can_read_what_is_recorded(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        with closing(SqliteStore(tmp_path / "state")) as store, store.lock("r1"):
            a_run(store)
            folders = [store.folder, store.folder / "runs", store.folder / "runs" / "r1"]
            files = [path for path in store.folder.rglob("*") if path.is_file()]
            assert {path.name for path in files} >= {"journal.db", "journal.db-wal", "journal.db-shm", "lock"}
            assert {mode_of(folder) for folder in folders} == {0o700}
            assert {mode_of(path) for path in files} == {0o600}
    finally:
        os.umask(before)


def test_a_journal_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = a_journal(tmp_path)
    path.chmod(0o644)

    SqliteStore(tmp_path).close()

    assert mode_of(path) == 0o600


def test_opening_a_journal_loads_no_event_loop(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom failwell.store.sqlite.run_store import SqliteStore\n"
        "SqliteStore(sys.argv[1]).close()\nprint({'asyncio', 'rich', 'yaml'} & set(sys.modules))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )

    assert done.stdout.strip() == "set()"


def test_what_was_written_moves_from_the_log_into_the_database_by_itself(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path)) as store:
        a_run(store, "r1", *[a_fact(pad="x" * 400)] * 500)
        before = store.path.stat().st_size
        moving = Checkpointer(store.path)

        moving.count(CHECKPOINT_EVERY - 1)
        moving.close()
        too_early = store.path.stat().st_size
        moving.count(1)
        moving.close()

        assert too_early == before
        assert store.path.stat().st_size > before + 200_000


def test_pruning_gives_space_back_and_leaves_what_stays_readable(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path)) as store:
        a_run(store, "old", *[a_fact(pad="x" * 4_000)] * 1_000, completed())
        a_run(store, "new", *[a_fact(pad="y" * 400)] * 10)
        with closing(SqliteStore(tmp_path)) as other:
            other.append("new", [a_fact()])
            store.prune()
            size = store.path.stat().st_size

            assert other.append("new", [a_fact()])[0].seq == 12
        assert [event.seq for event in store.read("new")] == list(range(13))
    assert size < 200_000


def test_a_fault_for_want_of_space_names_what_frees_some(tmp_path: Path) -> None:
    class Full(sqlite3.OperationalError):
        sqlite_errorname = "SQLITE_FULL"

    fault = sqlite_fault(Full(), tmp_path / "journal.db")

    assert isinstance(fault, StoreFull)
    assert f"`failwell runs prune --store {tmp_path}`" in str(fault.user_action)
