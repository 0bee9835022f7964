"""A call whose messages are too long: they are shortened once, and the call is made once more."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import pytest

import failwell
from failwell import Budget, Chain, ChainPolicy, Entry, Policy
from failwell.agents import drop_oldest_tool_results
from failwell.calls import (
    GiveUp,
    Retry,
    RetryOptions,
    RetryState,
    Shrink,
    Spent,
    StreamTimeouts,
    collect_ledgers,
    decide,
)
from failwell.calls.retry import retry, retrying
from failwell.errors.fault import Fault
from failwell.files import read_policy
from failwell.testing.builders import make_fault
from failwell.testing.clock import FakeClock
from failwell.testing.laboratory.server import lab
from tests.calls.acting import Scripted, caught, ledger, overloaded

MESSAGES = ["one", "two", "three", "four"]
SHORTENED = "shortening the messages, the request is longer than the model can read"


def too_long() -> Fault:
    return make_fault(kind="provider.context_too_long")


class Halving:
    """A `shrink` that takes the older half of the messages away and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def plain(self, messages: list[str]) -> list[str]:
        self.calls += 1
        return messages[len(messages) // 2 :]

    async def on_loop(self, messages: list[str]) -> list[str]:
        return self.plain(messages)


Read = Callable[[Scripted, Halving, FakeClock], Any]


def _by_function(call: Scripted, shrink: Halving, clock: FakeClock) -> Any:
    return retry(shrink=shrink.plain, clock=clock)(call)(MESSAGES)


def _by_keyword(call: Scripted, shrink: Halving, clock: FakeClock) -> Any:
    return retry(shrink=shrink.plain, clock=clock)(call)("prompt", tools=[], contents=MESSAGES)


def _by_coroutine(call: Scripted, shrink: Halving, clock: FakeClock) -> Any:
    return asyncio.run(retry(shrink=shrink.on_loop, clock=clock)(call.on_loop)(messages=MESSAGES))


def _by_generator(call: Scripted, shrink: Halving, clock: FakeClock) -> Any:
    @retry(shrink=shrink.plain, clock=clock)
    def chunks(messages: list[str]) -> Generator[Any]:
        yield call(messages)

    (chunk,) = chunks(MESSAGES)
    return chunk


def _by_limited_stream(call: Scripted, shrink: Halving, clock: FakeClock) -> Any:
    @retry(shrink=shrink.on_loop, stream=StreamTimeouts(first=5), clock=clock)
    async def chunks(messages: list[str]) -> AsyncGenerator[Any]:
        yield call(messages)

    async def read() -> Any:
        (chunk,) = [chunk async for chunk in chunks(MESSAGES)]
        return chunk

    return asyncio.run(read())


def _by_loop(call: Scripted, shrink: Halving, clock: FakeClock) -> Any:
    for attempt in retrying(shrink=shrink.plain, clock=clock):
        with attempt:
            return call(attempt.messages(MESSAGES))
    return None


def _by_chain(call: Scripted, shrink: Halving, clock: FakeClock) -> Any:
    policy = ChainPolicy(shrink=shrink.plain)
    return Chain(_entry(call), _entry(call), policy=policy, clock=clock).call(MESSAGES)


def _by_async_chain(call: Scripted, shrink: Halving, clock: FakeClock) -> Any:
    policy = ChainPolicy(shrink=shrink.on_loop)
    return asyncio.run(Chain(_entry(call.on_loop), policy=policy, clock=clock).acall(messages=MESSAGES))


def _by_chain_of_streams(call: Scripted, shrink: Halving, clock: FakeClock) -> Any:
    def chunks(messages: list[str]) -> Generator[Any]:
        yield call(messages)

    chain = Chain(_entry(chunks), policy=ChainPolicy(shrink=shrink.plain), clock=clock)
    (chunk,) = chain.stream(MESSAGES)
    return chunk


def _entry(call: Callable[..., Any]) -> Entry[Any]:
    return Entry(provider="acme", model="large", call=call)


WAYS = [
    _by_function, _by_keyword, _by_coroutine, _by_generator, _by_limited_stream, _by_loop, _by_chain, _by_async_chain,
    _by_chain_of_streams,
]  # fmt: skip


def _messages(call: Scripted) -> list[Any]:
    """The messages of each call."""
    return [kwargs.get("contents") or kwargs.get("messages") or args[0] for args, kwargs in call.calls]


@pytest.mark.parametrize("read", WAYS)
def test_the_call_is_repeated_once_with_shorter_messages(read: Read) -> None:
    call, shrink, clock = Scripted(too_long(), "an answer"), Halving(), FakeClock()

    with collect_ledgers() as ledgers:
        assert read(call, shrink, clock) == "an answer"

    assert _messages(call) == [MESSAGES, ["three", "four"]]
    assert (shrink.calls, clock.slept) == (1, [])
    assert [(row.kind, row.reason) for row in ledgers[-1].attempts] == [
        ("provider.context_too_long", SHORTENED),
        (None, "it succeeded"),
    ]


@pytest.mark.parametrize("read", WAYS)
def test_messages_that_are_still_too_long_are_not_shortened_again(read: Read) -> None:
    call, shrink = Scripted(too_long()), Halving()

    error = caught(lambda: read(call, shrink, FakeClock()))

    assert failwell.describe(error).kind == "provider.context_too_long"
    assert (call.count, shrink.calls) == (2, 1)
    assert [row.reason for row in ledger(error).attempts] == [
        SHORTENED,
        "giving up, a content failure does not go away by itself",
    ]


def test_a_refused_call_spends_no_attempt_of_the_failures_after_it() -> None:
    clock = FakeClock()
    call = Scripted(overloaded(), too_long(), overloaded(), "an answer")

    assert retry(shrink=Halving().plain, clock=clock, attempts=3)(call)(MESSAGES) == "an answer"
    assert call.count == 4


def test_messages_that_cannot_be_shortened_are_not_sent_again() -> None:
    def fail(messages: list[str]) -> list[str]:
        raise KeyError(len(messages))

    ways: list[tuple[Any, tuple[Any, ...]]] = [
        (lambda messages: messages, (MESSAGES,)),  # pyright: ignore[reportUnknownLambdaType]
        (list, (MESSAGES,)),
        (lambda _: None, (MESSAGES,)),  # pyright: ignore[reportUnknownLambdaType]
        (fail, (MESSAGES,)),
        (Halving().plain, ("a prompt alone",)),
    ]
    for shrink, args in ways:
        call = Scripted(too_long())
        chain = Chain(_entry(call), policy=ChainPolicy(shrink=shrink), clock=FakeClock())

        errors = [
            caught(lambda: retry(shrink=shrink, clock=FakeClock())(call)(*args)),  # noqa: B023  (called at once)
            caught(lambda: chain.call(*args)),  # noqa: B023  (called at once)
        ]

        assert call.count == 2
        for error in errors:
            (row,) = ledger(error).attempts
            assert "the messages could not be shortened" in (row.reason or "")


def test_without_shrink_nothing_is_repeated() -> None:
    call = Scripted(too_long())

    caught(lambda: retry(clock=FakeClock())(call)(MESSAGES))

    assert call.count == 1


def test_shrinking_is_a_decision() -> None:
    report = failwell.describe(too_long())
    never = read_policy({"rule": [{"match": {"kind": "provider.context_too_long"}, "retryable": False}]})
    spent = ((Budget(attempts=1), Spent(attempts=1)),)

    assert isinstance(decide(Policy(), report, RetryState(attempts=1, may_shrink=True)), Shrink)
    assert isinstance(decide(Policy(), report, RetryState(attempts=1)), GiveUp)
    assert isinstance(decide(never, report, RetryState(attempts=1, may_shrink=True)), GiveUp)
    assert isinstance(
        decide(Policy(), report, RetryState(attempts=1, budgets=spent, may_shrink=True)), GiveUp
    )
    assert isinstance(decide(Policy(), report, RetryState(attempts=1, visible=True, may_shrink=True)), GiveUp)
    other = failwell.describe(overloaded())
    assert isinstance(decide(Policy(), other, RetryState(attempts=1, may_shrink=True)), Retry)


def test_a_shrink_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="shrink"):
        RetryOptions(shrink=3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="shrink"):
        ChainPolicy(shrink=3)  # pyright: ignore[reportArgumentType]


def test_a_real_client_sends_the_shorter_messages() -> None:
    openai: Any = pytest.importorskip("openai")
    call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "a line " * 1_000},
        {"role": "assistant", "content": "I have read it."},
        {"role": "user", "content": "Go on."},
    ]
    with lab() as fake:
        client = openai.OpenAI(
            api_key="sk-lab", base_url=fake.url("openai", "context_too_long"), max_retries=0
        )

        @retry(shrink=drop_oldest_tool_results)
        def ask(messages: list[Any]) -> Any:
            return client.chat.completions.create(model="gpt-4o-mini", messages=messages)

        with client:
            error = caught(lambda: ask(messages))
        first, second = [request.body["messages"] for request in fake.requests("openai", "context_too_long")]

    assert failwell.describe(error).kind == "provider.context_too_long"
    assert first == messages
    assert [message for message in second if message["role"] != "tool"] == [
        message for message in messages if message["role"] != "tool"
    ]
    assert second[2]["tool_call_id"] == "call_1"
    assert len(second[2]["content"]) < 100
