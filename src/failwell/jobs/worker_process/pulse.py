"""The worker's pulse: a thread that regularly sends signs of progress and the memory in use."""

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ...processes.tree import children_below
from ...processes.wire import Line
from .call import signs
from .peaks import Shares, ram_peak_mb

_NOISE = 262_144
"""Bytes per pulse below which reading and writing is not a sign of progress: the pulse itself reads a little."""


class Pulse(threading.Thread):
    """Sends the worker's pulse to the host several times a second."""

    def __init__(self, line: Line, interval: float, in_flight: Callable[[], int]) -> None:
        super().__init__(name="failwell-pulse", daemon=True)
        self._line = line
        self._interval = interval
        self._in_flight = in_flight
        self._guardian = os.getppid()
        self._bytes = 0
        self._busy = 0
        self._peak = 0.0
        self._shares = Shares()

    def run(self) -> None:
        beat = 0
        while True:
            beat += 1
            try:
                self._line.send(self._frame())
            except OSError:
                return
            # An idle worker sends its pulse less often.
            idle = beat > 8 and not self._in_flight()
            time.sleep(self._interval * (4 if idle else 1))

    def _frame(self) -> dict[str, Any]:
        moved = _bytes_moved()
        if moved - self._bytes > _NOISE:
            self._busy += 1
        self._bytes = moved
        # From the guardian down, so that orphaned descendants of the worker are counted too.
        pids = children_below(self._guardian) or [os.getpid()]
        rss = self._shares.held_mb(pids)
        self._peak = max(self._peak, rss)
        return {
            "type": "pulse",
            "signs": signs(),
            "work": self._busy + len(sys.modules),
            "cpu": time.process_time(),
            "rss": rss,
            "peak": max(self._peak, ram_peak_mb()),
            "pids": pids,
            "calls": self._in_flight(),
            "every": self._interval,
        }


def _bytes_moved() -> int:
    try:
        with open("/proc/self/io", "rb") as file:
            rows = file.read().split()
        return int(rows[1]) + int(rows[3])
    except (OSError, ValueError, IndexError):
        return 0
