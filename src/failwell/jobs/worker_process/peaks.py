"""Measures memory: the peak of this process, and what several processes hold together, with shared pages counted once."""

import sys
from collections.abc import Sequence
from time import monotonic
from typing import Any

from ...processes.tree import memory_shares, resident_mb
from .failure_report import attempt


def ram_peak_mb() -> float:
    """The highest resident memory so far; 0 if the system does not record it."""
    if _rusage is None:
        return 0.0
    peak = _rusage.getrusage(_rusage.RUSAGE_SELF).ru_maxrss
    return round(peak / 1048576 if sys.platform == "darwin" else peak / 1024, 1)


def gpu_peak_mb() -> float | None:
    """The highest amount that torch or jax allocated on all devices; `None` if neither is in use."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is None and jax is None:
        return None
    # An error of the framework while measuring must not fail the call.
    return attempt(lambda: _allocated_mb(torch, jax), None)


def _allocated_mb(torch: Any, jax: Any) -> float | None:
    cuda: Any = getattr(torch, "cuda", None)
    if cuda is not None and cuda.is_initialized():
        reserved = sum(cuda.max_memory_reserved(device) for device in range(cuda.device_count()))
        return round(reserved / 1048576, 1)
    if jax is not None:
        stats = [device.memory_stats() for device in jax.local_devices()]
        peaks = [entry["peak_bytes_in_use"] for entry in stats if entry and "peak_bytes_in_use" in entry]
        return round(sum(peaks) / 1048576, 1) if peaks else None
    return None


def peaks() -> list[float | None]:
    """Both peaks of a worker's memory, for a frame."""
    return [ram_peak_mb(), gpu_peak_mb()]


try:
    import resource as _rusage
except ImportError:
    _rusage = None


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
