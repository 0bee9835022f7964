"""The peak memory of this process, as reported by the kernel and by the GPU framework."""

import sys
from typing import Any

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
