"""Everything that is open while a host runs jobs: the store, the lease, the queue and the workers."""

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path
from time import time
from typing import Any

from failwell.jobs.instances import Instances
from failwell.jobs.memory.book import Book
from failwell.jobs.memory.machine import Limits, Probe, SystemProbe
from failwell.jobs.output import OutputFiles
from failwell.jobs.queue.order import Instance
from failwell.jobs.queue.queue import Queue
from failwell.jobs.queue.snapshot import leave_picture, picture
from failwell.jobs.queue.state import Rules
from failwell.jobs.schedules import Scheduler
from failwell.jobs.store.hosts import SNAPSHOT
from failwell.jobs.store.sqlite import JobStore, open_jobs
from failwell.jobs.workers.protocol import CancelPhased, Died, Measured, OutputLine, Ready, WorkerEvent
from failwell.processes.memory_groups import MemoryGroups
from failwell.store.folder import make_private, state_folder

_SOON = 0.05
"""Seconds after which the snapshot shows that a worker has started or died."""

StoreLocation = JobStore | str | os.PathLike[str] | None
"""A store, its state folder, or `None` for the user's state folder."""


def folder_beside(store: StoreLocation) -> Path:
    """The state folder of a store."""
    if store is not None and not isinstance(store, str | os.PathLike):
        return store.folder.parent
    return state_folder(None if store is None else os.fspath(store))


def open_store(store: StoreLocation) -> JobStore:
    """The store at this location."""
    if store is not None and not isinstance(store, str | os.PathLike):
        return store
    return open_jobs(store)


_REST = 0.01
"""Seconds between two looks at the store, however often other processes wake this one."""


