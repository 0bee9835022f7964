"""A queue with its workers, as a program uses it: `async with Runtime() as jobs: ...`.

Jobs are kept in the state folder. Whatever was waiting when an earlier process ended goes on; whatever
was running is begun anew, and its record says so.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from time import time
from types import TracebackType
from typing import Any, Self

from failwell._moved import renamed_parameters
from failwell.decision.policy import Policy
from failwell.jobs.capability_registry import CapabilityRegistry
from failwell.jobs.faults import EnteredTwice, NotEntered
from failwell.jobs.instances import CapabilitySource, Instances
from failwell.jobs.job import NO_ARGUMENTS, Job, JobRequest, JobState, new_job_id, result_of
from failwell.jobs.manifest import new_instance
from failwell.jobs.memory.book import NO_LIMITS, Book
from failwell.jobs.memory.ledger import HEADROOM
from failwell.jobs.memory.machine import Limits, Probe
from failwell.jobs.memory.system import SystemProbe
from failwell.jobs.output_lines import OutputFiles
from failwell.jobs.queue.events import BUFFER, Items, Subscription
from failwell.jobs.queue.instance import Instance
from failwell.jobs.queue.queue import Queue
from failwell.jobs.queue.snapshot import leave_picture, picture
from failwell.jobs.queue.state import DEFAULT, Rules
from failwell.jobs.store.job_store import JobStore
from failwell.jobs.store.rows import read_result
from failwell.jobs.store.sqlite import open_jobs
from failwell.jobs.worker.protocol import Died, Measured, OutputLine, Ready, WorkerEvent
from failwell.jobs.worker.supervisor import SupervisedWorker, Supervision
from failwell.journal.folder import make_private, state_folder

StoreLocation = JobStore | str | os.PathLike[str] | None
"""A store, the state folder of one, or nothing: the user's own."""


def folder_beside(store: StoreLocation) -> Path:
    """The state folder that a store lies in."""
    if store is not None and not isinstance(store, str | os.PathLike):
        return store.folder.parent
    return state_folder(None if store is None else os.fspath(store))


def open_store(store: StoreLocation) -> JobStore:
    """The store itself, or the one in that folder."""
    if store is not None and not isinstance(store, str | os.PathLike):
        return store
    return open_jobs(store)


DRAIN = 5.0


