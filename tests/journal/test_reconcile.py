"""Runs whose process is gone: who sees them, and what becomes of them."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from failwell.journal.event import Event, Fact
from failwell.journal.faults import StoreUnavailable, UnknownRun
from failwell.journal.memory import MemoryStore
from failwell.journal.reconcile import can_resume, interrupted, reconcile, reconcile_all, standing
from failwell.journal.sqlite.store import SqliteStore
from failwell.journal.store import Run, Store
from failwell.report.record import ErrorReport
from tests.journal.building import STORES, a_fact, a_run, completed
from tests.journal.children import kill, next_line, start

DYING = """
import sys
from failwell.journal.sqlite.store import SqliteStore
store = SqliteStore(sys.argv[1])
with store.lock("r1"):
    store.create("r1", at=1.0, facts=[("run:started", 1.0, {}), ("node:started", 2.0, {"path": "build"})])
    print("here", flush=True)
    input()
"""
PAUSED = ("run:paused", 3.0, {"gates": ["approve"]})


def never(_store: Store, _run: Run) -> bool:
    return False


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = STORES[request.param](tmp_path)
    yield made
    made.close()


@pytest.mark.acceptance("relavium 62")
def test_a_run_that_died_in_the_middle_gets_one_end(store: Store) -> None:
    a_run(store, "r1", a_fact())

    event = reconcile(store, "r1", at=9.0, resumable=never)
    again = reconcile(store, "r1", at=9.0, resumable=never)

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

    event = reconcile(store, "r1", at=9.0, resumable=never)

    assert event is None
    assert list(store.read("r1")) == before


def test_a_run_that_can_be_resumed_is_left_to_whoever_resumes_it(store: Store) -> None:
    a_run(store, "r1", a_fact())
    store.create("r2", at=1.0)

    results = reconcile_all(store, at=9.0)

    ended = {result.run: result.event is not None for result in results}
    assert ended == {"r1": False, "r2": True}
    assert can_resume(store, store.run("r1"))


def test_a_run_in_somebodys_hands_is_neither_interrupted_nor_touched(store: Store) -> None:
    a_run(store, "r1", a_fact())

    with store.lock("r1"):
        seen = (standing(store, store.run("r1")), interrupted(store))
        event = reconcile(store, "r1", at=9.0, resumable=never)

    assert seen == ("running", [])
    assert event is None
    assert standing(store, store.run("r1")) == "interrupted"
    assert [run.id for run in interrupted(store)] == ["r1"]


def test_an_unknown_run_is_said_to_be_unknown(store: Store) -> None:
    with pytest.raises(UnknownRun):
        reconcile(store, "nobody", at=1.0)


class HalfBroken(MemoryStore):
    """A store that takes nothing for one of its runs."""

    def append(self, run: str, facts: Sequence[Fact]) -> list[Event]:
        if run == "r2":
            raise StoreUnavailable(message="gone")
        return super().append(run, facts)


@pytest.mark.acceptance("relavium 62")
def test_one_run_that_the_store_refuses_does_not_stop_the_others() -> None:
    store = HalfBroken()
    for run in ("r1", "r2", "r3"):
        a_run(store, run)

    results = {result.run: result for result in reconcile_all(store, at=9.0, resumable=never)}

    assert sorted(results) == ["r1", "r2", "r3"]
    assert isinstance(results["r2"].refusal, StoreUnavailable)
    assert [store.run(run).status for run in ("r1", "r2", "r3")] == ["failed", "running", "failed"]


def test_a_killed_process_leaves_an_interrupted_run(tmp_path: Path) -> None:
    child = start(DYING, tmp_path)
    next_line(child)
    with closing(SqliteStore(tmp_path)) as store:
        alive = standing(store, store.run("r1"))

        kill(child)

        assert alive == "running"
        assert standing(store, store.run("r1")) == "interrupted"
        assert store.run("r1").pid == child.pid
