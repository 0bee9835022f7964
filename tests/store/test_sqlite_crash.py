"""The journal in SQLite when processes die, write side by side, or come at the same time."""

import sqlite3
from collections import Counter
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from failwell.store.faults import Locked
from failwell.store.sqlite.run_store import SqliteStore
from tests.store.building import a_fact, a_run, completed
from tests.store.children import finish, kill, next_line, start

WRITER = """
import sys
from itertools import count
from failwell.store.sqlite.run_store import SqliteStore
store = SqliteStore(sys.argv[1])
with store.lock("r1"):
    for batch in count(store.run("r1").events):
        size = 12 if batch % 5 == 0 else 3
        pad = "x" * (batch * 37 % 3000)
        facts = [("node:completed", 1.0, {"batch": batch, "size": size, "pad": pad})] * size
        print(store.append("r1", facts)[-1].seq, flush=True)
"""

HOLDER = """
import subprocess, sys
from failwell.store.sqlite.run_store import SqliteStore
store = SqliteStore(sys.argv[1])
with store.lock("r1"):
    left = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    print(left.pid, flush=True)
    input()
"""

OPENER = """
import sys
from failwell.store.sqlite.run_store import SqliteStore
input()
store = SqliteStore(sys.argv[1])
store.create(sys.argv[2], at=1.0, facts=[("run:started", 1.0, {})])
print(store.append(sys.argv[2], [("run:completed", 2.0, {})])[0].seq)
"""

COUNTER = """
import sys
from failwell.store.sqlite.run_store import SqliteStore
store = SqliteStore(sys.argv[1])
for number in range(int(sys.argv[2])):
    store.append("r1", [("node:started", 1.0, {"batch": number})] * 3)
store.append("r1", [("run:completed", 2.0, {})])
"""

PASSER_BY = """
import sys
from failwell.store.sqlite.run_store import SqliteStore
store = SqliteStore(sys.argv[1])
print(store.run("r1").events)
store.close()
"""


@pytest.fixture
def store(tmp_path: Path):
    with closing(SqliteStore(tmp_path / "state")) as made:
        yield made


@pytest.mark.acceptance("relavium 40")
@pytest.mark.parametrize("kills", [6, pytest.param(30, marks=pytest.mark.slow)])
def test_a_writer_killed_in_the_middle_leaves_no_gap_and_no_half_batch(
    store: SqliteStore, kills: int
) -> None:
    a_run(store)
    told = 0

    for attempt in range(kills):
        writer = start(WRITER, store.folder)
        for _ in range(1 + attempt * 7 % 40):
            told = int(next_line(writer))
        kill(writer)

    events = list(store.read("r1"))
    batches = Counter((event.data["batch"], event.data["size"]) for event in events[1:])
    assert [event.seq for event in events] == list(range(len(events)))
    assert len(events) > told
    assert all(found == size for (_, size), found in batches.items())
    with closing(sqlite3.connect(store.path)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.acceptance("relavium 60")
def test_the_second_process_is_told_who_writes_and_gets_the_run_when_that_one_dies(
    store: SqliteStore,
) -> None:
    a_run(store)
    holder = start(HOLDER, store.folder)
    next_line(holder)

    with pytest.raises(Locked) as refusal, store.lock("r1"):
        pass
    kill(holder)
    with store.lock("r1"):
        told = store.append("r1", [a_fact()])

    assert refusal.value.pid == holder.pid
    assert refusal.value.since is not None
    assert f"process {holder.pid}" in str(refusal.value)
    assert refusal.value.since in str(refusal.value)
    assert told[0].seq == 1


def test_what_a_writer_started_does_not_keep_its_lock(store: SqliteStore) -> None:
    import os
    import signal

    a_run(store)
    holder = start(HOLDER, store.folder)
    left_behind = int(next_line(holder))
    kill(holder)

    try:
        os.kill(left_behind, 0)
        assert not store.is_locked("r1")
    finally:
        os.kill(left_behind, signal.SIGKILL)


def test_two_processes_that_ignore_the_lock_still_leave_no_gap(store: SqliteStore) -> None:
    a_run(store)
    writers = [start(WRITER.replace('with store.lock("r1"):', "if True:"), store.folder) for _ in range(2)]

    for _ in range(60):
        for writer in writers:
            next_line(writer)
    for writer in writers:
        kill(writer)

    assert [event.seq for event in store.read("r1")] == list(range(store.run("r1").events))


def test_a_reader_sees_whole_batches_while_another_process_writes(store: SqliteStore) -> None:
    a_run(store)
    writer = start(COUNTER, store.folder, "400")

    lengths: list[int] = []
    while not lengths or store.run("r1").ended is None:
        events = list(store.read("r1"))
        lengths.append(len(events))
        assert [event.seq for event in events] == list(range(len(events)))
    finish(writer)

    assert all((length - 1) % 3 == 0 for length in lengths if length < 1202)
    assert len(list(store.read("r1"))) == 1202


def test_a_follower_in_another_process_gets_everything_once_and_leaves_nothing_behind(
    store: SqliteStore,
) -> None:
    a_run(store)
    tail = store.tail("r1")
    first = next(tail)
    writer = start(COUNTER, store.folder, "50")

    seen = [first.seq, *(event.seq for event in tail)]
    finish(writer)

    assert seen == list(range(152))
    assert list((store.folder / "runs" / "r1" / "watch").iterdir()) == []


def test_processes_that_come_at_the_same_time_make_one_journal(tmp_path: Path) -> None:
    names = [f"r{number}" for number in range(5)]
    children = [start(OPENER, tmp_path / "state", name) for name in names]

    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    told = [finish(child).strip() for child in children]

    assert told == ["1"] * 5
    with closing(SqliteStore(tmp_path / "state")) as store:
        assert sorted(run.id for run in store.runs(statuses=["completed"])) == names


def test_a_writer_that_was_overtaken_goes_on_with_the_right_number(store: SqliteStore) -> None:
    a_run(store)
    with closing(SqliteStore(store.folder)) as other:
        taken: list[int] = []
        for turn, number in zip([store, store, other, store, other, other, store], count(1), strict=False):
            taken += [event.seq for event in turn.append("r1", [a_fact(number=number)])]
        other.append("r1", [completed()])

        with pytest.raises(Exception, match="ended with `run:completed`"):
            store.append("r1", [a_fact()])

    assert taken == [1, 2, 3, 4, 5, 6, 7]


def test_opening_the_journal_twice_does_not_let_another_process_take_the_log_away(store: SqliteStore) -> None:
    a_run(store)
    SqliteStore(store.folder).close()
    before = (store.folder / "journal.db-wal").stat().st_ino
    finish(start(PASSER_BY, store.folder))

    store.append("r1", [a_fact()])

    # Whoever closes last removes the log; a process that finds our lock gone would take itself for the last.
    assert (store.folder / "journal.db-wal").stat().st_ino == before
    assert finish(start(PASSER_BY, store.folder)).strip() == "2"
