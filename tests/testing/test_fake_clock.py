"""The clock that tests own: time passes when somebody sleeps."""

import asyncio
from datetime import timedelta

from failwell.testing.clock import FakeClock


def test_sleeping_takes_no_time_and_is_written_down() -> None:
    clock = FakeClock()
    began = clock.now()

    clock.sleep(3600)
    clock.advance(10)

    assert clock.slept == [3600]
    assert clock.monotonic() == 3610
    assert clock.now() - began == timedelta(seconds=3610)


def test_what_is_planned_happens_at_its_time_and_may_wake_the_sleeper() -> None:
    clock = FakeClock()
    seen: list[float] = []
    clock.at(5, lambda: seen.append(clock.monotonic()))
    clock.at(7, lambda: True)

    clock.sleep(60)

    assert seen == [5]
    assert clock.monotonic() == 7


def test_tasks_that_sleep_side_by_side_wake_in_the_order_of_their_times() -> None:
    clock = FakeClock()
    woke: list[tuple[str, float]] = []

    async def sleeper(name: str, *naps: float) -> None:
        for nap in naps:
            await clock.asleep(nap)
        woke.append((name, clock.monotonic()))

    async def run() -> None:
        await asyncio.gather(sleeper("long", 10), sleeper("short", 1), sleeper("naps", 2, 2, 2))

    asyncio.run(run())

    assert woke == [("short", 1), ("naps", 6), ("long", 10)]


def test_a_sleeper_that_is_cancelled_holds_up_nobody() -> None:
    clock = FakeClock()

    async def run() -> float:
        forgotten = asyncio.ensure_future(clock.asleep(1))
        await asyncio.sleep(0)
        forgotten.cancel()
        await clock.asleep(5)
        return clock.monotonic()

    assert asyncio.run(run()) == 5