class Hosting:
    """Everything that is open while jobs are done."""

    def __init__(
        self,
        store: StoreLocation,
        instances: Instances,
        hurry: asyncio.Event,
        *,
        rules: Rules,
        headroom: float,
        limits: Limits,
        probe: Probe | None,
        drain: float,
    ) -> None:
        """Open the store; no job is run before `begin`."""
        self._location = store
        self._instances = instances
        self._rules = rules
        self._drain = drain
        self._hurry = hurry
        self.store = open_store(store)
        self.book = Book(probe or SystemProbe(self.store.folder), headroom, time, limits)
        self._lines = OutputFiles(self.store.folder)
        self._queue: Queue | None = None
        self._stack = AsyncExitStack()
        self._snapshot_timer: asyncio.TimerHandle | None = None

    @property
    def queue(self) -> Queue:
        """The queue, from `begin` on."""
        assert self._queue is not None
        return self._queue

    # -------------------------------------------------------------- beginning and end

    async def begin(self) -> None:
        """Resume what is in the store.

        Raises:
            HostElsewhere: another process runs its jobs. Nothing is left open.
        """
        store = self.store
        async with AsyncExitStack() as stack:
            if store is not self._location:
                stack.callback(store.close)
            stack.push_async_callback(self.book.close)
            stack.enter_context(store.hosting())
            stack.enter_context(store.short_waits())
            results = make_private(store.folder / "results")
            stack.callback(self._lines.flush)
            self.book.load(store.profiles())
            stack.callback(self._instances.leave)
            self._instances.prepare(str(results), self._on_event)
            instances, find = self._instances.loaded, self._instances.find
            self._queue = Queue(store, self.book, self._rules, instances, finder=find)
            self._instances.serve(self._queue)
            stack.push_async_callback(self._stop_workers)
            stack.push_async_callback(self._stop_queue)
            self._listen(stack)
            self._queue.outside.recover()
            self._stack = stack.pop_all()
        self._publish_snapshot()

    def hurry(self) -> None:
        """Wait for nothing that runs, now or when it is stopped."""
        self._hurry.set()
        if self._queue is not None:
            self._queue.hurry()

    async def end(self) -> None:
        """Stop everything, and leave nothing behind."""
        await self._stack.aclose()

    def _listen(self, stack: AsyncExitStack) -> None:
        """Be woken by others who submit jobs."""
        watch = stack.enter_context(self.store.host_watch())
        loop = asyncio.get_running_loop()
        number = watch.fileno()
        queue = self.queue

        def woken() -> None:
            watch.drain()
            self._instances.apply_changes()
            queue.look_outside()

        if number is not None:
            loop.add_reader(number, woken)
            stack.callback(loop.remove_reader, number)

    async def _stop_queue(self) -> None:
        if self._snapshot_timer is not None:
            self._snapshot_timer.cancel()
        try:
            await self.queue.stop(self._drain)
        except asyncio.CancelledError:
            # Whoever asks a second time is in a hurry.
            self._hurry.set()
            raise
        finally:
            self._snapshot_file().unlink(missing_ok=True)

    async def _stop_workers(self) -> None:
        cut: asyncio.CancelledError | None = None
        ending = [
            asyncio.ensure_future(instance.worker.stop()) for instance in self._instances.loaded.values()
        ]
        hurry = asyncio.ensure_future(self._hurry.wait())
        try:
            await asyncio.wait(
                [asyncio.gather(*ending, return_exceptions=True), hurry], return_when=asyncio.FIRST_COMPLETED
            )
        except asyncio.CancelledError as error:
            cut = error
        hurry.cancel()
        if cut is not None or self._hurry.is_set():
            ending = [
                asyncio.ensure_future(instance.worker.stop(grace=0))
                for instance in self._instances.loaded.values()
            ]
        outcomes = await asyncio.gather(*ending, return_exceptions=True)
        for error in (*outcomes, cut):
            if error is not None:
                raise error

    # -------------------------------------------------------------- what workers tell

    def _on_event(self, instance: Instance, event: WorkerEvent) -> None:
        if isinstance(event, OutputLine):
            self._keep_line(instance, event)
            return
        if isinstance(event, Measured | Died):
            # Its result follows, and whoever reads that may want to read what was said.
            self._lines.flush(event.job if isinstance(event, Measured) else None)
        self.queue.listener.apply(instance, event)
        if isinstance(event, Ready | Died):
            self._publish_snapshot()

    def _keep_line(self, instance: Instance, event: OutputLine) -> None:
        # What comes from a descriptor, or from the start, says nothing of a job; with one there is no doubt.
        only = next(iter(instance.entries)) if len(instance.entries) == 1 else None
        self._lines.add(event, event.job or only)

    # -------------------------------------------------------------- what others see

    def stats(self) -> dict[str, Any]:
        """One picture of everything."""
        return picture(self.store, self.queue, self.book, self._instances.loaded)

    def _publish_snapshot(self) -> None:
        """Leave a picture where other processes can look at it."""
        if self._snapshot_timer is not None:
            self._snapshot_timer.cancel()
        if self.queue.state.is_stopping:
            return
        leave_picture(self._snapshot_file(), self.stats)
        self._snapshot_timer = asyncio.get_running_loop().call_later(1.0, self._tick)

    def _tick(self) -> None:
        # Nobody has to wake us for this: a waking that went astray is made up for here.
        self._instances.apply_changes()
        self.queue.look_outside()
        self._publish_snapshot()

    def _snapshot_file(self) -> Path:
        return self.store.folder / "host.json"


