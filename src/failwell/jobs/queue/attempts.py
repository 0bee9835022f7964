"""Runs one attempt at a job, and decides what follows if it fails: a repeat, freed memory, or the end of the job."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any, cast

from failwell.adapters.describe import describe
from failwell.calls.budget import Budget, Spent
from failwell.calls.policy import (
    Decision,
    Evict,
    GiveUp,
    Park,
    PredicateFailed,
    Preemption,
    Retry,
    RetryState,
    decide,
    decision_text,
    exhausted_inside,
)
from failwell.errors.axes import Certainty
from failwell.errors.fault import Fault
from failwell.errors.faults import CapabilityCancelledError, CapabilityTimeoutError
from failwell.errors.report import Attempt, ErrorReport
from failwell.jobs.job import NO_TIMEOUT, CancelPhase, JobState
from failwell.jobs.memory import ledger
from failwell.jobs.memory.evict import released
from failwell.jobs.queue.admission import Admission
from failwell.jobs.queue.ends import Ends, passed
from failwell.jobs.queue.entry import Entry
from failwell.jobs.queue.events import Items
from failwell.jobs.queue.order import Instance
from failwell.jobs.queue.record import Record
from failwell.jobs.queue.state import QueueState
from failwell.jobs.store.rows import delete_files, result_to_json
from failwell.jobs.workers.protocol import Answer, WorkerState
from failwell.processes.worker_memory import SHARED
from failwell.store.faults import NotRecordable

FREEING = "freeing"
"""Why a job waits while memory is freed for its next attempt."""


class AttemptEnd:
    """Carries out what `decide` says about a failed attempt of a job."""

    def __init__(self, state: QueueState, record: Record, ends: Ends, admission: Admission) -> None:
        self._state = state
        self._record = record
        self._ends = ends
        self._admission = admission

    def failure(self, entry: Entry, instance: Instance, report: ErrorReport) -> None:
        """Repeat a failed attempt, or end the job."""
        if self._state.is_stopping and entry.cancelled is None:
            self._ends.put_back(entry, "the queue was stopped while it ran")
            return
        now = self._state.now()
        if self._ends.is_late(entry) and entry.cancelled is None:
            self._ends.fail(entry, self._ends.late(entry))
            return
        never = self._never(entry, instance, report)
        if never is not None and entry.cancelled is None:
            self._ends.fail(entry, never)
            return
        try:
            decision = decide(
                self._state.rules.policy,
                report,
                attempt_facts(entry, instance, report, now, self._same_limit(instance, report)),
                self._state.jitter(),
            )
        except PredicateFailed as broken:
            self._record.say(entry, "policy_failed", {"attempt": entry.attempt, "why": str(broken)})
            self._ends.fail(entry, report)
            return
        if isinstance(decision, Retry | Park | Evict):
            self._again(entry, instance, report, decision, now)
        elif isinstance(decision, GiveUp) and decision.cancelled:
            self._ends.cancel(entry, report.certainty)
        else:
            self._ends.fail(entry, _with_exhaustion(entry, report, decision))

    def _again(
        self,
        entry: Entry,
        instance: Instance,
        report: ErrorReport,
        decision: Retry | Park | Evict,
        now: float,
    ) -> None:
        entry.state = JobState.WAITING
        entry.error = report
        if isinstance(decision, Park) or (isinstance(decision, Retry) and not decision.charged):
            entry.charged -= 1
        after = 0.0 if isinstance(decision, Evict) else decision.after
        entry.due = now + after
        self._record.say(
            entry,
            "parked" if isinstance(decision, Park) else "retrying",
            {"attempt": entry.attempt, "kind": report.kind, "after": round(after, 3), "why": decision.why},
        )
        if isinstance(decision, Evict):
            self._admission.block(entry, FREEING, "waits until something is freed for its next attempt")
            self._state.spawn(self._free(entry, instance, report))
        elif after <= 0:
            self._state.line.add(entry)
        else:
            self._ends.at(entry.due, "due", entry)
        self._state.wake()

    async def _free(self, entry: Entry, instance: Instance, report: ErrorReport) -> None:
        """Make room for the next attempt, and clean the worker that failed where that is needed."""
        try:
            await self._make_room(entry, instance, report)
        except Exception as error:  # noqa: BLE001  (whatever it was, the job must not be left waiting for it)
            # The next attempt reports what is wrong.
            self._record.tell_of_worker(
                "worker:not_freed", {"instance": instance.id, "kind": describe(error).kind}
            )
        finally:
            if entry.state is JobState.WAITING and not self._state.is_stopping:
                entry.due = entry.block_reason = entry.block = None
                self._record.dirty[entry.id] = entry
                self._state.line.add(entry)
                self._state.wake()

    async def _make_room(self, entry: Entry, instance: Instance, report: ErrorReport) -> None:
        short = report.resource_shortfall
        pool = self._pool(report, instance)
        if self._state.book.budget(pool) is None:
            # It failed before the machine was first looked at.
            await self._state.book.look()
            never = self._never(entry, instance, report)
            if never is not None and entry.state is JobState.WAITING:
                self._ends.fail(entry, never)
                return
        target = ledger.to_free(
            self._state.book.peaks(instance).get(pool, 0.0),
            None if short is None else short.needed,
            None if short is None else short.available,
        )
        if pool != ledger.DISK:
            await self._admission.evict(pool, target, instance.id, spare_wanted=False)
        if pool.startswith("gpu:") and not instance.entries and not instance.is_being_freed:
            await _clean(instance)

    def _never(self, entry: Entry, instance: Instance, report: ErrorReport) -> ErrorReport | None:
        """The report of a job that needs more than there is for all jobs together."""
        short = report.resource_shortfall
        if short is None or "limit_mb" in report.details:
            # A limit of ours ended it, which is less than there is.
            return None
        pool = self._pool(report, instance)
        budget = self._state.book.budget(pool)
        if budget is None or not short.needed > budget:
            return None
        return self._admission.never(entry, ledger.Never(pool, short.needed, budget), report)

    def _same_limit(self, instance: Instance, report: ErrorReport) -> str | None:
        """The memory limit that ended an attempt, if the next attempt has no higher one.

        Several workers, or several jobs in one worker, may have reached it together; then a repeat may succeed.
        """
        reached, source = report.details.get("limit_mb"), report.details.get("limit_source")
        if not isinstance(reached, int | float) or source == SHARED or report.details.get("jobs") != 1:
            return None
        limit = self._state.book.limit(instance)
        if limit is None or round(limit.megabytes, 1) > reached:
            return None
        return f"the memory limit of {reached:,.0f} MB"

    def _pool(self, report: ErrorReport, instance: Instance) -> str:
        short = report.resource_shortfall
        name = short.resource if short is not None else report.kind
        if name in ("gpu_vram_mb", "resource.gpu_memory"):
            return self._state.book.card(instance)
        return ledger.DISK if name in ("disk_mb", "resource.disk") else ledger.RAM


async def _clean(instance: Instance) -> None:
    """Free the memory of the worker that failed. Nothing is started in it meanwhile, because it may be restarted."""
    instance.is_being_freed = True
    try:
        if not await released(instance):
            await instance.worker.restart()
    finally:
        instance.is_being_freed = False


_LOST = ("replaced", "stopped", "quarantined")
"""What a report says of a worker that was ended for another reason than the job."""


def attempt_facts(
    entry: Entry, instance: Instance, report: ErrorReport, now: float, same_limit: str | None = None
) -> RetryState:
    """What `decide` must know of a failed attempt besides its report."""
    control = entry.request.control
    lost = None
    if instance.is_being_freed or instance.is_leaving:
        # The queue stopped the worker on purpose, which may happen to one job any number of times.
        lost = Preemption("its worker was stopped")
    elif (reason := report.details.get("reason")) in _LOST:
        lost = Preemption(f"its worker was {reason}", before=entry.attempt - entry.charged)
    budgets: tuple[tuple[Budget, Spent], ...] = ()
    if entry.deadline is not None:
        limit = max(0.0, entry.deadline - entry.submitted)
        budgets = ((Budget(seconds=limit), Spent(seconds=limit - (entry.deadline - now))),)
    return RetryState(
        attempts=entry.charged,
        budgets=budgets,
        idempotent=control.get("idempotent"),
        may_evict=True,
        # The items of a stream are taken as they come.
        visible=entry.items is not None,
        max_attempts=control.get("max_attempts"),
        cancelled=entry.cancelled is not None,
        lost=lost,
        same_limit=same_limit,
        exhausted=exhausted_inside(report),
    )


def _with_exhaustion(entry: Entry, report: ErrorReport, decision: Decision) -> ErrorReport:
    """The report of a job that is over, with a row that says so where a limit ended its attempts.

    A loop around the job, such as the `retry` of a workflow step, then does not begin again by itself.
    """
    if not isinstance(decision, GiveUp) or not decision.exhausted or entry.charged < 2:
        return report
    row = Attempt(
        number=entry.attempt, kind=report.kind, certainty=report.certainty, reason=decision_text(decision), layer="job",
        exhausted=True,
    )  # fmt: skip
    return replace(report, attempts=(*report.attempts, row))


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
            named = None if error is None else _named(entry, error, limit)
            self._answered(entry, instance, began, value, named)
            self._state.wake()

        if entry.items is None:
            try:
                limit = self._limit(entry)
                if instance.worker.begin(entry.id, request.arguments, request.action, limit, on_answer):
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
        if entry.cancel_phase is None:
            for phase in (CancelPhase.COOPERATIVE, CancelPhase.COMPLETED):
                entry.cancel_phase = phase
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
        entry.result_text = result
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
