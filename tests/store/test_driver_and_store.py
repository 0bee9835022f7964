"""A run and its store: what is heard when the store refuses, and when a watcher breaks."""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from failwell.store.event import Event, Fact
from failwell.store.faults import StoreUnavailable
from failwell.store.run_store import Store
from failwell.testing.memory_store import MemoryStore
from failwell.workflows.running.launch import start
from failwell.workflows.running.script_executor import ScriptExecutor
from failwell.workflows.running.settings import DriveResult, Settings

WORKFLOW = """
workflow: {name: pair, entry_point: both}
agents:
  - {name: left, type: script, command: sh, args: ["-c", "echo $$ >> '%(log)s'; exec sleep 30"]}
  - {name: right, type: script, command: "true"}
parallel:
  - {name: both, agents: [left, right], routes: [{to: $end}]}
"""
QUICK = """
workflow: {name: quick, entry_point: one}
agents:
  - {name: one, type: set, values: {a: 1}, routes: [{to: two}]}
  - {name: two, type: set, values: {b: 2}, routes: [{to: $end}]}
"""


class Refusing(MemoryStore):
    """A store on a disk that has gone away."""

    def append(self, run: str, facts: Sequence[Fact]) -> list[Event]:
        raise StoreUnavailable(message="gone", retryable=False)


def run_it(
    folder: Path, text: str, store: Store, *watchers: Callable[[Sequence[Event]], None]
) -> DriveResult:
    (folder / "flow.yaml").write_text(text % {"log": folder / "log"})
    settings = Settings(
        store=store,
        folder=folder / "state",
        executors={"script": ScriptExecutor()},
        environ={"PATH": os.environ["PATH"]},
        watchers=watchers,
        grace=0.1,
    )
    return asyncio.run(start(str(folder / "flow.yaml"), {}, settings, run="r1"))


@pytest.mark.acceptance("relavium 52")
def test_a_store_that_refuses_every_write_still_gives_one_end_and_nothing_runs_on(tmp_path: Path) -> None:
    heard: list[Event] = []

    ended = run_it(tmp_path, WORKFLOW, Refusing(), heard.extend)

    log = tmp_path / "log"
    pids = [int(line) for line in log.read_text().split()] if log.exists() else []
    assert ended.status == "failed"
    assert [event.is_terminal for event in heard].count(True) == 1
    assert heard[-1].type == "run:failed"
    assert heard[-1].data["failure"]["envelope"]["kind"] == "session.store_unavailable"
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.acceptance("relavium 53")
def test_events_are_heard_in_the_order_of_their_numbers_and_after_they_were_written(tmp_path: Path) -> None:
    store = MemoryStore()
    heard: list[tuple[int, int]] = []

    run_it(
        tmp_path,
        QUICK,
        store,
        lambda events: heard.extend((event.seq, store.run("r1").events) for event in events),
    )

    assert [seq for seq, _ in heard] == list(range(len(heard)))
    assert all(written > seq for seq, written in heard)


@pytest.mark.acceptance("relavium 54")
def test_a_watcher_that_breaks_costs_neither_the_run_nor_the_others_and_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writes: list[list[int]] = []

    def breaks(_events: Sequence[Event]) -> None:
        raise ZeroDivisionError

    ended = run_it(
        tmp_path, QUICK, MemoryStore(), breaks, lambda events: writes.append([event.seq for event in events])
    )

    assert ended.status == "completed"
    heard = [seq for write in writes for seq in write]
    assert heard == list(range(len(heard)))
    assert caplog.text.count("a watcher of run r1 failed") == len(writes)
