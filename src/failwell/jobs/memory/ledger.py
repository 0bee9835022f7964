"""Decides from values alone whether a job may start, and which worker is evicted for it. All amounts are megabytes.

A pool is a resource that can run short: main memory, the disk, the memory of one GPU. A running instance has
its learned peak reserved in each pool, whatever it holds at the moment.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import field
from typing import NamedTuple

from failwell.errors.facts import ResourceName
from failwell.errors.frozen import frozen

HEADROOM = 0.9
"""The share of a pool that jobs may use together."""
SMALLEST_HOLDING = 64.0
"""A worker that holds less than this is not worth evicting."""
MARGIN = 1.25
"""The learned peak times this is freed after a failure, so that the next attempt does not fail by a little."""
_ROUNDING = 1.000001
"""Shares of all lanes may add up to a little more than the whole."""
NOTICEABLE = 16.0
"""A worker may always take this much more than it holds already."""

RAM, DISK = "ram", "disk"


def gpu(index: int | str) -> str:
    """The name of a GPU's pool, by its number, or by its id if the number is not known."""
    return f"gpu:{index}"


def resource_of(pool: str) -> ResourceName:
    """The name of the pool in reports."""
    if pool == RAM:
        return "system_ram_mb"
    return "disk_mb" if pool == DISK else "gpu_vram_mb"


def words_for(pool: str) -> str:
    """The name of a pool of memory in messages about jobs."""
    if pool == RAM:
        return "memory"
    return "disk space" if pool == DISK else f"memory of GPU {pool.partition(':')[2]}"


class Pool(NamedTuple):
    """The size of a resource, and how much of it is free now."""

    total: float
    free: float


@frozen
class MemorySnapshot:
    """The memory of the machine and of the workers at the moment a job wants to start."""

    pools: Mapping[str, Pool]
    reserved: Mapping[str, Mapping[str, float]]
    """Running instance → pool → its learned peak."""
    usage: Mapping[str, Mapping[str, float]]
    """Instance with a live worker → pool → what it holds now."""
    headroom: float = HEADROOM
    limits: Mapping[str, float] = field(default_factory=dict[str, float])
    """Pool → the most that all jobs may use of it together, however large it is."""

    def budget(self, pool: str) -> float:
        """What jobs may use of a measured pool."""
        return min(self.pools[pool].total * self.headroom, self.limits.get(pool, math.inf))

    def free(self, pool: str) -> float:
        """What is free now and within the limit."""
        if pool not in self.limits:
            return self.pools[pool].free
        used = sum(pools.get(pool, 0.0) for pools in self.usage.values())
        return min(self.pools[pool].free, self.limits[pool] - used)


class Fits(NamedTuple):
    """The job may start."""


class Short(NamedTuple):
    """The job may not start yet."""

    pool: str
    needed: float
    """Beyond what its worker holds already."""
    available: float
    is_reserved: bool
    """Whether running jobs reserve the memory, rather than idle workers or other programs."""


class Never(NamedTuple):
    """The job can never start on this machine."""

    pool: str
    needed: float
    budget: float


class Unknown(NamedTuple):
    """The pool cannot be measured, and a running job uses it: the jobs that do take turns."""

    pool: str


def admit(
    instance: str, peaks: Mapping[str, float], snapshot: MemorySnapshot
) -> Fits | Short | Never | Unknown:
    """Whether a job of `instance`, which needs `peaks`, may start now."""
    usage = snapshot.usage.get(instance, {})
    short: Short | Unknown | None = None
    for name, peak in peaks.items():
        if peak <= 0:
            continue
        if name not in snapshot.pools:
            is_in_use = any(
                pools.get(name, 0.0) > 0 for other, pools in snapshot.reserved.items() if other != instance
            )
            short = short or (Unknown(name) if is_in_use else None)
            continue
        budget = snapshot.budget(name)
        if peak > budget:
            return Never(name, peak, budget)
        if short is None:
            short = _short(instance, name, peak, usage.get(name, 0.0), budget, snapshot)
    return short or Fits()


def _short(
    instance: str, name: str, peak: float, usage: float, budget: float, snapshot: MemorySnapshot
) -> Short | None:
    reserved = {
        other: pools.get(name, 0.0) for other, pools in snapshot.reserved.items() if other != instance
    }
    promised = sum(reserved.values())
    if promised + peak > budget:
        return Short(name, peak, max(0.0, budget - promised), is_reserved=True)
    # Running instances may still grow up to what is reserved for them.
    growth = sum(
        max(0.0, megabytes - snapshot.usage.get(other, {}).get(name, 0.0))
        for other, megabytes in reserved.items()
    )
    missing = peak - usage
    available = max(0.0, snapshot.free(name) - growth)
    if missing > NOTICEABLE and missing > available:
        return Short(name, missing, available, is_reserved=False)
    return None


def share(name: str, lanes: int, snapshot: MemorySnapshot) -> float:
    """The most that an instance may use of a measured pool before its needs are known: a lane's part of the budget."""
    return snapshot.budget(name) / lanes


def admit_unmeasured(instance: str, needed: float, snapshot: MemorySnapshot) -> Fits | Short:
    """Whether a job whose needs are not known may start: `needed` must not be reserved for running jobs.

    What is free now is not asked: other programs may use it, and the job may need less.
    """
    if RAM not in snapshot.pools:
        return Fits()
    promised = _promised(instance, RAM, snapshot)
    budget = snapshot.budget(RAM)
    if promised + needed > budget * _ROUNDING:
        return Short(RAM, needed, max(0.0, budget - promised), is_reserved=True)
    return Fits()


def first_reserve(instance: str, name: str, lanes: int, snapshot: MemorySnapshot) -> float:
    """What is reserved of a pool for an instance whose needs are not known.

    Its share, but no more than a lane's part of what is free: the others must be able to go on.
    """
    growth = sum(
        max(0.0, pools.get(name, 0.0) - snapshot.usage.get(other, {}).get(name, 0.0))
        for other, pools in snapshot.reserved.items()
        if other != instance
    )
    lanes_left = max(1, lanes - len(snapshot.reserved))
    return min(share(name, lanes, snapshot), max(0.0, snapshot.free(name) - growth) / lanes_left)


def _promised(instance: str, name: str, snapshot: MemorySnapshot) -> float:
    return sum(pools.get(name, 0.0) for other, pools in snapshot.reserved.items() if other != instance)


def victims(
    pool: str, target: float | None, snapshot: MemorySnapshot, excluded: Collection[str]
) -> list[str]:
    """The instances to evict so that `target` becomes free: the largest first, no more than needed.

    Without a target, all of them. An instance that holds less than `SMALLEST_HOLDING` is never chosen.
    """
    holders = sorted(
        (
            (pools.get(pool, 0.0), instance)
            for instance, pools in snapshot.usage.items()
            if instance not in excluded and pools.get(pool, 0.0) >= SMALLEST_HOLDING
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
    """How much to free after a failure, by the learned peak; `None` (free everything) if none was learned."""
    if peak <= 0:
        return None
    return max(peak * MARGIN - (available or 0.0), needed or 0.0, 1.0)
