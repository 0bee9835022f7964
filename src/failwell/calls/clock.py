"""The clock. Everything that waits takes one as a parameter, so tests can pass their own."""

import random  # noqa: TID251  (this is the place)
import time
from datetime import UTC, datetime
from functools import partial
from typing import Protocol


class Clock(Protocol):
    """Tells the time and lets it pass."""

    def now(self) -> datetime:
        """The time of day, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let `seconds` pass, blocking this thread."""
        ...

    async def asleep(self, seconds: float) -> None:
        """Let `seconds` pass, blocking this task only."""
        ...


class SystemClock:
    """The machine's own clock."""

    # Each step of a run reads the time; these are the functions themselves, without a call around them.
    now = staticmethod(partial(datetime.now, UTC))
    monotonic = staticmethod(time.monotonic)

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)  # noqa: TID251  (the one place that may)

    async def asleep(self, seconds: float) -> None:
        """Sleep without blocking the event loop."""
        from asyncio import sleep

        await sleep(seconds)


SYSTEM_CLOCK = SystemClock()


random_jitter = random.random
"""The default source of jitter: a number in [0, 1)."""
