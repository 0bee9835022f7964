"""Enforces the most main memory that all workers of a host may use together, where the kernel does not."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from failwell.jobs.memory.book import Book
from failwell.jobs.memory.evict import Evicted
from failwell.jobs.memory.ledger import RAM, SMALLEST_HOLDING
from failwell.jobs.queue.order import Instance
from failwell.processes.guardian import milliseconds_to_limit
from failwell.processes.worker_memory import over_total

_SHORTEST = 0.005
"""Seconds between two looks at least: the host has other work."""


class TotalLimit:
    """Looks at all workers, the more often the nearer they are to the limit, and ends one if they are over it.

    Idle workers are ended first, the largest of them. Of those that run jobs, the one that uses most beyond what is
    reserved for it.
    """

    def __init__(
        self,
        megabytes: float,
        instances: Mapping[str, Instance],
        book: Book,
        spawn: Callable[[Any], object],
        on_evicted: Callable[[Evicted], None],
    ) -> None:
        self._limit = megabytes
        self._instances = instances
        self._book = book
        self._spawn = spawn
        self._on_evicted = on_evicted
        self._ending: dict[str, int | None] = {}
        """Instance → the process of it that is being ended."""

    async def watch(self) -> None:
        """Look for as long as the host runs."""
        while True:
            used = sum(self.look().values())
            await asyncio.sleep(max(_SHORTEST, milliseconds_to_limit(self._limit, used) / 1000))

    def look(self) -> dict[str, float]:
        """Look once, and end a worker if it has to be. Returns what each uses, without those that are being ended."""
        self._ending = {
            name: pid
            for name, pid in self._ending.items()
            if name in self._instances and self._instances[name].worker.pid == pid
        }
        used = self._used(exact=False)
        if sum(used.values()) >= self._limit:
            used = self._used(exact=True)
            if sum(used.values()) >= self._limit:
                self._end_one(used)
        return used

    def _used(self, *, exact: bool) -> dict[str, float]:
        return {
            name: instance.worker.used_mb(exact=exact)
            for name, instance in self._instances.items()
            if instance.worker.pid is not None and name not in self._ending
        }

    def _end_one(self, used: Mapping[str, float]) -> None:
        idle = {
            name: megabytes
            for name, megabytes in used.items()
            if not self._instances[name].entries and megabytes >= SMALLEST_HOLDING
        }
        reserved = self._book.reserved()
        beyond = {
            name: megabytes - reserved.get(name, {}).get(RAM, 0.0)
            for name, megabytes in used.items()
            if self._instances[name].entries
        }
        choice = idle or beyond
        if not choice:
            return
        name = max(choice, key=lambda name: choice[name])
        instance = self._instances[name]
        self._ending[name] = instance.worker.pid
        if idle:
            self._spawn(self._stop_idle(instance, used[name]))
        else:
            instance.worker.end_over_limit(over_total(used[name], sum(used.values()), self._limit))

    async def _stop_idle(self, instance: Instance, megabytes: float) -> None:
        was, instance.is_being_freed = instance.is_being_freed, True
        try:
            await instance.worker.stop(grace=0)
        finally:
            instance.is_being_freed = was
        self._on_evicted(Evicted(instance.id, RAM, megabytes, in_place=False))
