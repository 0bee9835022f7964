"""Two hundred turns of one session at a terminal, with kills, cancels and store faults at random moments."""

import json
import os
import random
import signal
import sqlite3
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from failwell.sessions.history import SessionState
from tests.cli.running import failwell
from tests.sessions.agents import write_agent
from tests.sessions.terminal_process import Terminal
from tests.sessions.wire_bodies import refusals

TURNS = 200
SEED = 20_260_101
DISTURBED = {"kill": 16, "cancel": 20, "fault": 5, "outage": 1}
"""Turns that are disturbed: the process is killed, Ctrl-C, the store refuses for a moment, or until the session gives up."""
UNKNOWN = ("tool.interrupted", "cancel.tool")
TOOLS = {
    # Both must not happen twice. The first is a function, the second a process.
    "pay": {"python": "campaign_tools:pay"},
    "ship": {"command": ["sh", "-c", "sleep 0.01; echo {order} >> shipped.txt; sleep 0.03"]},
    "look": {"python": "campaign_tools:look", "effect": "read"},
}
FUNCTIONS = '''
import os, time


def pay(order: str) -> str:
    """Pay an order."""
    time.sleep(0.01)
    descriptor = os.open("paid.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, (order + "\\n").encode())
    os.close(descriptor)
    time.sleep(0.03)
    return "paid"


def look(order: str) -> str:
    """Look at an order."""
    return "open"
'''


def replies(draw: random.Random) -> Iterator[dict[str, Any]]:
    """A model that calls tools in most turns, and calls what must not happen twice again with the same arguments."""
    for number in range(5 * TURNS):
        order = f"o{number // 2}"
        match draw.choice(("pay", "ship", "look", "two", "text", "text", "text")):
            case "two":
                names = ("pay", "ship")
                yield {"tool_calls": [{"name": name, "arguments": {"order": order}} for name in names]}
            case "text":
                yield {"text": f"Answer {number}."}
            case name:
                yield {"tool_calls": [{"name": name, "arguments": {"order": order}}]}


class Campaign:
    """One session at the terminal, resumed whenever its process is gone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.draw = random.Random(SEED)
        self.agent = write_agent(folder, list(replies(self.draw)), tools=TOOLS)
        disturbed = [name for name, count in DISTURBED.items() for _ in range(count)]
        self.turns = [*disturbed, *["plain"] * (TURNS - len(disturbed))]
        self.draw.shuffle(self.turns)
        (folder / "campaign_tools.py").write_text(FUNCTIONS)
        self.terminal: Terminal | None = None
        self.starts = 0

    def start(self) -> Terminal:
        arguments = ("--continue",) if self.starts else (str(self.agent),)
        self.starts += 1
        terminal = Terminal(self.folder, *arguments)
        terminal.expect("> ")
        return terminal

    def turn(self, number: int) -> None:
        terminal = self.terminal = self.terminal or self.start()
        what = self.turns[number]
        if what == "outage":
            with self.store_away():
                terminal.type(f"turn {number}\n")
                terminal.expect("session.store_unavailable")
                assert terminal.end() == 1
            self.terminal = None
            return
        terminal.type(f"turn {number}\n")
        if what == "kill":
            terminal.watch(self.draw.uniform(0, 0.3))
            os.kill(terminal.pid, signal.SIGKILL)
            terminal.end()
            self.terminal = None
        elif what == "cancel":
            terminal.watch(self.draw.uniform(0, 0.2))
            terminal.type("\x03")
            shown = terminal.expect_one_of("once more to leave", "resume it with")
            if "cancelling the turn" in shown:
                terminal.expect("[turn ")
            elif terminal.matched == "resume it with":
                # Two in a row leave: the turns before were over, and the line was not read in between.
                assert terminal.end() == 130
                self.terminal = None
        elif what == "fault":
            with self.store_away():
                terminal.watch(0.2)
            terminal.expect("[turn ")
        else:
            terminal.expect("[turn ")

    @contextmanager
    def store_away(self) -> Generator[None]:
        """Take the table of events away. SQLite refuses every write meanwhile."""
        self._rename("events", "away")
        try:
            yield
        finally:
            self._rename("away", "events")

    def _rename(self, before: str, after: str) -> None:
        connection = sqlite3.connect(self.folder / "state" / "journal.db", timeout=30)
        connection.execute(f"ALTER TABLE {before} RENAME TO {after}")
        connection.commit()
        connection.close()

    def close(self) -> None:
        """Leave the session. One whose process was killed last is resumed once more."""
        terminal = self.terminal or self.start()
        terminal.type("/exit\n")
        assert terminal.end() == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_hundred_turns_survive_kills_cancels_and_store_faults(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path)

    for number in range(TURNS):
        campaign.turn(number)
    campaign.close()

    store = ("--store", str(tmp_path / "state"))
    lines = failwell("sessions", "export", "last", *store).out.splitlines()
    events = [json.loads(line) for line in lines]
    _every_call_has_one_result(events)
    _nothing_happened_twice(tmp_path, events)
    _providers_accept(tmp_path)
    assert failwell("audit", "verify", *store).code == 0
    assert [event["seq"] for event in events] == list(range(len(events)))
    # An input is lost only if nothing was done for it: the process was killed, or the store was away, before it was recorded.
    inputs = [event for event in events if event["type"] == "session:input"]
    assert len(inputs) >= TURNS - DISTURBED["kill"] - DISTURBED["outage"]
    assert campaign.starts > DISTURBED["kill"] + DISTURBED["outage"]


def _calls(events: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Every tool call: its id, its tool and its order."""
    for event in events:
        if event["type"] == "session:answered":
            for part in event["data"]["message"]["parts"]:
                if part["part_kind"] == "tool-call":
                    arguments = part["args"]
                    order = (json.loads(arguments) if isinstance(arguments, str) else arguments)["order"]
                    yield part["tool_call_id"], part["tool_name"], order


