"""Handing in: what can be seen at once is refused at once, and what was handed in before is found again."""

import asyncio
from collections.abc import Awaitable, Callable

from failwell.fault.capability import CapabilityDisabledError, CapabilityNotLoadedError
from failwell.jobs.asking import check_request
from failwell.jobs.here import check_here
from failwell.jobs.job import JobRequest
from failwell.jobs.queue_ends import Ends
from failwell.jobs.queue_entry import Entry
from failwell.jobs.queue_faults import OtherLoop, QueueClosed, check_same
from failwell.jobs.queue_items import Items
from failwell.jobs.queue_record import Record
from failwell.jobs.queue_state import State


class Intake:
    """Takes jobs in from this process."""

    def __init__(
        self,
        state: State,
        record: Record,
        ends: Ends,
        cancel: Callable[[str], bool],
        over: Callable[[Entry], Awaitable[Entry]],
    ) -> None:
        self._state = state
        self._record = record
        self._ends = ends
        self._cancel = cancel
        self._over = over
        self.is_closed = False
        """Whether nothing more is taken in."""

    async def enter(self, request: JobRequest, job: str, items: Items | None = None) -> Entry:
        """Take a job in; it is on record when this returns.

        Raises:
            Fault: it is refused, and the fault says why. Nothing was kept.
        """
        entry = self._open(request, job, items)
        try:
            return await self._accepted(entry)
        except asyncio.CancelledError:
            if items is not None:
                # Nobody is left who could take them.
                self._cancel(entry.id)
            raise

    async def call(self, request: JobRequest, job: str) -> Entry:
        """`enter`, and the entry once it is over.

        Whoever is cancelled while he waits takes his job along, unless somebody else wants it too.
        """
        entry = self._open(request, job)
        try:
            entry = await self._accepted(entry)
            return await self._over(entry)
        except asyncio.CancelledError:
            entry.wanted -= 1
            if not entry.wanted:
                self._cancel(entry.id)
            raise

    async def _accepted(self, entry: Entry) -> Entry:
        """The entry once it is on record: itself, or one that was there before it under the same key."""
        if entry.accepted is None:
            return entry
        # Others may wait for the same; one who goes must not take it from them.
        found = await asyncio.shield(entry.accepted)
        if found is not entry:
            found.wanted += 1
        return found

    def _open(self, request: JobRequest, job: str, items: Items | None = None) -> Entry:
        if asyncio.get_running_loop() is not self._state.loop:
            raise OtherLoop
        if self.is_closed:
            raise QueueClosed
        check_request(request, is_taken=items is not None)
        if self._record.is_wedged and self._record.trouble is not None:
            raise self._record.trouble
        station = self._state.station(request.instance)
        if station is None or station.is_leaving:
            raise CapabilityNotLoadedError(request.instance)
        if not station.is_enabled:
            raise CapabilityDisabledError(request.instance)
        check_here(station.manifest)
        before = None if request.key is None else self._before(request, request.key)
        if before is not None:
            before.wanted += 1
            return before
        entry = Entry(job, request, self._state.now(), self._state.number())
        entry.wanted = 1
        entry.since = self._state.since(entry.submitted)
        entry.items = items
        entry.accepted = self._state.loop.create_future()
        self._state.live[job] = entry
        if request.key is not None:
            self._state.once[request.key] = entry
        self._record.say(entry, "submitted")
        self._state.line.add(entry)
        self._ends.expect(entry)
        self._state.wake()
        return entry

    def _before(self, request: JobRequest, key: str) -> Entry | None:
        """The job that was handed in under this key before."""
        before = self._state.once.get(key)
        if before is not None:
            check_same(before.id, before.request, request)
            return before
        known = self._state.store.find_once(key)
        return None if known is None else self._record.known(known.id, request)
