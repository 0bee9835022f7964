"""The calls that wait for a lane. The lanes take turns at reading them from the channel."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from time import monotonic, sleep
from typing import Any

from .call import Call

Order = tuple[dict[str, Any], Call]
"""The frame of a call, and the call."""

TICK = 0.002
"""Seconds after which a call is a long one."""
_RESTS_AFTER = 50
"""Ticks without a new call after which the watcher rests."""


class Inbox:
    """Gives each lane of a worker its next call.

    A free lane reads the next call itself: handing a call to another thread takes longer than a short call does. It
    keeps its turn while it runs a short call. While calls are long, the turn passes to another free lane before the
    call runs. If no lane is free, the watcher reads, so that a cancel reaches a running call.
    """

    def __init__(self, read: Callable[[], None], is_ready: Callable[[], bool]) -> None:
        """Create it.

        Args:
            read: Reads one frame from the channel, and may call `add` or `close`.
            is_ready: Whether there is something to read now.
        """
        self._read = read
        self._is_ready = is_ready
        self._turn = threading.Lock()
        """Held for the thread that may read."""
        self._waiting: deque[Order | None] = deque()
        self._keepers: dict[int, bool] = {}
        """The number of the call whose lane keeps its turn while it runs. Who removes it has the turn."""
        self._number = 0
        """How many calls were taken."""
        self._calls_are_long = False
        self._rests = False
        self._wakes: SimpleQueue[None] = SimpleQueue()

    def add(self, order: Order) -> None:
        """Let a call wait for the next free lane. Only `read` may call this."""
        self._waiting.append(order)

    def close(self, lanes: int) -> None:
        """End the lanes after the calls that wait. Only `read` may call this."""
        self._waiting.extend([None] * lanes)

    def orders(self) -> Iterator[Order]:
        """The calls for one lane, until the worker stops. Its previous call is over when it takes the next."""
        has_turn = False
        while True:
            if not has_turn:
                self._turn.acquire()
            while not self._waiting:
                self._read()
            order = self._waiting.popleft()
            number = self._number = self._number + 1
            keeps_turn = order is not None and not self._calls_are_long
            if keeps_turn:
                self._keepers[number] = True
            else:
                self._turn.release()
            if self._rests:
                # After the number was set: the watcher looks at the number before it rests.
                self._rests = False
                self._wakes.put(None)
            if order is None:
                return
            began = monotonic()
            yield order
            self._calls_are_long = monotonic() - began > TICK
            has_turn = keeps_turn and self._keepers.pop(number, False)

    def watch(self) -> None:
        """Pass on the turn of a lane whose call is long, and read while no lane is free. Never returns."""
        seen, ticks = 0, 0
        while True:
            sleep(TICK)
            number, before = self._number, seen
            seen = number
            if number != before:
                ticks = 0
            elif self._keepers.pop(number, False):
                self._calls_are_long = True
                self._turn.release()
            elif self._turn.acquire(blocking=False):
                # A call that waits is for the next free lane, which needs the turn: do not wait for frames then.
                while not self._waiting or self._is_ready():
                    self._read()
                self._turn.release()
            elif ticks < _RESTS_AFTER:
                ticks += 1
            else:
                self._rest(number)

    def _rest(self, number: int) -> None:
        self._rests = True
        if self._number == number:
            self._wakes.get()
