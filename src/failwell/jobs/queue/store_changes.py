"""Waiting, in an event loop, for what other processes store: one watch for all who wait."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from failwell.jobs.store.job_store import JobStore
from failwell.journal.watch import Watch


class StoreChanges:
    """The commits of all processes. The store is watched only while a task waits for them."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._watch: Watch | None = None
        self._tasks = 0
        self._next: asyncio.Future[None] = self._loop.create_future()

    @contextmanager
    def watched(self) -> Generator[None]:
        """Watch the store within the block."""
        self._tasks += 1
        if self._watch is None:
            self._watch = self._store.commit_watch().__enter__()
            number = self._watch.fileno()
            if number is not None:
                self._loop.add_reader(number, self._changed)
        try:
            yield
        finally:
            self._tasks -= 1
            if not self._tasks:
                number = self._watch.fileno()
                if number is not None:
                    self._loop.remove_reader(number)
                self._watch.__exit__()
                self._watch = None

    def next(self) -> "asyncio.Future[None]":
        """Done after the next commit. Get it before reading the store, and then wait for it."""
        return self._next

    async def wait(self, change: "asyncio.Future[None]") -> None:
        """Wait for a change, for about a second at most: a wake-up may be lost."""
        await asyncio.wait([change], timeout=None if self._watch is None else self._watch.interval)

    def end(self) -> None:
        """Let all tasks look again."""
        self._next.set_result(None)
        self._next = self._loop.create_future()

    def _changed(self) -> None:
        if self._watch is not None:
            self._watch.drain()
        self.end()
