"""The queue: takes jobs in, starts them when there is room, and sees each to exactly one end.

Everything happens in turns of the event loop. What came up since the last turn is decided and written
in one transaction, and only then acted upon and told: no job runs, and nobody hears of an end, that is
not on record.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from itertools import islice
from time import time
from typing import Any

from failwell.decision.match import Match
from failwell.decision.policy import Lost, Policy, Rule, Tries, decide
from failwell.decision.verdict import Retry
from failwell.fault.base import Fault
from failwell.fault.capability import CapabilityDisabledError, CapabilityNotLoadedError
from failwell.jobs.faults import (
    HostDied,
    NoStreamLeft,
    OtherLoop,
    QueueClosed,
    QueueStopped,
    UnknownJob,
    check_same,
)
from failwell.jobs.job import Job, JobRequest, JobState
from failwell.jobs.memory.book import Book
from failwell.jobs.platform import check_platform
from failwell.jobs.queue.admission import Admission
from failwell.jobs.queue.attempts import FREEING, AttemptEnd, Attempts
from failwell.jobs.queue.ends import Ends
from failwell.jobs.queue.entry import Entry
from failwell.jobs.queue.events import BUFFER, Hub, Items, Subscription
from failwell.jobs.queue.instance import Instance
from failwell.jobs.queue.record import Record
from failwell.jobs.queue.state import QueueState, Rules
from failwell.jobs.request import check_request, is_priority
from failwell.jobs.store.job_store import JobStore
from failwell.jobs.worker.protocol import (
    CancelPhased,
    Died,
    Measured,
    Progress,
    Pulse,
    Quarantined,
    Started,
    WorkerEvent,
)
from failwell.journal.event import Event
from failwell.runtime.clock import random_jitter


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
                entry.phase = event.phase
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
        if instance.entries and (instance.uses_gpu or self._state.alone is not None):
            self._admission.look()


MOST_LOSSES = 5
"""How often the host may die under a job before the job is suspected of killing it."""
_HOST_DEATHS = Policy(name="host deaths", rules=(Rule(match=Match(), retryable=False),))
"""A job that has lost its host too often is not tried again, whatever the queue's policy repeats."""


class OutsideJobs:
    """Resumes what is in the store and not yet in the queue."""

    def __init__(self, state: QueueState, record: Record, ends: Ends, cancel: Callable[[str], bool]) -> None:
        self._state = state
        self._record = record
        self._ends = ends
        self._cancel = cancel
        self.is_closed = False
        """Whether nothing is resumed any more."""

    def recover(self) -> None:
        """Resume what an earlier host left: what waits goes on waiting, what was running is begun anew."""
        # Whatever is older and has not ended is read here, and need not be looked for again.
        self._state.newest = self._state.store.last_key()
        for job in self._state.store.unfinished():
            self._state.newest = max(self._state.newest, job.key or 0)
            self._resume(Entry.of(job, self._state.number()), began=job.state is JobState.RUNNING)
        self._state.wake()

    def _resume(self, entry: Entry, *, began: bool) -> None:
        entry.since = self._state.since(entry.submitted)
        self._state.live[entry.id] = entry
        if entry.request.key is not None:
            self._state.once[entry.request.key] = entry
        if entry.cancelled is not None:
            # Somebody wanted it stopped, and it has: with the host.
            self._ends.end(entry, JobState.CANCELLED)
            return
        if entry.request.stream:
            self._ends.fail(entry, self._state.described(entry, NoStreamLeft(job=entry.id, retryable=False)))
            return
        if began:
            entry.losses += 1
            # It stays on record as an attempt, and does not count against those that the job may fail.
            entry.charged = max(0, entry.charged - 1)
            report = self._state.described(
                entry, HostDied(job=entry.id, losses=entry.losses, retryable=False)
            )
            lost = Lost("the host died while it ran", before=entry.losses - 1, most=MOST_LOSSES - 1)
            decision = decide(_HOST_DEATHS, report, Tries(attempts=entry.charged, lost=lost))
            if not isinstance(decision, Retry):
                self._ends.fail(entry, report)
                return
            entry.state, entry.started = JobState.PENDING, None
            self._record.say(
                entry,
                "requeued",
                {"reason": decision.why, "attempt": entry.attempt, "losses": entry.losses},
            )
        self._ends.expect(entry)
        if entry.state is JobState.WAITING and (entry.due or 0) > self._state.now():
            self._ends.at(entry.due or 0, "due", entry)
        else:
            self._state.line.add(entry)

    def look(self) -> None:
        """Somebody else may have submitted jobs, or wants some cancelled."""
        if self.is_closed:
            return
        try:
            # In this order: a job is on record before anybody can want it cancelled.
            requests, jobs = (
                self._state.store.control_requests(),
                self._state.store.unfinished(self._state.newest),
            )
        except Fault:
            # The store is away for a moment. The next look, a second later at the most, finds the same.
            return
        for job in jobs:
            self._state.newest = max(self._state.newest, job.key or 0)
            if job.id not in self._state.live:
                self._resume(Entry.of(job, self._state.number()), began=False)
        for control in requests:
            if control.action == "cancel":
                self._cancel(control.job)
            # It is forgotten with the record of what came of it, and not before.
            self._record.granted.add(control.key)
        self._state.wake()


