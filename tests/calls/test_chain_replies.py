"""A reply of a chain says who served it and why, and the next call begins with the first entry again."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

from failwell.calls import ChainReply, ReplySource
from failwell.calls.chain.chain import Chain, Entry
from failwell.calls.guard import Guard
from failwell.testing.builders import make_fault
from failwell.testing.clock import FakeClock
from tests.calls.acting import Scripted, caught, even, overloaded, rate_limited


def an_entry(name: str, call: Callable[..., Any], **changes: Any) -> Entry[Any]:
    return Entry(provider=name, model=f"{name}-model", call=call, **changes)


def a_chain(*entries: Entry[Any], **changes: Any) -> Chain[Any]:
    options: dict[str, Any] = {"clock": FakeClock(), "jitter": even, **changes}
    return Chain(*entries, **options)


def passed(source: ReplySource | None) -> list[tuple[str, str | None]]:
    assert source is not None
    return [
        (entry.provider, None if entry.report is None else entry.report.kind) for entry in source.passed_over
    ]


def test_a_reply_of_the_first_entry_has_passed_nobody_over() -> None:
    reply = a_chain(an_entry("A", Scripted("an answer")), an_entry("B", Scripted("no"))).reply("hello")

    assert isinstance(reply, ChainReply)
    assert reply.value == "an answer"
    assert reply.source == ReplySource(provider="A", model="A-model", is_primary=True)
    assert str(reply.source) == "served by A/A-model"


def test_a_reply_of_another_entry_names_those_before_it_with_their_failures() -> None:
    chain = a_chain(
        an_entry("A", Scripted(overloaded()), attempts=2),
        an_entry("B", Scripted("no"), capabilities=frozenset[str]()),
        an_entry("C", Scripted("from C")),
    )

    source = chain.reply(needs=["tools"]).source

    assert (source.provider, source.is_primary) == ("C", False)
    assert passed(source) == [("A", "provider.overloaded"), ("B", None)]
    assert [entry.reason for entry in source.passed_over] == ["all 2 attempts are spent", "cannot do tools"]
    assert str(source) == (
        "served by C/C-model instead of A/A-model (provider.overloaded, all 2 attempts are spent), "
        "B/B-model (cannot do tools)"
    )
    data = json.loads(json.dumps(source.to_dict()))
    assert data["passed_over"][0]["report"]["kind"] == "provider.overloaded"
    assert data["passed_over"][1] == {"provider": "B", "model": "B-model", "reason": "cannot do tools"}


def test_the_first_entry_is_tried_again_by_the_next_call() -> None:
    clock = FakeClock()
    first = Scripted(overloaded(), "from A", rate_limited(), "from A again")
    chain = a_chain(an_entry("A", first), an_entry("B", Scripted("from B")), clock=clock)

    replies = [chain.reply() for _ in range(4)]
    clock.advance(31)
    replies.append(chain.reply())

    assert [reply.value for reply in replies] == ["from B", "from A", "from B", "from B", "from A again"]
    assert [reply.source.is_primary for reply in replies] == [False, True, False, False, True]
    # A rate limit is the exception: the entry cools down, and the reply says so.
    assert passed(replies[3].source) == [("A", None)]
    assert replies[3].source.passed_over[0].reason == "A cools down for 30.0 s"


def test_a_breaker_that_is_open_is_a_reason() -> None:
    clock, guard = FakeClock(), Guard(clock=FakeClock())
    chain = a_chain(
        an_entry("A", Scripted(overloaded())), an_entry("B", Scripted("from B")), guard=guard, clock=clock
    )

    sources = [chain.reply().source for _ in range(6)]

    assert passed(sources[-1]) == [("A", None)]
    assert "closed off" in sources[-1].passed_over[0].reason


def test_streams_and_async_calls_say_it_too() -> None:
    def chunks() -> Iterator[str]:
        yield "from B"

    async def answer() -> str:
        return "from B"

    async def fail() -> str:
        raise overloaded()

    streams = a_chain(an_entry("A", Scripted(overloaded())), an_entry("B", chunks))
    calls = a_chain(an_entry("A", fail), an_entry("B", answer))

    assert list(streams.stream()) == ["from B"]
    assert passed(streams.source) == [("A", "provider.overloaded")]
    reply = asyncio.run(calls.areply())
    assert (reply.value, passed(reply.source)) == ("from B", [("A", "provider.overloaded")])


def test_a_call_that_fails_was_served_by_nobody() -> None:
    chain = a_chain(an_entry("A", Scripted("an answer", make_fault(kind="provider.bad_request"))))

    assert chain.source is None
    chain.call()
    assert chain.source is not None
    caught(chain.call)
    assert chain.source is None


def test_calls_at_the_same_time_do_not_see_each_others() -> None:
    async def answer(name: str) -> str:
        await asyncio.sleep(0)
        if name == "unlucky" and not failures:
            failures.append(name)
            raise overloaded()
        return name

    failures: list[str] = []
    chain = a_chain(an_entry("A", answer), an_entry("B", answer))

    async def both() -> list[ChainReply[str]]:
        return list(await asyncio.gather(chain.areply("lucky"), chain.areply("unlucky")))

    lucky, unlucky = asyncio.run(both())

    assert (lucky.source.provider, unlucky.source.provider) == ("A", "B")
