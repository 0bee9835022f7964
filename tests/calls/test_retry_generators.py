"""Generators under `retry`: everything a caller can do with one works as without it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from functools import partial
from typing import Any

import pytest

from failwell.calls.backoff import Backoff
from failwell.calls.chain.chain import Chain, Entry
from failwell.calls.circuit_breaker import BreakerPolicy, CallTarget
from failwell.calls.guard import Guard
from failwell.calls.retry import retry
from failwell.errors.context import ledger_of
from failwell.testing.clock import FakeClock
from tests.calls.acting import Scripted, caught, overloaded

AT_ONCE = Backoff(curve="fixed", first=0.0)


class Averages:
    """A generator function that fails `failures` times, then averages what is sent to it."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.closed = 0

    def plain(self) -> Generator[float, float | None, str]:
        self._begin()
        total = count = 0.0
        try:
            while True:
                try:
                    sent = yield total / max(count, 1)
                except KeyError:
                    total, count = 0.0, 0.0
                    continue
                if sent is None:
                    return f"{count:g} numbers"
                total, count = total + sent, count + 1
        finally:
            self.closed += 1

    async def on_loop(self) -> AsyncGenerator[float, float | None]:
        source = self.plain()
        try:
            item = next(source)
            while True:
                try:
                    sent = yield item
                except KeyError as error:
                    item = source.throw(error)
                else:
                    try:
                        item = source.send(sent)
                    except StopIteration:
                        return
        finally:
            source.close()

    def _begin(self) -> None:
        if self.failures:
            self.failures -= 1
            raise overloaded()


def test_a_generator_keeps_its_return_value() -> None:
    def collect() -> Generator[float, None, str]:
        return (yield from retry(clock=FakeClock())(Averages(2).plain)())

    generator = collect()

    assert next(generator) == 0
    with pytest.raises(StopIteration) as end:
        next(generator)
    assert end.value.value == "0 numbers"


def test_a_generator_that_yields_nothing_keeps_its_return_value_too() -> None:
    left = [overloaded()]

    @retry(clock=FakeClock())
    def empty() -> Generator[int, None, str]:
        if left:
            raise left.pop()
        return "nothing"
        yield 1

    with pytest.raises(StopIteration) as end:
        next(empty())
    assert end.value.value == "nothing"


def test_what_is_sent_and_thrown_reaches_the_generator_from_the_first_item_on() -> None:
    averages = Averages(1)
    generator = retry(clock=FakeClock())(averages.plain)()

    answers = [next(generator), generator.send(4), generator.send(8), generator.throw(KeyError())]
    answers += [generator.send(3)]

    assert answers == [0, 4, 6, 0, 3]
    generator.close()
    assert averages.closed == 1


def test_what_is_thrown_at_the_first_item_reaches_the_generator() -> None:
    generator = retry(clock=FakeClock())(Averages(0).plain)()

    assert (next(generator), generator.throw(KeyError()), generator.send(5)) == (0, 0, 5)


def test_an_async_generator_is_sent_to_thrown_into_and_closed() -> None:
    averages = Averages(1)

    async def talk() -> list[float]:
        generator = retry(clock=FakeClock())(averages.on_loop)()
        answers = [await anext(generator), await generator.asend(4), await generator.asend(8)]
        answers += [await generator.athrow(KeyError()), await generator.asend(3)]
        await generator.aclose()
        return answers

    assert asyncio.run(talk()) == [0, 4, 6, 0, 3]
    assert averages.closed == 1


def test_what_the_caller_throws_in_is_no_failure_of_the_call() -> None:
    guard = Guard(breaker=BreakerPolicy(failures=1), clock=FakeClock())
    mine = ConnectionRefusedError(111, "the caller's own")
    options: Any = {"provider": "acme", "guard": guard, "clock": FakeClock()}

    def throw() -> None:
        generator = retry(**options)(Averages(0).plain)()
        next(generator)
        generator.throw(mine)

    async def throw_async() -> None:
        generator = retry(**options)(Averages(0).on_loop)()
        await anext(generator)
        await generator.athrow(mine)

    assert caught(throw) is mine
    assert caught(lambda: asyncio.run(throw_async())) is mine
    assert ledger_of(mine) is None
    assert [state.breaker.position for state in guard.states()] == []