class Hosting:
    """Everything that is open while this process is a host of a store."""

    def __init__(
        self,
        store: StoreLocation,
        instances: Instances,
        hurry: asyncio.Event,
        *,
        rules: Rules,
        headroom: float,
        limits: Limits,
        probe: Probe | None,
        drain: float,
    ) -> None:
        """Open the store; no job runs before `begin`."""
        self._location = store
        self._instances = instances
        self._rules = rules
        self._limits = limits
        self._drain = drain
        self._hurry = hurry
        self.store = open_store(store)
        self.book = Book(probe or SystemProbe(self.store.folder), headroom, time, limits, rules.lanes)
        self._lines = OutputFiles(self.store.folder, self.store.wake_followers)
        self._queue: Queue | None = None
        self._scheduler: Scheduler | None = None
        self._stack = AsyncExitStack()
        self._snapshot_timer: asyncio.TimerHandle | None = None
        self._snapshot_file = Path()

    @property
    def queue(self) -> Queue:
        """The queue; it exists once `begin` was called."""
        assert self._queue is not None
        return self._queue

    # -------------------------------------------------------------- starting and stopping

    async def begin(self) -> None:
        """Become a host of the store, take over the jobs of dead hosts and claim waiting ones. A failure leaves nothing open."""
        store = self.store
        async with AsyncExitStack() as stack:
            if store is not self._location:
                stack.callback(store.close)
            stack.push_async_callback(self.book.close)
            # The others take over at once what this host leaves.
            stack.callback(store.wake_host)
            host = stack.enter_context(store.hosting(self._rules.lanes))
            self._snapshot_file = host.folder / SNAPSHOT
            results = make_private(store.folder / "results")
            stack.callback(self._lines.close)
            stack.callback(self._instances.leave)
            groups = self._memory_groups(stack)
            self._instances.prepare(str(results), self._on_event, groups)
            instances, find = self._instances.loaded, self._instances.find
            known = self._instances.registry.names
            self._queue = Queue(store, host, self.book, self._rules, instances, finder=find, known=known)
            self._instances.serve(self._queue)
            if groups is None and self._limits.memory_mb is not None:
                self._queue.limit_memory(self._limits.memory_mb)
            stack.push_async_callback(self._stop_workers)
            stack.push_async_callback(self._stop_queue)
            self._listen(stack)
            self._queue.outside.tick()
            self._scheduler = Scheduler(store, self._instances.registry, time, self._instances.schedules)
            stack.callback(self._scheduler.close)
            self._scheduler.look()
            self._stack = stack.pop_all()
        self._publish_snapshot()

    def _memory_groups(self, stack: AsyncExitStack) -> MemoryGroups | None:
        """Control groups that enforce the memory limits, where this process may create them."""
        groups = MemoryGroups.find()
        if groups is None:
            return None
        stack.callback(groups.close)
        if self._limits.memory_mb is not None:
            try:
                groups.limit(self._limits.memory_mb)
            except OSError:
                return None
        return groups

    def hurry(self) -> None:
        """Put running jobs back to the queue at once instead of waiting for them."""
        if self._queue is not None:
            self._queue.hurry()

    async def end(self) -> None:
        """Stop the queue and the workers, and close the store."""
        await self._stack.aclose()

    def _listen(self, stack: AsyncExitStack) -> None:
        """Wake the queue when another process submits or cancels a job."""
        watch = stack.enter_context(self.store.host_watch())
        loop = asyncio.get_running_loop()
        number = watch.fileno()
        queue = self.queue

        timer: asyncio.TimerHandle | None = None
        last = -_REST

        def woken() -> None:
            nonlocal timer
            watch.drain()
            if timer is None:
                timer = loop.call_at(max(last + _REST, loop.time()), look)

        def look() -> None:
            nonlocal timer, last
            timer, last = None, loop.time()
            if not queue.outside.is_closed:
                self._instances.apply_changes()
                queue.outside.tick()

        if number is not None:
            loop.add_reader(number, woken)
            stack.callback(loop.remove_reader, number)

    async def _stop_queue(self) -> None:
        if self._snapshot_timer is not None:
            self._snapshot_timer.cancel()
        try:
            await self.queue.stop(self._drain)
        except asyncio.CancelledError:
            # A second cancellation means: do not wait for the workers.
            self._hurry.set()
            raise
        finally:
            self._snapshot_file.unlink(missing_ok=True)

    async def _stop_workers(self) -> None:
        cut: asyncio.CancelledError | None = None
        ending = [
            asyncio.ensure_future(instance.worker.stop()) for instance in self._instances.loaded.values()
        ]
        hurry = asyncio.ensure_future(self._hurry.wait())
        try:
            await asyncio.wait(
                [asyncio.gather(*ending, return_exceptions=True), hurry], return_when=asyncio.FIRST_COMPLETED
            )
        except asyncio.CancelledError as error:
            cut = error
        hurry.cancel()
        await asyncio.wait([hurry])
        if cut is not None or self._hurry.is_set():
            ending = [
                asyncio.ensure_future(instance.worker.stop(grace=0))
                for instance in self._instances.loaded.values()
            ]
        outcomes = await asyncio.gather(*ending, return_exceptions=True)
        for error in (*outcomes, cut):
            if error is not None:
                raise error

    # -------------------------------------------------------------- events of workers

    def _on_event(self, instance: Instance, event: WorkerEvent) -> None:
        if isinstance(event, OutputLine):
            self._keep_line(instance, event)
            return
        if isinstance(event, Measured | Died | CancelPhased):
            # An event of the job follows; its output has to be readable by then.
            self._lines.flush(None if isinstance(event, Died) else event.job)
        self.queue.listener.apply(instance, event)
        if isinstance(event, Ready):
            self._instances.learn_parameters(instance)
        if isinstance(event, Ready | Died):
            # Later: writing a file may wait for the disk, and the end of a job must not wait for that.
            self._publish_snapshot_in(_SOON)

    def _keep_line(self, instance: Instance, event: OutputLine) -> None:
        # Output from a descriptor names no job. If only one job runs, it belongs to that.
        only = next(iter(instance.entries)) if len(instance.entries) == 1 else None
        self._lines.add(event, event.job or only)

    # -------------------------------------------------------------- the snapshot for other processes

    def stats(self) -> dict[str, Any]:
        """A snapshot of jobs, workers and memory."""
        return picture(self.store, self.queue, self.book, self._instances.loaded)

    def _publish_snapshot(self) -> None:
        """Write the snapshot file that other processes read, now and every second."""
        if self.queue.state.is_stopping:
            return
        # A reader of the snapshot finds all output that is older.
        self._lines.flush()
        leave_picture(self._snapshot_file, self.stats)
        self._publish_snapshot_in(1.0)

    def _publish_snapshot_in(self, seconds: float) -> None:
        if self.queue.state.is_stopping:
            return
        if self._snapshot_timer is not None:
            self._snapshot_timer.cancel()
        self._snapshot_timer = asyncio.get_running_loop().call_later(seconds, self._tick)

    def _tick(self) -> None:
        # A wake-up that was lost is made up for here.
        self._instances.apply_changes()
        self.queue.outside.tick()
        self.queue.hub.catch_up()
        if self._scheduler is not None and not self.queue.state.is_stopping:
            self._scheduler.look()
        self._publish_snapshot()