class Runtime:
    """Runs jobs in worker processes of their own. One per state folder and machine at a time."""

    @renamed_parameters(shelf="registry")
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
        """Prepare it; nothing is opened or started before `async with`.

        Args:
            store: Where jobs are kept: a state folder (the user's own by default), or a store.
            registry: Where registered capabilities are kept; beside the jobs by default, as
                `failwell capabilities add` does it.
            lanes: How many jobs run at a time.
            policy: What is repeated, how often, after which waits.
            history: How many ended jobs are kept in memory.
            headroom: The share of the machine's memory that jobs may use together.
            limits: How much of it they may use at the most, in megabytes: `Limits(memory_mb=8_000)`.
            probe: Looks at the machine; the real one by default.
            supervision: How closely workers are watched.
            drain: Seconds that running jobs have to end when the runtime stops.
            rules: Everything about the queue at once, instead of `lanes`, `policy` and `history`.
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

    # -------------------------------------------------------------- beginning and end

    async def __aenter__(self) -> Self:
        """Open the store and resume what is in it.

        Raises:
            HostElsewhere: another process runs the jobs of this store.
            EnteredTwice: it runs already.
        """
        if self._hosting is not None:
            raise EnteredTwice
        hosting = self._hosting = self._open(self._hurry)
        has_begun = False
        try:
            await hosting.begin()
            has_begun = True
        finally:
            if not has_begun:
                # Also after a cancellation: whatever keeps it from starting, it can be started later.
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
        """Be quick about the end, now or when it comes: running jobs are put back, and their workers killed."""
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
        """Where the jobs are kept.

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
        """Make a capability known to this runtime; its instance's id comes back.

        Args:
            what: A manifest, the path of one, a class or a function.
            instance: Its id; like the capability by default.
            config: Its configuration. Keys that its schema does not know are refused; with
                `config_strict = false` in the manifest they are left out, with an `UnknownConfigWarning`.
            fields: For a class or a function, further fields of its manifest, such as `concurrency`.

        Raises:
            CapabilityConfigError: the manifest or the configuration is not valid.
            CapabilityInputError: the id is not one, or is taken.
            UnsupportedPlatform: this machine is not one that it can run on.
        """
        return self._instances.register(what, instance, config, fields)

    def new_instance(self, name: str, config: Mapping[str, Any] | None = None) -> str:
        """A further instance of a known capability, under an id of its own that ends with this runtime."""
        return self.add_instance(name, new_instance(name), config)

    def add_instance(self, name: str, instance: str, config: Mapping[str, Any] | None = None) -> str:
        """A further instance of a known capability.

        Raises:
            CapabilityNotLoadedError: the capability is not known.
        """
        return self.register(self._instances.manifest(name), instance=instance, config=config)

    async def unload(self, instance: str) -> None:
        """Stop an instance and forget it. What runs in it is put back.

        Its jobs that wait stay on record until it is known again.
        """
        await self._instances.unload(instance)

    def worker(self, instance: str) -> SupervisedWorker:
        """The worker of an instance."""
        worker = self._instances.get(instance).worker
        assert isinstance(worker, SupervisedWorker)
        return worker

    @property
    def instances(self) -> list[str]:
        """Every instance that is known here."""
        return sorted(self._instances.loaded)

    async def enable(self, instance: str) -> bool:
        """Let it take work again; whether that changed anything."""
        return await self._instances.enable(instance)

    async def disable(self, instance: str) -> bool:
        """Let it take no more work. What it has it finishes; then its hook is told, once."""
        return await self._instances.disable(instance)

    async def configure(self, instance: str, config: Mapping[str, Any]) -> None:
        """Give it another configuration, in place. It is measured anew.

        Where its manifest says `config_strict = false`, keys that nobody knows are left out of it, with an
        `UnknownConfigWarning`.

        Raises:
            CapabilityConfigError: it is not valid; every bad field is named, nothing was changed.
        """
        await self._instances.configure(instance, config)

    # -------------------------------------------------------------- jobs

    async def submit(
        self,
        instance: str,
        arguments: Mapping[str, Any] = NO_ARGUMENTS,
        *,
        action: str = "execute",
        priority: int = 0,
        timeout: float | None = None,  # noqa: ASYNC109  (of the job, not of this call)
        deadline: datetime | None = None,
        key: str | None = None,
        run: str | None = None,
        actor: str | None = None,
        control: Mapping[str, Any] = NO_ARGUMENTS,
    ) -> Job:
        """Submit a job; it is on record when this returns.

        Args:
            instance: Who is to do it.
            arguments: Keyword arguments of the call, as JSON.
            action: Which method.
            priority: Higher goes first.
            timeout: Seconds that one attempt may run.
            deadline: When the result is of no use any more.
            key: A second job with the same key is the first.
            run: The run that it belongs to.
            actor: Who wants it.
            control: `max_attempts`: attempts in all; `idempotent`: whether it may be repeated after an
                outcome that nobody knows.

        Raises:
            CapabilityDisabledError: the instance is switched off.
            CapabilityNotLoadedError: there is no such instance.
            UnsupportedPlatform: this machine is not one that it can run on.
            Fault: the store cannot take it.
        """
        request = JobRequest(
            instance=instance,
            arguments=arguments,
            action=action,
            priority=priority,
            timeout=timeout,
            deadline=deadline,
            key=key,
            run=run,
            actor=actor,
            control=control,
        )
        return await self.submit_request(request)

    async def submit_request(self, request: JobRequest) -> Job:
        """`submit` for a request that was made before."""
        return await self.queue.submit(request, new_job_id())

    async def call(
        self,
        instance: str,
        arguments: Mapping[str, Any] = NO_ARGUMENTS,
        *,
        action: str = "execute",
        priority: int = 0,
        timeout: float | None = None,  # noqa: ASYNC109  (of the job, not of this call)
        deadline: datetime | None = None,
        key: str | None = None,
        run: str | None = None,
        actor: str | None = None,
        control: Mapping[str, Any] = NO_ARGUMENTS,
    ) -> Any:
        """Submit a job, wait for it, and return its result.

        The parameters are those of `submit`. If whoever calls is cancelled, as by `asyncio.timeout`, the job is cancelled too, unless somebody else
        submitted it under the same key. A job that is to outlive its caller is submitted with `submit`.

        Raises:
            Fault: the job failed or was cancelled; describing it gives the job's own report.
        """
        request = JobRequest(
            instance=instance,
            arguments=arguments,
            action=action,
            priority=priority,
            timeout=timeout,
            deadline=deadline,
            key=key,
            run=run,
            actor=actor,
            control=control,
        )
        entry = await self.queue.intake.call(request, new_job_id())
        return read_result(entry.result) if entry.result is not None else result_of(entry.job())

    async def stream(
        self,
        instance: str,
        arguments: Mapping[str, Any] = NO_ARGUMENTS,
        *,
        action: str = "execute",
        priority: int = 0,
        timeout: float | None = None,  # noqa: ASYNC109  (of the job, not of this call)
        deadline: datetime | None = None,
        key: str | None = None,
        run: str | None = None,
        actor: str | None = None,
        control: Mapping[str, Any] = NO_ARGUMENTS,
    ) -> AsyncGenerator[Any]:
        """The items of a job as they come. Leaving the loop cancels it.

        The parameters are those of `submit`; a stream takes no `key`, because its items are not kept.

        Raises:
            Fault: the job failed or was cancelled.
        """
        items, queue = Items(), self.queue
        request = JobRequest(
            instance=instance,
            arguments=arguments,
            action=action,
            priority=priority,
            timeout=timeout,
            deadline=deadline,
            key=key,
            run=run,
            actor=actor,
            control=control,
            stream=True,
        )
        job = await queue.submit(request, new_job_id(), items)
        try:
            async for item in items:
                yield item
        finally:
            items.leave()
            if not queue.state.is_stopping:
                # Whoever leaves it later, when the runtime has ended, has nothing to stop any more.
                queue.cancel(job.id)
        result_of(await self.wait(job.id))

    async def wait(self, job: str, timeout: float | None = None) -> Job:  # noqa: ASYNC109  (a bound on the wait alone)
        """The job once it is over.

        Raises:
            UnknownJob: there is none.
            TimeoutError: it is not over within `timeout` seconds. It goes on.
            QueueStopped: the runtime stopped first.
        """
        if timeout is None:
            return await self.queue.wait(job)
        async with asyncio.timeout(timeout):
            return await self.queue.wait(job)

    def job(self, job: str) -> Job:
        """How a job stands now.

        Raises:
            UnknownJob: there is none.
        """
        return self.queue.job(job)

    def cancel(self, job: str, *, grace: float | None = None) -> bool:
        """Stop a job; `False` where it is over or unknown. `wait` tells when it has stopped."""
        return self.queue.cancel(job, grace)

    def reorder(self, job: str, priority: int) -> bool:
        """Give a waiting job another priority; `False` where it does not wait."""
        return self.queue.reorder(job, priority)

    async def resubmit(self, job: str) -> Job:
        """Submit the same work again, as a new job."""
        from dataclasses import replace

        before = self.queue.job(job)
        control = {**before.request.control, "resubmitted": before.id}
        return await self.submit_request(replace(before.request, key=None, deadline=None, control=control))

    def pause(self) -> None:
        """Start nothing more; what runs goes on."""
        self.queue.pause(on=True)

    def resume(self) -> None:
        """Go on after `pause`."""
        self.queue.pause(on=False)

    def events(
        self, job: str | None = None, *, after: int | None = None, buffer: int = BUFFER, live: bool = True
    ) -> Subscription:
        """What happens from now on; with `after`, first what happened since event `after`.

        Args:
            job: Only this one; the iterator then ends with it.
            after: The number of the last event that is known already.
            buffer: How many may wait for this listener; more are dropped and counted.
            live: Whether to hear progress too, which is not kept.
        """
        return self.queue.subscribe(job, after=after, buffer=buffer, live=live)

    async def drained(self) -> None:
        """Wait until no job is left."""
        await self.queue.drained()

    # -------------------------------------------------------------- seeing

    def history(self, *, limit: int = 100, instance: str | None = None) -> list[Job]:
        """Ended jobs, the newest first."""
        states = [state.value for state in JobState if state.is_final]
        return self.store.jobs(states=states, instance=instance, limit=limit)

    def waiting(self) -> list[Job]:
        """Jobs that wait, in the order in which they would start."""
        return self.queue.waiting()

    def counts(self) -> dict[str, int]:
        """How many of the jobs on record stand in each state, exactly, over all hosts of the store."""
        return self.store.counts()

    def stats(self) -> dict[str, Any]:
        """One picture of everything: totals, workers, what is reserved, who waits and why."""
        return self._running.stats()
