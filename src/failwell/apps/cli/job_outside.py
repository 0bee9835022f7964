"""Waiting for jobs that another process runs, in an event loop: one watch for all of them, and no thread.

The process that runs them may end before they do. Whoever waits is told so and can go on without it.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from failwell.fault.base import Fault
from failwell.jobs.client import Desk
from failwell.jobs.faults import UnknownJob
from failwell.jobs.job import Job, JobRequest
from failwell.jobs.registry import Shelf
from failwell.jobs.store.sqlite import SqliteJobs

if TYPE_CHECKING:
    from asyncio import Future


class Outside:
    """The jobs of a store, for a process that does not run them. Close it after use."""

    def __init__(self, folder: Path) -> None:
        from asyncio import get_running_loop

        self._desk = Desk(SqliteJobs(folder), Shelf(folder))
        self._loop = get_running_loop()
        self._watch = self._desk.store.window()
        self._watch.__enter__()
        self._waiting: dict[str, Future[Job | None]] = {}
        number = self._watch.fileno()
        if number is not None:
            self._loop.add_reader(number, self._woken)
        self._timer = self._loop.call_later(self._watch.interval, self._tick)

    def close(self) -> None:
        """Watch no more."""
        self._timer.cancel()
        number = self._watch.fileno()
        if number is not None:
            self._loop.remove_reader(number)
        self._watch.__exit__()
        self._leave()
        self._desk.store.close()

    async def submit(self, request: JobRequest) -> str:
        """Hand in a job; its id comes back."""
        from asyncio import to_thread

        return (await to_thread(self._desk.submit, request)).id

    async def over(self, job: str) -> Job | None:
        """The job once it is over; `None` when nobody runs jobs here any more."""
        from asyncio import shield

        future = self._waiting.get(job)
        if future is None:
            future = self._waiting[job] = self._loop.create_future()
            self._look(job)
        return await shield(future)

    async def cancel(self, job: str) -> None:
        """Have a job stopped, by whoever runs it or else from here, and stay until it has."""
        from asyncio import to_thread

        while True:
            await to_thread(self._desk.cancel, job)
            if await self.over(job) is not None:
                return

    def _woken(self) -> None:
        self._watch.drain()
        for job in list(self._waiting):
            self._look(job)

    def _tick(self) -> None:
        # Asked first: what is ended after the question is found by the look.
        is_hosted = self._desk.store.is_hosted()
        self._woken()
        if not is_hosted:
            self._leave()
        self._timer = self._loop.call_later(self._watch.interval, self._tick)

    def _look(self, job: str) -> None:
        try:
            found = self._desk.store.find(job)
        except Fault:
            # The store is away for a moment; the next look, a second later at the most, finds the same.
            return
        if found is None:
            self._waiting.pop(job).set_exception(UnknownJob(job=job))
        elif found.state.is_final:
            self._waiting.pop(job).set_result(found)

    def _leave(self) -> None:
        """Tell everybody who waits that nobody is there."""
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            future.set_result(None)
