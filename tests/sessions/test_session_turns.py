"""Turns of an open session: a failed one is run again, another model goes on, and money has a limit."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from failwell.agents.people import Answer, InteractionQueue, Request
from failwell.errors.fault import Fault
from failwell.sessions import TurnResult, open_session, resume_session
from tests.cli.running import failwell
from tests.sessions.agents import call, write_agent

PRICED = {
    "cost": {"pricing": {"replies.yaml": {"input_per_mtok": 1000, "output_per_mtok": 1000}}},
    "limits": {"budget_usd": 0.01, "on_exceed": "pause_for_approval"},
    "max_tokens": 100,
    "tools": {},
}


class Person:
    """Answers every question in the same way, and counts them."""

    name = "person"

    def __init__(self, value: bool) -> None:
        self.value = value
        self.asked: list[str] = []

    async def answer(self, request: Request) -> Answer:
        self.asked.append(request.text)
        return Answer(value=self.value, by="person")


def test_a_failed_turn_is_run_again_without_saying_the_input_twice(tmp_path: Path) -> None:
    replies = [call("count_words", text="a b"), {"fail": "provider.auth"}, {"text": "Two."}]
    agent = write_agent(tmp_path, replies)

    async def talk() -> tuple[TurnResult, TurnResult, list[str]]:
        async with await open_session(agent, store=tmp_path / "state") as session:
            failed, again = await session.send("count"), await session.retry()
            return failed, again, [type_ for type_, _ in session.state.items]

    failed, again, items = asyncio.run(talk())

    assert (failed.status, again.status, again.text, again.turn) == ("failed", "answered", "Two.", 1)
    assert items == ["session:input", "session:answered", "session:tool_ended", "session:answered"]


def test_a_turn_that_succeeded_is_not_run_again(tmp_path: Path) -> None:
    agent = write_agent(tmp_path, [{"text": "Yes."}])

    async def talk() -> None:
        async with await open_session(agent, store=tmp_path / "state") as session:
            await session.send("hi")
            with pytest.raises(Fault, match="nothing to repeat"):
                await session.retry()

    asyncio.run(talk())


def test_another_model_goes_on_and_is_the_model_of_the_resumed_session(tmp_path: Path) -> None:
    agent = write_agent(tmp_path, [{"text": "One."}])
    (tmp_path / "other.yaml").write_text('replies: [{text: "Other."}, {text: "Other again."}]')

    async def talk() -> list[str]:
        async with await open_session(agent, store=tmp_path / "state") as session:
            texts = [(await session.send("hi")).text]
            await session.use_model("scripted:other.yaml")
            texts.append((await session.send("hi")).text)
        async with await resume_session(session.id, store=tmp_path / "state") as session:
            return [*texts, (await session.send("hi")).text]

    assert asyncio.run(talk()) == ["One.", "Other.", "Other again."]


def test_a_spent_budget_asks_a_person_and_counts_over_the_whole_session(tmp_path: Path) -> None:
    agent = write_agent(tmp_path, [{"text": "One."}, {"text": "Two."}], **PRICED)
    person, nobody = Person(value=True), Person(value=False)

    async def talk() -> tuple[TurnResult, TurnResult]:
        async with await open_session(
            agent, store=tmp_path / "state", questions=InteractionQueue(person)
        ) as session:
            first = await session.send("hi")
        async with await resume_session(
            session.id, store=tmp_path / "state", questions=InteractionQueue(nobody)
        ) as session:
            return first, await session.send("more")

    first, second = asyncio.run(talk())

    assert (first.status, first.text) == ("answered", "One.")
    assert second.status == "failed"
    assert second.report is not None
    assert second.report.kind == "limit.budget_exceeded"
    assert len(person.asked) == len(nobody.asked) == 1


def test_an_answer_that_is_not_as_declared_fails_the_turn(tmp_path: Path) -> None:
    agent = write_agent(
        tmp_path, [{"text": "no JSON"}, {"json": {"label": "blue"}}], output={"label": {"type": "string"}}
    )
    store = ("--store", str(tmp_path / "state"))

    failed = failwell("chat", str(agent), "-p", "hi", *store)
    answered = failwell("chat", "--continue", "-p", "hi", *store)

    assert failed.code == 1
    assert "internal.schema_violation" in failed.err
    assert answered.code == 0


@pytest.mark.acceptance("stud-cli 56")
def test_an_agent_that_is_lost_or_widened_never_widens_what_the_tools_of_a_session_may_do(
    tmp_path: Path,
) -> None:
    replies: list[dict[str, Any]] = [{"text": "One."}, call("pay", order="A-17"), {"text": "Two."}]
    narrow: dict[str, Any] = {"count_words": {"python": "session_tools:count_words", "effect": "read"}}
    wide = {**narrow, "pay": {"python": "session_tools:pay"}}
    agent = write_agent(tmp_path, replies, tools=narrow)
    store = ("--store", str(tmp_path / "state"))
    assert failwell("chat", str(agent), "-p", "hi", *store, cwd=tmp_path).code == 0

    agent.unlink()
    missing = failwell("chat", "--continue", "-p", "pay", *store, cwd=tmp_path)
    shown = failwell("sessions", "show", "last", "--format", "json", *store)
    write_agent(tmp_path, replies, tools=wide)
    changed = failwell("chat", "--continue", "-p", "pay", *store, cwd=tmp_path)

    assert missing.code == 2
    assert "there is no such file" in missing.err
    assert shown.data["conversation"] == [{"user": "hi"}, {"agent": "One."}]
    assert changed.code == 2
    assert "new tools: pay" in changed.err
    assert not (tmp_path / "paid.txt").exists()
    accepted = failwell("chat", "--continue", "-p", "pay", "--accept-changes", *store, cwd=tmp_path)
    assert (accepted.code, (tmp_path / "paid.txt").read_text()) == (0, "A-17\n")
    restored = failwell("sessions", "show", "last", "--format", "json", *store).data["conversation"]
    assert restored[:3] == [{"user": "hi"}, {"agent": "One."}, {"user": "pay"}]
    assert restored[-1] == {"agent": "Two."}


def test_what_was_said_is_in_the_journal_of_its_owner_and_in_no_report_or_audit(tmp_path: Path) -> None:
    agent = write_agent(tmp_path, [{"fail": "provider.auth"}])
    store = ("--store", str(tmp_path / "state"))

    done = failwell("chat", str(agent), "-p", "the blue elephant", *store)

    audit = failwell("audit", "export", *store)
    events = failwell("sessions", "export", "last", *store)
    assert "elephant" not in done.err + audit.out
    assert [
        line for line in events.out.splitlines() if "elephant" in line and "session:input" not in line
    ] == []
    assert (tmp_path / "state" / "journal.db").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0
