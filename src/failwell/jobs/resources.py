"""What the machine has and who uses it: the protocol of a probe, and what it answers."""

from collections.abc import Mapping
from dataclasses import field
from typing import Protocol

from failwell.fault.frozen import frozen
from failwell.jobs.ledger import DISK, RAM, Pool, gpu


@frozen
class Machine:
    """One look at the machine, in megabytes. What could not be seen is left out."""

    ram: Pool | None = None
    disk: Pool | None = None
    gpus: tuple[Pool, ...] = ()
    gpu_processes: Mapping[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])
    """GPU and process → the memory it holds there."""

    def pools(self) -> dict[str, Pool]:
        """Everything that can run short."""
        made = {gpu(index): pool for index, pool in enumerate(self.gpus)}
        if self.ram is not None:
            made[RAM] = self.ram
        if self.disk is not None:
            made[DISK] = self.disk
        return made

    def held(self, rss_mb: float, pids: tuple[int, ...]) -> dict[str, float]:
        """What a worker with these processes holds."""
        own = set(pids)
        made = {RAM: rss_mb}
        for (index, pid), much in self.gpu_processes.items():
            if pid in own:
                made[gpu(index)] = made.get(gpu(index), 0.0) + much
        return made


class Probe(Protocol):
    """Looks at the machine. Called in a thread of its own, so it may take a moment."""

    def read(self) -> Machine:
        """What there is now. Never raises: what cannot be seen is left out."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...
