"""Submits, retries and cancels many jobs in a few large transactions.

Jobs that are submitted together may form a group, which is followed as one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from time import time
from typing import NamedTuple

from failwell.adapters.describe import describe
from failwell.errors.fault import Fault
from failwell.errors.faults import CapabilityInputError
from failwell.errors.frozen import frozen
from failwell.jobs.cancelled_job import cancel_unowned
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.faults import UnknownGroup
from failwell.jobs.job import Job, JobRequest, JobState, check_request, new_job, with_timeout
from failwell.jobs.manifest import Manifest
from failwell.jobs.store.groups import GroupPart, JobGroup
from failwell.jobs.store.job_filter import RETRY_KEY, JobFilter, JobTotal
from failwell.jobs.store.rows import job_values
from failwell.store.event import Event

CHUNK = 2_000
"""Jobs in one transaction. Other processes write in between."""
_GROUP = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


class SubmittedBatch(NamedTuple):
    """What `submit_many` stored."""

    jobs: tuple[str, ...]
    """The id of the job of each request, in order. A request with a key that is taken has the id of the earlier job."""
    new: int
    """How many of them are new."""
    group: str | None


def submit_many(
    queue: QueueClient,
    requests: Sequence[JobRequest],
    *,
    group: str | None = None,
    callback: JobRequest | None = None,
) -> SubmittedBatch:
    """Submit many jobs. All of them are checked before the first one is stored.

    Args:
        queue: The queue.
        requests: The jobs.
        group: The id of a new group that the jobs belong to. A group whose submission was interrupted is continued.
        callback: A job that is submitted once, when the last job of the group has ended. Its argument `group` has
            the counts by status and the ids of failed jobs.

    Raises:
        CapabilityInputError: a request is not valid, or the group is complete already; the message says which.
        CapabilityNotLoadedError: a capability is not registered. See `QueueClient.submit` for the others.
    """
    requests, callback = _checked(queue, requests, group, callback)
    ids: list[str] = []
    new = 0
    starts = range(0, len(requests), CHUNK) if requests or group is None else (0,)
    for start in starts:
        now = time()
        chunk = requests[start : start + CHUNK]
        jobs = [new_job(request, now) for request in chunk]
        is_last = start + CHUNK >= len(requests)
        part = None if group is None else GroupPart(group, callback, is_last)
        commit = queue.store.commit(
            [job_values(job, None) for job in jobs],
            [Event(0, "submitted", now, {}, job.id) for job in jobs],
            group=part,
        )
        queue.store.wake_host()
        ids += [commit.twins.get(job.id, job.id) for job in jobs]
        new += len(commit.keys)
    return SubmittedBatch(tuple(ids), new, group)


def find_group(queue: QueueClient, group: str) -> JobGroup:
    """The group with this id.

    Raises:
        UnknownGroup: it does not exist.
    """
    groups = queue.store.groups(group)
    if not groups:
        raise UnknownGroup(group=group)
    return groups[0]


def _checked(
    queue: QueueClient, requests: Sequence[JobRequest], group: str | None, callback: JobRequest | None
) -> tuple[list[JobRequest], JobRequest | None]:
    """The requests and the callback as they are stored."""
    checker = RequestChecker(queue)
    if group is not None and _GROUP.fullmatch(group) is None:
        raise CapabilityInputError(
            "`group` must be 1 to 128 letters, digits, `_`, `-`, `.` and `:`", fields_invalid=["group"]
        )
    if callback is not None:
        if group is None:
            raise CapabilityInputError(
                "`callback` follows the end of a group, and there is no `group`", fields_invalid=["callback"]
            )
        if callback.key is not None or "group" in callback.arguments:
            raise CapabilityInputError(
                "`callback` gets its key and its argument `group` from the group", fields_invalid=["callback"]
            )
        # The group adds its argument when it submits the callback.
        complete = checker.check(replace(callback, arguments={**callback.arguments, "group": {}}))
        callback = replace(complete, arguments=callback.arguments)
    checked: list[JobRequest] = []
    for number, request in enumerate(requests):
        try:
            checked.append(checker.check(request))
        except CapabilityInputError as error:
            raise CapabilityInputError(
                f"request {number + 1} of {len(requests)}: {error}; no job was submitted",
                fields_invalid=[f"requests[{number}].{field}" for field in error.fields_invalid or ()],
            ) from error
    return checked, callback


class RequestChecker:
    """Checks many requests; each instance is looked up once."""

    def __init__(self, queue: QueueClient) -> None:
        self._queue = queue
        self._manifests: dict[str, Manifest] = {}

    def check(self, request: JobRequest) -> JobRequest:
        """The request as it is stored; raises the faults of `QueueClient.submit`."""
        check_request(request)
        manifest = self._manifests.get(request.instance)
        if manifest is None:
            manifest = self._manifests[request.instance] = self._queue.check_instance(request.instance)
        self._queue.argument_check(manifest).check(request)
        return with_timeout(request, manifest)


_BULK_CHUNK = 1_000
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
        for start in range(0, len(keys), _BULK_CHUNK):
            yield self._store.select_keys(chosen, keys[start : start + _BULK_CHUNK], errors=errors)
