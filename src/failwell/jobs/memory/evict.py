"""Frees the memory of idle workers: first by their `release` hook, then by stopping their process."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from failwell.errors.fault import Fault
from failwell.jobs.memory.book import Book
from failwell.jobs.memory.ledger import RAM, SMALLEST_HOLDING, victims
from failwell.jobs.queue.order import Instance
from failwell.processes.tree import resident_mb

_RELEASE_SECONDS = 10.0
"""How long the `release` hook of a worker may take before the worker is stopped instead."""


class Evicted(NamedTuple):
    """One worker whose memory was freed."""

    instance: str
    pool: str
    megabytes: float
    in_place: bool


async def evict(
    instances: Mapping[str, Instance],
    book: Book,
    pool: str,
    target: float | None,
    excluded: Callable[[], Collection[str]],
    on_evicted: Callable[[Evicted], None],
) -> float:
    """Free `target` megabytes of `pool`, or all that idle workers hold of it; return what was freed.

    Workers are chosen one at a time, so that one that became busy in the meantime is left alone.
    """
    await book.look()
    freed = 0.0
    tried: set[str] = set()
    while target is None or freed < target:
        snapshot = book.snapshot(instances.values())
        busy = {instance.id for instance in instances.values() if instance.entries or instance.is_being_freed}
        missing = None if target is None else target - freed
        # The workers of other hosts are not ours to evict.
        elsewhere = snapshot.usage.keys() - instances.keys()
        chosen = victims(pool, missing, snapshot, {*excluded(), *busy, *tried, *elsewhere})
        if not chosen:
            break
        instance = instances[chosen[0]]
        tried.add(instance.id)
        megabytes = snapshot.usage[instance.id][pool]
        freed += await _free(instance, book, pool, megabytes, on_evicted)
    return freed


async def _free(
    instance: Instance, book: Book, pool: str, megabytes: float, on_evicted: Callable[[Evicted], None]
) -> float:
    instance.is_being_freed = True
    try:
        if await released(instance):
            remaining = await _remaining(instance, book, pool)
            if remaining < max(SMALLEST_HOLDING, megabytes / 2):
                on_evicted(Evicted(instance.id, pool, megabytes, in_place=True))
                return megabytes - remaining
        await instance.worker.stop()
        on_evicted(Evicted(instance.id, pool, megabytes, in_place=False))
        return megabytes
    finally:
        instance.is_being_freed = False


async def released(instance: Instance) -> bool:
    """Call the `release` hook of a worker; `False` if it has none, or does not finish in time."""
    try:
        return await asyncio.wait_for(instance.worker.release(), _RELEASE_SECONDS)
    except (Fault, TimeoutError):
        # The hook failed or took too long. Stopping the process frees the memory either way.
        return False


async def _remaining(instance: Instance, book: Book, pool: str) -> float:
    """What the worker still holds, measured now rather than taken from its last pulse."""
    memory = instance.worker.memory()
    if memory is None:
        return 0.0
    if pool == RAM:
        return sum(resident_mb(pid) for pid in memory.pids)
    await book.look()
    return 0.0 if book.machine is None else book.machine.usage(0.0, memory.pids).get(pool, 0.0)
