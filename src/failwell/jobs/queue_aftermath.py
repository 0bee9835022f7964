"""What follows from a failed attempt: another one after a wait or after something was freed, or the end."""

from failwell.jobs import ledger
from failwell.jobs.job import JobState
from failwell.jobs.queue_admission import Admission
from failwell.jobs.queue_ends import Ends
from failwell.jobs.queue_entry import Entry
from failwell.jobs.queue_record import Record
from failwell.jobs.queue_retry import Again, Facts, Over, next_step
from failwell.jobs.queue_state import State
from failwell.jobs.resources_evict import released
from failwell.jobs.station import Station
from failwell.report.describe import describe
from failwell.report.record import ErrorReport

FREEING = "freeing"
"""What keeps a job from its next attempt while room is made for it."""


class Aftermath:
    """Acts on what the policy decides."""

    def __init__(self, state: State, record: Record, ends: Ends, admission: Admission) -> None:
        self._state = state
        self._record = record
        self._ends = ends
        self._admission = admission

    def failure(self, entry: Entry, station: Station, report: ErrorReport) -> None:
        """An attempt failed: another one, or the end."""
        if self._state.is_stopping and entry.cancelled is None:
            self._ends.put_back(entry, "the queue was stopped while it ran")
            return
        now = self._state.now()
        if self._ends.is_late(entry) and entry.cancelled is None:
            self._ends.fail(entry, self._ends.late(entry))
            return
        never = self._never(entry, station, report)
        if never is not None and entry.cancelled is None:
            self._ends.fail(entry, never)
            return
        facts = Facts(
            attempt=entry.attempt,
            charged=entry.charged,
            most=entry.request.control.get("max_attempts"),
            was_cancelled=entry.cancelled is not None,
            left=None if entry.deadline is None else entry.deadline - now,
            idempotent=entry.request.control.get("idempotent"),
        )
        if (station.is_being_freed or station.is_leaving) and entry.cancelled is None:
            # We stopped its worker, and the capability was asked to stop with it: nobody cancelled the job.
            step: Again | Over = Again(0.0, is_charged=False, why="its worker was stopped")
        else:
            step = next_step(self._state.rules.policy, report, facts, self._state.jitter())
        if isinstance(step, Again) and entry.items is None:
            self._again(entry, station, report, step, now)
        elif isinstance(step, Again) or not step.was_cancelled:
            self._ends.fail(entry, report)
        else:
            entry.error = report
            self._ends.end(entry, JobState.CANCELLED)

    def _again(self, entry: Entry, station: Station, report: ErrorReport, step: Again, now: float) -> None:
        entry.state = JobState.WAITING
        entry.error = report
        if not step.is_charged:
            entry.charged -= 1
        entry.due = now + step.after
        self._record.say(
            entry,
            "parked" if step.is_parked else "retrying",
            {"attempt": entry.attempt, "kind": report.kind, "after": round(step.after, 3), "why": step.why},
        )
        if step.frees:
            self._admission.block(entry, FREEING, "waits until something is freed for its next attempt")
            self._state.spawn(self._free(entry, station, report))
        elif step.after <= 0:
            self._state.line.add(entry)
        else:
            self._ends.at(entry.due, "due", entry)
        self._state.wake()

    async def _free(self, entry: Entry, station: Station, report: ErrorReport) -> None:
        """Make room for the next attempt, and clean the worker that failed where that is needed."""
        try:
            await self._make_room(entry, station, report)
        except Exception as error:  # noqa: BLE001  (whatever it was, the job must not be left waiting for it)
            # The next attempt tells what is wrong, and is told to whoever waits.
            self._record.tell_of_worker(
                "worker:not_freed", {"instance": station.instance, "kind": describe(error).kind}
            )
        finally:
            if entry.state is JobState.WAITING and not self._state.is_stopping:
                entry.due = entry.reason = entry.block = None
                self._record.dirty[entry.id] = entry
                self._state.line.add(entry)
                self._state.wake()

    async def _make_room(self, entry: Entry, station: Station, report: ErrorReport) -> None:
        short = report.resource_shortfall
        pool = self._pool(report, station)
        if self._state.book.budget(pool) is None:
            # It failed before anybody looked at the machine.
            await self._state.book.look()
            never = self._never(entry, station, report)
            if never is not None and entry.state is JobState.WAITING:
                self._ends.fail(entry, never)
                return
        target = ledger.to_free(
            self._state.book.peaks(station).get(pool, 0.0),
            None if short is None else short.needed,
            None if short is None else short.available,
        )
        if pool != ledger.DISK:
            await self._admission.evict(pool, target, station.instance, spare_wanted=False)
        if pool.startswith("gpu:") and not station.entries and not station.is_being_freed:
            await _clean(station)

    def _never(self, entry: Entry, station: Station, report: ErrorReport) -> ErrorReport | None:
        """The report of a job that told to need more than there is for all jobs together."""
        short = report.resource_shortfall
        if short is None:
            return None
        pool = self._pool(report, station)
        budget = self._state.book.budget(pool)
        if budget is None or not short.needed > budget:
            return None
        return self._admission.never(entry, ledger.Never(pool, short.needed, budget), report)

    def _pool(self, report: ErrorReport, station: Station) -> str:
        short = report.resource_shortfall
        name = short.resource if short is not None else report.kind
        if name in ("gpu_vram_mb", "resource.gpu_memory"):
            return self._state.book.card(station)
        return ledger.DISK if name in ("disk_mb", "resource.disk") else ledger.RAM


async def _clean(station: Station) -> None:
    """Give the worker that failed its memory back. Nothing is started in it meanwhile: it may be ended."""
    station.is_being_freed = True
    try:
        if not await released(station):
            await station.worker.restart()
    finally:
        station.is_being_freed = False