def _every_call_has_one_result(events: list[dict[str, Any]]) -> None:
    results = Counter(event["data"]["call"] for event in events if event["type"] == "session:tool_ended")
    calls = Counter(call for call, _, _ in _calls(events))

    assert len(calls) > TURNS / 2
    assert results == calls
    assert set(calls.values()) == {1}


def _nothing_happened_twice(folder: Path, events: list[dict[str, Any]]) -> None:
    """A call that was interrupted or cancelled may have happened; no later call of the same made it happen again."""
    kinds = {
        event["data"]["call"]: event["data"]["kind"]
        for event in events
        if event["type"] == "session:tool_ended"
    }
    ran = {
        ("pay", order): count for order, count in Counter((folder / "paid.txt").read_text().split()).items()
    } | {
        ("ship", order): count
        for order, count in Counter((folder / "shipped.txt").read_text().split()).items()
    }
    most: Counter[tuple[str, str]] = Counter()
    is_unknown: dict[tuple[str, str], bool] = {}
    for call, tool, order in _calls(events):
        if kinds[call] is None:
            # If the call before it is unknown, this one has its result.
            most[tool, order] += 1
            is_unknown[tool, order] = False
        elif kinds[call] in UNKNOWN:
            is_unknown[tool, order] = True

    assert ran
    assert any(is_unknown.values())
    for effect, count in ran.items():
        # Once for each call that succeeded, and once more if nobody knows what the latest one did.
        assert count <= most[effect] + is_unknown.get(effect, False), effect


def _providers_accept(folder: Path) -> None:
    from failwell.store.sqlite.run_store import SqliteStore

    store = SqliteStore(folder / "state")
    session = store.runs(subject="session")[0].id
    everything = list(store.read(session))
    cuts = [
        len(everything),
        *(index for index, event in enumerate(everything, 1) if event.type == "session:resumed"),
    ]
    store.close()
    for cut in cuts[:8]:
        state = SessionState()
        state.fold(everything[:cut])
        messages = state.messages("You help.")
        from pydantic_ai.messages import ModelRequest, UserPromptPart

        assert refusals([*messages, ModelRequest(parts=[UserPromptPart("go on")])]) == {
            "openai": None,
            "anthropic": None,
        }