def test_a_probe_whose_stream_is_closed_early_counts_as_answered() -> None:
    clock = FakeClock()
    guard = Guard(breaker=BreakerPolicy(failures=1, rest=30), clock=clock)
    called = CallTarget("acme", model="m")

    def chunks() -> Generator[str]:
        yield "one"
        yield "two"

    async def chunks_async() -> AsyncGenerator[str]:
        yield "one"
        yield "two"

    async def close_early(stream: AsyncGenerator[str]) -> None:
        await anext(stream)
        await stream.aclose()

    def by_retry() -> None:
        stream = retry(provider="acme", model="m", guard=guard, clock=clock)(chunks)()
        next(stream)
        stream.close()

    def by_retry_async() -> None:
        asyncio.run(close_early(retry(provider="acme", guard=guard, clock=clock)(chunks_async)()))

    def by_chain() -> None:
        chain = Chain(Entry(provider="acme", model="m", call=chunks), guard=guard, clock=clock)
        stream: Any = chain.stream()
        next(stream)
        stream.close()

    def by_chain_async() -> None:
        chain = Chain(Entry(provider="acme", model="m", call=chunks_async), guard=guard, clock=clock)
        asyncio.run(close_early(chain.astream()))  # pyright: ignore[reportArgumentType]

    for probe in (by_retry, by_retry_async, by_chain, by_chain_async):
        caught(retry(provider="acme", model="m", guard=guard, clock=clock)(Scripted(overloaded())))
        assert guard.closed(called) is not None
        clock.advance(31)
        probe()
        assert {state.breaker.position for state in guard.states()} == {"closed"}, probe


def test_a_probe_that_is_closed_before_it_answers_frees_its_place() -> None:
    clock = FakeClock()
    guard = Guard(breaker=BreakerPolicy(failures=1, rest=30), clock=clock)
    caught(retry(provider="acme", guard=guard, clock=clock)(Scripted(overloaded())))
    clock.advance(31)

    with pytest.raises(KeyboardInterrupt):
        retry(provider="acme", guard=guard, clock=clock)(Scripted(KeyboardInterrupt))()

    assert guard.states()[0].breaker.position == "half_open"
    assert guard.closed(CallTarget("acme")) is None


class Client:
    """Objects and methods that are called, not functions."""

    def __init__(self) -> None:
        self.script = Scripted(overloaded(), "answer")

    async def __call__(self, question: str) -> str:
        return await self.script.on_loop(question)

    async def ask(self, question: str) -> str:
        return await self.script.on_loop(question)


class Stream(Client):
    """An object whose call is a generator."""

    def __call__(self, question: str) -> Generator[str]:  # type: ignore[override]
        yield self.script(question)


def test_every_async_callable_is_repeated() -> None:
    async def plain(question: str, client: Client) -> str:
        return await client.ask(question)

    makers: list[Callable[[Client], Any]] = [
        lambda client: client,
        lambda client: client.ask,
        lambda client: partial(client, "why?"),
        lambda client: partial(partial(client.ask, "why?")),
        lambda client: partial(plain, client=client),
    ]
    for make in makers:
        client = Client()
        call = make(client)
        question = ["why?"] if not isinstance(call, partial) or call.keywords else []

        looped: Any = retry(clock=FakeClock())
        answer: object = asyncio.run(looped(call)(*question))

        assert (answer, client.script.count) == ("answer", 2)


def test_an_object_whose_call_is_a_generator_is_repeated() -> None:
    assert list(retry(clock=FakeClock())(Stream())("why?")) == ["answer"]


def test_what_cannot_be_called_is_refused_with_a_hint() -> None:
    with pytest.raises(TypeError, match="repeats a function, not int"):
        retry(3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="put `@classmethod` above `@retry`"):
        retry(attempts=3)(classmethod(lambda cls: 1))  # pyright: ignore[reportArgumentType]


def test_an_async_static_method_is_repeated() -> None:
    script = Scripted(overloaded(), "answer")
    looped: Any = retry(clock=FakeClock())(staticmethod(script.on_loop))

    assert asyncio.run(looped()) == "answer"
