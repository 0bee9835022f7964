"""The queue of questions: order, several answerers, time-outs, late answers, failures, secrets."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from failwell.agents.people.queue import (
    AnswerInvalid,
    InteractionClosed,
    InteractionEvent,
    InteractionQueue,
    InteractionRequired,
)
from failwell.agents.people.requests import (
    Answer,
    Approve,
    Ask,
    Confirm,
    DeviceCode,
    Grant,
    Option,
    Password,
    Refusal,
    Reply,
    Request,
    Select,
    Timeout,
)
from failwell.errors.redact import redact_text
from failwell.testing import FakeClock


class Person:
    """Answers as `reply` says, and notes what was shown and what was dismissed."""

    def __init__(
        self, reply: Callable[[Request], Awaitable[Answer | Refusal | None]], name: str = "person"
    ) -> None:
        self.name = name
        self.shown: list[str] = []
        self.dismissed: list[str] = []
        self._reply = reply

    async def answer(self, request: Request) -> Answer | Refusal | None:
        self.shown.append(request.id)
        try:
            return await self._reply(request)
        except asyncio.CancelledError:
            self.dismissed.append(request.id)
            raise


async def _yes(_request: Request) -> Answer:
    return Answer(value=True, by="ann")


async def _never(_request: Request) -> None:
    await asyncio.Event().wait()


async def _crash(_request: Request) -> None:
    raise RuntimeError("the window is gone")


def approve(name: str) -> Approve:
    return Approve(text=f"do {name}?", id=name)


def test_questions_are_shown_one_after_the_other_in_the_order_they_were_raised() -> None:
    async def play() -> tuple[list[str], list[str]]:
        person = Person(_never)
        queue = InteractionQueue(person)
        asking = [asyncio.ensure_future(queue.ask(approve(name))) for name in "abc"]
        await asyncio.sleep(0)
        waiting = [request.id for request in queue.pending]
        for name in "abc":
            await asyncio.sleep(0)
            assert person.shown[-1] == name
            queue.answer(name, Answer(value=name != "b", by="ann"))
        replies = await asyncio.gather(*asking)
        assert [reply.value for reply in replies if isinstance(reply, Answer)] == [True, False, True]
        return waiting, person.shown

    waiting, shown = asyncio.run(play())

    assert waiting == ["a", "b", "c"]
    assert shown == ["a", "b", "c"]


def test_the_first_answer_wins_and_the_other_answerer_is_dismissed() -> None:
    async def play() -> tuple[Reply, Person]:
        slow = Person(_never, "http")
        queue = InteractionQueue(slow, Person(_yes, "terminal"))
        reply = await queue.ask(approve("a"))
        await asyncio.sleep(0)
        return reply, slow

    reply, slow = asyncio.run(play())

    assert reply == Answer(value=True, by="ann")
    assert slow.dismissed == ["a"]


@pytest.mark.acceptance("stud-cli 47")
def test_an_answerer_that_fails_leaves_the_question_to_the_others() -> None:
    events: list[InteractionEvent] = []

    async def later(_request: Request) -> Answer:
        for _ in range(5):
            await asyncio.sleep(0)
        return Answer(value=True, by="ann")

    idle = Person(_never, "dashboard")
    queue = InteractionQueue(Person(_crash, "http"), Person(later), idle, observe=events.append)

    reply = asyncio.run(queue.ask(approve("a")))

    assert reply == Answer(value=True, by="ann")
    assert idle.dismissed == ["a"]
    assert [event.type for event in events] == ["raised", "answerer_failed", "answered"]
    assert events[1].data == {"answerer": "http"}


def test_a_question_whose_only_answerer_fails_ends_with_a_typed_fault() -> None:
    for reply in (_crash, _nothing):
        with pytest.raises(InteractionRequired) as caught:
            asyncio.run(InteractionQueue(Person(reply)).ask(approve("a")))
        assert caught.value.kind == "session.interaction_required"
        assert caught.value.question["id"] == "a"


async def _nothing(_request: Request) -> None:
    return None


def test_without_an_answerer_nothing_is_assumed() -> None:
    events: list[InteractionEvent] = []

    with pytest.raises(InteractionRequired):
        asyncio.run(InteractionQueue(observe=events.append).ask(approve("a")))

    assert [event.type for event in events] == ["raised", "required"]


@pytest.mark.acceptance("stud-cli 46")
def test_a_question_that_times_out_makes_room_for_the_next_and_refuses_a_late_answer() -> None:
    events: list[InteractionEvent] = []
    clock = FakeClock()

    async def play() -> tuple[Reply, Reply]:
        person = Person(_never)
        queue = InteractionQueue(person, clock=clock, observe=events.append)
        first = asyncio.ensure_future(queue.ask(approve("a"), within=30))
        second = asyncio.ensure_future(queue.ask(approve("b")))
        timed_out = await first
        await asyncio.sleep(0)
        assert person.shown == ["a", "b"]
        assert person.dismissed == ["a"]
        with pytest.raises(InteractionClosed) as late:
            queue.answer("a", Answer(value=True, by="bob"))
        assert late.value.kind == "session.interaction_closed"
        assert late.value.reason == "it timed out"
        queue.answer("b", Answer(value=True, by="bob"))
        return timed_out, await second

    timed_out, answered = asyncio.run(play())

    assert timed_out == Timeout(seconds=30)
    assert answered == Answer(value=True, by="bob")
    assert clock.slept == [30]
    assert [event.type for event in events] == ["raised", "raised", "timed_out", "late", "answered"]


def test_a_cancelled_requester_withdraws_its_question() -> None:
    async def play() -> list[str]:
        person = Person(_never)
        queue = InteractionQueue(person)
        first = asyncio.ensure_future(queue.ask(approve("a")))
        second = asyncio.ensure_future(queue.ask(approve("b")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(InteractionClosed, match="withdrawn"):
            queue.answer("a", Answer(value=True))
        queue.answer("b", Answer(value=False))
        await second
        return person.shown

    assert asyncio.run(play()) == ["a", "b"]


@pytest.mark.parametrize(
    ("request_", "fits", "misfits"),
    [
        (Approve(text="?"), True, "yes"),
        (Confirm(text="?"), False, 1),
        (Ask(text="?"), "a text", 7),
        (Select(text="?", options=(Option(value="x"), Option(value="y"))), "y", "z"),
        (DeviceCode(text="?", url="https://example.test", code="AB-12"), True, "token"),
        (Password(text="?"), "pass-phrase", ""),
        (Grant(text="?", tool="t", stage="s"), True, None),
    ],
)
def test_an_answer_must_fit_its_question_which_stays_open_otherwise(
    request_: Request, fits: Any, misfits: Any
) -> None:
    async def play() -> Reply:
        queue = InteractionQueue(Person(_never))
        asking = asyncio.ensure_future(queue.ask(request_))
        await asyncio.sleep(0)
        (question,) = queue.pending
        with pytest.raises(AnswerInvalid):
            queue.answer(question.id, Answer(value=misfits))
        queue.answer(question.id, Answer(value=fits))
        return await asking

    reply = asyncio.run(play())

    assert isinstance(reply, Answer)
    assert reply.value == fits


def test_a_password_is_in_no_event_and_masked_afterwards() -> None:
    events: list[InteractionEvent] = []

    async def reply(_request: Request) -> Answer:
        return Answer(value="violet-kettle-93-sea", by="ann")

    answer = asyncio.run(
        InteractionQueue(Person(reply), observe=events.append).ask(Password(text="password of the shop"))
    )

    assert isinstance(answer, Answer)
    assert answer.value == "violet-kettle-93-sea"
    assert "violet" not in repr(answer)
    assert "violet" not in repr(events)
    assert "violet" not in redact_text("the password violet-kettle-93-sea was refused")


def test_what_cannot_be_recorded_is_not_acted_upon() -> None:
    def observe(event: InteractionEvent) -> None:
        if event.type == "answered":
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        asyncio.run(InteractionQueue(Person(_yes), observe=observe).ask(approve("a")))


def test_who_answered_is_told_that_the_answer_was_not_recorded_and_a_late_answer_is_refused_all_the_same() -> (
    None
):
    def observe(event: InteractionEvent) -> None:
        if event.type in ("answered", "late"):
            raise OSError("no space left")

    async def play() -> list[str]:
        queue = InteractionQueue(Person(_never), observe=observe)
        asking = asyncio.ensure_future(queue.ask(approve("a")))
        await asyncio.sleep(0)
        reasons: list[str] = []
        for _ in range(2):
            with pytest.raises(InteractionClosed) as refused:
                queue.answer("a", Answer(value=True, by="bob"))
            reasons.append(refused.value.reason)
        with pytest.raises(OSError, match="no space"):
            await asking
        return reasons

    assert asyncio.run(play()) == ["its answer could not be recorded"] * 2


def test_ids_are_made_and_two_open_questions_cannot_share_one() -> None:
    async def play() -> None:
        queue = InteractionQueue(Person(_never))
        asking = [asyncio.ensure_future(queue.ask(Approve(text="?"))) for _ in range(2)]
        await asyncio.sleep(0)
        first, second = queue.pending
        assert first.id.startswith("approve-")
        assert first.id != second.id
        with pytest.raises(ValueError, match="is open"):
            await queue.ask(Approve(text="?", id=first.id))
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    asyncio.run(play())


def test_a_time_out_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        asyncio.run(InteractionQueue(Person(_yes)).ask(approve("a"), within=0))
