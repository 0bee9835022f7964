"""Runs whose process died: what their status is, and how they are closed."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from failwell.errors.report import ErrorReport
from failwell.store.faults import UnknownRun
from failwell.store.run_store import Store
from failwell.store.sqlite.run_store import SqliteStore
from failwell.store.status import close_interrupted
from tests.store.building import STORES, a_fact, a_run, completed
from tests.store.children import kill, next_line, start

DYING = """
import sys
from failwell.store.sqlite.run_store import SqliteStore
store = SqliteStore(sys.argv[1])
with store.lock("r1"):
    store.create("r1", at=1.0, facts=[("run:started", 1.0, {}), ("node:started", 2.0, {"path": "build"})])
    print("here", flush=True)
    input()
"""
RESUMING = """
import os, sys
from failwell.store.sqlite.run_store import SqliteStore
with SqliteStore(sys.argv[1]).lock("r1"):
    print(os.getpid(), flush=True)
    input()
"""
PAUSED = ("run:paused", 3.0, {"gates": ["approve"]})


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = STORES[request.param](tmp_path)
    yield made
    made.close()


@pytest.mark.acceptance("relavium 62")
def test_a_run_that_died_in_the_middle_gets_one_end(store: Store) -> None:
    a_run(store, "r1", a_fact())

    event = close_interrupted(store, "r1", at=9.0)
    again = close_interrupted(store, "r1", at=9.0)

    assert event is not None
    assert again is None
    assert (event.seq, event.type, store.run("r1").status) == (2, "run:failed", "failed")
    assert event.data["failure"]["envelope"]["kind"].startswith("internal.")
    assert ErrorReport.from_dict(event.data["failure"]["report"]).kind == "internal.unknown"
    assert [one.seq for one in store.read("r1")] == [0, 1, 2]


@pytest.mark.acceptance("relavium 62")
@pytest.mark.parametrize("facts", [[PAUSED], [("run:paused", 3.0, {"blocked_until": 9.0})], [completed()]])
def test_a_run_that_waits_or_has_ended_is_left_alone(store: Store, facts: list[Any]) -> None:
    a_run(store, "r1", *facts)
    before = list(store.read("r1"))

    event = close_interrupted(store, "r1", at=9.0)

    assert event is None
    assert list(store.read("r1")) == before


def test_a_run_in_a_living_process_is_neither_interrupted_nor_closed(store: Store) -> None:
    a_run(store, "r1", a_fact())

    with store.lock("r1"):
        seen = (store.run("r1").status, [run.id for run in store.runs(statuses=["interrupted"])])
        event = close_interrupted(store, "r1", at=9.0)

    assert seen == ("running", [])
    assert event is None
    assert store.run("r1").status == "interrupted"
    assert [run.id for run in store.runs(statuses=["interrupted"])] == ["r1"]


def test_a_filter_by_status_fills_its_page_past_runs_of_the_other_status(store: Store) -> None:
    for number in range(300):
        a_run(store, f"r{number:03d}", at=float(number))

    with store.lock("r007"), store.lock("r003"):
        running = [run.id for run in store.runs(statuses=["running"], limit=2)]
        interrupted = [run.id for run in store.runs(statuses=["interrupted"], limit=3, before="r008")]

    assert running == ["r007", "r003"]
    assert interrupted == ["r006", "r005", "r004"]


def test_an_unknown_run_is_said_to_be_unknown(store: Store) -> None:
    with pytest.raises(UnknownRun):
        close_interrupted(store, "nobody", at=1.0)


def test_a_killed_process_leaves_an_interrupted_run(tmp_path: Path) -> None:
    child = start(DYING, tmp_path)
    next_line(child)
    with closing(SqliteStore(tmp_path)) as store:
        alive = store.run("r1").status

        kill(child)

        assert alive == "running"
        assert store.run("r1").status == "interrupted"
        assert store.run("r1").pid == child.pid


def test_a_run_that_another_process_resumed_names_that_process(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path)) as store:
        a_run(store, "r1", a_fact())
        resumed = start(RESUMING, tmp_path)
        pid = int(next_line(resumed))

        during, listed = store.run("r1"), store.runs()[0]
        kill(resumed)

        assert (during.pid, listed.pid, during.status) == (pid, pid, "running")
        assert store.run("r1").status == "interrupted"