class Intake:
    """Takes jobs in from this process."""

    def __init__(
        self,
        state: QueueState,
        record: Record,
        ends: Ends,
        cancel: Callable[[str], bool],
        over: Callable[[Entry], Awaitable[Entry]],
    ) -> None:
        self._state = state
        self._record = record
        self._ends = ends
        self._cancel = cancel
        self._over = over
        self.is_closed = False
        """Whether nothing more is taken in."""

    async def enter(self, request: JobRequest, job: str, items: Items | None = None) -> Entry:
        """Take a job in; it is on record when this returns.

        Raises:
            Fault: it is refused, and the fault says why. Nothing was kept.
        """
        entry = self._open(request, job, items)
        try:
            return await self._accepted(entry)
        except asyncio.CancelledError:
            if items is not None:
                # Nobody is left who could take them.
                self._cancel(entry.id)
            raise

    async def call(self, request: JobRequest, job: str) -> Entry:
        """`enter`, and the entry once it is over.

        Whoever is cancelled while he waits takes his job along, unless somebody else wants it too.
        """
        entry = self._open(request, job)
        try:
            entry = await self._accepted(entry)
            return await self._over(entry)
        except asyncio.CancelledError:
            entry.wanted -= 1
            if not entry.wanted:
                self._cancel(entry.id)
            raise

    async def _accepted(self, entry: Entry) -> Entry:
        """The entry once it is on record: itself, or one that was there before it under the same key."""
        if entry.accepted is None:
            return entry
        # Others may wait for the same; one who goes must not take it from them.
        found = await asyncio.shield(entry.accepted)
        if found is not entry:
            found.wanted += 1
        return found

    def _open(self, request: JobRequest, job: str, items: Items | None = None) -> Entry:
        if asyncio.get_running_loop() is not self._state.loop:
            raise OtherLoop
        if self.is_closed:
            raise QueueClosed
        check_request(request, has_consumer=items is not None)
        if self._record.is_wedged and self._record.trouble is not None:
            raise self._record.trouble
        instance = self._state.find_instance(request.instance)
        if instance is None or instance.is_leaving:
            raise CapabilityNotLoadedError(request.instance)
        if not instance.is_enabled:
            raise CapabilityDisabledError(request.instance)
        check_platform(instance.manifest)
        before = None if request.key is None else self._before(request, request.key)
        if before is not None:
            before.wanted += 1
            return before
        entry = Entry(job, request, self._state.now(), self._state.number())
        entry.wanted = 1
        entry.since = self._state.since(entry.submitted)
        entry.items = items
        entry.accepted = self._state.loop.create_future()
        self._state.live[job] = entry
        if request.key is not None:
            self._state.once[request.key] = entry
        self._record.say(entry, "submitted")
        self._state.line.add(entry)
        self._ends.expect(entry)
        self._state.wake()
        return entry

    def _before(self, request: JobRequest, key: str) -> Entry | None:
        """The job that was submitted under this key before."""
        before = self._state.once.get(key)
        if before is not None:
            check_same(before.id, before.request, request)
            return before
        known = self._state.store.find_by_key(key)
        return None if known is None else self._record.known(known.id, request)


_PAUSE = 0.02
"""Seconds between two looks for a job that cannot be resumed yet."""


