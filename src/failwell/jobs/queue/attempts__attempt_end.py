"""What follows from a failed attempt at a job: a repeat, room that is made for it, or the end of the job."""

from dataclasses import replace

from failwell.adapters.describe import describe
from failwell.calls.budget import Budget, Spent
from failwell.calls.policy import Lost, PredicateFailed, Tries, decide, exhausted_inside
from failwell.calls.policy__verdict import Decision, Evict, GiveUp, Park, Retry, decision_text
from failwell.errors.report import Attempt, ErrorReport
from failwell.jobs.job import JobState
from failwell.jobs.memory import ledger
from failwell.jobs.memory.evict import released
from failwell.jobs.queue.admission import Admission
from failwell.jobs.queue.ends import Ends
from failwell.jobs.queue.entry import Entry
from failwell.jobs.queue.order__instance import Instance
from failwell.jobs.queue.record import Record
from failwell.jobs.queue.state import QueueState
from failwell.processes.worker_memory import SHARED

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
                entry.due = entry.reason = entry.block = None
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
) -> Tries:
    """What `decide` must know of a failed attempt besides its report."""
    control = entry.request.control
    lost = None
    if instance.is_being_freed or instance.is_leaving:
        # The queue stopped the worker on purpose, which may happen to one job any number of times.
        lost = Lost("its worker was stopped")
    elif (reason := report.details.get("reason")) in _LOST:
        lost = Lost(f"its worker was {reason}", before=entry.attempt - entry.charged)
    budgets: tuple[tuple[Budget, Spent], ...] = ()
    if entry.deadline is not None:
        limit = max(0.0, entry.deadline - entry.submitted)
        budgets = ((Budget(seconds=limit), Spent(seconds=limit - (entry.deadline - now))),)
    return Tries(
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
