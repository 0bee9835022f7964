"""A failure after part of a result was delivered is repeated by no loop around it, and its report says why."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from functools import partial
from typing import Any

import pytest

import failwell
from failwell import Chain, Entry, Fault, Policy
from failwell.calls.backoff import Backoff
from failwell.calls.policy import Match, Rule
from failwell.calls.retry import retry
from failwell.errors import NotBefore
from failwell.errors.axes import Certainty
from failwell.integrations.stamina import retry_on
from failwell.testing.clock import FakeClock
from tests.calls.acting import caught, ledger, overloaded

pytestmark = pytest.mark.filterwarnings("ignore::failwell.calls.NestedRetries")


class Consumer:
    """Reads streams to their end and keeps what it received."""

    def __init__(self) -> None:
        self.items: list[int] = []

    def by_generator(self) -> None:
        @retry(attempts=3, clock=FakeClock(), name="stream")
        def numbers() -> Generator[int]:
            yield 1
            raise overloaded()

        self.items.extend(numbers())

    def by_async_generator(self) -> None:
        @retry(attempts=3, clock=FakeClock(), name="stream")
        async def numbers() -> AsyncGenerator[int]:
            yield 1
            raise overloaded()

        async def consume() -> None:
            async for number in numbers():
                self.items.append(number)

        asyncio.run(consume())

    def by_chain(self) -> None:
        self.items.extend(_chain().stream())

    def by_wrapping(self) -> None:
        try:
            self.by_generator()
        except Fault as error:
            raise Fault(message="the step failed") from error

    def by_hiding(self) -> None:
        try:
            self.by_chain()
        except Fault:
            raise overloaded() from None

    def by_swallowing(self) -> None:
        caught(self.by_generator)
        raise overloaded()

    def by_open_question(self) -> None:
        @retry(attempts=3, clock=FakeClock(), name="stream")
        def numbers() -> Generator[int]:
            yield 1
            raise TimeoutError("the read operation timed out")

        self.items.extend(numbers())

    def by_long_delay(self) -> None:
        @retry(attempts=3, clock=FakeClock(), name="stream")
        def numbers() -> Generator[int]:
            yield 1
            raise Fault(
                kind="provider.rate_limited",
                not_before=NotBefore(after=3600, source="header retry-after"),
            )

        self.items.extend(numbers())


def _chain() -> Chain[Iterator[int]]:
    def numbers() -> Iterator[int]:
        yield 1
        raise overloaded()

    return Chain(Entry(provider="p", model="m", call=numbers, attempts=3), clock=FakeClock(), name="stream")


@pytest.mark.parametrize(
    "consume",
    [
        Consumer.by_generator, Consumer.by_async_generator, Consumer.by_chain, Consumer.by_wrapping,
        Consumer.by_hiding, Consumer.by_swallowing, Consumer.by_open_question, Consumer.by_long_delay,
    ],
)  # fmt: skip
def test_no_loop_around_it_repeats_it(consume: Callable[[Consumer], None]) -> None:
    consumer = Consumer()

    error = caught(
        retry(attempts=3, backoff=Backoff(first=0.0), name="outer", idempotent=True)(
            partial(consume, consumer)
        )
    )

    report = failwell.describe(error)
    assert consumer.items == [1]
    assert (report.certainty, report.retryable) == (Certainty.PARTIAL, False)
    assert [(row.layer, row.certainty) for row in report.attempts] == [("stream", Certainty.PARTIAL)]
    assert "retrying" not in (report.attempts[-1].reason or "")
    assert ledger(error).delivered
    assert not isinstance(error, failwell.Parked)


@pytest.mark.parametrize("consume", [Consumer.by_generator, Consumer.by_chain])
def test_the_report_of_a_stream_that_failed_after_a_part_says_so(consume: Callable[[Consumer], None]) -> None:
    error = caught(lambda: consume(Consumer()))

    report = failwell.describe(error)
    assert (report.kind, report.certainty, report.retryable) == (
        "provider.overloaded",
        Certainty.PARTIAL,
        False,
    )
    assert retry_on(error) is False
    assert failwell.ErrorReport.from_json(report.to_json()).retryable is False


def test_a_chain_around_it_tries_no_other_entry() -> None:
    consumer = Consumer()
    chain = Chain(
        Entry(provider="p", model="m", call=consumer.by_generator, attempts=3),
        Entry(provider="q", model="m", call=lambda: consumer.items.append(2)),
        clock=FakeClock(),
    )

    assert failwell.describe(caught(chain.call)).certainty is Certainty.PARTIAL
    assert consumer.items == [1]


def test_a_rule_that_names_such_failures_allows_it_for_a_consumer_that_discards_the_part() -> None:
    consumer = Consumer()
    rule = Rule(match=Match.of(certainty="partial"), retryable=True)

    caught(retry(policy=Policy(rules=(rule,)), clock=FakeClock())(consumer.by_generator))

    assert consumer.items == [1, 1, 1]


def test_a_failure_before_the_first_item_is_repeated_as_ever() -> None:
    outcomes: list[Any] = [overloaded(), 1]

    @retry(clock=FakeClock())
    def numbers() -> Generator[int]:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        yield outcome

    assert list(numbers()) == [1]
