"""A store that refuses: writes are repeated, and a session that cannot be recorded ends with what was recorded intact."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from failwell.sessions import list_sessions, open_session, resume_session
from failwell.sessions.recorded import read_session
from failwell.store.event import Event
from failwell.store.faults import StoreUnavailable
from tests.cli.running import SRC, environment, failwell
from tests.sessions.agents import write_agent
from tests.sessions.terminal_process import Terminal


class Clock:
    """Time that passes by being written down."""

    def __init__(self, on_sleep: Callable[[int], object] = lambda _: None) -> None:
        self.slept: list[float] = []
        self._on_sleep = on_sleep

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return sum(self.slept)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def asleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._on_sleep(len(self.slept))


def rename(folder: Path, before: str, after: str) -> None:
    """Take the table of events away, or bring it back. SQLite refuses every write meanwhile."""
    connection = sqlite3.connect(folder / "state" / "journal.db")
    connection.execute(f"ALTER TABLE {before} RENAME TO {after}")
    connection.commit()
    connection.close()


@pytest.mark.acceptance("stud-cli 49")
def test_a_write_that_fails_twice_is_repeated_after_2_and_4_seconds_and_told_once(tmp_path: Path) -> None:
    agent = write_agent(tmp_path, [{"text": "Yes."}])
    clock = Clock(lambda sleeps: rename(tmp_path, "away", "events") if sleeps == 2 else None)
    persisted: list[list[float]] = []

    def watch(event: Event) -> None:
        if event.type == "session:answered":
            rename(tmp_path, "events", "away")
        elif event.type == "session:turn_ended":
            persisted.append(list(clock.slept))

    async def talk() -> str:
        async with await open_session(
            agent, store=tmp_path / "state", on_event=watch, clock=clock
        ) as session:
            return (await session.send("hi")).text

    text = asyncio.run(talk())

    assert text == "Yes."
    assert clock.slept == [2.0, 4.0]
    assert persisted == [[2.0, 4.0]]


@pytest.mark.acceptance("stud-cli 50")
def test_a_store_that_stays_away_ends_the_session_and_leaves_what_was_recorded(tmp_path: Path) -> None:
    agent = write_agent(tmp_path, [{"text": "One."}, {"text": "Two."}, {"text": "Three."}])
    clock = Clock()
    answers: list[Event] = []

    def watch(event: Event) -> None:
        if event.type == "session:answered":
            answers.append(event)
            if len(answers) == 2:
                rename(tmp_path, "events", "away")

    async def talk() -> str:
        session = await open_session(agent, store=tmp_path / "state", on_event=watch, clock=clock)
        async with session:
            await session.send("first")
            with pytest.raises(StoreUnavailable):
                await session.send("second")
            with pytest.raises(StoreUnavailable):
                await session.send("third")
            assert session.has_failed
        return session.id

    session = asyncio.run(talk())
    rename(tmp_path, "away", "events")

    state = read_session(session, store=tmp_path / "state")
    assert clock.slept == [2.0, 4.0]
    assert [data["text"] for type_, data in state.items if type_ == "session:input"] == ["first", "second"]
    assert [info.status for info in list_sessions(store=tmp_path / "state")] == ["interrupted"]

    async def resume() -> str:
        async with await resume_session(session, store=tmp_path / "state") as again:
            return (await again.send("third")).text

    assert asyncio.run(resume()) == "Three."


@pytest.mark.slow
@pytest.mark.acceptance("stud-cli 49", "stud-cli 50")
def test_a_conversation_at_the_terminal_waits_for_its_store_and_ends_if_it_stays_away(tmp_path: Path) -> None:
    agent = write_agent(tmp_path, [{"text": "One."}, {"text": "Two."}, {"text": "Three."}])
    store = ("--store", str(tmp_path / "state"))
    terminal = Terminal(tmp_path, str(agent))
    terminal.expect("> ")
    rename(tmp_path, "events", "away")

    terminal.type("first\n")
    terminal.watch(1.0)
    rename(tmp_path, "away", "events")
    terminal.expect("One.")
    terminal.expect("> ")
    rename(tmp_path, "events", "away")
    terminal.type("second\n")
    refused = terminal.expect("resume it with")
    code = terminal.end()
    rename(tmp_path, "away", "events")

    shown = failwell("sessions", "show", "last", "--format", "json", *store).data
    resumed = failwell("chat", "--continue", "-p", "third", *store)
    assert "session.store_unavailable" in refused
    assert code == 1
    # What was recorded before is whole, and nothing was done for the input that could not be recorded.
    assert shown["conversation"] == [{"user": "first"}, {"agent": "One."}]
    assert (resumed.code, resumed.out) == (0, "Two.\n")


def faulty(
    folder: Path, how: str, type_: str, number: int, *arguments: str
) -> "subprocess.CompletedProcess[str]":
    """`failwell chat` with a SQLite that stops in the middle of a write; both streams are one."""
    fault = [sys.executable, "-m", "tests.sessions.faulty_sqlite", how, type_, str(number)]
    return subprocess.run(
        [*fault, "chat", *arguments, "--format", "json", "--store", str(folder / "state")],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        env=environment(PYTHONPATH=f"{SRC}{os.pathsep}{SRC.parent}"),
    )  # fmt: skip


def conversation(folder: Path) -> list[dict[str, Any]]:
    shown = failwell("sessions", "show", "last", "--format", "json", "--store", str(folder / "state")).data
    talk: list[dict[str, Any]] = shown["conversation"]
    return talk


@pytest.mark.slow
@pytest.mark.acceptance("stud-cli 49")
def test_the_command_writes_the_end_of_a_turn_three_times_and_tells_it_once_after_the_last(
    tmp_path: Path,
) -> None:
    agent = write_agent(tmp_path, [{"text": "One."}])

    done = faulty(tmp_path, "refuse", "session:turn_ended", 2, str(agent), "-p", "hi")

    lines = [
        line for line in done.stdout.splitlines() if line.startswith("write ") or "session:turn_ended" in line
    ]
    first, second, third = (float(line.split()[1]) for line in lines[:3])
    assert done.returncode == 0, done.stdout
    assert json.loads(lines[3])["type"] == "session:turn_ended"
    assert len(lines) == 4
    # A sleep is never shorter than it was asked for.
    assert second - first >= 2
    assert third - second >= 4
    assert conversation(tmp_path) == [{"user": "hi"}, {"agent": "One."}]


@pytest.mark.slow
@pytest.mark.acceptance("stud-cli 50")
def test_the_command_gives_up_after_three_writes_and_what_was_recorded_is_whole(tmp_path: Path) -> None:
    agent = write_agent(tmp_path, [{"text": "One."}, {"text": "Two."}, {"text": "Three."}])
    store = ("--store", str(tmp_path / "state"))
    assert failwell("chat", str(agent), "-p", "first", *store).code == 0

    done = faulty(tmp_path, "refuse", "session:turn_ended", 99, "--continue", "-p", "second")

    last = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, last["kind"]) == (1, "session.store_unavailable")
    assert done.stdout.count("write ") == 3
    assert '"session:turn_ended"' not in done.stdout
    first_turn = [{"user": "first"}, {"agent": "One."}]
    assert conversation(tmp_path)[:2] == first_turn
    resumed = failwell("chat", "--continue", "-p", "third", *store)
    assert (resumed.code, resumed.out) == (0, "Three.\n")
    assert failwell("audit", "verify", *store).code == 0


@pytest.mark.slow
@pytest.mark.acceptance("stud-cli 51")
def test_a_kill_in_the_middle_of_a_write_leaves_what_was_complete_before_it(tmp_path: Path) -> None:
    agent = write_agent(tmp_path, [{"text": "One."}, *({"text": f"Answer {number}."} for number in range(9))])
    store = ("--store", str(tmp_path / "state"))
    assert failwell("chat", str(agent), "-p", "first", *store).code == 0
    known = [{"user": "first"}, {"agent": "One."}]

    # Where the write is killed is counted in instructions of SQLite; after the last one it may be complete.
    for number, type_ in (
        (1, "session:answered"),
        (5, "session:answered"),
        (20, "session:answered"),
        (1, "session:turn_ended"),
    ):
        text = f"killed at {number} of {type_}"
        done = faulty(tmp_path, "die", type_, number, "--continue", "-p", text)

        talk = conversation(tmp_path)
        assert done.returncode == -signal.SIGKILL
        assert talk[: len(known) + 1] == [*known, {"user": text}]
        if (number, type_) == (1, "session:answered"):
            assert talk[len(known) + 1 :] == []
        assert [list(item) for item in talk[len(known) + 1 :]] in ([], [["agent"]])
        known = talk

    resumed = failwell("chat", "--continue", "-p", "last", *store)
    assert resumed.code == 0
    assert conversation(tmp_path)[:-2] == known
    assert failwell("audit", "verify", *store).code == 0
