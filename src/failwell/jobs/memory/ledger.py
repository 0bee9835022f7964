"""Whether a job may start, and whose memory makes room for it. Arithmetic alone; megabytes throughout.

A pool is one thing that can run short: main memory, the disk, the memory of one GPU. Whoever runs has
its learned peak reserved in each pool, whatever it holds at the moment.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import field
from typing import NamedTuple

from failwell.fault.facts import ResourceName
from failwell.fault.frozen import frozen

HEADROOM = 0.9
"""The share of a pool that jobs may use together."""
HOLLOW = 64.0
"""Who holds less than this has nothing worth taking."""
MARGIN = 1.25
"""What is freed is so much more than what was short: the next attempt is not to fail by a little."""
NOTICEABLE = 16.0
"""So little more than it holds already, a worker may always take."""

RAM, DISK = "ram", "disk"


def gpu(index: int | str) -> str:
    """The name of a GPU's pool, by its number, or by its name where nobody knows the number."""
    return f"gpu:{index}"


def resource_of(pool: str) -> ResourceName:
    """What reports call the pool."""
    if pool == RAM:
        return "system_ram_mb"
    return "disk_mb" if pool == DISK else "gpu_vram_mb"


def words_for(pool: str) -> str:
    """What people call the pool."""
    if pool == RAM:
        return "memory"
    return "disk space" if pool == DISK else f"memory of GPU {pool.partition(':')[2]}"


class Pool(NamedTuple):
    """How much there is of something, and how much of it nobody uses now."""

    total: float
    free: float


@frozen
class Books:
    """What is known when somebody asks to start."""

    pools: Mapping[str, Pool]
    reserved: Mapping[str, Mapping[str, float]]
    """Instance that runs → pool → its peak."""
    held: Mapping[str, Mapping[str, float]]
    """Instance that lives → pool → what it holds now."""
    headroom: float = HEADROOM
    limits: Mapping[str, float] = field(default_factory=dict[str, float])
    """Pool → the most that everybody here may use of it together, however much there is."""

    def budget(self, pool: str) -> float:
        """What jobs may use of a pool that is known."""
        return min(self.pools[pool].total * self.headroom, self.limits.get(pool, math.inf))

    def free(self, pool: str) -> float:
        """What nobody uses now and we may."""
        if pool not in self.limits:
            return self.pools[pool].free
        used = sum(pools.get(pool, 0.0) for pools in self.held.values())
        return min(self.pools[pool].free, self.limits[pool] - used)


class Fits(NamedTuple):
    """It may start."""


class Short(NamedTuple):
    """It may not start yet."""

    pool: str
    needed: float
    """Beyond what it holds itself."""
    available: float
    is_reserved: bool
    """Whether those that run are in its way, rather than those that sit idle or are not ours."""


class Never(NamedTuple):
    """It can never start here."""

    pool: str
    needed: float
    budget: float


class Unknown(NamedTuple):
    """Nobody can say how much of this pool is free, so it may only run alone."""

    pool: str


def admit(instance: str, peaks: Mapping[str, float], books: Books) -> Fits | Short | Never | Unknown:
    """Whether `instance`, which was seen to need `peaks`, may start now."""
    usage = books.held.get(instance, {})
    short: Short | Unknown | None = None
    for name, peak in peaks.items():
        if peak <= 0:
            continue
        if name not in books.pools:
            short = short or Unknown(name)
            continue
        budget = books.budget(name)
        if peak > budget:
            return Never(name, peak, budget)
        if short is None:
            short = _short(instance, name, peak, usage.get(name, 0.0), budget, books)
    return short or Fits()


def _short(instance: str, name: str, peak: float, usage: float, budget: float, books: Books) -> Short | None:
    reserved = {other: pools.get(name, 0.0) for other, pools in books.reserved.items() if other != instance}
    promised = sum(reserved.values())
    if promised + peak > budget:
        return Short(name, peak, max(0.0, budget - promised), is_reserved=True)
    # Those that run may still grow up to what is reserved for them.
    growth = sum(
        max(0.0, megabytes - books.held.get(other, {}).get(name, 0.0))
        for other, megabytes in reserved.items()
    )
    missing = peak - usage
    available = max(0.0, books.free(name) - growth)
    if missing > NOTICEABLE and missing > available:
        return Short(name, missing, available, is_reserved=False)
    return None


def victims(pool: str, target: float | None, books: Books, excluded: Collection[str]) -> list[str]:
    """Whose memory to take so that `target` becomes free: the largest holders first, no more than needed.

    Without a target, everybody's. Who holds next to nothing is never chosen.
    """
    holders = sorted(
        (
            (pools.get(pool, 0.0), instance)
            for instance, pools in books.held.items()
            if instance not in excluded and pools.get(pool, 0.0) >= HOLLOW
        ),
        reverse=True,
    )
    chosen: list[str] = []
    freed = 0.0
    for megabytes, instance in holders:
        if target is not None and freed >= target:
            break
        chosen.append(instance)
        freed += megabytes
    return chosen


def to_free(peak: float, needed: float | None, available: float | None) -> float | None:
    """How much to free after a failure: by the learned peak; `None`, all there is, where none was learned."""
    if peak <= 0:
        return None
    return max(peak * MARGIN - (available or 0.0), needed or 0.0, 1.0)
