"""Pages for people: the first report of a failure in a window is critical, its repeats are not.

Logs, OpenTelemetry and Sentry each have their own memory, so that each of them gets the first one.
"""

import time
from collections.abc import Callable
from threading import Lock
from typing import Protocol

from failwell.errors.report import ErrorReport, Severity

HOUR = 3600.0


class SharedWindow(Protocol):
    """Something that several processes ask whether a name is the first one for a while."""

    def is_first(self, name: str, seconds: float) -> bool:
        """Whether nobody has asked for `name` within `seconds`."""
        ...


class PageWindow:
    """Remembers which failures a person has been called for. Thread-safe, and bounded."""

    def __init__(
        self,
        seconds: float = HOUR,
        *,
        most: int = 4096,
        store: SharedWindow | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Remember nothing yet.

        Args:
            seconds: How long repeats of a failure call nobody.
            most: How many failures are remembered.
            store: Shares the memory between processes: `SqliteLimits` or `RedisLimits`.
            monotonic: Where the time comes from.

        Raises:
            ValueError: a number makes no sense.
        """
        if not seconds > 0 or most < 1:
            raise ValueError("`seconds` and `most` of a window must be positive")
        self._seconds = seconds
        self._most = most
        self._store = store
        self._monotonic = monotonic
        self._lock = Lock()
        self._ends: dict[str, float] = {}

    def severity(self, report: ErrorReport, channel: str = "") -> Severity:
        """The severity of `report` on a channel: a repeat within the window is an error, and no longer critical."""
        severity = report.severity
        if severity is Severity.CRITICAL and not self._is_first(f"{channel}/{report.fingerprint}"):
            return Severity.ERROR
        return severity

    def _is_first(self, name: str) -> bool:
        now = self._monotonic()
        with self._lock:
            if now < self._ends.get(name, now):
                return False
            # The newest are at the end.
            self._ends.pop(name, None)
            self._ends[name] = now + self._seconds
            if len(self._ends) > self._most:
                del self._ends[next(iter(self._ends))]
        return self._store is None or self._store.is_first(name, self._seconds)


_window = [PageWindow()]


def page_severity(report: ErrorReport, channel: str) -> Severity:
    """The severity of `report` by the window of this process."""
    return _window[0].severity(report, channel)


def set_page_window(window: PageWindow) -> PageWindow:
    """Make `window` the one that logs, OpenTelemetry and Sentry use in this process; returns the one before."""
    before, _window[0] = _window[0], window
    return before