class Queue:
    """The jobs of one store, run by this process."""

    def __init__(
        self,
        store: JobStore,
        book: Book,
        rules: Rules,
        instances: Mapping[str, Instance],
        *,
        finder: Callable[[str], Instance | None],
        now: Callable[[], float] = time,
        jitter: Callable[[], float] = random_jitter,
    ) -> None:
        """Make it; `finder` loads an instance that was not used before."""
        self.state = QueueState(store, book, rules, instances, finder, now, jitter, self._turn)
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
        self._is_hurried = False
        self._is_over = False
        self._empty: asyncio.Future[None] | None = None

    def _turn(self) -> None:
        if self._record.is_resting:
            return
        state = self.state
        starting = [] if self._record.trouble is not None else self._admission.admit()
        if not self._record.write(starting):
            return
        for entry in starting:
            self.attempts.launch(entry, state.instances[entry.request.instance])
        for instance in {entry.request.instance for entry in starting}:
            state.instances[instance].worker.flush()
        if self._empty is not None and not state.live and not self._empty.done():
            self._empty.set_result(None)

    # -------------------------------------------------------------- taking in

    def look_outside(self) -> None:
        """Somebody else may have submitted jobs, or wants some cancelled."""
        self.outside.look()

    async def submit(self, request: JobRequest, job: str, items: Items | None = None) -> Job:
        """Take a job in; it is on record when this returns.

        Raises:
            Fault: it is refused, and the fault says why. Nothing was kept.
        """
        return (await self.intake.enter(request, job, items)).job()

    # -------------------------------------------------------------- waiting, cancelling, seeing

    async def wait(self, job: str) -> Job:
        """The job once it is over.

        Raises:
            UnknownJob: there is none.
            QueueStopped: the queue stopped before it was.
        """
        entry = self.state.live.get(job)
        if entry is None:
            entry = await self._resumed(job)
            if entry is None:
                return self.job(job)
        return (await self.over(entry)).job()

    async def _resumed(self, job: str) -> Entry | None:
        """A job that another process submitted a moment ago; `None` where it is over."""
        while not (kept := self.job(job)).state.is_final:
            if self._is_over:
                raise QueueStopped(job=job, was=kept.state.value)
            self.look_outside()
            if job in self.state.live:
                return self.state.live[job]
            # The store is away for a moment, or somebody has just ended the job there.
            await asyncio.sleep(_PAUSE)
        return None

    async def over(self, entry: Entry) -> Entry:
        """The entry once it is over and that is on record."""
        if entry.id not in self.state.live:
            return entry
        if self._is_over:
            raise QueueStopped(job=entry.id, was=entry.state.value)
        done: asyncio.Future[Entry] = self.state.loop.create_future()
        entry.waiters.add(done)
        try:
            return await done
        finally:
            # Who waits no more leaves nothing behind, however long the job lives.
            entry.waiters.discard(done)

    def job(self, job: str) -> Job:
        """How a job stands.

        Raises:
            UnknownJob: there is none.
        """
        entry = self.state.live.get(job) or self._record.dirty.get(job) or self.state.recent.get(job)
        if entry is not None:
            return entry.job()
        found = self.state.store.find(job)
        if found is None:
            raise UnknownJob(job=job)
        return found

    def cancel(self, job: str, grace: float | None = None) -> bool:
        """Stop a job; `False` where it is over or unknown."""
        entry = self.state.live.get(job)
        if entry is None or entry.is_over:
            return False
        if entry.state is not JobState.RUNNING:
            entry.cancelled = self.state.now()
            self.state.line.leave(entry)
            self._ends.end(entry, JobState.CANCELLED)
        elif entry.cancelled is None:
            entry.cancelled = self.state.now()
            if entry.items is not None:
                # Whoever does not take its items must not keep it from ending.
                entry.items.close()
            self._record.say(entry, "cancelling")
            entry.canceller = self.state.spawn(self._stop_call(entry, grace))
            self.state.wake()
        return True

    async def _stop_call(self, entry: Entry, grace: float | None) -> None:
        instance = self.state.instances[entry.request.instance]
        phase = await instance.worker.cancel(entry.id, grace=grace)
        if phase is None and entry.is_called and entry.task is not None:
            # Its worker is still being started, so there is no call to stop yet.
            entry.task.cancel()

    def reorder(self, job: str, priority: int) -> bool:
        """Give a job that waits another priority; `False` where it does not wait."""
        entry = self.state.live.get(job)
        if entry is None or entry.state not in (JobState.PENDING, JobState.WAITING):
            return False
        if not is_priority(priority):
            check_request(JobRequest(instance=entry.request.instance, priority=priority))
        entry.request = replace(entry.request, priority=priority)
        self._record.say(entry, "reordered", {"priority": priority})
        if entry.block != FREEING and (entry.due or 0) <= self.state.now():
            self.state.line.add(entry)
        self.state.wake()
        return True

    def pause(self, *, on: bool) -> None:
        """Start nothing more, or go on."""
        self.state.is_paused = on
        self.state.wake()

    def subscribe(
        self, job: str | None = None, *, after: int | None = None, buffer: int = BUFFER, live: bool = True
    ) -> Subscription:
        """Listen; see `failwell.jobs.queue.events`."""
        is_over = False
        if job is not None:
            is_over = self.job(job).state.is_final and job not in self._record.dirty
        return self.hub.subscribe(job, after, buffer, live=live, is_over=is_over)

    def waiting(self, most: int | None = None) -> list[Job]:
        """The jobs that wait, best first, then those whose time has not come."""
        standing = self.state.line.best(most)
        known = {entry.id for entry in standing}
        later = (
            one for one in self.state.live.values() if one.state is JobState.WAITING and one.id not in known
        )
        room = None if most is None else most - len(standing)
        return [entry.job() for entry in (*standing, *islice(later, room))]

    async def drained(self) -> None:
        """Wait until no job is left.

        Raises:
            QueueStopped: the queue stopped before that.
        """
        while self.state.live:
            if self._is_over:
                left = next(iter(self.state.live.values()))
                raise QueueStopped(job=left.id, was=left.state.value)
            if self._empty is None or self._empty.done():
                self._empty = self.state.loop.create_future()
            await asyncio.shield(self._empty)

    @property
    def trouble(self) -> Fault | None:
        """Why the store does not take anything, if so."""
        return self._record.trouble

    # -------------------------------------------------------------- stopping

    async def stop(self, drain: float) -> None:
        """Take nothing more in, let what runs end within `drain` seconds, and leave nobody waiting.

        What has not ended by then is put back, and stays on record as pending. Being cancelled means to wait
        no longer, not to leave anything undone.
        """
        self.intake.is_closed = True
        self.state.is_paused = True
        cut = await _outlast(self._drain(drain))
        self.state.is_stopping = True
        for part in (self._ends, self._admission, self._record):
            part.close()
        left: list[asyncio.Task[Any]] = [task for task in self.state.tasks if not task.done()]
        for task in left:
            task.cancel()
        while left:
            cut = await _outlast(asyncio.wait(left)) or cut
            left = [task for task in left if not task.done()]
        for entry in [one for one in self.state.live.values() if one.is_sent]:
            # Its worker is about to be stopped; what it may still answer comes too late.
            entry.is_sent = False
            self.state.leave(entry, self.state.instances[entry.request.instance])
            self._ends.put_back(entry, "the queue was stopped while it ran")
        self.state.turn()
        if not self._is_hurried:
            cut = await _outlast(self._record.finish()) or cut
        self._is_over = self.outside.is_closed = True
        self._leave_nobody_waiting()
        if cut is not None:
            raise cut

    def _leave_nobody_waiting(self) -> None:
        for entry in list(self.state.live.values()):
            stopped = QueueStopped(job=entry.id, was=entry.state.value)
            for waiter in list(entry.waiters):
                if not waiter.done():
                    waiter.set_exception(stopped)
            if entry.accepted is not None and not entry.accepted.done():
                entry.accepted.set_exception(self._record.trouble or stopped)
            if entry.items is not None:
                entry.items.close()
        if self._empty is not None and not self._empty.done():
            self._empty.set_result(None)
        self.hub.end()

    def hurry(self) -> None:
        """Wait for nothing that runs, now or when it is stopped."""
        self._is_hurried = True
        if self.state.idle is not None and not self.state.idle.done():
            self.state.idle.set_result(None)

    async def _drain(self, seconds: float) -> None:
        """Wait until nothing runs, for so long at most."""
        if not self.state.running or self._is_hurried:
            return
        self.state.idle = self.state.loop.create_future()
        await asyncio.wait([self.state.idle], timeout=seconds)


async def _outlast(waiting: Awaitable[object]) -> asyncio.CancelledError | None:
    """Wait; a cancellation ends the wait and comes back."""
    try:
        await waiting
    except asyncio.CancelledError as error:
        return error
    return None
