"""The job queue and its workers, for Python programs: `async with Runtime() as jobs: ...`.

Jobs are stored in the state folder. Jobs that were waiting when an earlier process ended continue to wait;
jobs that were running start again, and their events say so.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self, Unpack

from failwell.calls.policy import Policy
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.faults import EnteredTwice, NotEntered, check_not_imported
from failwell.jobs.host import Hosting, folder_beside
from failwell.jobs.instances import CapabilitySource, Instances
from failwell.jobs.job import NO_ARGUMENTS, Job, JobRequest, JobState, RequestOptions, new_job_id, result_of
from failwell.jobs.manifest import new_instance
from failwell.jobs.memory.book import NO_LIMITS
from failwell.jobs.memory.ledger import HEADROOM
from failwell.jobs.memory.machine import Limits, Probe
from failwell.jobs.queue.events import BUFFER, Items, Subscription
from failwell.jobs.queue.queue import Queue
from failwell.jobs.queue.state import DEFAULT, Rules
from failwell.jobs.store.rows import read_result
from failwell.jobs.store.sqlite import JobStore
from failwell.jobs.workers.protocol import Supervision
from failwell.jobs.workers.supervisor import SupervisedWorker

DRAIN = 5.0


class Runtime:
    """Runs jobs in worker processes. Several processes can run the jobs of one state folder; they share them."""

    def __init__(
        self,
        store: JobStore | str | os.PathLike[str] | None = None,
        *,
        registry: CapabilityRegistry | str | os.PathLike[str] | None = None,
        lanes: int = 4,
        policy: Policy | None = None,
        history: int = 100,
        headroom: float = HEADROOM,
        limits: Limits = NO_LIMITS,
        probe: Probe | None = None,
        supervision: Supervision | None = None,
        drain: float = DRAIN,
        rules: Rules | None = None,
    ) -> None:
        """Create a runtime; nothing is opened or started before `async with`.

        Args:
            store: The state folder of the jobs, or a store. The default is the user's state folder.
            registry: The registered capabilities, or their folder. The default is the folder of the jobs, where
                `failwell capabilities add` puts them.
            lanes: How many jobs this process runs at a time.
            policy: Which failures are retried, how often and how soon.
            history: How many ended jobs are kept in memory.
            headroom: The share of the machine's memory that jobs may use together.
            limits: The most that jobs may use together, in megabytes: `Limits(memory_mb=8_000)`.
            probe: Measures the memory of the machine; tests may replace it.
            supervision: How workers are watched and restarted.
            drain: Seconds that running jobs have to end when the runtime stops.
            rules: All settings of the queue, instead of `lanes`, `policy` and `history`.
        """
        self.registry = (
            registry
            if isinstance(registry, CapabilityRegistry)
            else CapabilityRegistry(registry or folder_beside(store))
        )
        if rules is None:
            rules = Rules(lanes=lanes, history=history, policy=policy or DEFAULT)
        self._instances = Instances(self.registry, supervision)
        self._open = partial(
            Hosting,
            store,
            self._instances,
            rules=rules,
            headroom=headroom,
            limits=limits,
            probe=probe,
            drain=drain,
        )
        self._hosting: Hosting | None = None
        self._hurry = asyncio.Event()

    # -------------------------------------------------------------- starting and stopping

    async def __aenter__(self) -> Self:
        """Open the store and resume its jobs.

        Raises:
            EnteredTwice: this runtime is already running.
            MissingMainGuard: a worker imports the module that starts it.
        """
        if self._hosting is not None:
            raise EnteredTwice
        check_not_imported("starts a job host")
        hosting = self._hosting = self._open(self._hurry)
        has_begun = False
        try:
            await hosting.begin()
            has_begun = True
        finally:
            if not has_begun:
                # Also after a cancellation: a runtime that could not start can be started later.
                self._hosting = None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._running.end()
        finally:
            self._hosting = None
            self._hurry = asyncio.Event()

    def hurry(self) -> None:
        """Do not wait for running jobs when the runtime stops: put them back to the queue and kill their workers."""
        self._hurry.set()
        if self._hosting is not None:
            self._hosting.hurry()

    @property
    def _running(self) -> Hosting:
        if self._hosting is None:
            raise NotEntered
        return self._hosting

    @property
    def queue(self) -> Queue:
        """The queue.

        Raises:
            NotEntered: outside of `async with`.
        """
        return self._running.queue

    @property
    def store(self) -> JobStore:
        """The store of the jobs.

        Raises:
            NotEntered: outside of `async with`.
        """
        return self._running.store

    # -------------------------------------------------------------- capabilities

    def register(
        self,
        what: CapabilitySource,
        *,
        instance: str | None = None,
        config: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> str:
        """Register a capability with this runtime and return the id of its instance.

        Args:
            what: A manifest, the path of one, a class or a function.
            instance: The id of the instance. The default is the name of the capability.
            config: Its configuration. Unknown keys are refused; with `config_strict = false` in the manifest
                they are dropped with an `UnknownConfigWarning`.
            fields: For a class or a function, further fields of its manifest, such as `concurrency`.

        Raises:
            CapabilityConfigError: the manifest or the configuration is not valid.
            CapabilityInputError: the id is not valid, or is in use.
            UnsupportedPlatform: the capability cannot run on this machine.
        """
        return self._instances.register(what, instance, config, fields)

    def new_instance(self, name: str, config: Mapping[str, Any] | None = None) -> str:
        """Add an instance of a registered capability under a generated id; nothing is stored for it."""
        return self.add_instance(name, new_instance(name), config)

    def add_instance(self, name: str, instance: str, config: Mapping[str, Any] | None = None) -> str:
        """Add an instance of a registered capability.

        Raises:
            CapabilityNotLoadedError: the capability is not registered.
        """
        return self.register(self._instances.manifest(name), instance=instance, config=config)

    async def unload(self, instance: str) -> None:
        """Stop an instance and remove it from this runtime. Its running jobs go back to the queue.

        Its waiting jobs stay stored until the instance is registered again.
        """
        await self._instances.unload(instance)

    def worker(self, instance: str) -> SupervisedWorker:
        """The worker of an instance."""
        return self._instances.get(instance).worker

    @property
    def instances(self) -> list[str]:
        """The ids of all loaded instances."""
        return sorted(self._instances.loaded)

    async def enable(self, instance: str) -> bool:
        """Let an instance run jobs again; return whether that changed anything."""
        return await self._instances.enable(instance)

    async def disable(self, instance: str) -> bool:
        """Start no more jobs of an instance. Running jobs finish; then its `on_disable` hook is called once."""
        return await self._instances.disable(instance)

    async def configure(self, instance: str, config: Mapping[str, Any]) -> None:
        """Change the configuration of an instance without restarting its worker. Its memory needs are learned again.

        With `config_strict = false` in the manifest, unknown keys are dropped with an `UnknownConfigWarning`.

        Raises:
            CapabilityConfigError: the configuration is not valid. Every invalid field is named, and nothing changed.
        """
        await self._instances.configure(instance, config)

    # -------------------------------------------------------------- jobs

    async def submit(
        self,
        instance: str,
        arguments: Mapping[str, Any] = NO_ARGUMENTS,
        **options: Unpack[RequestOptions],
    ) -> Job:
        """Submit a job; it is stored when this returns.

        Args:
            instance: The instance that runs the job.
            arguments: Keyword arguments of the call, as JSON.
            options: As in `RequestOptions`.

        Raises:
            CapabilityDisabledError: the instance is disabled.
            CapabilityNotLoadedError: the instance does not exist.
            UnsupportedPlatform: the capability cannot run on this machine.
            Fault: the store refused the job.
        """
        return await self.submit_request(JobRequest(instance=instance, arguments=arguments, **options))

    async def submit_request(self, request: JobRequest) -> Job:
        """Submit a `JobRequest`; see `submit`."""
        return await self.queue.submit(request, new_job_id())

    async def call(
        self,
        instance: str,
        arguments: Mapping[str, Any] = NO_ARGUMENTS,
        **options: Unpack[RequestOptions],
    ) -> Any:
        """Submit a job, wait for it, and return its result.

        If the caller is cancelled, for example by `asyncio.timeout`, the job is
        cancelled too, unless another caller submitted it under the same key. Use `submit` for a job that has to
        outlive its caller.

        Raises:
            Fault: the job failed or was cancelled. `describe` returns the report of the job.
        """
        request = JobRequest(instance=instance, arguments=arguments, **options)
        entry = await self.queue.intake.call(request, new_job_id())
        return read_result(entry.result_text) if entry.result_text is not None else result_of(entry.job())

    async def stream(
        self,
        instance: str,
        arguments: Mapping[str, Any] = NO_ARGUMENTS,
        **options: Unpack[RequestOptions],
    ) -> AsyncGenerator[Any]:
        """Submit a job and yield its items as they arrive. Leaving the loop cancels the job.

        A stream takes no `key`, because its items are not stored.

        Raises:
            Fault: the job failed or was cancelled.
        """
        items, queue = Items(), self.queue
        request = JobRequest(instance=instance, arguments=arguments, stream=True, **options)
        job = await queue.submit(request, new_job_id(), items)
        try:
            async for item in items:
                yield item
        finally:
            items.leave()
            if not queue.state.is_stopping:
                # After the runtime has stopped there is nothing left to cancel.
                queue.cancel(job.id)
        result_of(await self.wait(job.id))

    async def wait(self, job: str, timeout: float | None = None) -> Job:  # noqa: ASYNC109  (a bound on the wait alone)
        """Wait until a job ends, and return it.

        Raises:
            UnknownJob: the job does not exist.
            TimeoutError: the job did not end within `timeout` seconds. It continues.
            QueueStopped: the runtime stopped first.
        """
        if timeout is None:
            return await self.queue.wait(job)
        async with asyncio.timeout(timeout):
            return await self.queue.wait(job)

    def job(self, job: str) -> Job:
        """The job with this id, in its current state.

        Raises:
            UnknownJob: the job does not exist.
        """
        return self.queue.job(job)

    def cancel(self, job: str, *, grace: float | None = None) -> bool:
        """Cancel a job, also of another host; `False` if it has ended or does not exist. `wait` returns when it has stopped."""
        return self.queue.cancel(job, grace)

    def reorder(self, job: str, priority: int) -> bool:
        """Change the priority of a waiting job; `False` if the job is not waiting, or another host is about to start it."""
        return self.queue.reorder(job, priority)

    async def resubmit(self, job: str) -> Job:
        """Submit the same request again as a new job."""
        return await self.submit_request(self.queue.job(job).resubmission())

    def pause(self) -> None:
        """Start no more jobs; running jobs continue."""
        self.queue.pause(on=True)

    def resume(self) -> None:
        """Start jobs again after `pause`."""
        self.queue.pause(on=False)

    def events(
        self, job: str | None = None, *, after: int | None = None, buffer: int = BUFFER, live: bool = True
    ) -> Subscription:
        """Subscribe to new events; with `after`, stored events with a higher number come first.

        Args:
            job: Only the events of this job; the iterator ends with the job.
            after: The number of the last event that the caller has.
            buffer: How many events may be queued for this subscriber; more are dropped and counted.
            live: Whether to include progress, which is not stored.
        """
        return self.queue.subscribe(job, after=after, buffer=buffer, live=live)

    async def drained(self) -> None:
        """Wait until every job of the store has ended."""
        await self.queue.drained()

    # -------------------------------------------------------------- statistics

    def history(self, *, limit: int = 100, instance: str | None = None) -> list[Job]:
        """Ended jobs, newest first."""
        states = [state.value for state in JobState if state.is_final]
        return self.store.jobs(states=states, instance=instance, limit=limit)

    def waiting(self) -> list[Job]:
        """Waiting jobs, in the order in which they will start."""
        return self.queue.waiting()

    def counts(self) -> dict[str, int]:
        """The exact number of stored jobs in each state."""
        return self.store.counts()

    def stats(self) -> dict[str, Any]:
        """A snapshot: totals, workers, reserved memory, and waiting jobs with their reasons."""
        return self._running.stats()
