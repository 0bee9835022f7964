"""Control groups of version 2 with a memory limit, one for each worker, where this process may create them.

A group that has processes cannot give its groups a memory limit, unless it is the root. So the groups are created
below this process's own group where that works, or below its parent if a service manager delegated that to the service
(`Delegate=yes` with `DelegateSubgroup=`). This process is never moved to another group.
"""

import os
from pathlib import Path
from typing import Self
from uuid import uuid4

from failwell.calls.suppress import suppress

_MB = 1048576
_PREFIX = "failwell-"


class MemoryGroup:
    """The group of one worker and everything that it starts."""

    def __init__(self, folder: Path, above: "MemoryGroups") -> None:
        self._folder = folder
        self._above = above
        folder.mkdir()
        # One process of a worker that is killed alone would leave the others waiting for it.
        _write(folder / "memory.oom.group", "1")
        if (folder / "memory.swap.max").exists():
            _write(folder / "memory.swap.max", "0")

    def add(self, pid: int) -> None:
        """Move a process into the group; what it starts is born there.

        Raises:
            OSError: the kernel refuses it.
        """
        _write(self._folder / "cgroup.procs", str(pid))

    def limit(self, megabytes: float | None) -> None:
        """Set the limit.

        Raises:
            OSError: the kernel refuses it.
        """
        _write(self._folder / "memory.max", "max" if megabytes is None else str(int(megabytes * _MB)))

    def overrun(self) -> tuple[float, float | None] | None:
        """The most memory that the processes of this group used, and the limit of all groups if that was reached and not its own.

        `None` if nothing in it was killed for memory, or the limit of a group above all of these was reached.
        """
        if not _count(self._folder / "memory.events", "oom_kill"):
            return None
        total = None
        if not _count(self._folder / "memory.events.local", "oom"):
            total = self._above.reached_limit()
            if total is None:
                return None
        try:
            peak = float((self._folder / "memory.peak").read_text(encoding="ascii")) / _MB
        except (OSError, ValueError):
            peak = 0.0
        return peak, total

    def remove(self) -> None:
        """Remove the group. One that still has a process is removed with its parent, or by the next host."""
        _remove(self._folder)


class MemoryGroups:
    """A group with a limit for all workers of a host, below which each worker has its own."""

    def __init__(self, home: Path) -> None:
        """Create the group below `home`.

        Raises:
            OSError: it cannot be created, or its groups could not have a limit.
        """
        self._folder = home / f"{_PREFIX}{os.getpid()}-{uuid4().hex[:8]}"
        if "memory" not in _words(home / "cgroup.subtree_control"):
            _write(home / "cgroup.subtree_control", "+memory")
        self._folder.mkdir()
        try:
            _write(self._folder / "cgroup.subtree_control", "+memory")
        except OSError:
            _remove(self._folder)
            raise
        self._number = 0
        self._total: float | None = None

    @classmethod
    def find(cls, mount: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Self | None:
        """Groups where this process may create them; `None` if it may not, or the kernel has no groups of version 2."""
        try:
            rows = own.read_text(encoding="utf-8").splitlines()
        except OSError:
            return None
        path = next((row[3:] for row in rows if row.startswith("0::")), None)
        if path is None or not (mount / "cgroup.controllers").exists():
            return None
        home = mount / path.lstrip("/")
        for folder in (home, home.parent):
            if folder != home and not _is_delegated(folder):
                continue
            if "memory" not in _words(folder / "cgroup.controllers") or not os.access(folder, os.W_OK):
                continue
            _remove_abandoned(folder)
            try:
                return cls(folder)
            except OSError:
                continue
        return None

    def limit(self, megabytes: float) -> None:
        """Set the limit of all workers together.

        Raises:
            OSError: the kernel refuses it.
        """
        _write(self._folder / "memory.max", str(int(megabytes * _MB)))
        self._total = megabytes

    def reached_limit(self) -> float | None:
        """The limit of all workers together, if it was ever reached."""
        return self._total if _count(self._folder / "memory.events.local", "oom") else None

    def group(self) -> MemoryGroup | None:
        """A new group for one worker; `None` if it cannot be created."""
        self._number += 1
        try:
            return MemoryGroup(self._folder / f"worker-{self._number}", self)
        except OSError:
            return None

    def close(self) -> None:
        """Remove the group with those of workers that have ended."""
        _remove_tree(self._folder)


def _is_delegated(folder: Path) -> bool:
    """Whether a service manager left the group to the service; systemd marks it so."""
    for name in ("user.delegate", "trusted.delegate"):
        try:
            if os.getxattr(folder, name) == b"1":
                return True
        except (OSError, AttributeError):
            continue
    return False


def _remove_abandoned(home: Path) -> None:
    """Remove the groups of hosts that were killed. A group with a process in it stays."""
    for folder in home.glob(f"{_PREFIX}*-*"):
        pid = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            _remove_tree(folder)


def _remove_tree(folder: Path) -> None:
    for inner in folder.glob("worker-*"):
        _remove(inner)
    _remove(folder)


def _remove(folder: Path) -> None:
    with suppress(OSError, reason="a process that is ending keeps its group for a moment"):
        folder.rmdir()


def _write(file: Path, text: str) -> None:
    # Opened for writing alone: these files are neither created nor cut.
    number = os.open(file, os.O_WRONLY)
    try:
        os.write(number, text.encode("ascii"))
    finally:
        os.close(number)


def _words(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").split()
    except OSError:
        return []


def _count(file: Path, name: str) -> int:
    words = _words(file)
    return int(words[words.index(name) + 1]) if name in words else 0
