"""The memory of the machine and its use by processes: the protocol of a probe, and its readings."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Protocol

from failwell.errors.frozen import frozen
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
