"""One call in flight: its cancel flag, its progress, and how many items its stream may send."""

import threading
from collections.abc import Callable, Mapping

from ...processes.wire import Line
from .failure_report import attempt, failure_text

_signs = [0]
"""How often any call reported progress; the pulse sends it."""


def signs() -> int:
    """How often the capability reported progress."""
    return _signs[0]


class Call:
    """The job in progress inside a worker: what the author's helpers report, and what the host has requested of it."""

    __slots__ = (
        "_callbacks",
        "_capability",
        "_fraction",
        "_line",
        "_lock",
        "_room",
        "is_cancelled",
        "job",
        "stage",
    )

    def __init__(self, line: Line, job: str | None, capability: str, window: int = 0) -> None:
        self.job = job
        self.is_cancelled = False
        self.stage = "queued"
        """`queued`, `began` or `returned`; an answer with an error says how far the call came."""
        self._line = line
        self._capability = capability
        self._callbacks: list[Callable[[], object]] = []
        self._lock = threading.Lock()
        self._fraction = 0.0
        self._room = threading.Semaphore(window) if window else None

    def progress(self, fraction: float | None, message: str) -> None:
        """Report progress to the host; `None` repeats the last fraction."""
        if fraction is not None:
            number = float(fraction)
            self._fraction = min(1.0, number) if number >= 0 else -1.0
        _signs[0] += 1
        self._line.send(
            {"type": "progress", "job": self.job, "fraction": self._fraction, "message": str(message)[:2000]}
        )

    def usage(self, amounts: Mapping[str, float]) -> None:
        """Report to the host what this call consumed."""
        self._line.send(
            {
                "type": "usage",
                "job": self.job,
                "amounts": {str(unit): float(amount) for unit, amount in amounts.items()},
            }
        )

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Register a callback; it is called at once if the call is already cancelled."""
        with self._lock:
            late = self.is_cancelled
            if not late:
                self._callbacks.append(callback)
        if late:
            callback()
        return lambda: self._forget(callback)

    def _forget(self, callback: Callable[[], object]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    def cancel(self) -> None:
        """Set the flag and call the callbacks in order."""
        with self._lock:
            if self.is_cancelled:
                return
            self.is_cancelled = True
            waiting = list(self._callbacks)
        if self._room is not None:
            self._room.release()
        for callback in waiting:
            # A callback that raises must not prevent the next.
            attempt(callback, None, self._callback_failed)

    def _callback_failed(self, error: Exception) -> None:
        self._line.send(
            {
                "type": "log",
                "job": self.job,
                "stream": "log",
                "level": "WARNING",
                "logger": "failwell",
                "text": f"a cancel callback failed: {failure_text(error)}"[:2000],
            }
        )

    def cancellation(self) -> BaseException:
        """The error to raise after this call was cancelled."""
        from failwell.errors.faults import CapabilityCancelledError

        return CapabilityCancelledError(self._capability)

    def more(self, count: int) -> None:
        """Allow `count` further items, because the host has consumed as many."""
        if self._room is not None:
            self._room.release(count)

    def wait_for_room(self) -> None:
        """Wait until another item may be sent."""
        if self._room is not None:
            self._room.acquire()
        if self.is_cancelled:
            raise self.cancellation()
