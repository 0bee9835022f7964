"""What the machine has and who uses it: the protocol of a probe, and what it answers."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Protocol

from failwell.fault.frozen import frozen
from failwell.jobs.memory.ledger import DISK, RAM, Pool, gpu


@frozen
class MachineMemory:
    """One look at the machine, in megabytes. What could not be seen is left out."""

    ram: Pool | None = None
    disk: Pool | None = None
    gpus: tuple[Pool, ...] = ()
    gpu_processes: Mapping[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])
    """GPU and process → the memory it holds there."""
    gpu_ids: tuple[str, ...] = ()
    """What the driver calls each of them; environments may name cards so."""

    def pools(self) -> dict[str, Pool]:
        """Everything that can run short."""
        pools = {gpu(index): pool for index, pool in enumerate(self.gpus)}
        if self.ram is not None:
            pools[RAM] = self.ram
        if self.disk is not None:
            pools[DISK] = self.disk
        return pools

    def card(self, name: str) -> str:
        """The pool of the card that an environment calls by its number, its id, or the beginning of that.

        One that is not there, or is a part of a card, has a pool that nobody can measure.
        """
        if not name.isdecimal():
            for index, card_id in enumerate(self.gpu_ids):
                if card_id.lower().startswith(name.lower()):
                    return gpu(index)
        return gpu(name)

    def held(self, rss_mb: float, pids: tuple[int, ...]) -> dict[str, float]:
        """What a worker with these processes holds."""
        processes = set(pids)
        usage = {RAM: rss_mb}
        for (index, pid), megabytes in self.gpu_processes.items():
            if pid in processes:
                usage[gpu(index)] = usage.get(gpu(index), 0.0) + megabytes
        return usage


@frozen
class Limits:
    """The most that the jobs of one queue may use together, in megabytes, however much the machine has.

    What has never been measured runs alone, and is not held back by them.
    """

    memory_mb: float | None = None
    disk_mb: float | None = None
    gpu_mb: float | None = None
    """Of each card."""

    def __post_init__(self) -> None:
        for name in ("memory_mb", "disk_mb", "gpu_mb"):
            megabytes = getattr(self, name)
            if megabytes is not None and not megabytes > 0:
                raise ValueError(f"`{name}` is more than 0; leave it out where there is no limit")

    def of(self, pools: Iterable[str]) -> dict[str, float]:
        """The limit of each pool that has one."""
        limits = {RAM: self.memory_mb, DISK: self.disk_mb}
        by_pool = {pool: limits.get(pool, self.gpu_mb) for pool in pools}
        return {pool: megabytes for pool, megabytes in by_pool.items() if megabytes is not None}


class Probe(Protocol):
    """Looks at the machine. Called in a thread of its own, so it may take a moment."""

    def read(self) -> MachineMemory:
        """What there is now. Never raises: what cannot be seen is left out."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...
