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
        made = {gpu(index): pool for index, pool in enumerate(self.gpus)}
        if self.ram is not None:
            made[RAM] = self.ram
        if self.disk is not None:
            made[DISK] = self.disk
        return made

    def card(self, named: str) -> str:
        """The pool of the card that an environment calls by its number, its id, or the beginning of that.

        One that is not there, or is a part of a card, has a pool that nobody can measure.
        """
        if not named.isdecimal():
            for index, known in enumerate(self.gpu_ids):
                if known.lower().startswith(named.lower()):
                    return gpu(index)
        return gpu(named)

    def held(self, rss_mb: float, pids: tuple[int, ...]) -> dict[str, float]:
        """What a worker with these processes holds."""
        own = set(pids)
        made = {RAM: rss_mb}
        for (index, pid), much in self.gpu_processes.items():
            if pid in own:
                made[gpu(index)] = made.get(gpu(index), 0.0) + much
        return made


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
            much = getattr(self, name)
            if much is not None and not much > 0:
                raise ValueError(f"`{name}` is more than 0; leave it out where there is no limit")

    def of(self, pools: Iterable[str]) -> dict[str, float]:
        """The limit of each pool that has one."""
        known = {RAM: self.memory_mb, DISK: self.disk_mb}
        found = {pool: known.get(pool, self.gpu_mb) for pool in pools}
        return {pool: much for pool, much in found.items() if much is not None}


class Probe(Protocol):
    """Looks at the machine. Called in a thread of its own, so it may take a moment."""

    def read(self) -> MachineMemory:
        """What there is now. Never raises: what cannot be seen is left out."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...
