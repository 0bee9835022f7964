"""Cancel scopes: a cancelled turn takes its tools with it and leaves the session; a closed session rejects what waits."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from failwell.errors.faults import Cancellation
from failwell.sessions import AgentSession, open_session
from failwell.store.event import Event
from tests.cli.running import environment, failwell
from tests.sessions.agents import call, write_agent
from tests.sessions.terminal_process import Terminal

TREE = {"command": ["sh", "-c", "sleep 613 & sleep 614 & echo $$ $! > pipe; wait"], "effect": "read"}


def slow_agent(folder: Path, *later: dict[str, Any]) -> Path:
    """An agent whose first answer calls a tool that starts processes, says which, and does not end."""
    agent = write_agent(folder, [call("slow"), *later], tools={"slow": TREE})
    os.mkfifo(folder / "pipe")
    return agent


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process that nobody has waited for yet is dead as well.
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def exported(folder: Path) -> list[dict[str, Any]]:
    out = failwell("sessions", "export", "last", "--store", str(folder / "state")).out
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.acceptance("stud-cli 39", "stud-cli 40", "stud-cli 41")
def test_an_interrupt_ends_the_turn_and_the_processes_of_its_tool_as_a_cancellation(tmp_path: Path) -> None:
    agent = write_agent(
        tmp_path,
        [
            # One call ended, one runs, and one has not begun when the turn is cancelled.
            {"tool_calls": [{"name": name, "arguments": {}} for name in ("quick", "slow", "quick")]},
            {"text": "Fine."},
        ],
        tools={"slow": TREE, "quick": {"command": ["echo", "hi"], "effect": "read"}},
    )
    os.mkfifo(tmp_path / "pipe")
    store = ("--store", str(tmp_path / "state"))
    process = subprocess.Popen(
        [sys.executable, "-m", "failwell", "chat", str(agent), "-p", "go", *store],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    pids = [int(word) for word in (tmp_path / "pipe").read_text().split()]

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)

    events = exported(tmp_path)
    ends = [event["data"] for event in events if event["type"] == "session:tool_ended"]
    turn = next(event["data"] for event in events if event["type"] == "session:turn_cancelled")
    assert process.returncode == 130
    assert b"timeout" not in err
    assert [end["kind"] for end in ends] == [None, "cancel.tool", "cancel.tool"]
    assert [end.get("may_have_run") for end in ends] == [None, True, False]
    assert turn["kind"] == "cancel.turn"
    assert "timeout" not in json.dumps(events)
    assert len(pids) == 2
    assert not any(is_alive(pid) for pid in pids)
    talk = failwell("sessions", "show", "last", "--format", "json", *store).data["conversation"]
    calls = [item["call"] for item in talk if "call" in item]
    assert calls == [item["tool"] for item in talk if "tool" in item] == ["quick", "slow", "quick"]
    again = failwell("chat", "--continue", "-p", "and now?", *store, cwd=tmp_path)
    assert (again.code, again.out) == (0, "Fine.\n")


@pytest.mark.acceptance("stud-cli 39")
def test_a_session_takes_the_next_input_after_a_cancelled_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agent = slow_agent(tmp_path, {"text": "Fine."})

    async def talk() -> tuple[Any, Any]:
        events: list[Event] = []

        def watch(event: Event) -> None:
            events.append(event)
            if event.type == "session:tool_started":
                asyncio.get_running_loop().call_soon(session.cancel_turn)

        session = await open_session(agent, store=tmp_path / "state", on_event=watch)
        async with session:
            return await session.send("go"), await session.send("more")

    first, second = asyncio.run(talk())

    assert (first.status, first.report.kind) == ("cancelled", "cancel.turn")
    assert (second.status, second.text) == ("answered", "Fine.")


@pytest.mark.acceptance("stud-cli 42")
def test_a_session_that_is_closed_rejects_every_input_that_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agent = slow_agent(tmp_path)

    async def talk() -> list[Any]:
        started = asyncio.Event()
        session: AgentSession = await open_session(
            agent,
            store=tmp_path / "state",
            on_event=lambda event: started.set() if event.type == "session:tool_started" else None,
        )
        sends = [asyncio.ensure_future(session.send(text)) for text in ("one", "two", "three")]
        await started.wait()
        await session.close()
        return await asyncio.gather(*sends, return_exceptions=True)

    first, *others = asyncio.run(talk())

    assert first.status == "cancelled"
    assert [(type(other), other.kind) for other in others] == [(Cancellation, "cancel.session")] * 2
    inputs = [event["data"]["text"] for event in exported(tmp_path) if event["type"] == "session:input"]
    assert inputs == ["one"]


@pytest.mark.slow
@pytest.mark.acceptance("stud-cli 42")
def test_inputs_that_wait_at_the_terminal_are_rejected_when_the_session_is_left(tmp_path: Path) -> None:
    agent = slow_agent(tmp_path, {"text": "never"})
    terminal = Terminal(tmp_path, str(agent))
    terminal.expect("> ")
    terminal.type("go\n")
    (tmp_path / "pipe").read_text()
    for text in ("two", "three"):
        terminal.type(f"{text}\n")
        terminal.expect("(queued)")

    os.kill(terminal.pid, signal.SIGTERM)
    last = terminal.expect("resume it with")

    inputs = [event["data"]["text"] for event in exported(tmp_path) if event["type"] == "session:input"]
    assert terminal.end() == 143
    assert "cancelled (cancel.turn)" in last
    assert last.count("(cancel.session)") == 2
    assert inputs == ["go"]


@pytest.mark.acceptance("stud-cli 39")
def test_ctrl_c_cancels_the_turn_at_the_terminal_and_a_second_one_leaves(tmp_path: Path) -> None:
    agent = slow_agent(tmp_path, {"text": "Fine \x1b[31mred."})
    terminal = Terminal(tmp_path, str(agent))
    terminal.expect("> ")
    terminal.type("go\n")
    (tmp_path / "pipe").read_text()
    terminal.expect("slow …")

    terminal.type("/cost\nqueued input\n")
    terminal.expect("(queued)")
    terminal.type("\x03")
    cancelled = terminal.expect("Fine ")
    answer = terminal.expect("[turn 2")
    terminal.expect("> ")
    terminal.type("\x03")
    terminal.expect("once more to leave")
    terminal.type("\x03")
    terminal.expect("resume it with")

    assert "cancel.tool" in cancelled
    assert "cancel.turn" in cancelled
    assert answer.startswith("\\x1b[31mred.")
    assert terminal.end() == 130


@pytest.mark.slow
def test_a_person_is_asked_at_the_terminal_and_only_a_yes_is_a_yes(tmp_path: Path) -> None:
    replies: list[dict[str, Any]] = [
        call("pay", order="A\x1b]0;x\x07-17"),
        {"text": "No."},
        call("pay", order="A-17"),
    ]
    agent = write_agent(
        tmp_path,
        [*replies, {"text": "Paid."}],
        tools={"pay": {"python": "session_tools:pay", "approval": "ask"}},
    )
    terminal = Terminal(tmp_path, str(agent))
    terminal.expect("> ")
    terminal.type("/tools\n")
    terminal.expect("pay  happens once; asks you first")
    terminal.expect("> ")

    terminal.type("pay\n")
    question = terminal.expect("choose: ")
    terminal.type("\n")
    terminal.expect("write a number")
    terminal.type("deny\n")
    terminal.expect("No.")
    terminal.expect("> ")
    terminal.type("pay again\n")
    terminal.expect("choose: ")
    terminal.type("allow\n")
    terminal.expect("Paid.")
    terminal.expect("> ")
    terminal.type("/exit\n")

    assert terminal.end() == 0
    assert "\x1b" not in question
    assert (tmp_path / "paid.txt").read_text() == "A-17\n"
