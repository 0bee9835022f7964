"""What processes have written so far, by the kernel's own count: whose doing it is that the disk fills up."""

from collections.abc import Iterable, Mapping
from pathlib import Path

_MB = 1024.0 * 1024.0

Written = Mapping[int, float]
"""Process → the megabytes that it, and those of its children that have ended, wrote in their lives."""


def written(pids: Iterable[int], proc: Path = Path("/proc")) -> Written | None:
    """What these processes wrote; `None` where nobody tells."""
    made: dict[int, float] = {}
    for pid in pids:
        try:
            text = (proc / str(pid) / "io").read_text(encoding="ascii")
            told = {name: float(much) for name, much in (line.split(": ") for line in text.splitlines())}
            # Either count misses something: the first what is written through memory, the second what
            # goes to file systems without a device. What goes to neither disk nor file is in the first.
            made[pid] = max(told["wchar"], told["write_bytes"]) / _MB
        except (OSError, ValueError, KeyError):
            continue
    return made or None


def since(before: Written | None, now: Written | None) -> float | None:
    """What was written between two looks; whoever was not there at the first began with nothing."""
    if now is None:
        return None
    return sum(much - (before or {}).get(pid, 0.0) for pid, much in now.items())
