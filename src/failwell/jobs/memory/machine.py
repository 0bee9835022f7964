"""The memory of the machine and its use by processes: main memory within the container's limits, the disk, and the GPUs."""

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Protocol

from failwell.errors.frozen import frozen
from failwell.jobs.memory.gpu import Gpus
from failwell.jobs.memory.ledger import DISK, RAM, Pool, gpu


@frozen
class MachineMemory:
    """One reading of the machine, in megabytes. What could not be measured is left out."""

    ram: Pool | None = None
    disk: Pool | None = None
    gpus: tuple[Pool, ...] = ()
    gpu_processes: Mapping[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])
    """GPU and process → the memory it holds there."""
    gpu_ids: tuple[str, ...] = ()
    """The driver's id of each card; `CUDA_VISIBLE_DEVICES` may name cards by it."""

    def pools(self) -> dict[str, Pool]:
        """Every pool that was measured, by name."""
        pools = {gpu(index): pool for index, pool in enumerate(self.gpus)}
        if self.ram is not None:
            pools[RAM] = self.ram
        if self.disk is not None:
            pools[DISK] = self.disk
        return pools

    def card(self, name: str) -> str:
        """The pool of a card that is named by its number, its id, or the beginning of its id.

        A card that is missing, or a part of a card, gets a pool that is never measured.
        """
        if not name.isdecimal():
            for index, card_id in enumerate(self.gpu_ids):
                if card_id.lower().startswith(name.lower()):
                    return gpu(index)
        return gpu(name)

    def usage(self, rss_mb: float, pids: tuple[int, ...]) -> dict[str, float]:
        """What a worker with these processes holds, by pool."""
        processes = set(pids)
        usage = {RAM: rss_mb}
        for (index, pid), megabytes in self.gpu_processes.items():
            if pid in processes:
                usage[gpu(index)] = usage.get(gpu(index), 0.0) + megabytes
        return usage


@frozen
class Limits:
    """The most that the jobs of one queue may use together, in megabytes, however much the machine has.

    A job starts only if what is reserved for it fits. `memory_mb` is also enforced while jobs run: a worker that
    makes them use more is ended.
    """

    memory_mb: float | None = None
    disk_mb: float | None = None
    gpu_mb: float | None = None
    """For each card."""

    def __post_init__(self) -> None:
        for name in ("memory_mb", "disk_mb", "gpu_mb"):
            megabytes = getattr(self, name)
            if megabytes is not None and not megabytes > 0:
                raise ValueError(f"`{name}` must be more than 0; leave it out for no limit")

    def of(self, pools: Iterable[str]) -> dict[str, float]:
        """The limit of each pool that has one."""
        limits = {RAM: self.memory_mb, DISK: self.disk_mb}
        by_pool = {pool: limits.get(pool, self.gpu_mb) for pool in pools}
        return {pool: megabytes for pool, megabytes in by_pool.items() if megabytes is not None}


class Probe(Protocol):
    """Reads the memory of the machine. It is called in a thread, so it may take a moment."""

    def read(self) -> MachineMemory:
        """The current reading. Never raises: what cannot be measured is left out."""
        ...

    def close(self) -> None:
        """Release its resources."""
        ...


_MB = 1024.0 * 1024.0

Written = Mapping[int, float]
"""Process → the megabytes that it and its ended children have written so far."""


def written(pids: Iterable[int], proc: Path = Path("/proc")) -> Written | None:
    """What these processes have written; `None` where the system does not report it."""
    totals: dict[int, float] = {}
    for pid in pids:
        try:
            text = (proc / str(pid) / "io").read_text(encoding="ascii")
            counters = {
                name: float(count) for name, count in (line.split(": ") for line in text.splitlines())
            }
            # `wchar` misses writes through mapped memory, and counts pipes and terminals. `write_bytes` misses
            # file systems without a device. The larger one is the safer limit.
            totals[pid] = max(counters["wchar"], counters["write_bytes"]) / _MB
        except (OSError, ValueError, KeyError):
            continue
    return totals or None


