"""A store that refuses: writes are repeated, and a session that cannot be recorded ends with what was recorded intact."""

import asyncio
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from failwell.journal.event import Event
from failwell.journal.journal_faults import StoreUnavailable
from failwell.sessions import list_sessions, open_session, resume_session
from failwell.sessions.recorded_sessions import read_session
from tests.apps.running import failwell
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
