"""Keeps the host and a worker from sleeping between short jobs that follow each other one by one.

Waking a process that sleeps on another core costs both sides 30 to 50 µs, and its caches are cold after it: more than a
third of the time of a job that does little. So both wait for each other without sleeping, half a millisecond at most. That
takes processor time, which is spent only while one job at a time starts within a millisecond after the one before, and
only where it helps: on a busy machine the one that waits takes the processor from the one it waits for.
"""

import os
from asyncio import AbstractEventLoop
from math import inf

from failwell.jobs.queue.entry import Entry
from failwell.jobs.workers.protocol import Worker

_CLOSE = 0.001
"""Seconds between two starts of jobs that follow each other closely."""
_SOON = 0.0005
"""Seconds within which a short job is over."""
_APART = 0.005
"""Seconds between two starts that say nothing about either way to wait."""
_TRIAL = 64
"""Jobs for which a way is tried at a time."""
_ROUNDS = 2
"""How often each way is tried before they are compared. During the first jobs the scheduler moves the processes to different cores."""
_MOST_SLOW = 3
"""How many times in a row a way must be slower than the other one was until both are tried again: one may be noise."""
_HOLD, _LONGEST_HOLD = 1024, 65536
"""Jobs until both ways are tried again: at first, and after many trials. Earlier if jobs take longer than the other way took."""


def count_cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class BusyWait:
    """Decides, start by start, who waits without sleeping. With a single core nobody does."""

    def __init__(self, loop: AbstractEventLoop, cores: int) -> None:
        self._loop = loop
        self._has_cores = cores > 1
        self._comparison = Comparison()
        self._worker: Worker | None = None
        """The worker of the job before, if that was the only one."""
        self._started = 0.0
        """When that job started, by the clock of the loop."""
        self._is_awake = False
        """Whether the worker was told to wait for the next job."""
        self._entry: Entry | None = None
        """The job that the loop stays awake for."""
        self._until = 0.0

    @property
    def prefers_awake(self) -> bool:
        """Whether waiting without sleeping is used now: it is the faster way, or is being tried."""
        return self._has_cores and self._comparison.prefers_awake

    def before_start(self, worker: Worker, *, is_only_job: bool) -> None:
        """Wake the worker of the next job, so that this happens while the start is recorded. It may be awake already."""
        if not self._has_cores:
            return
        if not is_only_job:
            self._worker = None
        elif worker is self._worker:
            self._comparison.add(self._loop.time() - self._started)
        if self.prefers_awake and not (self._is_awake and self._follows(worker)):
            worker.wake()

    def started(self, worker: Worker, entry: Entry) -> None:
        """The only job there is was added to what the worker is sent next."""
        if not self._has_cores:
            return
        self._is_awake = self.prefers_awake and self._follows(worker)
        now = self._loop.time()
        if self._is_awake:
            # The worker reads this after it has answered the job.
            worker.await_next()
            if self._entry is None:
                self._loop.call_soon(self._stay_awake)
            self._entry, self._until = entry, now + _SOON
        self._worker, self._started = worker, now

    def _follows(self, worker: Worker) -> bool:
        return worker is self._worker and self._loop.time() - self._started < _CLOSE

    def _stay_awake(self) -> None:
        """Let the loop look for events without sleeping until the job is answered, or is no short one."""
        if self._entry is not None and self._entry.is_sent and self._loop.time() < self._until:
            self._loop.call_soon(self._stay_awake)
        else:
            self._entry = None


class Comparison:
    """Finds out which way is faster by trying both in turns, since it depends on the machine and on what else runs there.

    The faster try of each way counts: what disturbs one only ever adds time.
    """

    def __init__(self) -> None:
        self.prefers_awake = True
        self._rounds = _ROUNDS
        """Rounds of the trial that are left, the present one included; none between trials."""
        self._jobs = 0
        self._seconds = 0.0
        """What the latest jobs took, `_TRIAL` of them at most."""
        self._awake = inf
        """What as many took in the last trial while nobody slept."""
        self._asleep = inf
        self._hold = _HOLD
        self._left = 0
        """Jobs until the next trial."""
        self._slow = 0
        """How many times in a row as many jobs took longer than the other way took."""

    def add(self, seconds: float) -> None:
        """Take in the time between the starts of two jobs that followed each other."""
        if seconds > _APART:
            return
        self._jobs += 1
        self._seconds += seconds
        if self._jobs == _TRIAL:
            self._compare(self._seconds)
            self._jobs, self._seconds = 0, 0.0

    def _compare(self, seconds: float) -> None:
        if not self._rounds:
            self._left -= _TRIAL
            other = self._asleep if self.prefers_awake else self._awake
            self._slow = self._slow + 1 if seconds > other else 0
            if self._slow == _MOST_SLOW:
                # Something else has changed.
                self._left, self._hold = 0, _HOLD
            if self._left <= 0:
                self._rounds, self.prefers_awake, self._slow = _ROUNDS, True, 0
                self._awake = self._asleep = inf
        elif self.prefers_awake:
            self._awake, self.prefers_awake = min(seconds, self._awake), False
        else:
            self._asleep = min(seconds, self._asleep)
            self._rounds -= 1
            self.prefers_awake = self._rounds > 0 or self._awake < self._asleep
            if not self._rounds:
                self._left, self._hold = self._hold, min(2 * self._hold, _LONGEST_HOLD)
