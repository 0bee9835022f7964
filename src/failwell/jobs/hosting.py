"""One stay of a runtime in `async with`: the store and its lock, the queue, the workers, and the way out.

Other processes knock at the door when they hand in a job, and look at the picture that is left for them.
"""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from time import time
from typing import Any

from failwell.fault.frozen import frozen
from failwell.jobs.instances import Instances
from failwell.jobs.ledger import HEADROOM
from failwell.jobs.opening import Given, open_store, system_probe
from failwell.jobs.picture import leave_picture, picture
from failwell.jobs.printed import Lines
from failwell.jobs.queue import Queue
from failwell.jobs.queue_state import Rules
from failwell.jobs.resources import Limits, Probe
from failwell.jobs.resources_book import NO_LIMITS, Book
from failwell.jobs.station import Station
from failwell.jobs.worker import Died, Logged, Measured, Ready, WorkerEvent
from failwell.journal.folder import make_private

DRAIN = 5.0


@frozen
class Terms:
    """How a runtime was asked to host."""

    rules: Rules
    headroom: float = HEADROOM
    limits: Limits = NO_LIMITS
    probe: Probe | None = None
    drain: float = DRAIN


class Hosting:
    """Everything that is open while jobs are done."""

    def __init__(self, given: Given, instances: Instances, terms: Terms, hurry: asyncio.Event) -> None:
        """Open the store; nothing is done before `begin`."""
        self._given = given
        self._instances = instances
        self._terms = terms
        self._hurry = hurry
        self.store = open_store(given)
        self.book = Book(terms.probe or system_probe(self.store.folder), terms.headroom, time, terms.limits)
        self._lines = Lines(self.store.folder)
        self._queue: Queue | None = None
        self._stack = AsyncExitStack()
        self._picture: asyncio.TimerHandle | None = None

    @property
    def queue(self) -> Queue:
        """The queue, from `begin` on."""
        assert self._queue is not None
        return self._queue

    # -------------------------------------------------------------- beginning and end

    async def begin(self) -> None:
        """Take up what is in the store.

        Raises:
            HostElsewhere: another process runs its jobs. Nothing is left open.
        """
        store = self.store
        async with AsyncExitStack() as stack:
            if store is not self._given:
                stack.callback(store.close)
            stack.push_async_callback(self.book.close)
            stack.enter_context(store.hosting())
            stack.enter_context(store.hurried())
            stack.callback(self._lines.flush)
            self.book.load(store.profiles())
            stack.callback(self._instances.leave)
            self._instances.prepare(str(make_private(store.folder / "results")), self._heard)
            stations, find = self._instances.stations, self._instances.find
            self._queue = Queue(store, self.book, self._terms.rules, stations, finder=find)
            self._instances.serve(self._queue)
            stack.push_async_callback(self._stop_workers)
            stack.push_async_callback(self._stop_queue)
            self._listen(stack)
            self._queue.recover()
            self._stack = stack.pop_all()
        self._draw()

    def hurry(self) -> None:
        """Wait for nothing that runs, now or when it is stopped."""
        self._hurry.set()
        if self._queue is not None:
            self._queue.hurry()

    async def end(self) -> None:
        """Stop everything, and leave nothing behind."""
        await self._stack.aclose()

    def _listen(self, stack: AsyncExitStack) -> None:
        """Be woken by others who hand in jobs."""
        watch = stack.enter_context(self.store.door())
        loop = asyncio.get_running_loop()
        number = watch.fileno()
        queue = self.queue

        def woken() -> None:
            watch.drain()
            self._instances.heed()
            queue.look_outside()

        if number is not None:
            loop.add_reader(number, woken)
            stack.callback(loop.remove_reader, number)

    async def _stop_queue(self) -> None:
        if self._picture is not None:
            self._picture.cancel()
        try:
            await self.queue.stop(self._terms.drain)
        except asyncio.CancelledError:
            # Whoever asks a second time is in a hurry.
            self._hurry.set()
            raise
        finally:
            self._picture_file().unlink(missing_ok=True)

    async def _stop_workers(self) -> None:
        cut: asyncio.CancelledError | None = None
        ending = [asyncio.ensure_future(one.worker.stop()) for one in self._instances.stations.values()]
        hurry = asyncio.ensure_future(self._hurry.wait())
        try:
            await asyncio.wait(
                [asyncio.gather(*ending, return_exceptions=True), hurry], return_when=asyncio.FIRST_COMPLETED
            )
        except asyncio.CancelledError as error:
            cut = error
        hurry.cancel()
        if cut is not None or self._hurry.is_set():
            ending = [
                asyncio.ensure_future(one.worker.stop(grace=0)) for one in self._instances.stations.values()
            ]
        told = await asyncio.gather(*ending, return_exceptions=True)
        for error in (*told, cut):
            if error is not None:
                raise error

    # -------------------------------------------------------------- what workers tell

    def _heard(self, station: Station, event: WorkerEvent) -> None:
        if isinstance(event, Logged):
            self._keep_line(station, event)
            return
        if isinstance(event, Measured | Died):
            # Its result follows, and whoever reads that may want to read what was said.
            self._lines.flush(event.job if isinstance(event, Measured) else None)
        self.queue.heard(station, event)
        if isinstance(event, Ready | Died):
            self._draw()

    def _keep_line(self, station: Station, event: Logged) -> None:
        # What comes from a descriptor, or from the start, says nothing of a job; with one there is no doubt.
        only = next(iter(station.entries)) if len(station.entries) == 1 else None
        self._lines.add(event, event.job or only)

    # -------------------------------------------------------------- what others see

    def stats(self) -> dict[str, Any]:
        """One picture of everything."""
        return picture(self.store, self.queue, self.book, self._instances.stations)

    def _draw(self) -> None:
        """Leave a picture where other processes can look at it."""
        if self._picture is not None:
            self._picture.cancel()
        if self.queue.is_stopping:
            return
        leave_picture(self._picture_file(), self.stats)
        self._picture = asyncio.get_running_loop().call_later(1.0, self._tick)

    def _tick(self) -> None:
        # Nobody has to wake us for this: a waking that went astray is made up for here.
        self._instances.heed()
        self.queue.look_outside()
        self._draw()

    def _picture_file(self) -> Path:
        return self.store.folder / "host.json"
