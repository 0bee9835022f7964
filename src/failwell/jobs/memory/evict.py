"""Taking memory back from workers that sit idle: first what they give up in place, then their process."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from failwell.fault.base import Fault
from failwell.jobs.memory.book import Book
from failwell.jobs.memory.ledger import HOLLOW, RAM, victims
from failwell.jobs.queue.instance import Instance
from failwell.processes.tree import resident_mb

_RELEASE_SECONDS = 10.0
"""What a worker has to give up its memory in place. One that takes longer is ended."""


class Evicted(NamedTuple):
    """One worker that gave up its memory."""

    instance: str
    pool: str
    held: float
    in_place: bool


async def evict(
    instances: Mapping[str, Instance],
    book: Book,
    pool: str,
    target: float | None,
    excluded: Callable[[], Collection[str]],
    on_evicted: Callable[[Evicted], None],
) -> float:
    """Free `target` megabytes of `pool`, or all that idle workers hold of it; what was freed comes back.

    One worker at a time, each chosen afresh: who became busy meanwhile is left alone.
    """
    await book.look()
    freed = 0.0
    tried: set[str] = set()
    while target is None or freed < target:
        books = book.books(instances.values())
        busy = {instance.id for instance in instances.values() if instance.entries or instance.is_being_freed}
        missing = None if target is None else target - freed
        chosen = victims(pool, missing, books, {*excluded(), *busy, *tried})
        if not chosen:
            break
        instance = instances[chosen[0]]
        tried.add(instance.id)
        megabytes = books.held[instance.id][pool]
        freed += await _take(instance, book, pool, megabytes, on_evicted)
    return freed


async def _take(
    instance: Instance, book: Book, pool: str, megabytes: float, on_evicted: Callable[[Evicted], None]
) -> float:
    instance.is_being_freed = True
    try:
        if await released(instance):
            remaining = await _left(instance, book, pool)
            if remaining < max(HOLLOW, megabytes / 2):
                on_evicted(Evicted(instance.id, pool, megabytes, in_place=True))
                return megabytes - remaining
        await instance.worker.stop()
        on_evicted(Evicted(instance.id, pool, megabytes, in_place=False))
        return megabytes
    finally:
        instance.is_being_freed = False


async def released(instance: Instance) -> bool:
    """Have a worker give up its memory in place; `False` where it cannot, or not within its time."""
    try:
        return await asyncio.wait_for(instance.worker.release(), _RELEASE_SECONDS)
    except (Fault, TimeoutError):
        # It cannot, or died of it; ending its process frees the memory either way.
        return False


async def _left(instance: Instance, book: Book, pool: str) -> float:
    """What it still holds, read now and not from its last pulse."""
    memory = instance.worker.memory()
    if memory is None:
        return 0.0
    if pool == RAM:
        return sum(resident_mb(pid) for pid in memory.pids)
    await book.look()
    return 0.0 if book.machine is None else book.machine.held(0.0, memory.pids).get(pool, 0.0)
