"""The queue: accepts jobs, starts them when there is room, and ends each exactly once.

Everything happens in turns of the event loop. What came up since the last turn is decided and written
in one transaction, and only then acted upon and told: no job runs, and nobody hears of an end, that is
not on record.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from time import time
from typing import Any

from failwell.calls.clock import random_jitter
from failwell.errors.fault import Fault
from failwell.jobs.client.waits import StoreChanges
from failwell.jobs.faults import (
    QueueStopped,
    UnknownJob,
)
from failwell.jobs.job import Job, JobRequest, JobState, check_request, is_priority
from failwell.jobs.memory.book import Book
from failwell.jobs.memory.total_limit import TotalLimit
from failwell.jobs.queue.admission import Admission, Intake
from failwell.jobs.queue.attempts import FREEING, AttemptEnd, Attempts
from failwell.jobs.queue.ends import Ends
from failwell.jobs.queue.entry import Entry
from failwell.jobs.queue.events import BUFFER, Hub, Items, Subscription
from failwell.jobs.queue.order import Instance
from failwell.jobs.queue.other_hosts import OutsideJobs
from failwell.jobs.queue.record import Record
from failwell.jobs.queue.state import QueueState, Rules
from failwell.jobs.store.records import Host
from failwell.jobs.store.sqlite import JobStore
from failwell.jobs.workers.protocol import (
    CancelPhased,
    Died,
    Measured,
    Progress,
    Pulse,
    Quarantined,
    Started,
    WorkerEvent,
)
from failwell.store.event import Event


class WorkerListener:
    """Applies the events of all workers to a queue."""

    def __init__(self, state: QueueState, record: Record, hub: Hub, admission: Admission) -> None:
        self._state = state
        self._record = record
        self._hub = hub
        self._admission = admission

    def apply(self, instance: Instance, event: WorkerEvent) -> None:
        """Apply one event of the worker of `instance`."""
        if isinstance(event, Pulse):
            self._beat(instance)
        elif isinstance(event, Measured):
            self._state.book.measured(instance, event.ram_peak_mb, event.gpu_peak_mb)
        elif isinstance(event, Progress):
            entry = None if event.job is None else instance.entries.get(event.job)
            if entry is not None:
                entry.progress, entry.message = event.fraction, event.message
                if self._hub.has_subscribers:
                    data = {"fraction": event.fraction, "message": event.message}
                    self._hub.publish([Event(0, "progress", self._state.now(), data, entry.id)])
        elif isinstance(event, CancelPhased):
            entry = instance.entries.get(event.job)
            if entry is not None:
                entry.cancel_phase = event.phase
                self._record.say(entry, "cancel_phase", {"phase": event.phase.value})
                self._state.wake()
        elif isinstance(event, Started):
            self._record.tell_of_worker(
                "worker:started",
                {"instance": event.instance, "pid": event.pid, "generation": event.generation},
            )
        elif isinstance(event, Died):
            kind = None if event.report is None else event.report.kind
            self._record.tell_of_worker(
                "worker:died",
                {
                    "instance": event.instance,
                    "pid": event.pid,
                    "returncode": event.returncode,
                    "expected": event.expected,
                    "kind": kind,
                    "jobs": list(event.in_flight),
                },
            )
        elif isinstance(event, Quarantined):
            self._record.tell_of_worker(
                "worker:quarantined",
                {"instance": event.instance, "deaths": event.deaths, "seconds": event.seconds},
            )

    def _beat(self, instance: Instance) -> None:
        self._state.book.pulse(instance)
        if instance.entries and (instance.uses_gpu or self._is_first_run(instance)):
            self._admission.look()

    def _is_first_run(self, instance: Instance) -> bool:
        """Whether the disk is to be looked at for a first run. A reading that is fresh serves all of them."""
        book = self._state.book
        return book.profile(instance) is None and not book.is_fresh


class Queue:
    """The jobs of one store, run by this process."""

    def __init__(
        self,
        store: JobStore,
        host: Host,
        book: Book,
        rules: Rules,
        instances: Mapping[str, Instance],
        *,
        finder: Callable[[str], Instance | None],
        known: Callable[[], Collection[str]] = tuple,
        now: Callable[[], float] = time,
        jitter: Callable[[], float] = random_jitter,
    ) -> None:
        """Create it; `finder` loads an instance that was not used before, `known` lists the registered capabilities."""
        self.state = QueueState(store, host, book, rules, instances, finder, known, now, jitter, self._turn)
        self.hub = Hub(
            lambda after, job, limit: store.events(after, job=job, limit=limit), store.last_event()
        )
        self._record = Record(self.state, self.hub, self.look_outside)
        self._ends = Ends(self.state, self._record)
        self._admission = Admission(self.state, self._record, self._ends)
        after = AttemptEnd(self.state, self._record, self._ends, self._admission)
        self.attempts = Attempts(self.state, self._record, self._ends, after)
        self.outside = OutsideJobs(self.state, self._record, self._ends, self.cancel)
        self.intake = Intake(self.state, self._record, self._ends, self.cancel, self.over)
        self.listener = WorkerListener(self.state, self._record, self.hub, self._admission)
        self._changes = StoreChanges(store, self.state.live)
        self._is_hurried = False
        self._is_over = False
        self._empty: asyncio.Future[None] | None = None

    def _turn(self) -> None:
        if self._record.is_resting:
            return
        state = self.state
        self.outside.refill()
        starting = [] if self._record.trouble is not None else self._admission.admit()
        if not self._record.write(starting, self._launch):
            return
        if self._empty is not None and not state.live and not self._empty.done():
            self._empty.set_result(None)

    def _launch(self, starting: list[Entry]) -> None:
        """Send jobs to their workers, those of one worker together."""
        instances = self.state.instances
        for entry in starting:
            self.attempts.launch(entry, instances[entry.request.instance])
        for name in {entry.request.instance: None for entry in starting}:
            instances[name].worker.flush()

    def limit_memory(self, megabytes: float) -> None:
        """End workers as soon as all of them together use so much main memory."""
        limit = TotalLimit(
            megabytes, self.state.instances, self.state.book, self.state.spawn, self._admission.evicted
        )
        self.state.spawn(limit.watch())

    # -------------------------------------------------------------- submitting

    def look_outside(self) -> None:
        """Read the jobs and the cancellations that other processes submitted."""
        self.outside.look()

    async def submit(self, request: JobRequest, job: str, items: Items | None = None) -> Job:
        """Accept a job; it is recorded when this returns.

        Raises:
            Fault: it is refused, and the fault says why. Nothing was kept.
        """
        return (await self.intake.enter(request, job, items)).job()

    # -------------------------------------------------------------- waiting, cancelling, listing

    async def wait(self, job: str) -> Job:
        """The job once it is over.

        Raises:
            UnknownJob: there is none.
            QueueStopped: the queue stopped before it was.
        """
        entry = self.state.live.get(job)
        if entry is None:
            stored = self.job(job)
            if stored.state.is_final:
                return stored
            entry = Entry.of(stored)
        return (await self.over(entry)).job()

    async def over(self, entry: Entry) -> Entry:
        """The entry once its end is recorded, by this host or another one."""
        while not entry.is_over or entry.id in self.state.live:
            if self._is_over:
                raise QueueStopped(job=entry.id, was=entry.state.value)
            here = self.state.live.get(entry.id)
            if here is None:
                entry = await self._elsewhere(entry)
                continue
            done: asyncio.Future[Entry] = self.state.loop.create_future()
            here.waiters.add(done)
            try:
                entry = await done
            finally:
                # A caller that stops waiting leaves nothing behind, however long the job lives.
                here.waiters.discard(done)
        return entry

    async def _elsewhere(self, entry: Entry) -> Entry:
        """A job that this host does not have, once it has ended or this host has it."""
        await self._changes.end_of(entry.id)
        if entry.id in self.state.live:
            return entry
        try:
            stored = self.state.store.find(entry.id)
        except Fault:
            # The store is unavailable for a moment, or closed.
            return entry
        if stored is None:
            raise UnknownJob(job=entry.id)
        return Entry.of(stored)

    def job(self, job: str) -> Job:
        """The current state of a job.

        Raises:
            UnknownJob: there is none.
        """
        entry = self.state.live.get(job) or self._record.dirty.get(job) or self.state.recent.get(job)
        if entry is not None:
            return entry.job()
        stored = self.state.store.find(job)
        if stored is None:
            raise UnknownJob(job=job)
        return stored

    def cancel(self, job: str, grace: float | None = None) -> bool:
        """Stop a job, on whatever host it is; `False` if it has ended, has its result or is unknown."""
        entry = self.state.live.get(job)
        if entry is None:
            return job not in self.state.recent and self.outside.cancel(job)
        if entry.is_over or entry.has_result:
            return False
        if entry.state is not JobState.RUNNING:
            entry.cancelled = self.state.now()
            self.state.line.leave(entry)
            self._ends.cancel(entry)
        elif entry.cancelled is None:
            entry.cancelled = self.state.now()
            if entry.items is not None:
                # A reader that does not take its items must not keep it from ending.
                entry.items.close()
            self._record.say(entry, "cancelling")
            entry.canceller = self.state.spawn(self._stop_call(entry, grace))
            self.state.wake()
        return True

    async def _stop_call(self, entry: Entry, grace: float | None) -> None:
        instance = self.state.instances[entry.request.instance]
        phase = await instance.worker.cancel(entry.id, grace=grace)
        if phase is None and entry.is_starting and entry.task is not None:
            # Its worker is still being started, so there is no call to stop yet.
            entry.task.cancel()

    def reorder(self, job: str, priority: int) -> bool:
        """Change the priority of a waiting job; `False` if it does not wait, or another host is about to start it."""
        entry = self.state.live.get(job)
        if entry is not None and entry.state not in (JobState.PENDING, JobState.WAITING):
            return False
        if not is_priority(priority):
            check_request(
                JobRequest(instance=job if entry is None else entry.request.instance, priority=priority)
            )
        if entry is None:
            return self.outside.reorder(job, priority)
        entry.request = replace(entry.request, priority=priority)
        self._record.say(entry, "reordered", {"priority": priority})
        if entry.block != FREEING and (entry.due or 0) <= self.state.now():
            self.state.line.add(entry)
        self.state.wake()
        return True

    def pause(self, *, on: bool) -> None:
        """Pause the start of jobs, or resume it."""
        self.state.is_paused = on
        self.state.wake()

    def subscribe(
        self, job: str | None = None, *, after: int | None = None, buffer: int = BUFFER, live: bool = True
    ) -> Subscription:
        """Subscribe to events; see `failwell.jobs.queue.events`."""
        is_over = False
        if job is not None:
            is_over = self.job(job).state.is_final and job not in self._record.dirty
        return self.hub.subscribe(job, after, buffer, live=live, is_over=is_over)

    def waiting(self, most: int | None = None, unowned: Sequence[Job] | None = None) -> list[Job]:
        """The waiting jobs, best first, then those that are not due yet: of this host, and of none.

        `unowned` are those of none, if they were read already.
        """
        jobs = self._waiting_here(most)
        jobs += self.state.store.unowned_jobs(most) if unowned is None else unowned
        jobs.sort(key=_order)
        return jobs[:most]

    def _waiting_here(self, most: int | None) -> list[Job]:
        standing = self.state.line.best(most)
        ids = {entry.id for entry in standing}
        later = (
            entry
            for entry in self.state.live.values()
            if (entry.state is JobState.WAITING or entry.due is not None) and entry.id not in ids
        )
        room = None if most is None else most - len(standing)
        return [entry.job() for entry in (*standing, *islice(later, room))]

    async def drained(self) -> None:
        """Wait until no job is left.

        Raises:
            QueueStopped: the queue stopped before that.
        """
        while True:
            entry = next(iter(self.state.live.values()), None)
            if entry is None:
                if await self._nothing_elsewhere():
                    return
                continue
            if self._is_over:
                raise QueueStopped(job=entry.id, was=entry.state.value)
            if self._empty is None or self._empty.done():
                self._empty = self.state.loop.create_future()
            await asyncio.shield(self._empty)

    async def _nothing_elsewhere(self) -> bool:
        """Whether no job is left that this host does not have; waits for a change if there is one."""
        ownership = self.state.store.ownership(self.state.host.key)
        if not ownership.unowned and not ownership.elsewhere:
            return True
        if self._is_over:
            states = [state.value for state in JobState if not state.is_final]
            for job in self.state.store.jobs(states=states, limit=1, results=False):
                raise QueueStopped(job=job.id, was=job.state.value)
        await self._changes.next()
        return False

    @property
    def trouble(self) -> Fault | None:
        """Why the store refuses writes, if it does."""
        return self._record.trouble

    # -------------------------------------------------------------- stopping

    async def stop(self, drain: float) -> None:
        """Accept no more jobs, let running ones end within `drain` seconds, and release every waiter.

        What has not ended by then is put back, and stays on record as pending. Being cancelled means to wait
        no longer, not to leave anything undone.
        """
        self.intake.is_closed = True
        self.state.is_paused = True
        self.outside.release_all()
        cancellation = await _outlast(self._drain(drain))
        self.state.is_stopping = True
        for part in (self._ends, self._admission, self._record):
            part.close()
        tasks: list[asyncio.Task[Any]] = [task for task in self.state.tasks if not task.done()]
        for task in tasks:
            task.cancel()
        while tasks:
            cancellation = await _outlast(asyncio.wait(tasks)) or cancellation
            tasks = [task for task in tasks if not task.done()]
        for entry in [entry for entry in self.state.live.values() if entry.is_sent]:
            # Its worker is about to be stopped; a later answer is ignored.
            entry.is_sent = False
            self.state.leave(entry, self.state.instances[entry.request.instance])
            self._ends.put_back(entry, "the queue was stopped while it ran")
        self.state.turn()
        if not self._is_hurried:
            cancellation = await _outlast(self._record.finish()) or cancellation
        self._is_over = True
        self.outside.close()
        self._changes.end()
        self._leave_nobody_waiting()
        if cancellation is not None:
            raise cancellation

    def _leave_nobody_waiting(self) -> None:
        for entry in list(self.state.live.values()):
            stopped = QueueStopped(job=entry.id, was=entry.state.value)
            entry.refuse(stopped if entry.key is not None else self._record.trouble or stopped)
            if entry.items is not None:
                entry.items.close()
        if self._empty is not None and not self._empty.done():
            self._empty.set_result(None)
        self.hub.end()

    def hurry(self) -> None:
        """Do not wait for running jobs when stopping."""
        self._is_hurried = True
        if self.state.idle is not None and not self.state.idle.done():
            self.state.idle.set_result(None)

    async def _drain(self, seconds: float) -> None:
        """Wait until nothing runs, for this many seconds at most."""
        if not self.state.running or self._is_hurried:
            return
        self.state.idle = self.state.loop.create_future()
        await asyncio.wait([self.state.idle], timeout=seconds)


def _order(job: Job) -> tuple[bool, float]:
    """Jobs that are not due come last; the sort is stable, so jobs of equal rank keep their order."""
    is_late = job.not_before is not None
    return is_late, job.submitted_at.timestamp() - 60.0 * job.request.priority


async def _outlast(waiting: Awaitable[object]) -> asyncio.CancelledError | None:
    """Wait. Returns the cancellation that ended the wait, if one did."""
    try:
        await waiting
    except asyncio.CancelledError as error:
        return error
    return None
