"""Waiting, in an event loop, for what other processes store: one watch for all who wait."""

import asyncio
from collections.abc import Container, Generator
from contextlib import contextmanager

from failwell.errors.fault import Fault
from failwell.jobs.store.records import JobStore
from failwell.store.watch import Watch

_REST = 0.01
"""Seconds between two reads of the store, however often other processes write to it."""


class StoreChanges:
    """The commits of all processes. The store is watched only while a task waits for them."""

    def __init__(self, store: JobStore, here: Container[str]) -> None:
        """Watch nothing yet; `here` are the jobs of this host."""
        self._store = store
        self._here = here
        self._loop = asyncio.get_running_loop()
        self._watch: Watch | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tasks = 0
        self._next: asyncio.Future[None] = self._loop.create_future()
        self._ends: dict[str, asyncio.Future[None]] = {}
        """Job of another host, or of none → done when it has ended or this host has it."""

    async def end_of(self, job: str) -> None:
        """Wait until a job that this host does not have has ended or is deleted, or this host has it."""
        with self._watched():
            if job not in self._ends:
                self._ends[job] = self._loop.create_future()
            end = self._ends[job]
            self._check([job])
            await asyncio.wait([end])

    async def next(self) -> None:
        """Wait for the next commit of any process, for about a second at most."""
        with self._watched():
            await asyncio.wait([self._next])

    def end(self) -> None:
        """Let all tasks look again."""
        self._look([*self._ends])
        for job in [*self._ends]:
            self._ends.pop(job).set_result(None)

    @contextmanager
    def _watched(self) -> Generator[None]:
        self._tasks += 1
        if self._watch is None:
            self._watch = self._store.commit_watch().__enter__()
            number = self._watch.fileno()
            if number is not None:
                self._loop.add_reader(number, self._changed)
            self._timer = self._loop.call_later(self._watch.interval, self._rang)
        try:
            yield
        finally:
            self._tasks -= 1
            if not self._tasks:
                self._close()

    def _close(self) -> None:
        assert self._watch is not None
        assert self._timer is not None
        number = self._watch.fileno()
        if number is not None:
            self._loop.remove_reader(number)
        self._watch.__exit__()
        self._timer.cancel()
        self._watch = self._timer = None
        self._ends.clear()

    def _changed(self) -> None:
        assert self._watch is not None
        assert self._timer is not None
        self._watch.drain()
        soon = self._loop.time() + _REST
        if self._timer.when() > soon:
            self._timer.cancel()
            self._timer = self._loop.call_at(soon, self._rang)

    def _rang(self) -> None:
        assert self._watch is not None
        # A wake-up may be lost.
        self._timer = self._loop.call_later(self._watch.interval, self._rang)
        self._look([*self._ends])

    def _look(self, jobs: list[str]) -> None:
        self._check(jobs)
        self._next.set_result(None)
        self._next = self._loop.create_future()

    def _check(self, jobs: list[str]) -> None:
        if not jobs:
            return
        try:
            states = self._store.states(jobs)
        except Fault:
            # The store is unavailable for a moment.
            return
        for job in jobs:
            state = states.get(job)
            if state is None or state.is_final or job in self._here:
                self._ends.pop(job).set_result(None)
