"""The memory limit of one worker, and what the kernel counted when it ended."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from failwell.processes.memory_groups import MemoryGroup

SHARED = "together"
"""The source of a limit that several workers reached together."""
TOTAL = "total"
"""The source of the limit of all workers, if one of them reached it by itself."""
_MOST = 0.9
"""The part of that limit from which on one worker is taken to have reached it by itself."""


class OverLimit(NamedTuple):
    """A process that was ended because it used more memory than it may, in megabytes."""

    used: float
    limit: float
    source: str
    """What the limit is, for the caller that set it; `SHARED` if several workers reached that of all."""


def over_total(used: float, used_together: float, total: float) -> OverLimit:
    """The end of a worker that used `used` megabytes, when all of them used more than they may."""
    if used >= total * _MOST:
        return OverLimit(used, total, TOTAL)
    return OverLimit(used_together, total, SHARED)


class WorkerMemory:
    """Enforces the limit of a worker and everything that it starts.

    The kernel does it where the worker has a control group. Else its guardian does, which looks the more often the nearer
    the worker is to its limit.
    """

    def __init__(self, send: Callable[[str], None], group: MemoryGroup | None) -> None:
        self._send = send
        self._group = group
        self._limit: tuple[float, str] | None = None
        self._counters: tuple[str, ...] = ()
        self._kills_before: int | None = None
        self.over: OverLimit | None = None

    def limit(self, megabytes: float | None, source: str = "") -> None:
        """Set the limit, now or before the worker starts; `None` for no limit."""
        limit = None if megabytes is None else (megabytes, source)
        if limit != self._limit:
            self._limit = limit
            self._apply()

    def began(self, pid: int) -> None:
        """Take in that the worker has begun."""
        if self._group is not None:
            try:
                self._group.add(pid)
            except OSError:
                self.leave_group()
        if self._limit is not None:
            self._apply()
        self._counters = oom_kill_counter(pid)
        self._kills_before = oom_kills(self._counters)

    def exceeded(self, used: float) -> None:
        """Take in that the guardian ends the worker, which uses `used` megabytes."""
        if self._limit is not None:
            self.over = OverLimit(used, *self._limit)

    def ended(self) -> tuple[int | None, OverLimit | None]:
        """How often the kernel killed a process for memory while the worker ran, and the limit that it was ended for."""
        kills = oom_kills(self._counters)
        new_kills = None if kills is None or self._kills_before is None else kills - self._kills_before
        return new_kills, self.over or self._overrun()

    def leave_group(self) -> None:
        """Remove its control group, if it has one."""
        if self._group is not None:
            self._group.remove()
            self._group = None

    def _apply(self) -> None:
        megabytes = None if self._limit is None else self._limit[0]
        if self._group is not None:
            try:
                self._group.limit(megabytes)
            except OSError:
                self.leave_group()
            else:
                return
        self._send(f"limit {megabytes or 0}")

    def _overrun(self) -> OverLimit | None:
        overrun = None if self._group is None else self._group.overrun()
        if overrun is None:
            return None
        used, total = overrun
        if total is not None:
            return over_total(used, total, total)
        return None if self._limit is None else OverLimit(max(used, self._limit[0]), *self._limit)


def oom_kill_counter(pid: int | str) -> tuple[str, ...]:
    """The files that count out-of-memory kills in the control group of `pid`."""
    try:
        text = Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii", errors="replace")
        rows = [row.split(":", 2) for row in text.splitlines()]
    except OSError:
        return ()
    paths: list[str] = []
    for row in rows:
        if len(row) != 3:
            continue
        _, controllers, group = row
        if controllers == "":
            roots, name = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"), "memory.events"
        elif "memory" in controllers.split(","):
            roots, name = ("/sys/fs/cgroup/memory",), "memory.oom_control"
        else:
            continue
        paths += [path for root in roots if Path(path := f"{root}{group.rstrip('/')}/{name}").exists()]
    return tuple(paths)


def oom_kills(counters: Sequence[str]) -> int | None:
    """How many processes the kernel killed for memory, by the highest count in these files; `None` if none can be read."""
    counts: list[int] = []
    for path in counters:
        try:
            rows = Path(path).read_text(encoding="ascii").splitlines()
            counts += [int(row.split()[1]) for row in rows if row.startswith("oom_kill ")]
        except (OSError, ValueError, IndexError):
            continue
    return max(counts) if counts else None
