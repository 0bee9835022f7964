"""Waits in an event loop for jobs that another process runs: one watch for all of them, and no thread.

The host may end before the jobs do. Callers then get `None` and can host the jobs themselves.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from failwell.errors.fault import Fault
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.faults import UnknownJob
from failwell.jobs.job import Job, JobRequest
from failwell.jobs.store.sqlite import JobStore

if TYPE_CHECKING:
    from asyncio import Future


class JobClient:
    """The jobs of a store, for a process that does not host them. Close it after use."""

    def __init__(self, folder: Path) -> None:
        from asyncio import get_running_loop

        self._queue = QueueClient(JobStore(folder), CapabilityRegistry(folder))
        self._loop = get_running_loop()
        self._watch = self._queue.store.commit_watch()
        self._watch.__enter__()
        self._waiting: dict[str, Future[Job | None]] = {}
        descriptor = self._watch.fileno()
        if descriptor is not None:
            self._loop.add_reader(descriptor, self._check_all)
        self._timer = self._loop.call_later(self._watch.interval, self._tick)

    def close(self) -> None:
        """Stop watching."""
        self._timer.cancel()
        descriptor = self._watch.fileno()
        if descriptor is not None:
            self._loop.remove_reader(descriptor)
        self._watch.__exit__()
        self._release(list(self._waiting))
        self._queue.store.close()

    async def submit(self, request: JobRequest) -> str:
        """Submit a job and return its id."""
        from asyncio import to_thread

        return (await to_thread(self._queue.submit, request)).id

    async def wait(self, job: str) -> Job | None:
        """The job once it has ended; `None` when the host has gone."""
        from asyncio import shield

        future = self._waiting.get(job)
        if future is None:
            future = self._waiting[job] = self._loop.create_future()
            self._check(job)
        return await shield(future)

    async def cancel(self, job: str) -> None:
        """Cancel a job, through its host if there is one, and wait until it has ended."""
        from asyncio import to_thread

        while True:
            await to_thread(self._queue.cancel, job)
            if await self.wait(job) is not None:
                return

    def _check_all(self) -> None:
        self._watch.drain()
        for job in list(self._waiting):
            self._check(job)

    def _tick(self) -> None:
        # Read first: a job that ends after this is found by the check below.
        store = self._queue.store
        left = [job for job in self._waiting if not store.is_served(job)]
        self._check_all()
        self._release(left)
        self._timer = self._loop.call_later(self._watch.interval, self._tick)

    def _check(self, job: str) -> None:
        try:
            record = self._queue.store.find(job)
        except Fault:
            # The store is unavailable for a moment; the next check follows within a second.
            return
        if record is None:
            self._waiting.pop(job).set_exception(UnknownJob(job=job))
        elif record.state.is_final:
            self._waiting.pop(job).set_result(record)

    def _release(self, jobs: Iterable[str]) -> None:
        """Return `None` to the callers that wait for these jobs."""
        for job in jobs:
            future = self._waiting.pop(job, None)
            if future is not None:
                future.set_result(None)
