"""A clock for tests: sleeping takes no time, and every sleep is recorded."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush

_IDLE_ROUNDS = 25
"""Rounds of the event loop without a new sleeper, after which all tasks count as asleep."""


class FakeClock:
    """Time that passes only when code sleeps, or when the test advances it.

    On an event loop the tasks that sleep side by side wake in the order of their times, as they would
    with a real clock.
    """

    def __init__(self, start: datetime = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)) -> None:
        self.slept: list[float] = []
        """Every requested sleep, in order."""
        self._start = start
        self._passed = 0.0
        self._planned: list[tuple[float, int, Callable[[], object]]] = []
        self._sleepers: list[tuple[float, int]] = []
        self._count = 0

    def now(self) -> datetime:
        """The time of day."""
        return self._start + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        """Seconds since the clock was created."""
        return self._passed

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass; what was planned for them happens at its time."""
        self._go(self._passed + seconds)

    def at(self, seconds: float, action: Callable[[], object]) -> None:
        """Do `action` when the clock reads `seconds`; if it returns `True`, the sleeper wakes up."""
        self._count += 1
        heappush(self._planned, (seconds, self._count, action))

    def sleep(self, seconds: float) -> None:
        """Let `seconds` pass at once."""
        self.slept.append(seconds)
        self._go(self._passed + seconds)

    async def asleep(self, seconds: float) -> None:
        """Let `seconds` pass as soon as every other task is asleep too."""
        from asyncio import sleep

        self.slept.append(seconds)
        self._count += 1
        sleeper = (self._passed + seconds, self._count)
        heappush(self._sleepers, sleeper)
        idle, last_count = 0, self._count
        try:
            while self._passed < sleeper[0]:
                await sleep(0)
                idle = idle + 1 if last_count == self._count else 0
                last_count = self._count
                if idle >= _IDLE_ROUNDS and self._sleepers[0] == sleeper and self._go(sleeper[0]):
                    return
        finally:
            self._sleepers.remove(sleeper)
            self._sleepers.sort()
            self._count += 1

    def _go(self, until: float) -> bool:
        """Advance to `until`; whether a planned action woke the sleeper before."""
        while self._planned and self._planned[0][0] <= until:
            at, _, action = heappop(self._planned)
            self._passed = max(self._passed, at)
            if action() is True:
                return True
        self._passed = max(self._passed, until)
        return False
