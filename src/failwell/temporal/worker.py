"""The work of one machine: workflow runs on one task queue, and each capability on a queue of its own."""

from asyncio import gather
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from temporalio.client import Client
from temporalio.worker import Worker

from failwell._version import __version__
from failwell.errors.fault import Fault
from failwell.jobs.memory.book import NO_LIMITS
from failwell.jobs.memory.machine import Limits
from failwell.jobs.platform import this_machine
from failwell.jobs.queue.state import Rules
from failwell.jobs.runtime import DRAIN, Runtime
from failwell.temporal.connection import ConnectionOptions
from failwell.temporal.jobs.job_activity import JobActivity
from failwell.temporal.jobs.job_workflow import JobWorkflow
from failwell.temporal.queues import BEAT, instance_queue
from failwell.temporal.runs.step_activities import StepActivities, run_worker_options

BUILD = f"failwell-{__version__}"
"""What the server shows as the version of this worker. By default, the SDK would hash every loaded module."""


class WorkerFailed(Fault, kind="provider.unavailable"):
    """The server does not give work to this worker any more."""


class TemporalWorker:
    """Polls the task queues of one machine from `async with` to its end.

    At its end it takes no more work, and what runs has `drain` seconds to finish. After that it is cancelled, and
    Temporal starts it on another machine.
    """

    def __init__(
        self,
        options: ConnectionOptions,
        folder: Path,
        *,
        lanes: int = 4,
        limits: Limits = NO_LIMITS,
        drain: float = DRAIN,
    ) -> None:
        """Create a worker; nothing is opened yet.

        Args:
            options: The server and the task queue.
            folder: The state folder, with the registered capabilities.
            lanes: How many jobs this machine runs at a time.
            limits: The most memory that jobs may use together.
            drain: Seconds that running work has to end when the worker stops.
        """
        self._options = options
        self._drain = timedelta(seconds=drain)
        self.jobs = Runtime(folder, rules=Rules(lanes=lanes), limits=limits, drain=drain)
        self.steps = StepActivities(folder, jobs=self.jobs)
        self.instances: list[str] = []
        """The instances whose queues are polled."""
        self.skipped: dict[str, str] = {}
        """The instances that cannot run here, with the reason."""
        self._open = AsyncExitStack()
        self._workers: list[Worker] = []

    async def __aenter__(self) -> Self:
        client = await self._options.connect()
        async with AsyncExitStack() as opened:
            await opened.enter_async_context(self.jobs)
            opened.push_async_callback(self.steps.close)
            self._workers = [self._run_worker(client), *self._job_workers(client)]
            for worker in self._workers:
                await opened.enter_async_context(worker)
            self._open = opened.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # All at once: one that still polls would take work while the others stop.
            await gather(*(worker.shutdown() for worker in self._workers))
            await self._open.__aexit__(kind, error, trace)
        except RuntimeError as failure:
            # A worker that cannot poll any more cancels the block; the SDK raises the reason here.
            raise WorkerFailed.wrap(
                failure, "the worker cannot poll its task queues any more", caller_facing=True
            ) from failure

    def _run_worker(self, client: Client) -> Worker:
        """The worker of workflow runs, and of jobs that are submitted on their own."""
        return Worker(
            client,
            task_queue=self._options.task_queue,
            build_id=BUILD,
            graceful_shutdown_timeout=self._drain,
            **run_worker_options(self.steps, JobWorkflow, is_sandboxed=False),
        )

    def _job_workers(self, client: Client) -> list[Worker]:
        """One worker for each enabled instance of a registered capability that can run on this machine."""
        activities = [JobActivity(self.jobs).run, self.steps.run_step]
        registry = self.jobs.registry
        workers: list[Worker] = []
        for name in registry.names():
            for instance in registry.instances(name):
                reason = self._obstacle(name, instance)
                if reason is not None:
                    self.skipped[instance] = reason
                    continue
                self.instances.append(instance)
                workers.append(
                    self._job_worker(client, instance, registry.manifest(name).concurrency, activities)
                )
        return workers

    def _job_worker(self, client: Client, instance: str, concurrency: int, activities: list[Any]) -> Worker:
        return Worker(
            client,
            task_queue=instance_queue(self._options.task_queue, instance),
            activities=activities,
            build_id=BUILD,
            # No more than the instance runs at a time: what waits here could start on another machine.
            max_concurrent_activities=concurrency,
            max_heartbeat_throttle_interval=timedelta(seconds=BEAT),
            default_heartbeat_throttle_interval=timedelta(seconds=BEAT),
            graceful_shutdown_timeout=self._drain,
        )

    def _obstacle(self, name: str, instance: str) -> str | None:
        """Why an instance cannot run here; `None` if it can."""
        try:
            manifest = self.jobs.registry.manifest(name)
        except Fault as fault:
            return str(fault)
        if not self.jobs.registry.is_enabled(instance):
            return "it is disabled"
        return "; ".join(this_machine().missing(manifest.resources)) or None
