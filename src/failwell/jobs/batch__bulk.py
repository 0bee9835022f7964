"""Retries or cancels every job that a filter chooses, a thousand in one transaction."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from time import time

from failwell.adapters.describe import describe
from failwell.errors.fault import Fault
from failwell.errors.frozen import frozen
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.job import Job, JobState, new_job
from failwell.jobs.job_error__cancelled import cancel_unowned
from failwell.jobs.store.rows import job_values
from failwell.jobs.store.rows__job_filter import RETRY_KEY, JobFilter, JobTotal
from failwell.store.event import Event

CHUNK = 1_000
"""Jobs in one transaction. A host of the same store waits no longer than for one."""
ENDED = tuple(state.value for state in JobState if state.is_final)
OPEN = tuple(state.value for state in JobState if not state.is_final)


@frozen
class BulkPlan:
    """What a bulk command is going to do."""

    chosen: JobFilter
    totals: tuple[JobTotal, ...]
    """The jobs, by status, kind of error and instance."""
    left_out: Mapping[str, str]
    """Instance whose jobs cannot be submitted now → why."""
    retried: int = 0
    """How many further jobs match and were retried before."""

    @property
    def count(self) -> int:
        """How many jobs it is about."""
        return sum(total.jobs for total in self.totals)


@frozen
class BulkResult:
    """What a bulk command did."""

    jobs: tuple[str, ...]
    """The jobs that were submitted, or cancelled."""
    skipped: tuple[str, ...] = ()
    """Jobs that cannot be submitted again: their items were streamed, or their row is damaged."""
    is_requested: bool = False
    """Whether a host was asked to cancel them, and may not have done so yet."""


class Bulk:
    """Bulk commands on the jobs of one store."""

    def __init__(self, queue: QueueClient) -> None:
        self._queue = queue
        self._store = queue.store

    def plan_retry(self, chosen: JobFilter) -> BulkPlan:
        """Which jobs `retry` would submit again. Jobs that were retried before are left out."""
        chosen = replace(chosen, states=chosen.states or (JobState.FAILED.value,), is_retried=False)
        totals = self._store.totals(chosen)
        retried = sum(total.jobs for total in self._store.totals(replace(chosen, is_retried=True)))
        left_out: dict[str, str] = {}
        for instance in dict.fromkeys(total.instance for total in totals):
            try:
                self._queue.check_instance(instance)
            except Fault as fault:
                left_out[instance] = describe(fault).message
        able = tuple(total for total in totals if total.instance not in left_out)
        return BulkPlan(chosen=chosen, totals=able, left_out=left_out, retried=retried)

    def retry(self, plan: BulkPlan) -> BulkResult:
        """Submit the jobs of a plan again, each once: another process may retry the same jobs at the same time."""
        submitted: list[str] = []
        skipped: list[str] = []
        for page in self._pages(plan.chosen, errors=False):
            now = time()
            jobs: list[Job] = []
            for job in page:
                if job.request.instance in plan.left_out:
                    continue
                if job.request.stream or job.completed_at is None:
                    # The items of a stream have no reader here. A damaged row has no end, and no arguments.
                    skipped.append(job.id)
                else:
                    jobs.append(new_job(replace(job.resubmission(), key=f"{RETRY_KEY}{job.id}"), now))
            commit = self._store.commit(
                [job_values(job, None) for job in jobs],
                [Event(0, "submitted", now, {}, job.id) for job in jobs],
            )
            submitted += [job.id for job in jobs if job.id not in commit.twins]
            self._store.wake_host()
        return BulkResult(jobs=tuple(submitted), skipped=tuple(skipped))

    def plan_cancel(self, chosen: JobFilter) -> BulkPlan:
        """Which jobs `cancel` would cancel."""
        chosen = replace(chosen, states=chosen.states or OPEN)
        return BulkPlan(chosen=chosen, totals=tuple(self._store.totals(chosen)), left_out={})

    def cancel(self, plan: BulkPlan) -> BulkResult:
        """Cancel the jobs of a plan, those that a host has through that host."""
        cancelled: list[str] = []
        is_requested = False
        for page in self._pages(plan.chosen):
            ended = cancel_unowned(self._store, page, time())
            # The others have a host, which stops them. It cannot start a job whose cancel is stored.
            rest = [job.id for job in page if job.id not in set(ended)]
            requested = self._store.request_controls(rest, "cancel", time()) if rest else []
            cancelled += [*ended, *requested]
            is_requested = is_requested or bool(requested)
        return BulkResult(jobs=tuple(cancelled), is_requested=is_requested)

    def _pages(self, chosen: JobFilter, *, errors: bool = True) -> Iterator[list[Job]]:
        """The chosen jobs, oldest first, without those that are submitted meanwhile."""
        keys = self._store.keys(chosen)
        for start in range(0, len(keys), CHUNK):
            yield self._store.select_keys(chosen, keys[start : start + CHUNK], errors=errors)
