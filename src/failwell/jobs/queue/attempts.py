"""One attempt at a job: sent to its worker and answered."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

from failwell.errors.axes import Certainty
from failwell.errors.fault import Fault
from failwell.errors.faults__capability import CapabilityCancelledError, CapabilityTimeoutError
from failwell.errors.report import ErrorReport
from failwell.jobs.job import NO_TIMEOUT, CancelPhase, JobState
from failwell.jobs.queue.attempts__attempt_end import AttemptEnd
from failwell.jobs.queue.ends import Ends, passed
from failwell.jobs.queue.entry import Entry
from failwell.jobs.queue.events import Items
from failwell.jobs.queue.order__instance import Instance
from failwell.jobs.queue.record import Record
from failwell.jobs.queue.state import QueueState
from failwell.jobs.store.rows import delete_files, result_to_json
from failwell.jobs.workers.protocol import Answer, WorkerState
from failwell.store.faults__journal_faults import NotRecordable

HOOK_SECONDS = 10.0
"""Seconds that the enable and disable hooks of a capability may take. A worker that takes longer is ended."""


class Attempts:
    """Runs the attempts of jobs on their workers."""

    def __init__(self, state: QueueState, record: Record, ends: Ends, after: AttemptEnd) -> None:
        self._state = state
        self._record = record
        self._ends = ends
        self._after = after

    def launch(self, entry: Entry, instance: Instance) -> None:
        """Send a job to its worker: at once if that is ready, else from a task that waits until it is."""
        began = self._state.loop.time()
        request = entry.request
        limit: float | None = None

        def on_answer(answer: Answer) -> None:
            value, error = answer
            self._state.hold()
            try:
                named = None if error is None else _named(entry, error, limit)
                self._answered(entry, instance, began, value, named)
            finally:
                self._state.wake_for(entry)

        if entry.items is None:
            try:
                limit = self._limit(entry)
                if instance.worker.begin(entry.id, entry.arguments(), request.action, limit, on_answer):
                    entry.is_sent = True
                    return
            except Exception as raised:  # noqa: BLE001  (as in `_run`; those who start with it must start)
                self._answered(entry, instance, began, None, raised)
                return
        entry.task = self._state.spawn(self._run(entry, instance, began))

    async def _run(self, entry: Entry, instance: Instance, began: float) -> None:
        value, error = None, None
        try:
            if entry.cancelled is not None:
                # The cancel came between the record of the start and the start.
                raise _stopped(entry, Certainty.NOT_SENT)  # noqa: TRY301  (it ends as any other cancelled call)
            if entry.deadline is not None:
                entry.is_starting = True
                await self._start_in_time(entry, instance)
                entry.is_starting = False
            value = await self._call(entry, instance)
        except asyncio.CancelledError:
            if entry.cancelled is None:
                self._put_back(entry, instance, began)
                return
            self._tell_phases(entry)
            error = _stopped(entry, Certainty.NOT_SENT if entry.is_starting else Certainty.UNKNOWN)
        except Exception as raised:  # noqa: BLE001  (whatever a worker's adapter did not foresee ends this job alone)
            error = raised
        entry.is_starting = False
        entry.task = None
        self._answered(entry, instance, began, value, error)

    async def _start_in_time(self, entry: Entry, instance: Instance) -> None:
        """Wait for the worker until the deadline of the job. The start of the worker goes on for the next job."""
        while instance.worker.state is not WorkerState.READY:
            bound = asyncio.timeout(self._left(entry))
            try:
                async with bound:
                    await instance.worker.start()
            except TimeoutError:
                if not bound.expired():
                    raise
                raise passed(entry) from None

    async def _call(self, entry: Entry, instance: Instance) -> Any:
        """Call the worker. Returns the result, or the number of items of a stream."""
        request = entry.request
        limit = self._limit(entry)
        try:
            if entry.items is not None:
                return await self._hand_over(entry, entry.items, instance, limit)
            return await instance.worker.call(
                entry.id, request.arguments, action=request.action, timeout=limit
            )
        except CapabilityTimeoutError as error:
            raise _named(entry, error, limit) from None

    def _tell_phases(self, entry: Entry) -> None:
        """Record the phases of a cancellation that never reached the worker."""
        if entry.phase is None:
            for phase in (CancelPhase.COOPERATIVE, CancelPhase.COMPLETED):
                entry.phase = phase
                self._record.say(entry, "cancel_phase", {"phase": phase.value})

    def _put_back(self, entry: Entry, instance: Instance, began: float) -> None:
        """Let a job wait again whose task was cancelled with the event loop and not by a request."""
        entry.is_starting = False
        entry.task = None
        self._ended(entry, instance, began, well=False)
        self._ends.put_back(entry, "the queue was stopped while it ran")
        if not self._state.is_stopping:
            self._state.line.add(entry)

    def _answered(
        self, entry: Entry, instance: Instance, began: float, value: Any, error: BaseException | None
    ) -> None:
        """Act on the answer of a worker."""
        if (
            self._state.is_stopping
            and not entry.is_sent
            and entry.task is None
            and entry.id not in instance.entries
        ):
            # It was put back already.
            delete_files(value)
            return
        entry.is_sent = False
        result = None
        if error is None and self._keeps_result(entry):
            try:
                result = result_to_json(value)
            except NotRecordable as fault:
                error = fault
        if result is not None:
            entry.has_result = True
            if self._state.book.profile(instance) is None and not self._state.is_stopping:
                # What a short call used of a GPU or of the disk is measured before it is over.
                self._state.spawn(self._end_after_a_look(entry, instance, began, result))
            else:
                self._end_well(entry, instance, began, result)
            return
        delete_files(value)
        if entry.cancelled is not None or error is None:
            error = _stopped(entry, _work_done(error))
        report = self._state.described(entry, error)
        if entry.canceller is not None and not entry.canceller.done():
            # Its phases come before its end.
            entry.canceller.add_done_callback(lambda _done: self._end_badly(entry, instance, began, report))
        else:
            self._end_badly(entry, instance, began, report)

    def _keeps_result(self, entry: Entry) -> bool:
        """Whether a result that has arrived completes the job. A cancel that is not recorded yet is withdrawn."""
        if entry.cancelled is None:
            return True
        if entry.items is not None or not self._record.withdraw(entry, "cancelling"):
            return False
        entry.cancelled = None
        if entry.canceller is not None:
            entry.canceller.cancel()
        return True

    async def _end_after_a_look(self, entry: Entry, instance: Instance, began: float, result: str) -> None:
        try:
            await self._state.book.look()
        finally:
            # Also when the queue stops meanwhile: the job has completed.
            self._end_well(entry, instance, began, result)

    def _end_well(self, entry: Entry, instance: Instance, began: float, result: str) -> None:
        self._ended(entry, instance, began, well=True)
        entry.result = result
        self._ends.end(entry, JobState.COMPLETED)

    def _end_badly(self, entry: Entry, instance: Instance, began: float, report: ErrorReport) -> None:
        self._ended(entry, instance, began, well=False)
        self._after.failure(entry, instance, report)

    def _limit(self, entry: Entry) -> float | None:
        """Seconds that a call may take if it is sent now."""
        limit = _timeout(entry)
        if entry.deadline is None:
            return limit
        remaining = self._left(entry)
        return remaining if limit is None else min(limit, remaining)

    def _left(self, entry: Entry) -> float:
        """The seconds until its deadline.

        Raises:
            DeadlinePassed: there are none left.
        """
        assert entry.deadline is not None
        remaining = entry.deadline - self._state.now()
        if remaining <= 0:
            raise passed(entry)
        return remaining

    async def _hand_over(self, entry: Entry, taker: Items, instance: Instance, limit: float | None) -> int:
        """Pass on the items of a stream as they come. Its time limit also runs while they are not read."""
        action = "execute_stream" if entry.request.action == "execute" else entry.request.action
        end = None if limit is None else self._state.loop.time() + limit
        count, is_taken = 0, True
        stream = instance.worker.stream(entry.id, entry.request.arguments, action=action, timeout=limit)
        async with aclosing(cast("AsyncGenerator[Any]", stream)) as items:
            async for item in items:
                is_taken = is_taken and await _taken(taker, item, end)
                if not is_taken:
                    delete_files(item)
                count += 1
        if limit is not None and not is_taken:
            # The worker was done in time, and its last items were never taken.
            raise CapabilityTimeoutError(instance.manifest.name, limit)
        return count

    def _ended(self, entry: Entry, instance: Instance, began: float, *, well: bool) -> None:
        """Release what an attempt used."""
        self._state.leave(entry, instance)
        self._state.book.finish(instance, well=well, seconds=self._state.loop.time() - began)
        if instance.hook_is_due and not instance.entries:
            instance.hook_is_due = False
            self._state.spawn(self.fire_hook(instance, on=False))

    async def fire_hook(self, instance: Instance, *, on: bool) -> None:
        """Call the enable or disable hook of the capability. A hook that fails changes nothing."""
        try:
            async with asyncio.timeout(HOOK_SECONDS):
                await instance.worker.enabled(on=on)
        except Fault as fault:
            self._hook_failed(instance, str(fault.kind))
        except TimeoutError:
            self._hook_failed(instance, "worker.timeout")
            # The hook occupies one of the worker's lanes as long as the process lives.
            await self._end_hung(instance)

    def _hook_failed(self, instance: Instance, kind: str) -> None:
        self._record.tell_of_worker("worker:hook_failed", {"instance": instance.id, "kind": kind})

    async def _end_hung(self, instance: Instance) -> None:
        was, instance.is_being_freed = instance.is_being_freed, True
        try:
            await instance.worker.stop()
        finally:
            instance.is_being_freed = was
            self._state.wake()


def _stopped(entry: Entry, certainty: Certainty) -> Fault:
    return CapabilityCancelledError(entry.request.instance, certainty=certainty)


def _work_done(error: BaseException | None) -> Certainty:
    """What a cancelled attempt did, by its answer."""
    if error is None:
        return Certainty.DONE_BUT_LOST
    known = error.certainty if isinstance(error, CapabilityCancelledError) else None
    return known or Certainty.UNKNOWN


async def _taken(taker: Items, item: Any, end: float | None) -> bool:
    """Pass on an item. Returns whether there was room for it in time."""
    try:
        async with asyncio.timeout_at(end):
            await taker.put(item)
    except TimeoutError:
        return False
    return True


def _timeout(entry: Entry) -> float | None:
    """Seconds that one attempt may run; `None` for no limit."""
    timeout = entry.request.timeout
    return None if timeout == NO_TIMEOUT else timeout


def _named(entry: Entry, error: BaseException, limit: float | None) -> BaseException:
    """The error of a call; `DeadlinePassed` if the time limit that it exceeded was the deadline of the job."""
    if (
        isinstance(error, CapabilityTimeoutError)
        and error.timeout_seconds == limit
        and limit != _timeout(entry)
    ):
        return passed(entry)
    return error
