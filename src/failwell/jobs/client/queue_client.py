"""Submits, cancels and follows jobs from a process that does not run them.

A submitted job is stored at once. A live host is woken and runs it; without one, the job waits for the next
host.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import time

from failwell.errors.faults import CapabilityDisabledError
from failwell.jobs.arguments import ArgumentCheck
from failwell.jobs.cancelled_job import cancel_unowned
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.faults import NotEnded, UnknownJob, check_same
from failwell.jobs.job import Job, JobRequest, check_request, new_job, with_timeout
from failwell.jobs.manifest import Manifest
from failwell.jobs.platform import check_platform
from failwell.jobs.settings import settle
from failwell.jobs.store.job_filter import RETRY_KEY
from failwell.jobs.store.rows import job_values
from failwell.jobs.store.sqlite import JobStore
from failwell.store.event import Event


class QueueClient:
    """The jobs of a store, used from a process that is not its host."""

    def __init__(self, store: JobStore, registry: CapabilityRegistry) -> None:
        self.store = store
        self.registry = registry
        self._checks: dict[str, tuple[Manifest, ArgumentCheck]] = {}

    def submit(self, request: JobRequest) -> Job:
        """Submit a job.

        Raises:
            CapabilityInputError: the request is not valid; every invalid field and argument is named.
            CapabilityNotLoadedError: no capability or instance has that name.
            CapabilityConfigError: its stored configuration does not fit the manifest; every invalid field is named.
            CapabilityDisabledError: the instance is disabled.
            UnsupportedPlatform: the capability cannot run on this machine.
        """
        check_request(request)
        manifest = self.check_instance(request.instance)
        self.argument_check(manifest).check(request)
        request = with_timeout(request, manifest)
        now = time()
        job = new_job(request, now)
        commit = self.store.commit([job_values(job, None)], [Event(0, "submitted", now, {}, job.id)])
        self.store.wake_host()
        if job.id not in commit.twins:
            return replace(job, key=commit.keys[job.id])
        before = self.find(commit.twins[job.id])
        check_same(before.id, before.request, request)
        return before

    def check_instance(self, instance: str) -> Manifest:
        """Check that jobs of an instance can be submitted; raises the faults of `submit` about the capability."""
        manifest = self.registry.manifest(self.registry.capability(instance))
        check_platform(manifest)
        if manifest.config is not None:
            # A schema in the code is known to the worker alone, which checks it when it starts.
            settle(manifest, manifest.config, self.registry.config(instance))
        if not self.registry.is_enabled(instance):
            raise CapabilityDisabledError(instance)
        return manifest

    def argument_check(self, manifest: Manifest) -> ArgumentCheck:
        """The check of arguments for a registered capability."""
        known = self._checks.get(manifest.name)
        if known is None or known[0] is not manifest:
            known = self._checks[manifest.name] = (
                manifest,
                ArgumentCheck(manifest.name, manifest.parameters),
            )
        return known[1]

    def again(self, job: str) -> Job:
        """Submit the same work as a new job. The key of the first retry keeps bulk retries from repeating it.

        Raises:
            NotEnded: the job may still do its work.
        """
        record = self.find(job)
        if not record.state.is_final:
            raise NotEnded(job, record.state.value)
        request = record.resubmission()
        key = f"{RETRY_KEY}{job}"
        is_first = self.store.find_by_key(key) is None
        return self.submit(replace(request, key=key) if is_first else request)

    def find(self, job: str) -> Job:
        """The job with this id.

        Raises:
            UnknownJob: it does not exist.
        """
        record = self.store.find(job)
        if record is None:
            raise UnknownJob(job=job)
        return record

    def cancel(self, job: str) -> bool:
        """Cancel a job, through its host if it has one; `False` if the job has already ended."""
        while not (record := self.find(job)).state.is_final:
            if cancel_unowned(self.store, [record], time()):
                return True
            # Its host stops it. It cannot start a job whose cancel is stored.
            if self.store.request_control(job, "cancel", time()):
                return True
        return False

    def follow(
        self, job: str | None = None, after: int = 0, give_up: Callable[[], bool] | None = None
    ) -> Iterator[Event]:
        """Events as they are recorded; for one job, until it ends. Stops early when `give_up` returns true."""
        if job is not None:
            self.find(job)
        return self.store.follow(job, after, give_up)

    def wait(self, job: str, give_up: Callable[[], bool] | None = None) -> Job:
        """Wait until the job ends, or `give_up` returns true, and return the job."""
        for _event in self.follow(job, self.store.last_event(), give_up):
            continue
        return self.find(job)
