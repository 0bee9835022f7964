"""A queue with its workers, as a program uses it: `async with Runtime() as jobs: ...`.

Jobs are kept in the state folder. Whatever was waiting when an earlier process ended goes on; whatever
was running is begun anew, and its record says so.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from time import time
from types import TracebackType
from typing import Any, Self, cast

from failwell.decision.policy import Policy
from failwell.fault.base import Fault
from failwell.fault.capability import CapabilityConfigError, CapabilityInputError, CapabilityNotLoadedError
from failwell.jobs.heeding import NOTHING_NEW, Heeding, News, renew
from failwell.jobs.here import check_here
from failwell.jobs.importable import manifest_of
from failwell.jobs.job import NO_ARGUMENTS, Job, JobRequest, JobState
from failwell.jobs.kept import read_result
from failwell.jobs.ledger import HEADROOM
from failwell.jobs.manifest import Manifest, check_instance, new_instance, read_manifest
from failwell.jobs.opening import folder_beside, new_job_id, open_store, system_probe
from failwell.jobs.outcome import result_of
from failwell.jobs.printed import Lines
from failwell.jobs.queue import Queue
from failwell.jobs.queue_events import BUFFER, Subscription
from failwell.jobs.queue_faults import EnteredTwice, NotEntered, NotReadable
from failwell.jobs.queue_items import Items
from failwell.jobs.queue_state import Rules
from failwell.jobs.resources import Limits, Probe
from failwell.jobs.resources_book import NO_LIMITS, Book
from failwell.jobs.shelf import Shelf
from failwell.jobs.station import Station
from failwell.jobs.store import JobStore
from failwell.jobs.supervisor import SupervisedWorker, Supervision
from failwell.jobs.worker import Died, Logged, Measured, Ready, WorkerEvent
from failwell.runtime.suppress import suppress

DRAIN = 5.0


class Runtime:
    """Runs jobs in worker processes of their own. One per state folder and machine at a time."""

    def __init__(
        self,
        store: JobStore | str | os.PathLike[str] | None = None,
        *,
        shelf: Shelf | str | os.PathLike[str] | None = None,
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
            shelf: Where registered capabilities are kept; beside the jobs by default, as
                `failwell capability add` does it.
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
        self._given = store
        self.shelf = shelf if isinstance(shelf, Shelf) else Shelf(shelf or folder_beside(store))
        known = (
            Rules(lanes=lanes, history=history)
            if policy is None
            else Rules(lanes=lanes, history=history, policy=policy)
        )
        self._rules = rules or known
        self._headroom = headroom
        self._limits = limits
        self._probe = probe
        self._care = supervision
        self._drain = drain
        self._stations: dict[str, Station] = {}
        self._manifests: dict[str, Manifest] = {}
        self._unloaded: set[str] = set()
        self._leave: dict[str, Callable[[], None]] = {}
        self._stack = AsyncExitStack()
        self._queue: Queue | None = None
        self._store: JobStore | None = None
        self._book: Book | None = None
        self._lines: Lines | None = None
        self._heeding: Heeding | None = None
        self._picture: asyncio.TimerHandle | None = None
        self._hurry = asyncio.Event()

    # -------------------------------------------------------------- beginning and end

    async def __aenter__(self) -> Self:
        """Open the store and take up what is in it.

        Raises:
            HostElsewhere: another process runs the jobs of this store.
            EnteredTwice: it runs already.
        """
        if self._store is not None:
            raise EnteredTwice
        self._store = open_store(self._given)
        try:
            await self._begin(self._store)
        except BaseException:
            # Also a cancellation: whatever keeps it from starting, it can be started later.
            self._store = self._queue = None
            raise
        self._draw()
        return self

    async def _begin(self, store: JobStore) -> None:
        async with AsyncExitStack() as stack:
            if store is not self._given:
                stack.callback(store.close)
            stack.enter_context(store.hosting())
            stack.enter_context(store.hurried())
            self._book = Book(self._probe or system_probe(store.folder), self._headroom, time, self._limits)
            stack.push_async_callback(self._book.close)
            self._lines = Lines(store.folder)
            stack.callback(self._lines.flush)
            self._book.load(store.profiles())
            self._make_anew()
            self._heeding = Heeding(self.shelf)
            self._queue = Queue(store, self._book, self._rules, self._stations, finder=self._find)
            stack.push_async_callback(self._stop_workers)
            stack.push_async_callback(self._stop_queue)
            self._listen(stack, store)
            self._queue.recover()
            self._stack = stack.pop_all()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._stack.__aexit__(kind, error, trace)
        finally:
            self._store = self._queue = None
            self._hurry = asyncio.Event()

    def _listen(self, stack: AsyncExitStack, store: JobStore) -> None:
        """Be woken by others who hand in jobs."""
        watch = stack.enter_context(store.door())
        loop = asyncio.get_running_loop()
        number = watch.fileno()
        queue = self.queue

        def woken() -> None:
            watch.drain()
            self._heed()
            queue.look_outside()

        if number is not None:
            loop.add_reader(number, woken)
            stack.callback(loop.remove_reader, number)

    def hurry(self) -> None:
        """Be quick about the end, now or when it comes: running jobs are put back, and their workers killed."""
        self._hurry.set()
        if self._queue is not None:
            self._queue.hurry()

    async def _stop_queue(self) -> None:
        if self._picture is not None:
            self._picture.cancel()
        try:
            await self.queue.stop(self._drain)
        except asyncio.CancelledError:
            # Whoever asks a second time is in a hurry.
            self._hurry.set()
            raise
        finally:
            self._picture_file().unlink(missing_ok=True)

    async def _stop_workers(self) -> None:
        cut: asyncio.CancelledError | None = None
        ending = [asyncio.ensure_future(one.worker.stop()) for one in self._stations.values()]
        hurry = asyncio.ensure_future(self._hurry.wait())
        try:
            await asyncio.wait(
                [asyncio.gather(*ending, return_exceptions=True), hurry], return_when=asyncio.FIRST_COMPLETED
            )
        except asyncio.CancelledError as error:
            cut = error
        hurry.cancel()
        if cut is not None or self._hurry.is_set():
            ending = [asyncio.ensure_future(one.worker.stop(grace=0)) for one in self._stations.values()]
        told = await asyncio.gather(*ending, return_exceptions=True)
        for leave in self._leave.values():
            leave()
        for error in (*told, cut):
            if error is not None:
                raise error

    @property
    def queue(self) -> Queue:
        """The queue.

        Raises:
            NotEntered: outside of `async with`.
        """
        if self._queue is None:
            raise NotEntered
        return self._queue

    @property
    def store(self) -> JobStore:
        """Where the jobs are kept.

        Raises:
            NotEntered: outside of `async with`.
        """
        if self._store is None:
            raise NotEntered
        return self._store

    # -------------------------------------------------------------- capabilities

    def register(
        self,
        what: Manifest | str | os.PathLike[str] | type | Callable[..., Any],
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
            NotHere: this machine is not one that it can run on.
        """
        if isinstance(what, Manifest):
            manifest = what
        elif isinstance(what, str | os.PathLike):
            manifest = read_manifest(os.fspath(cast("str | os.PathLike[str]", what)))
        elif callable(what):
            manifest = manifest_of(what, **fields)
        else:
            raise _unfit("what", what, "a manifest, the path of one, a class or a function")
        check_here(manifest)
        if instance is not None and not _is(str, instance):
            raise _unfit("instance", instance, "a text")
        _check_config(config)
        name = check_instance(manifest.name if instance is None else instance)
        if name in self._stations:
            raise CapabilityInputError(
                f"an instance `{name}` is registered already; give this one another id",
                fields_invalid=["instance"],
            )
        self._manifests.setdefault(manifest.name, manifest)
        self._unloaded.discard(name)
        kept = self.shelf.config(name)
        station = self._make(manifest, name, {**kept, **(config or {})}, self.shelf.secrets(manifest.name))
        self._add(station)
        return name

    def new_instance(self, name: str, config: Mapping[str, Any] | None = None) -> str:
        """A further instance of a known capability, under an id of its own that ends with this runtime."""
        return self.add_instance(name, new_instance(name), config)

    def add_instance(self, name: str, instance: str, config: Mapping[str, Any] | None = None) -> str:
        """A further instance of a known capability.

        Raises:
            CapabilityNotLoadedError: the capability is not known.
        """
        manifest = self._manifests.get(name)
        if manifest is None:
            manifest = self.shelf.manifest(name)
        return self.register(manifest, instance=instance, config=config)

    async def unload(self, instance: str) -> None:
        """Stop an instance and forget it. Its jobs that wait stay on record until it is known again."""
        station = self._station(instance)
        # Nothing is started in it any more; what runs is put back.
        station.is_leaving = True
        await station.worker.stop()
        await station.emptied()
        # A job that had been given to it a moment before may have started it once more.
        await station.worker.stop()
        if self._stations.get(instance) is not station:
            # Somebody else unloaded it meanwhile.
            return
        self._leave.pop(instance)()
        del self._stations[instance]
        self._unloaded.add(instance)
        self.queue.look_outside()

    def _make(
        self,
        manifest: Manifest,
        instance: str,
        config: Mapping[str, Any],
        secrets: Mapping[str, str],
        *,
        check: bool = True,
    ) -> Station:
        results = None if self._store is None else self._results()
        worker = SupervisedWorker(
            manifest,
            instance=instance,
            config=config,
            secrets=secrets,
            folder=results,
            supervision=self._care,
        )
        if check and manifest.config is not None:
            worker.settle()
        host = os.environ if self._care is None else self._care.environment
        return Station(manifest, worker, config, is_enabled=self.shelf.is_enabled(instance), host=host)

    def _make_anew(self) -> None:
        """Make the workers of what was registered: before this, or within an earlier `async with`."""
        known = list(self._stations.values())
        self._stations.clear()
        self._leave.clear()
        for one in known:
            secrets = self.shelf.secrets(one.manifest.name)
            self._add(self._make(one.manifest, one.instance, one.asked, secrets, check=False))

    def _add(self, station: Station) -> None:
        self._stations[station.instance] = station
        self._leave[station.instance] = station.worker.listen(lambda event: self._heard(station, event))
        if self._queue is not None:
            self._queue.look_outside()

    def _heard(self, station: Station, event: WorkerEvent) -> None:
        if isinstance(event, Logged):
            self._keep_line(station, event)
            return
        if self._lines is not None and isinstance(event, Measured | Died):
            # Its result follows, and whoever reads that may want to read what was said.
            self._lines.flush(event.job if isinstance(event, Measured) else None)
        self.queue.heard(station, event)
        if isinstance(event, Ready | Died):
            self._draw()

    def _keep_line(self, station: Station, event: Logged) -> None:
        if self._lines is None:
            return
        # What comes from a descriptor, or from the start, says nothing of a job; with one there is no doubt.
        only = next(iter(station.entries)) if len(station.entries) == 1 else None
        self._lines.add(event, event.job or only)

    def _results(self) -> str:
        from failwell.journal.folder import make_private

        return str(make_private(self.store.folder / "results"))

    def _find(self, instance: str, *, check: bool = True) -> Station | None:
        """An instance that was registered on the shelf, taken from there the first time it is named.

        Raises:
            NotReadable: what is kept of it cannot be read. Somebody may mend that.
            CapabilityConfigError: its configuration is not valid any more; every bad field is named.
        """
        if instance in self._unloaded:
            return None
        try:
            capability = self.shelf.capability(instance)
            manifest = self._manifests.get(capability) or self.shelf.manifest(capability)
            config, secrets = self.shelf.config(instance), self.shelf.secrets(manifest.name)
        except CapabilityNotLoadedError:
            return None
        except CapabilityConfigError as error:
            raise NotReadable(str(error)) from error
        except (OSError, ValueError, AttributeError, TypeError) as error:
            # A file that somebody else broke: not TOML any more, or a number where an object was.
            raise NotReadable(f"what is kept of `{instance}` cannot be read: {error}") from error
        station = self._make(manifest, instance, config, secrets, check=check)
        self._add(station)
        return station

    def _station(self, instance: str) -> Station:
        # Its configuration may be the very thing that somebody is about to mend.
        self.queue  # noqa: B018  (raises outside of `async with`)
        station = self._stations.get(instance) or self._find(instance, check=False)
        if station is None:
            raise CapabilityNotLoadedError(instance)
        return station

    def worker(self, instance: str) -> SupervisedWorker:
        """The worker of an instance."""
        worker = self._station(instance).worker
        assert isinstance(worker, SupervisedWorker)
        return worker

    @property
    def instances(self) -> list[str]:
        """Every instance that is known here."""
        return sorted(self._stations)

    async def enable(self, instance: str) -> bool:
        """Let it take work again; whether that changed anything."""
        station = self._station(instance)
        if station.is_enabled:
            return False
        station.is_enabled, station.hook_is_due = True, False
        self.shelf.set_enabled(instance, on=True, capability=station.manifest.name)
        await self.queue.fire_hook(station, on=True)
        self.queue.look_outside()
        return True

    async def disable(self, instance: str) -> bool:
        """Let it take no more work. What it has it finishes; then its hook is told, once."""
        station = self._station(instance)
        if not station.is_enabled:
            return False
        station.is_enabled = False
        self.shelf.set_enabled(instance, on=False, capability=station.manifest.name)
        if station.entries:
            station.hook_is_due = True
        else:
            await self.queue.fire_hook(station, on=False)
        return True

    async def configure(self, instance: str, config: Mapping[str, Any]) -> None:
        """Give it another configuration, in place. It is measured anew.

        Where its manifest says `config_strict = false`, keys that nobody knows are left out of it, with an
        `UnknownConfigWarning`.

        Raises:
            CapabilityConfigError: it is not valid; every bad field is named, nothing was changed.
        """
        _check_config(config)
        station = self._station(instance)
        taken = await station.worker.reconfigure(config)
        station.configure(taken)
        self.shelf.set_config(instance, taken, capability=station.manifest.name)

    def _heed(self) -> None:
        """Let what somebody else changed on the shelf hold for whatever is not begun yet."""
        if self._heeding is None or not self._heeding.look():
            return
        for station in list(self._stations.values()):
            news = self._heeding.news(station.instance, station.manifest.name, station.asked)
            if news != NOTHING_NEW:
                self.queue.spawn(self._take(station, news))

    async def _take(self, station: Station, news: News) -> None:
        with suppress(
            Fault, reason="whoever changed it was told what is wrong with it, and its next start says so"
        ):
            if news.is_enabled is not None:
                await (self.enable if news.is_enabled else self.disable)(station.instance)
            if news.config is not None and news.config != station.asked:
                station.configure(await station.worker.reconfigure(news.config))
            if news.secrets is not None:
                await renew(station, news.secrets)
        self.queue.look_outside()

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
        """Hand in a job; it is on record when this returns.

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
            NotHere: this machine is not one that it can run on.
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

    async def call(self, instance: str, arguments: Mapping[str, Any] = NO_ARGUMENTS, **wishes: Any) -> Any:
        """Hand in a job, wait for it, and return its result.

        If whoever calls is cancelled, as by `asyncio.timeout`, the job is cancelled too, unless somebody else
        handed it in under the same key. A job that is to outlive its caller is handed in with `submit`.

        Raises:
            Fault: the job failed or was cancelled; describing it gives the job's own report.
        """
        ended = await self.queue.call(
            JobRequest(instance=instance, arguments=arguments, **wishes), new_job_id()
        )
        return read_result(ended.result) if ended.result is not None else result_of(ended.job())

    async def stream(
        self, instance: str, arguments: Mapping[str, Any] = NO_ARGUMENTS, **wishes: Any
    ) -> AsyncGenerator[Any]:
        """The items of a job as they come. Leaving the loop cancels it.

        Raises:
            Fault: the job failed or was cancelled.
        """
        items = Items()
        request = JobRequest(instance=instance, arguments=arguments, stream=True, **wishes)
        job = await self.queue.submit(request, new_job_id(), items)
        try:
            async for item in items:
                yield item
        finally:
            items.leave()
            self.queue.cancel(job.id)
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
        """Hand in the same work again, as a new job."""
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
        from failwell.jobs.picture import picture

        if self._book is None:
            raise NotEntered
        return picture(self.store, self.queue, self._book, self._stations)

    def _draw(self) -> None:
        """Leave a picture where other processes can look at it."""
        from failwell.jobs.picture import leave_picture

        if self._picture is not None:
            self._picture.cancel()
        if self._queue is None or self._queue.is_stopping:
            return
        leave_picture(self._picture_file(), self.stats)
        self._picture = asyncio.get_running_loop().call_later(1.0, self._tick)

    def _tick(self) -> None:
        # Nobody has to wake us for this: a waking that went astray is made up for here.
        self._heed()
        self.queue.look_outside()
        self._draw()

    def _picture_file(self) -> Path:
        return self.store.folder / "host.json"


def _is(kind: type, value: object) -> bool:
    """Whether a value is what its annotation says; not every caller has a type checker."""
    return isinstance(value, kind)


def _check_config(config: object) -> None:
    if config is not None and not isinstance(config, Mapping):
        raise _unfit("config", config, "a mapping")


def _unfit(name: str, value: object, what: str) -> CapabilityInputError:
    return CapabilityInputError(
        f"`{name}` is {what}, and not of type {type(value).__name__}", fields_invalid=[name]
    )
