"""A process that a signal has stopped: it says nothing, it does nothing, and nothing else would tell.

Silence alone proves nothing: the host itself may have been held up, or the machine asleep. So it is looked
at several times, each a good while after the last, and each time the process must have been silent since
and be stopped in the kernel's own words. One that is being traced by a debugger is left alone.
"""

import asyncio
from collections.abc import Callable

from failwell.jobs.process import Process

_LOOKS = 4


class Stillness:
    """Watches one process until it is closed."""

    def __init__(self, process: Process, patience: float, on_still: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = process
        self._pause = patience / _LOOKS
        self._on_still = on_still
        self._heard = process.heard
        self._seen = 0
        self._timer = self._loop.call_later(self._pause, self._look)

    def close(self) -> None:
        """Watch no longer."""
        self._timer.cancel()

    def _look(self) -> None:
        heard = self._process.heard
        is_still = heard == self._heard and _is_stopped(self._process.pid)
        self._heard = heard
        self._seen = self._seen + 1 if is_still else 0
        if self._seen >= _LOOKS:
            self._on_still()
        else:
            self._timer = self._loop.call_later(self._pause, self._look)


def _is_stopped(pid: int | None) -> bool:
    """Whether a signal has stopped the process; `False` where the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"T"
    except (OSError, IndexError):
        return False
