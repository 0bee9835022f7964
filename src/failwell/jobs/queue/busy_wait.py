"""Keeps the host and a worker from sleeping between short jobs that follow each other one by one.

Waking a process that sleeps on another core costs both sides 30 to 50 µs, and its caches are cold after it: more than a
third of the time of a job that does little. So both wait for each other without sleeping, half a millisecond at most. That
takes processor time, which is spent only while one job at a time starts within a millisecond after the one before, and
only as long as it helps: on a busy machine the one that waits takes the processor from the one it waits for.
"""

import os
from asyncio import AbstractEventLoop

from failwell.jobs.queue.entry import Entry
from failwell.jobs.worker.protocol import Worker

_CLOSE = 0.001
"""Seconds between two starts of jobs that follow each other closely."""
_SOON = 0.0005
"""Seconds within which a short job is over."""
_WAITS = 64
"""Waits after which it is decided whether they help. The scheduler needs some of them to move the two to different cores."""
_MOST_LATE = 16
_REST, _LONGEST_REST = 1.0, 64.0
"""Seconds until the next attempt, after waits that did not help; each further attempt in vain doubles them."""


def count_cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class BusyWait:
    """Decides, start by start, who waits without sleeping. With a single core nobody does."""

    def __init__(self, loop: AbstractEventLoop, cores: int) -> None:
        self._loop = loop
        self._has_cores = cores > 1
        self._worker: Worker | None = None
        """The worker of the job before, if that was the only one."""
        self._started = 0.0
        """When that job started, by the clock of the loop."""
        self._entry: Entry | None = None
        """The job that the loop stays awake for."""
        self._until = 0.0
        self._woken = 0.0
        self._waits = 0
        self._late = 0
        """How many of them were in vain."""
        self._rest = _REST
        self._rests_until = 0.0

    def before_start(self, worker: Worker, *, is_only_job: bool) -> None:
        """Wake the worker of the next job, so that this happens while the start is recorded. It may be awake already."""
        if not is_only_job:
            self._worker = None
        now = self._loop.time()
        if self._is_allowed(now) and not self._is_awake(worker, now):
            worker.wake()
            self._woken = now

    def started(self, worker: Worker, entry: Entry) -> None:
        """The only job there is was added to what the worker is sent next."""
        now = self._loop.time()
        if not self._is_allowed(now):
            return
        if self._is_awake(worker, now):
            # The worker reads this after it has answered the job.
            worker.await_next()
            if self._entry is None:
                self._loop.call_soon(self._stay_awake)
            self._entry, self._until = entry, now + _SOON
        else:
            self._count(now, is_late=now - self._woken > _SOON)
        self._worker, self._started = worker, now

    def _is_allowed(self, now: float) -> bool:
        return self._has_cores and now >= self._rests_until

    def _is_awake(self, worker: Worker, now: float) -> bool:
        """Whether jobs follow each other so closely that the worker was told to wait for this one."""
        return worker is self._worker and now - self._started < _CLOSE

    def _stay_awake(self) -> None:
        """Let the loop look for events without sleeping until the job is answered, or is no short one."""
        entry, now = self._entry, self._loop.time()
        is_late = now >= self._until
        if entry is not None and entry.is_sent and not is_late:
            self._loop.call_soon(self._stay_awake)
        else:
            self._entry = None
            self._count(now, is_late=is_late)

    def _count(self, now: float, *, is_late: bool) -> None:
        """Remember whether a wait helped. While too many do not, both sleep."""
        self._waits += 1
        self._late += is_late
        if self._waits < _WAITS:
            return
        if self._late > _MOST_LATE:
            self._rests_until, self._worker = now + self._rest, None
            self._rest = min(2 * self._rest, _LONGEST_REST)
        else:
            self._rest = _REST
        self._waits = self._late = 0
