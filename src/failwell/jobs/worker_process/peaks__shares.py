"""The memory of several processes together, counting shared pages once.

A forked process shares its memory with its parent until one of them writes to it. The kernel reports each
process's proportional share, but walks its pages for that: about 30 ms per gigabyte. So the share is measured
now and then, and kept as a ratio to the resident size, which costs nothing to read.
"""

from collections.abc import Sequence
from time import monotonic

from ...processes.tree import memory_shares, resident_mb

_FRESH = 1.0
"""Seconds for which a ratio is used while the processes are the same."""
_REST = 20.0
"""The pause after a measurement, as a multiple of its duration: measuring may use a twentieth of one processor."""
_LONGEST_REST = 10.0


class Shares:
    """Measures and remembers how much of the processes' memory is shared."""

    def __init__(self) -> None:
        self._pids: frozenset[int] = frozenset()
        self._ratio = 1.0
        self._measured_at = 0.0
        self._cost = 0.0

    def held_mb(self, pids: Sequence[int]) -> float:
        """Megabytes that these processes hold together.

        A process that started since the last measurement is ignored until the next: most are forks, and a sum that
        is too high would be recorded as a peak.
        """
        if len(pids) < 2:
            return sum(resident_mb(pid) for pid in pids)
        now = monotonic()
        age = now - self._measured_at
        is_due = frozenset(pids) != self._pids or age > _FRESH
        if not self._pids or (is_due and age > min(_LONGEST_REST, _REST * self._cost)):
            # Both values from the same moment, or the ratio would include memory that was allocated in between.
            pairs = [memory_shares(pid) for pid in pids]
            whole = sum(rss for rss, _ in pairs)
            self._ratio = min(1.0, sum(pss for _, pss in pairs) / whole) if whole > 0 else 1.0
            self._pids, self._measured_at = frozenset(pids), monotonic()
            self._cost = self._measured_at - now
        return self._ratio * sum(resident_mb(pid) for pid in pids if pid in self._pids)
