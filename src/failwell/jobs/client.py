"""Submitting jobs and asking after them from a process that does not run them.

What is submitted is on record at once. If a host is alive it is woken and runs it; if none is, the
job waits for the next one.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import time

from failwell.fault.capability import CapabilityDisabledError
from failwell.jobs.capability_registry import CapabilityRegistry
from failwell.jobs.faults import HostElsewhere, UnknownJob, check_same
from failwell.jobs.job import Job, JobId, JobRequest, JobState, new_job_id
from failwell.jobs.platform import check_platform
from failwell.jobs.request import check_request
from failwell.jobs.store.job_store import JobStore
from failwell.jobs.store.rows import job_values, moment
from failwell.journal.event import Event


class QueueClient:
    """The jobs of a store, seen from outside of its host."""

    def __init__(self, store: JobStore, registry: CapabilityRegistry) -> None:
        self.store = store
        self.registry = registry

    def submit(self, request: JobRequest) -> Job:
        """Submit a job.

        Raises:
            CapabilityNotLoadedError: nothing of that name is registered.
            CapabilityDisabledError: it is switched off.
            UnsupportedPlatform: this machine is not one that it can run on.
        """
        check_request(request)
        manifest = self.registry.manifest(self.registry.capability(request.instance))
        check_platform(manifest)
        if not self.registry.is_enabled(request.instance):
            raise CapabilityDisabledError(request.instance)
        now = time()
        job = Job(id=JobId(new_job_id()), request=request, state=JobState.PENDING, submitted_at=moment(now))
        commit = self.store.commit([job_values(job, None)], [Event(0, "submitted", now, {}, job.id)])
        self.store.wake_host()
        if job.id not in commit.twins:
            return replace(job, key=commit.keys[job.id])
        before = self.find(commit.twins[job.id])
        check_same(before.id, before.request, request)
        return before

    def again(self, job: str) -> Job:
        """Submit the same work as a new job."""
        before = self.find(job)
        control = {**before.request.control, "resubmitted": before.id}
        return self.submit(replace(before.request, key=None, deadline=None, control=control))

    def find(self, job: str) -> Job:
        """One job.

        Raises:
            UnknownJob: there is none.
        """
        record = self.store.find(job)
        if record is None:
            raise UnknownJob(job=job)
        return record

    def cancel(self, job: str) -> bool:
        """Have a job stopped: by its host if there is one, else here. `False` where it is over already."""
        record = self.find(job)
        if record.state.is_final:
            return False
        try:
            with self.store.hosting():
                return self._cancel_here(job)
        except HostElsewhere:
            # Whoever runs the jobs stops it.
            self.store.request_control(job, "cancel", time())
            return True

    def _cancel_here(self, job: str) -> bool:
        """Nobody runs the jobs, and while we hold the lock nobody can begin to."""
        before = self.find(job)
        if before.state.is_final:
            return False
        now = time()
        cancelled = replace(
            before,
            state=JobState.CANCELLED,
            completed_at=moment(now),
            cancel_requested_at=moment(now),
            not_before=None,
            block_reason=None,
        )
        event = Event(0, JobState.CANCELLED.value, now, {}, job)
        self.store.commit([job_values(cancelled, before.state)], [event])
        return True

    def follow(
        self, job: str | None = None, after: int = 0, give_up: Callable[[], bool] | None = None
    ) -> Iterator[Event]:
        """Events as they are recorded; for one job, until it is over. `give_up` is called now and then."""
        if job is not None:
            self.find(job)
        return self.store.follow(job, after, give_up)

    def wait(self, job: str, give_up: Callable[[], bool] | None = None) -> Job:
        """The job once it is over, or as it is when `give_up` says so."""
        for _event in self.follow(job, self.store.last_event(), give_up):
            continue
        return self.find(job)