def since(before: Written | None, now: Written | None) -> float | None:
    """What jobs wrote to disk between two readings; a process that is new in the second began with 0."""
    if now is None:
        return None
    return sum(megabytes - (before or {}).get(pid, 0.0) for pid, megabytes in now.items())


class SystemProbe:
    """Reads the memory and disk that jobs may use, from /proc, the control groups, the file system of `folder`, and NVML."""

    def __init__(
        self, folder: Path, *, proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")
    ) -> None:
        self._folder = folder
        self._proc = proc
        self._groups = groups
        self._gpus = Gpus()

    def read(self) -> MachineMemory:
        """The current reading."""
        gpus, processes = self._gpus.read()
        return MachineMemory(
            ram=self._ram(), disk=self._disk(), gpus=gpus, gpu_processes=processes, gpu_ids=self._gpus.ids()
        )

    def close(self) -> None:
        """Shut NVML down."""
        self._gpus.close()

    def _ram(self) -> Pool | None:
        pool = self._whole() or _by_sysconf()
        if pool is None:
            return None
        for limit, used in self._limits():
            pool = Pool(min(pool.total, limit), min(pool.free, max(0.0, limit - used)))
        return pool

    def _whole(self) -> Pool | None:
        try:
            lines = (self._proc / "meminfo").read_text(encoding="ascii").splitlines()
            values = {line.partition(":")[0]: float(line.split()[1]) / 1024 for line in lines if ":" in line}
            return Pool(values["MemTotal"], values["MemAvailable"])
        except (OSError, ValueError, IndexError, KeyError):
            return None

    def _limits(self) -> list[tuple[float, float]]:
        """The limit of each control group above this process, and its use without caches, which can be reclaimed."""
        limits: list[tuple[float, float]] = []
        for folder in self._folders():
            limit = _number(folder / "memory.max") or _number(folder / "memory.limit_in_bytes")
            used = _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes")
            if limit is None or used is None or limit >= _UNLIMITED:
                continue
            limits.append((limit / _MB, max(0.0, used - _cache(folder)) / _MB))
        return limits

    def _folders(self) -> list[Path]:
        try:
            lines = (self._proc / "self/cgroup").read_text(encoding="utf-8").splitlines()
        except OSError:
            return []
        folders: list[Path] = []
        for line in lines:
            _, names, path = line.split(":", 2)
            if names not in ("", "memory"):
                continue
            top = self._groups if not names else self._groups / "memory"
            below = top / path.lstrip("/")
            folders += [
                folder for folder in (below, *below.parents) if folder == top or top in folder.parents
            ]
        return folders

    def _disk(self) -> Pool | None:
        place = self._folder
        while not place.exists() and place != place.parent:
            place = place.parent
        try:
            usage = shutil.disk_usage(place)
        except OSError:
            return None
        return Pool(usage.total / _MB, usage.free / _MB)


_UNLIMITED = float(1 << 60)


def _number(file: Path) -> float | None:
    try:
        text = file.read_text(encoding="ascii").strip()
        return None if text == "max" else float(text)
    except (OSError, ValueError):
        return None


def _cache(folder: Path) -> float:
    try:
        text = (folder / "memory.stat").read_text(encoding="ascii")
    except OSError:
        return 0.0
    values = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
    return float(values.get("inactive_file") or values.get("total_inactive_file") or 0)


def _by_sysconf() -> Pool | None:
    """Main memory on systems without /proc. Where the system does not report free memory, jobs share all of it."""
    try:
        page = os.sysconf("SC_PAGE_SIZE") / _MB
        total = os.sysconf("SC_PHYS_PAGES") * page
    except (AttributeError, ValueError, OSError):
        return None
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * page
    except (ValueError, OSError):
        free = total
    return Pool(total, free)
