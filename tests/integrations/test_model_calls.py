"""The base of the plugins: one loop for frameworks that pass the call and for those that ask a hook."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.calls.attempt_loop import AttemptEvent, OperationEnded, Parked
from failwell.calls.backoff import Backoff
from failwell.calls.budget import Budget
from failwell.calls.guard import Guard
from failwell.calls.model_calls import ModelCalls, switch_off_sdk_retries
from failwell.calls.retry_options import RetryOptions
from failwell.calls.shared_budget import BudgetExceeded, SharedBudget
from failwell.calls.streams.timeouts import StreamTimedOut, StreamTimeouts
from failwell.calls.task_calls import task_options
from failwell.errors.context import ledger_of
from failwell.testing import FakeClock
from failwell.testing.builders import make_fault
from tests.calls.acting import Scripted, overloaded, rate_limited, told


def test_a_call_that_is_passed_is_repeated_as_its_failures_allow() -> None:
    clock = FakeClock()
    calls = ModelCalls("framework", clock=clock, jitter=lambda: 0.5)
    waits, model = [], Scripted(rate_limited(not_before=told(7.25)), overloaded(), "done")

    answer = calls.run("openai", "gpt", model)
    waits, clock.slept = clock.slept, []
    on_loop = asyncio.run(calls.run_async("openai", "gpt", Scripted(overloaded(), "done").on_loop))

    assert (answer, on_loop, model.count) == ("done", "done", 3)
    assert waits[0] == 7.25
    assert len(waits) == 2


def test_a_hook_that_knows_the_number_of_the_attempt_gets_the_same_decisions() -> None:
    clock = FakeClock()
    events: list[AttemptEvent] = []
    calls = ModelCalls("framework", clock=clock, jitter=lambda: 0.5, watcher=events.append)
    last = overloaded()

    async def one_call(*errors: Exception) -> list[float | None]:
        return [await calls.decide("openai", "gpt", number, error) for number, error in enumerate(errors, 1)]

    async def both() -> tuple[list[float | None], list[float | None]]:
        limited = (rate_limited(not_before=told(7.25)), make_fault(kind="provider.auth"))
        return await asyncio.gather(one_call(overloaded(), overloaded(), last), one_call(*limited))

    waits, other = asyncio.run(both())

    assert waits[-1] is None
    assert [wait is not None for wait in waits] == [True, True, False]
    assert other == [7.25, None]
    ledger = ledger_of(last)
    assert ledger is not None
    assert [row.model for row in ledger.attempts] == ["gpt"] * 3
    assert sum(isinstance(event, OperationEnded) for event in events) == 2


def test_a_wait_that_is_too_long_to_sleep_is_parked() -> None:
    calls = ModelCalls("framework", clock=FakeClock())
    failure = rate_limited(not_before=told(3600.0))

    with pytest.raises(Parked) as wrapped:
        calls.run("openai", "gpt", Scripted(failure))
    with pytest.raises(Parked):
        asyncio.run(calls.decide("openai", "gpt", 1, failure))

    assert ledger_of(wrapped.value) is not None


def test_a_model_call_may_be_repeated_after_a_lost_reply_unless_it_is_declared_otherwise() -> None:
    model, careful = (Scripted(TimeoutError("no reply"), "done") for _ in range(2))

    answer = ModelCalls("framework", clock=FakeClock()).run(None, None, model)
    with pytest.raises(TimeoutError):
        ModelCalls("framework", options=RetryOptions(idempotent=False, clock=FakeClock())).run(
            None, None, careful
        )

    assert (answer, careful.count) == ("done", 1)


def test_guards_and_budgets_count_the_calls_of_all_models() -> None:
    guard, budget = Guard(), SharedBudget(Budget(attempts=2))
    calls = ModelCalls("framework", guard=guard, budget=budget, clock=FakeClock())

    assert [calls.run("openai", name, lambda: "done") for name in ("a", "b")] == ["done", "done"]
    with pytest.raises(BudgetExceeded):
        calls.run("openai", "c", lambda: "done")
    with pytest.raises(BudgetExceeded):
        asyncio.run(calls.decide("openai", "c", 1, overloaded()))


def test_a_wrong_parameter_is_named() -> None:
    wrong: dict[str, Any] = {"attempt": 3}

    with pytest.raises(TypeError, match="no parameter `attempt`"):
        ModelCalls("framework", **wrong)
    with pytest.raises(ValueError, match="attempts"):
        ModelCalls("framework", attempts=0)


@pytest.mark.parametrize("option", [{"shrink": list}, {"stream": StreamTimeouts(idle=1)}])
def test_a_task_refuses_what_it_cannot_keep(option: dict[str, Any]) -> None:
    name = next(iter(option))

    with pytest.raises(TypeError, match=f"`reliability` of celery cannot keep `{name}`"):
        task_options("celery", **option)


def test_the_client_that_a_framework_holds_loses_its_own_retries() -> None:
    sdk: Any = pytest.importorskip("openai")

    class Model:
        client: Any
        other = object()

    class Fixed:
        client = property(lambda _self: sdk.AsyncOpenAI(api_key="k"))

    model, given = Model(), sdk.AsyncOpenAI(api_key="k", max_retries=5)
    model.client = given

    assert switch_off_sdk_retries(model, "client", "absent")
    assert model.client.max_retries == 0
    assert given.max_retries == 5
    assert not switch_off_sdk_retries(model, "other")
    assert not switch_off_sdk_retries(Fixed(), "client")


def test_a_stream_is_opened_again_before_its_first_chunk_and_ends_on_time() -> None:
    clock = FakeClock()
    calls = ModelCalls(
        "acme", clock=clock, stream=StreamTimeouts(first=5, idle=5), backoff=Backoff(first=0.0)
    )
    opened: list[int] = []

    async def chunks(pause: float) -> AsyncIterator[str]:
        yield "a"
        await clock.asleep(pause)
        yield "b"

    async def open_stream(pause: float) -> AsyncIterator[str]:
        opened.append(1)
        if len(opened) == 1:
            await clock.asleep(100)
        return chunks(pause)

    async def read(pause: float) -> list[str]:
        return [chunk async for chunk in calls.astream("p", "m", open_stream, pause)]

    assert asyncio.run(read(1)) == ["a", "b"]
    assert len(opened) == 2
    with pytest.raises(StreamTimedOut):
        asyncio.run(read(100))
    assert len(opened) == 3


def test_messages_that_are_too_long_are_shortened_by_both_ways_to_connect() -> None:
    def shrink(messages: list[str]) -> list[str]:
        return messages[1:]

    calls = ModelCalls("acme", clock=FakeClock(), shrink=shrink)
    sent: list[list[str]] = []

    async def ask(messages: list[str]) -> str:
        sent.append(messages)
        if len(messages) > 1:
            raise make_fault(kind="provider.context_too_long")
        return "an answer"

    async def decide() -> list[str]:
        request = {"messages": ["old", "new"]}
        operation = calls.operation("p", "m")

        def replace(messages: list[str]) -> None:
            request["messages"] = messages

        calls.shrink_with(operation, request["messages"], replace)
        assert await operation.failed_async(make_fault(kind="provider.context_too_long")) == 0.0
        assert await operation.failed_async(make_fault(kind="provider.context_too_long")) is None
        return request["messages"]

    assert asyncio.run(calls.run_async("p", "m", ask, ["old", "new"])) == "an answer"
    assert sent == [["old", "new"], ["new"]]
    assert asyncio.run(decide()) == ["new"]


def test_a_stream_is_repeated_before_its_first_chunk_and_never_after_it() -> None:
    clock = FakeClock()
    calls = ModelCalls("framework", clock=clock, jitter=lambda: 0.5)
    opened: list[str] = []

    def stream(*ends: Exception | None) -> Iterator[str]:
        opened.append("again")
        end = ends[min(len(opened), len(ends)) - 1]
        if len(opened) == 1 and end is not None:
            raise end
        yield "a chunk"
        if end is not None:
            raise end

    async def astream(*ends: Exception | None) -> AsyncIterator[str]:
        for piece in stream(*ends):
            yield piece

    async def collect(*ends: Exception | None) -> list[str]:
        return [piece async for piece in calls.astream("openai", "gpt", lambda: astream(*ends))]

    recovered = list(calls.stream("openai", "gpt", lambda: stream(overloaded(), None)))
    opened.clear()
    on_loop = asyncio.run(collect(rate_limited(not_before=told(7.25)), None))
    opened.clear()
    late = overloaded()
    with pytest.raises(type(late)):
        list(calls.stream("openai", "gpt", lambda: stream(late, late)))

    assert (recovered, on_loop) == (["a chunk"], ["a chunk"])
    assert clock.slept[1] == 7.25
    assert len(opened) == 2
    ledger = ledger_of(late)
    assert ledger is not None
    assert ledger.delivered


def test_a_read_limit_that_ends_a_stream_after_a_chunk_is_a_stream_that_stalled() -> None:
    clock = FakeClock()
    calls = ModelCalls("framework", stream=StreamTimeouts(first=3, idle=2), clock=clock, jitter=lambda: 0.5)
    lost = TimeoutError("the read operation timed out")

    def attempt(chunks: int, error: Exception) -> None:
        with calls.reading() as note_chunk:
            for _ in range(chunks):
                note_chunk()
            raise error

    def read(*, chunks: int, error: Exception) -> None:
        calls.run("openai", "gpt", attempt, chunks, error)

    with pytest.raises(StreamTimedOut) as stalled:
        read(chunks=2, error=lost)
    with pytest.raises(TimeoutError):
        read(chunks=0, error=lost)
    with pytest.raises(ValueError, match="other"):
        read(chunks=2, error=ValueError("other"))

    assert clock.slept == [1.0, 2.0], "before the first chunk it is repeated"
    assert (calls.read_limit, ModelCalls("framework").read_limit) == (2, None)
    assert (stalled.value.phase, stalled.value.seconds, stalled.value.chunks) == ("idle", 2, 2)
    assert describe(stalled.value).kind == "provider.stream_interrupted"
