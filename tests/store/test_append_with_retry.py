"""Appending to a store that is unavailable for a while."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from failwell.store.event import Event, Fact
from failwell.store.faults import StoreFull, StoreUnavailable
from failwell.store.run_store import append_with_retry
from failwell.testing.memory_store import MemoryStore
from tests.store.building import a_fact, a_run


class Away(MemoryStore):
    """A store that refuses so many times."""

    def __init__(self, *refusals: Exception) -> None:
        super().__init__()
        self.refusals = list(refusals)

    def append(self, run: str, facts: Sequence[Fact]) -> list[Event]:
        if self.refusals:
            raise self.refusals.pop(0)
        return super().append(run, facts)


class Waits:
    """A clock that lets time pass by writing it down."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return datetime.fromtimestamp(0, UTC)

    def monotonic(self) -> float:
        return sum(self.slept)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def asleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def gone(*, retryable: bool | None = None) -> StoreUnavailable:
    return StoreUnavailable(message="gone", retryable=retryable)


def test_a_store_that_comes_back_gets_everything_once() -> None:
    store, clock = Away(gone(), gone()), Waits()
    a_run(store)

    told = asyncio.run(append_with_retry(store, "r1", [a_fact()], clock=clock))

    assert [event.seq for event in told] == [1]
    assert clock.slept == [2.0, 4.0]
    assert store.run("r1").events == 2


def test_a_store_that_stays_away_is_tried_three_times() -> None:
    store, clock = Away(gone(), gone(), gone(), gone()), Waits()
    a_run(store)

    with pytest.raises(StoreUnavailable):
        asyncio.run(append_with_retry(store, "r1", [a_fact()], clock=clock))

    assert (clock.slept, len(store.refusals)) == ([2.0, 4.0], 1)


@pytest.mark.parametrize("refusal", [gone(retryable=False), StoreFull(message="full")])
def test_what_waiting_does_not_cure_is_not_waited_for(refusal: Exception) -> None:
    store, clock = Away(refusal), Waits()
    a_run(store)

    with pytest.raises(type(refusal)):
        asyncio.run(append_with_retry(store, "r1", [a_fact()], clock=clock))

    assert clock.slept == []
