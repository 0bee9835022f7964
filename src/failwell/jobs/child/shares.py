"""What several processes hold together: pages that they share count once.

A process that was forked shares its memory with its parent until one of them writes to it. The kernel tells
each process's fair share, and has to walk its pages to do so: about 30 ms for each gigabyte. So it is asked
now and then, and what it said is kept as the ratio to what can be read for nothing.
"""

from collections.abc import Sequence
from time import monotonic

from ...processes.tree import resident_mb

_FRESH = 1.0
"""Seconds for which a ratio is good while the same processes are there."""
_REST = 20.0
"""How many times as long as the asking took nothing is asked again: it may take a twentieth of one processor."""
_LONGEST_REST = 10.0


class Shares:
    """Remembers how much of what the processes hold is shared."""

    def __init__(self) -> None:
        self._pids: frozenset[int] = frozenset()
        self._ratio = 1.0
        self._measured_at = 0.0
        self._cost = 0.0

    def held_mb(self, pids: Sequence[int]) -> float:
        """Megabytes that these processes hold together.

        One that came since the last asking, when it is too early for another, counts with the next: most are
        copies, and what is counted too high would be remembered as a peak.
        """
        if len(pids) < 2:
            return sum(resident_mb(pid) for pid in pids)
        now = monotonic()
        age = now - self._measured_at
        is_due = frozenset(pids) != self._pids or age > _FRESH
        if not self._pids or (is_due and age > min(_LONGEST_REST, _REST * self._cost)):
            # Both from the same moment, or the ratio would hold what was taken in between.
            pairs = [_share(pid) for pid in pids]
            whole = sum(rss for rss, _ in pairs)
            self._ratio = min(1.0, sum(pss for _, pss in pairs) / whole) if whole > 0 else 1.0
            self._pids, self._measured_at = frozenset(pids), monotonic()
            self._cost = self._measured_at - now
        return self._ratio * sum(resident_mb(pid) for pid in pids if pid in self._pids)


def _share(pid: int) -> tuple[float, float]:
    """What a process holds, and its fair share of that; the same twice where the kernel does not tell."""
    rss = pss = None
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for row in file:
                if row.startswith(b"Rss:"):
                    rss = int(row.split()[1]) / 1024
                elif row.startswith(b"Pss:"):
                    pss = int(row.split()[1]) / 1024
                    break
    except (OSError, ValueError, IndexError):
        rss = pss = None
    if rss is None or pss is None:
        resident = resident_mb(pid)
        return resident, resident
    return rss, pss
