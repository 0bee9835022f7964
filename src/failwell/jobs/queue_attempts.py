"""One attempt at a job: handed to its worker, answered, and brought to what follows from the answer."""

import asyncio
from typing import Any

from failwell.fault.base import Fault
from failwell.jobs.job import JobState
from failwell.jobs.kept import kept_result
from failwell.jobs.queue_aftermath import Aftermath
from failwell.jobs.queue_ends import Ends
from failwell.jobs.queue_entry import Entry
from failwell.jobs.queue_record import Record
from failwell.jobs.queue_state import State
from failwell.jobs.station import Station
from failwell.journal.faults import NotRecordable
from failwell.report.record import ErrorReport


class Attempts:
    """Runs jobs."""

    def __init__(self, state: State, record: Record, ends: Ends, after: Aftermath) -> None:
        self._state = state
        self._record = record
        self._ends = ends
        self._after = after

    def launch(self, entry: Entry, station: Station) -> None:
        """Hand a job to its worker: at once if that is ready, else by a task that waits until it is."""
        began = self._state.loop.time()
        request = entry.request

        def told(answer: "asyncio.Future[Any]") -> None:
            error = answer.exception()
            self._answered(entry, station, began, None if error else answer.result(), error)

        if entry.items is None:
            try:
                if station.worker.begin(
                    entry.id, request.arguments, request.action, self._limit(entry), told
                ):
                    entry.is_sent = True
                    return
            except Exception as raised:  # noqa: BLE001  (as in `_run`; those who start with it must start)
                self._answered(entry, station, began, None, raised)
                return
        entry.task = self._state.spawn(self._run(entry, station, began))

    async def _run(self, entry: Entry, station: Station, began: float) -> None:
        request = entry.request
        value, error = None, None
        try:
            if entry.cancelled is not None:
                # The cancel came between the record of the start and the start.
                raise _stopped(entry)  # noqa: TRY301  (it ends as any other cancelled call)
            entry.is_called = True
            if entry.items is None:
                value = await station.worker.call(
                    entry.id, request.arguments, action=request.action, timeout=self._limit(entry)
                )
            else:
                value = await self._hand_over(entry, station)
        except asyncio.CancelledError:
            if entry.cancelled is None:
                self._put_back(entry, station, began)
                return
            error = _stopped(entry)
        except Exception as raised:  # noqa: BLE001  (whatever a worker's doorway did not foresee ends this job alone)
            error = raised
        entry.is_called = False
        entry.task = None
        self._answered(entry, station, began, value, error)

    def _put_back(self, entry: Entry, station: Station, began: float) -> None:
        """The loop comes to its end, and its tasks with it. Nobody wanted this job stopped, so it waits again."""
        entry.is_called = False
        entry.task = None
        self._ended(entry, station, began, well=False)
        self._ends.put_back(entry, "the queue was stopped while it ran")
        if not self._state.is_stopping:
            self._state.line.add(entry)

    def _answered(
        self, entry: Entry, station: Station, began: float, value: Any, error: BaseException | None
    ) -> None:
        """A call came back."""
        if (
            self._state.is_stopping
            and not entry.is_sent
            and entry.task is None
            and entry.id not in station.entries
        ):
            # It was put back already.
            return
        entry.is_sent = False
        result = None
        if error is None and entry.cancelled is None:
            try:
                result = kept_result(value)
            except NotRecordable as fault:
                error = fault
        if result is not None:
            if self._state.book.profile(station) is None and not self._state.is_stopping:
                # What a short call took of a card or of the disk is seen only if somebody looks before
                # anything else starts.
                self._state.spawn(self._end_well_after_a_look(entry, station, began, result))
            else:
                self._end_well(entry, station, began, result)
            return
        report = self._state.described(entry, error if entry.cancelled is None and error else _stopped(entry))
        if entry.canceller is not None and not entry.canceller.done():
            # Its phases come before its end.
            entry.canceller.add_done_callback(lambda _done: self._end_badly(entry, station, began, report))
        else:
            self._end_badly(entry, station, began, report)

    async def _end_well_after_a_look(self, entry: Entry, station: Station, began: float, result: str) -> None:
        try:
            await self._state.book.look()
        finally:
            # Also when the queue stops meanwhile: the job has ended well all the same.
            self._end_well(entry, station, began, result)

    def _end_well(self, entry: Entry, station: Station, began: float, result: str) -> None:
        self._ended(entry, station, began, well=True)
        entry.result = result
        self._ends.end(entry, JobState.COMPLETED)

    def _end_badly(self, entry: Entry, station: Station, began: float, report: ErrorReport) -> None:
        self._ended(entry, station, began, well=False)
        self._after.failure(entry, station, report)

    def _limit(self, entry: Entry) -> float | None:
        limit = entry.request.timeout
        if entry.deadline is None:
            return limit
        left = max(0.001, entry.deadline - self._state.now())
        return left if limit is None else min(limit, left)

    async def _hand_over(self, entry: Entry, station: Station) -> Any:
        assert entry.items is not None
        request = entry.request
        action = "execute_stream" if request.action == "execute" else request.action
        count = 0
        items = station.worker.stream(entry.id, request.arguments, action=action, timeout=self._limit(entry))
        async for item in items:
            await entry.items.put(item)
            count += 1
        return count

    def _ended(self, entry: Entry, station: Station, began: float, *, well: bool) -> None:
        """An attempt is over, one way or the other."""
        self._state.leave(entry, station)
        self._state.book.finish(station, well=well, seconds=self._state.loop.time() - began)
        if station.hook_is_due and not station.entries:
            station.hook_is_due = False
            self._state.spawn(self.fire_hook(station, on=False))

    async def fire_hook(self, station: Station, *, on: bool) -> None:
        """Tell the capability that it was switched on or off. Its hook failing changes nothing about that."""
        try:
            await station.worker.enabled(on=on)
        except Fault as fault:
            self._record.tell_of_worker(
                "worker:hook_failed", {"instance": station.instance, "kind": str(fault.kind)}
            )


def _stopped(entry: Entry) -> Fault:
    from failwell.fault.capability import CapabilityCancelledError

    return CapabilityCancelledError(entry.request.instance)
