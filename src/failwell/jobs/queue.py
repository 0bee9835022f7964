"""The queue: takes jobs in, starts them when there is room, and sees each to exactly one end.

Everything happens in turns of the event loop. What came up since the last turn is decided and written
in one transaction, and only then acted upon and told: no job runs, and nobody hears of an end, that is
not on record.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from time import time
from typing import Any

from failwell.decision.policy import Policy
from failwell.fault.base import Fault
from failwell.fault.capability import CapabilityDisabledError, CapabilityNotLoadedError
from failwell.fault.facts import ResourceShortfall
from failwell.fault.frozen import frozen
from failwell.jobs import ledger
from failwell.jobs.job import Job, JobRequest, JobState
from failwell.jobs.kept import kept_result
from failwell.jobs.queue_entry import Entry
from failwell.jobs.queue_events import BUFFER, Hub, Subscription
from failwell.jobs.queue_faults import DeadlinePassed, NeverFits, QueueClosed, QueueStopped, UnknownJob
from failwell.jobs.queue_line import Line
from failwell.jobs.queue_retry import DEFAULT, Again, Facts, next_step
from failwell.jobs.resources_book import Book
from failwell.jobs.resources_evict import Evicted, evict
from failwell.jobs.station import Station
from failwell.jobs.store import Draft, JobEvent, JobStore
from failwell.jobs.worker import CancelPhased, Died, Progress, Pulse, Quarantined, Started, WorkerEvent
from failwell.journal.event import encoded
from failwell.journal.faults import NotRecordable
from failwell.report.describe import describe
from failwell.report.record import ErrorReport, Scene
from failwell.runtime.luck import draw

MOST_LOSSES = 5
"""How often the host may die under a job before the job is suspected of killing it."""


@frozen
class Rules:
    """How a queue behaves."""

    lanes: int = 4
    """Jobs that run at a time, over all instances."""
    policy: Policy = DEFAULT
    age: float = 60.0
    """Seconds of waiting that outweigh one step of priority."""
    starving: float = 30.0
    """Seconds after which nobody may overtake a job that waits for memory."""
    rescan: float = 1.0
    """Seconds between two looks at the machine while a job waits for something that others may free."""
    calm: float = 15.0
    """Seconds between two evictions for the sake of the same job."""
    history: int = 100
    """Ended jobs that are kept in memory; all are in the store."""
    patience: float = 2.0
    """Seconds that a store may be away before submits are refused."""


class Queue:
    """The jobs of one store, run by this process."""

    def __init__(
        self,
        store: JobStore,
        book: Book,
        rules: Rules,
        stations: Mapping[str, Station],
        *,
        finder: Callable[[str], Station | None],
        now: Callable[[], float] = time,
        luck: Callable[[], float] = draw,
    ) -> None:
        self._store = store
        self._book = book
        self._rules = rules
        self._stations = stations
        self._finder = finder
        """Finds the station of an instance that was not used before."""
        self._now = now
        self._luck = luck
        self._loop = asyncio.get_running_loop()
        self._line = Line(rules.age)
        self._live: dict[str, Entry] = {}
        self._recent: OrderedDict[str, Entry] = OrderedDict()
        self._once: dict[str, Entry] = {}
        self._sequence = 0
        self._running = 0
        self._alone: Entry | None = None
        """The measurement run, while there is one."""
        self._dirty: dict[str, Entry] = {}
        self._drafts: list[Draft] = []
        self._turn_is_due = False
        self._timers: list[tuple[float, int, str, Entry]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._rescan: asyncio.TimerHandle | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._evicted_for: dict[str, float] = {}
        self._evicting: set[str] = set()
        """The pools in which somebody makes room right now."""
        self._trouble: Fault | None = None
        self._trouble_since = 0.0
        self._is_wedged = False
        self.is_paused = False
        self._is_closed = False
        self.is_stopping = False
        self._newest = 0
        self._empty: asyncio.Future[None] | None = None
        self._idle: asyncio.Future[None] | None = None
        self.hub = Hub(
            lambda after, job, limit: store.events(after, job=job, limit=limit), store.last_event()
        )

    # -------------------------------------------------------------- beginning

    def recover(self) -> None:
        """Take up what an earlier host left: what waits goes on waiting, what was running is begun anew."""
        for row in self._store.open_rows():
            self._newest = max(self._newest, row.key or 0)
            self._take_up(Entry.of(row, self._next()), began=row.state == JobState.RUNNING)
        self._wake()

    def _take_up(self, entry: Entry, *, began: bool) -> None:
        self._live[entry.id] = entry
        if entry.request.key is not None:
            self._once[entry.request.key] = entry
        if entry.cancelled is not None:
            # Somebody wanted it stopped, and it has: with the host.
            self._end(entry, JobState.CANCELLED)
            return
        if entry.request.stream:
            from failwell.jobs.queue_faults import NoStreamLeft

            self._fail(entry, self._described(entry, NoStreamLeft(job=entry.id, retryable=False)))
            return
        if began:
            entry.losses += 1
            if entry.losses >= MOST_LOSSES:
                from failwell.jobs.queue_faults import HostDied

                self._fail(
                    entry,
                    self._described(entry, HostDied(job=entry.id, losses=entry.losses, retryable=False)),
                )
                return
            entry.state, entry.started = JobState.PENDING, None
            self._say(
                entry,
                "requeued",
                {"reason": "the host died while it ran", "attempt": entry.attempt, "losses": entry.losses},
            )
        self._expect(entry)
        if entry.state is JobState.WAITING and (entry.due or 0) > self._now():
            self._at(entry.due or 0, "due", entry)
        else:
            self._line.add(entry)

    def look_outside(self) -> None:
        """Somebody else may have handed in jobs, or wants some cancelled."""
        for row in self._store.open_rows(self._newest):
            self._newest = max(self._newest, row.key or 0)
            if row.id not in self._live:
                self._take_up(Entry.of(row, self._next()), began=False)
        for wish in self._store.take_wishes():
            if wish.wish == "cancel":
                self.cancel(wish.job)
        self._wake()

    def station(self, instance: str) -> Station | None:
        """Where the jobs of an instance are done, if it is known here."""
        return self._stations.get(instance) or self._finder(instance)

    # -------------------------------------------------------------- handing in

    async def submit(self, request: JobRequest, job: str, items: "asyncio.Queue[Any] | None" = None) -> Job:
        """Take a job in; it is on record when this returns.

        Raises:
            Fault: it is refused, and the fault says why. Nothing was kept.
        """
        return (await self.enter(request, job, items)).job()

    async def enter(self, request: JobRequest, job: str, items: "asyncio.Queue[Any] | None" = None) -> Entry:
        """`submit`, for those who will wait for the entry itself."""
        if self._is_closed:
            raise QueueClosed
        if self._is_wedged and self._trouble is not None:
            raise self._trouble
        station = self.station(request.instance)
        if station is None:
            raise CapabilityNotLoadedError(request.instance)
        if not station.is_enabled:
            raise CapabilityDisabledError(request.instance)
        if request.key is not None:
            before = self._once.get(request.key)
            if before is not None:
                return before if before.accepted is None else await asyncio.shield(before.accepted)
            known = self._store.find_once(request.key)
            if known is not None:
                return self._live.get(known.id) or Entry.of_job(known)
        entry = Entry(job, request, self._now(), self._next())
        entry.items = items
        entry.accepted = self._loop.create_future()
        self._live[job] = entry
        if request.key is not None:
            self._once[request.key] = entry
        self._say(entry, "submitted")
        self._line.add(entry)
        self._expect(entry)
        self._wake()
        return await entry.accepted

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence

    # -------------------------------------------------------------- one turn

    def _wake(self) -> None:
        if not self._turn_is_due:
            self._turn_is_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_is_due = False
        starting = [] if self._trouble is not None else self._admit()
        if not self._write(starting):
            return
        for entry in starting:
            self._launch(entry, self._stations[entry.request.instance])
        for instance in {entry.request.instance for entry in starting}:
            self._stations[instance].worker.flush()
        if self._empty is not None and not self._live and not self._empty.done():
            self._empty.set_result(None)

    def _write(self, starting: list[Entry]) -> bool:
        """Put everything on record; whether that went well."""
        rows, drafts, learned = list(self._dirty.values()), self._drafts, list(self._book.learned.values())
        if not rows and not drafts:
            # What was learned can wait for the next thing that happens.
            self._trouble = None
            return True
        try:
            done = self._store.commit([entry.row() for entry in rows], drafts, learned)
        except Fault as fault:
            self._in_trouble(fault, starting)
            return False
        self._trouble, self._is_wedged = None, False
        self._dirty, self._drafts = {}, []
        self._book.learned.clear()
        for entry in rows:
            if entry.id in done.twins:
                self._merge(entry, done.twins[entry.id])
                continue
            entry.was = entry.state.value
            if entry.key is None:
                entry.key = done.keys[entry.id]
                self._newest = max(self._newest, entry.key)
            if entry.accepted is not None and not entry.accepted.done():
                entry.accepted.set_result(entry)
            if entry.is_over:
                self._settle(entry)
        kept = [one for one in drafts if one.job not in done.twins]
        first = done.last - len(kept) + 1
        if self.hub.is_heard:
            self.hub.publish(_numbered(kept, first))
        self.hub.last = done.last
        return True

    def _merge(self, entry: Entry, twin: str) -> None:
        """Another process handed in the same thing a moment before."""
        self._live.pop(entry.id, None)
        self._line.leave(entry)
        entry.state = JobState.CANCELLED
        found = self._live.get(twin)
        if found is None:
            self.look_outside()
            found = self._live.get(twin)
        if entry.accepted is not None and not entry.accepted.done():
            if found is not None:
                entry.accepted.set_result(found)
            else:
                entry.accepted.set_exception(UnknownJob(job=twin))

    def _in_trouble(self, fault: Fault, starting: list[Entry]) -> None:
        """The store does not take it. What runs goes on; what was to start does not."""
        begun = {entry.id for entry in starting}
        for entry in starting:
            self._leave(entry, self._stations[entry.request.instance])
            self._book.forget(self._stations[entry.request.instance])
            entry.never_began()
            self._line.add(entry)
        self._drafts = [one for one in self._drafts if not (one.type == "started" and one.job in begun)]
        now = self._loop.time()
        if self._trouble is None:
            self._trouble_since = now
        self._trouble = fault
        report = describe(fault)
        if not report.retryable or now - self._trouble_since >= self._rules.patience:
            self._is_wedged = True
            for entry in [one for one in self._dirty.values() if one.key is None]:
                self._refuse(entry, fault)
            for entry in self._dirty.values():
                if entry.is_over:
                    # It is over whether or not that can be written down now; nobody is kept waiting.
                    self._settle(entry)
        if self._retry is None:
            self._retry = self._loop.call_later(0.5 if self._is_wedged else 0.02, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        if self._is_wedged and not self._dirty and not self._drafts:
            # Nothing is left to write, so the store is asked whether it is well again.
            try:
                self._store.commit()
            except Fault as fault:
                self._in_trouble(fault, [])
                return
            self._trouble, self._is_wedged = None, False
        self._turn_is_due = True
        self._turn()

    def _refuse(self, entry: Entry, fault: Fault) -> None:
        self._dirty.pop(entry.id, None)
        self._live.pop(entry.id, None)
        self._line.leave(entry)
        self._drafts = [one for one in self._drafts if one.job != entry.id]
        if entry.request.key is not None:
            self._once.pop(entry.request.key, None)
        entry.state = JobState.CANCELLED
        if entry.accepted is not None and not entry.accepted.done():
            entry.accepted.set_exception(fault)

    # -------------------------------------------------------------- admission

    def _admit(self) -> list[Entry]:
        """Take the jobs that may start now out of the line."""
        starting: list[Entry] = []
        if self.is_paused or self.is_stopping:
            return starting
        rules = self._rules
        blocked_pools: set[str] = set()
        while self._running < rules.lanes and self._alone is None:
            began = len(starting)
            for entry in self._line.firsts():
                station = self.station(entry.request.instance)
                if station is None or not station.is_enabled:
                    how = "not loaded here" if station is None else "disabled"
                    self._block(entry, how, f"`{entry.request.instance}` is {how}")
                    continue
                if station.is_full or station.is_being_freed:
                    continue
                verdict = self._may_start(entry, station, blocked_pools)
                if verdict == "stop":
                    return starting
                if verdict == "start":
                    self._line.take(entry.request.instance)
                    self._begin(entry, station)
                    starting.append(entry)
                    break
            if len(starting) == began:
                break
        return starting

    def _may_start(self, entry: Entry, station: Station, blocked: set[str]) -> str:
        """`start`, `wait`, or `stop`: nobody behind this one may start either."""
        if self._book.profile(station) is None:
            if self._running == 0:
                if self._book.is_fresh:
                    return "start"
                # What it takes is seen only against what there was before.
                self._look_and_return()
                return "stop"
            self._block(
                entry,
                "alone",
                "its needs are not known yet, so it is measured alone: waits for the others to end",
            )
            # Those behind it wait as well, else it might never be alone.
            return "stop"
        found = self._book.may_start(station, self._stations.values())
        if isinstance(found, ledger.Fits):
            return "start" if not blocked or not _uses(self._book.peaks(station), blocked) else "wait"
        if found is None:
            self._look_and_return()
            return "wait"
        if isinstance(found, ledger.Never):
            self._line.leave(entry)
            self._fail(entry, self._never(entry, found))
            return "wait"
        if isinstance(found, ledger.Unknown):
            if self._running == 0:
                return "start"
            words = ledger.words_for(found.pool)
            self._block(entry, found.pool, f"nothing tells how much {words} is free, so it runs alone")
            return "stop"
        self._block(entry, f"{found.pool} {found.is_reserved}", _short_words(found))
        self._look_again()
        is_starving = self._now() - entry.submitted > self._rules.starving
        if is_starving:
            blocked.add(found.pool)
        if not found.is_reserved and found.pool != ledger.DISK:
            self._make_room(entry, station, found, is_starving)
        return "wait"

    def _begin(self, entry: Entry, station: Station) -> None:
        self._running += 1
        station.entries[entry.id] = entry
        alone = self._book.profile(station) is None
        if alone:
            self._alone = entry
        self._book.reserve(station, alone=alone)
        entry.begin(self._now())
        self._say(entry, "started", {"attempt": entry.attempt} if entry.attempt > 1 else None)

    def _leave(self, entry: Entry, station: Station) -> None:
        self._running -= 1
        station.entries.pop(entry.id, None)
        if self._alone is entry:
            self._alone = None
        if not self._running and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def _block(self, entry: Entry, why: str, reason: str) -> None:
        """Say why a job does not start; once, until it is something else. Numbers that move are no news."""
        if entry.block != why:
            entry.block, entry.reason = why, reason
            self._say(entry, "blocked", {"reason": reason})

    def _never(self, entry: Entry, found: ledger.Never) -> ErrorReport:
        fault = NeverFits(
            instance=entry.request.instance,
            resource=ledger.words_for(found.pool),
            needed_mb=round(found.needed, 1),
            budget_mb=round(found.budget, 1),
            retryable=False,
            resource_shortfall=ResourceShortfall(
                ledger.resource_of(found.pool), round(found.needed, 1), round(found.budget, 1)
            ),
        )
        return self._described(entry, fault)

    # -------------------------------------------------------------- room

    def _look_and_return(self) -> None:
        if not self._book.is_looking:
            self._spawn(self._look())

    async def _look(self) -> None:
        await self._book.look()
        self._wake()

    def _look_again(self) -> None:
        """Somebody outside may free what is short; nobody tells us, so we look."""
        if self._rescan is None and not self.is_stopping:
            self._rescan = self._loop.call_later(self._rules.rescan, self._rescanned)

    def _rescanned(self) -> None:
        self._rescan = None
        self._look_and_return()

    def _make_room(self, entry: Entry, station: Station, found: ledger.Short, is_starving: bool) -> None:
        now = self._loop.time()
        if found.pool in self._evicting or now - self._evicted_for.get(entry.id, -1e9) < self._rules.calm:
            return
        self._evicted_for[entry.id] = now
        target = max((found.needed - found.available) * ledger.MARGIN, 1.0)
        self._spawn(self._evict(found.pool, target, station.instance, spare_wanted=not is_starving))

    async def _evict(self, pool: str, target: float | None, own: str, *, spare_wanted: bool) -> None:
        def excluded() -> set[str]:
            wanted = (
                {one for one in self._stations if self._line.waits_for(one)} if spare_wanted else set[str]()
            )
            return {own, *wanted}

        self._evicting.add(pool)
        try:
            await evict(self._stations, self._book, pool, target, excluded, self._evicted)
            await self._book.look()
        finally:
            self._evicting.discard(pool)
        self._wake()

    def _evicted(self, one: Evicted) -> None:
        how = "released" if one.in_place else "stopped"
        self._tell_of_worker(
            "worker:evicted",
            {
                "instance": one.instance,
                "resource": ledger.resource_of(one.pool),
                "mb": round(one.held, 1),
                "how": how,
            },
        )

    # -------------------------------------------------------------- running

    def _launch(self, entry: Entry, station: Station) -> None:
        """Hand a job to its worker: at once if that is ready, else by a task that waits until it is."""
        began = self._loop.time()
        request = entry.request

        def told(answer: "asyncio.Future[Any]") -> None:
            error = answer.exception()
            self._answered(entry, station, began, None if error else answer.result(), error)

        if entry.items is None:
            try:
                if station.worker.begin(
                    entry.id, request.arguments, request.action, self._limit(entry), told
                ):
                    entry.is_sent = True
                    return
            except Fault as fault:
                self._answered(entry, station, began, None, fault)
                return
        entry.task = self._spawn(self._run(entry, station, began))

    async def _run(self, entry: Entry, station: Station, began: float) -> None:
        request = entry.request
        value, error = None, None
        try:
            if entry.cancelled is not None:
                # The cancel came between the record of the start and the start.
                raise _stopped(entry)  # noqa: TRY301  (it ends as any other cancelled call)
            entry.is_called = True
            if entry.items is None:
                value = await station.worker.call(
                    entry.id, request.arguments, action=request.action, timeout=self._limit(entry)
                )
            else:
                value = await self._hand_over(entry, station)
        except asyncio.CancelledError:
            error = _stopped(entry)
        except Exception as raised:  # noqa: BLE001  (whatever a worker's doorway did not foresee ends this job alone)
            error = raised
        entry.is_called = False
        entry.task = None
        self._answered(entry, station, began, value, error)

    def _answered(
        self, entry: Entry, station: Station, began: float, value: Any, error: BaseException | None
    ) -> None:
        """A call came back."""
        if self.is_stopping and not entry.is_sent and entry.task is None and entry.id not in station.entries:
            # It was put back already.
            return
        entry.is_sent = False
        result = None
        if error is None and entry.cancelled is None:
            try:
                result = kept_result(value)
            except NotRecordable as fault:
                error = fault
        if result is not None:
            if station.uses_gpu and self._book.profile(station) is None and not self.is_stopping:
                # What a short call held is seen only if somebody looks before anything else starts.
                self._spawn(self._end_well_after_a_look(entry, station, began, result))
            else:
                self._end_well(entry, station, began, result)
            return
        report = self._described(entry, error if entry.cancelled is None and error else _stopped(entry))
        if entry.canceller is not None and not entry.canceller.done():
            # Its phases come before its end.
            entry.canceller.add_done_callback(lambda _done: self._end_badly(entry, station, began, report))
        else:
            self._end_badly(entry, station, began, report)

    async def _end_well_after_a_look(self, entry: Entry, station: Station, began: float, result: str) -> None:
        try:
            await self._book.look()
        finally:
            # Also when the queue stops meanwhile: the job has ended well all the same.
            self._end_well(entry, station, began, result)

    def _end_well(self, entry: Entry, station: Station, began: float, result: str) -> None:
        self._ended(entry, station, began, well=True)
        entry.result = result
        self._end(entry, JobState.COMPLETED)

    def _end_badly(self, entry: Entry, station: Station, began: float, report: ErrorReport) -> None:
        self._ended(entry, station, began, well=False)
        self._after_failure(entry, station, report)

    def _limit(self, entry: Entry) -> float | None:
        limit = entry.request.timeout
        if entry.deadline is None:
            return limit
        left = max(0.001, entry.deadline - self._now())
        return left if limit is None else min(limit, left)

    async def _hand_over(self, entry: Entry, station: Station) -> Any:
        assert entry.items is not None
        request = entry.request
        action = "execute_stream" if request.action == "execute" else request.action
        count = 0
        items = station.worker.stream(entry.id, request.arguments, action=action, timeout=self._limit(entry))
        async for item in items:
            await entry.items.put(item)
            count += 1
        return count

    def _ended(self, entry: Entry, station: Station, began: float, *, well: bool) -> None:
        """An attempt is over, one way or the other."""
        self._leave(entry, station)
        self._book.finish(station, well=well, seconds=self._loop.time() - began)
        if station.hook_is_due and not station.entries:
            station.hook_is_due = False
            self._spawn(self.fire_hook(station, on=False))

    async def fire_hook(self, station: Station, *, on: bool) -> None:
        """Tell the capability that it was switched on or off. Its hook failing changes nothing about that."""
        try:
            await station.worker.enabled(on=on)
        except Fault as fault:
            self._tell_of_worker(
                "worker:hook_failed", {"instance": station.instance, "kind": str(fault.kind)}
            )

    def _after_failure(self, entry: Entry, station: Station, report: ErrorReport) -> None:
        if self.is_stopping and entry.cancelled is None:
            self._put_back(entry, "the queue was stopped while it ran")
            return
        now = self._now()
        if entry.deadline is not None and now >= entry.deadline and entry.cancelled is None:
            self._fail(entry, self._late(entry))
            return
        facts = Facts(
            attempt=entry.attempt,
            charged=entry.charged,
            most=entry.request.control.get("max_attempts"),
            was_cancelled=entry.cancelled is not None,
            left=None if entry.deadline is None else entry.deadline - now,
            idempotent=entry.request.control.get("idempotent"),
        )
        step = next_step(self._rules.policy, report, facts, self._luck())
        if isinstance(step, Again) and entry.items is None:
            self._again(entry, station, report, step, now)
        elif isinstance(step, Again) or not step.was_cancelled:
            self._fail(entry, report)
        else:
            entry.error = report
            self._end(entry, JobState.CANCELLED)

    def _again(self, entry: Entry, station: Station, report: ErrorReport, step: Again, now: float) -> None:
        entry.state = JobState.WAITING
        entry.error = report
        if not step.is_charged:
            entry.charged -= 1
        entry.due = now + step.after
        self._say(
            entry,
            "parked" if step.is_parked else "retrying",
            {"attempt": entry.attempt, "kind": report.kind, "after": round(step.after, 3), "why": step.why},
        )
        if step.frees:
            self._block(entry, "freeing", "waits until something is freed for its next attempt")
            self._spawn(self._free(entry, station, report))
        elif step.after <= 0:
            self._line.add(entry)
        else:
            self._at(entry.due, "due", entry)
        self._wake()

    async def _free(self, entry: Entry, station: Station, report: ErrorReport) -> None:
        """Make room for the next attempt, and clean the worker that failed where that is needed."""
        short = report.resource_shortfall
        pool = self._pool(report, station)
        try:
            peaks = self._book.peaks(station)
            target = ledger.to_free(
                peaks.get(pool, 0.0),
                None if short is None else short.needed,
                None if short is None else short.available,
            )
            if pool != ledger.DISK:
                await self._evict(pool, target, station.instance, spare_wanted=False)
            if pool.startswith("gpu:") and not station.entries and not await station.worker.release():
                await station.worker.restart()
        except (Fault, OSError) as error:
            # The next attempt tells what is wrong, and is told to whoever waits.
            self._tell_of_worker(
                "worker:not_freed", {"instance": station.instance, "kind": describe(error).kind}
            )
        if entry.state is JobState.WAITING:
            entry.due = entry.reason = entry.block = None
            self._dirty[entry.id] = entry
            self._line.add(entry)
            self._wake()

    def _pool(self, report: ErrorReport, station: Station) -> str:
        short = report.resource_shortfall
        name = short.resource if short is not None else report.kind
        if name in ("gpu_vram_mb", "resource.gpu_memory"):
            return ledger.gpu(station.device)
        return ledger.DISK if name in ("disk_mb", "resource.disk") else ledger.RAM

    # -------------------------------------------------------------- ends

    def _fail(self, entry: Entry, report: ErrorReport) -> None:
        entry.error = report
        self._end(entry, JobState.FAILED)

    def _end(self, entry: Entry, state: JobState) -> None:
        entry.end(state, self._now())
        told: dict[str, Any] | None = None
        if state is JobState.COMPLETED:
            entry.error = None
        elif entry.error is not None:
            told = {"kind": entry.error.kind, "message": entry.error.message, "attempt": entry.attempt}
        self._say(entry, state.value, told)
        self._evicted_for.pop(entry.id, None)
        if self._is_wedged:
            self._settle(entry)
        self._wake()

    def _settle(self, entry: Entry) -> None:
        """Tell whoever waits, and keep it among the recent ones."""
        self._live.pop(entry.id, None)
        if entry.request.key is not None:
            self._once.pop(entry.request.key, None)
        for waiter in entry.waiters:
            if not waiter.done():
                waiter.set_result(entry)
        entry.waiters.clear()
        if entry.items is not None:
            entry.items.put_nowait(_END)
        self._recent[entry.id] = entry
        while len(self._recent) > self._rules.history:
            self._recent.popitem(last=False)

    def _put_back(self, entry: Entry, reason: str) -> None:
        entry.state = JobState.PENDING
        entry.charged -= 1
        entry.started = None
        self._say(entry, "requeued", {"reason": reason, "attempt": entry.attempt})
        self._wake()

    # -------------------------------------------------------------- waiting, cancelling

    async def wait(self, job: str) -> Job:
        """The job once it is over.

        Raises:
            UnknownJob: there is none.
            QueueStopped: the queue stopped before it was.
        """
        entry = self._live.get(job)
        if entry is None:
            return self.job(job)
        return (await self.over(entry)).job()

    async def over(self, entry: Entry) -> Entry:
        """The entry once it is over and that is on record."""
        if entry.id not in self._live:
            return entry
        done: asyncio.Future[Entry] = self._loop.create_future()
        entry.waiters.append(done)
        return await done

    def job(self, job: str) -> Job:
        """How a job stands.

        Raises:
            UnknownJob: there is none.
        """
        entry = self._live.get(job) or self._recent.get(job)
        if entry is not None:
            return entry.job()
        found = self._store.find(job)
        if found is None:
            raise UnknownJob(job=job)
        return found

    def cancel(self, job: str, grace: float | None = None) -> bool:
        """Stop a job; `False` where it is over or unknown."""
        entry = self._live.get(job)
        if entry is None or entry.is_over:
            return False
        if entry.state is not JobState.RUNNING:
            entry.cancelled = self._now()
            self._line.leave(entry)
            self._end(entry, JobState.CANCELLED)
        elif entry.cancelled is None:
            entry.cancelled = self._now()
            self._say(entry, "cancelling")
            entry.canceller = self._spawn(self._stop_call(entry, grace))
            self._wake()
        return True

    async def _stop_call(self, entry: Entry, grace: float | None) -> None:
        station = self._stations[entry.request.instance]
        phase = await station.worker.cancel(entry.id, grace=grace)
        if phase is None and entry.is_called and entry.task is not None:
            # Its worker is still being started, so there is no call to stop yet.
            entry.task.cancel()

    def reorder(self, job: str, priority: int) -> bool:
        """Give a job that waits another priority; `False` where it does not wait."""
        entry = self._live.get(job)
        if entry is None or entry.state not in (JobState.PENDING, JobState.WAITING):
            return False
        entry.priority = priority
        self._say(entry, "reordered", {"priority": priority})
        if entry.state is JobState.PENDING or (entry.due or 0) <= self._now():
            self._line.add(entry)
        self._wake()
        return True

    def pause(self, *, on: bool) -> None:
        """Start nothing more, or go on."""
        self.is_paused = on
        self._wake()

    # -------------------------------------------------------------- time

    def _expect(self, entry: Entry) -> None:
        if entry.deadline is not None:
            self._at(entry.deadline, "deadline", entry)

    def _at(self, when: float, what: str, entry: Entry) -> None:
        heappush(self._timers, (when, self._next(), what, entry))
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._timers and self._timers[0][3].is_over:
            heappop(self._timers)
        if self._timers and not self.is_stopping:
            self._timer = self._loop.call_later(max(0.0, self._timers[0][0] - self._now()), self._rang)

    def _rang(self) -> None:
        self._timer = None
        now = self._now()
        while self._timers and self._timers[0][0] <= now:
            _, _, what, entry = heappop(self._timers)
            if entry.is_over:
                continue
            if what == "due" and entry.state is JobState.WAITING:
                self._line.add(entry)
            elif what == "deadline" and entry.state in (JobState.PENDING, JobState.WAITING):
                self._line.leave(entry)
                self._fail(entry, self._late(entry))
        self._set_timer()
        self._wake()

    def _late(self, entry: Entry) -> ErrorReport:
        deadline = entry.request.deadline
        shown = "" if deadline is None else deadline.isoformat(timespec="seconds")
        return self._described(entry, DeadlinePassed(job=entry.id, deadline=shown))

    # -------------------------------------------------------------- telling

    def _say(self, entry: Entry, what: str, data: Mapping[str, Any] | None = None) -> None:
        self._dirty[entry.id] = entry
        self._drafts.append(Draft(entry.id, what, self._now(), "{}" if data is None else encoded(data)))

    def _tell_of_worker(self, what: str, data: Mapping[str, Any]) -> None:
        self._drafts.append(Draft("", what, self._now(), encoded(data)))
        self._wake()

    def heard(self, station: Station, event: WorkerEvent) -> None:
        """A worker told something."""
        if isinstance(event, Pulse):
            if station.entries:
                self._book.pulse(station)
                if station.uses_gpu or self._alone is not None:
                    self._look_and_return()
        elif isinstance(event, Progress):
            entry = None if event.job is None else station.entries.get(event.job)
            if entry is not None:
                entry.progress, entry.message = event.fraction, event.message
                if self.hub.is_heard:
                    told = {"fraction": event.fraction, "message": event.message}
                    self.hub.publish([JobEvent(0, entry.id, "progress", self._now(), told)])
        elif isinstance(event, CancelPhased):
            entry = station.entries.get(event.job)
            if entry is not None:
                entry.phase = event.phase
                self._say(entry, "cancel_phase", {"phase": event.phase.value})
                self._wake()
        elif isinstance(event, Started):
            self._tell_of_worker(
                "worker:started",
                {"instance": event.instance, "pid": event.pid, "generation": event.generation},
            )
        elif isinstance(event, Died):
            kind = None if event.report is None else event.report.kind
            self._tell_of_worker(
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
            self._tell_of_worker(
                "worker:quarantined",
                {"instance": event.instance, "deaths": event.deaths, "seconds": event.seconds},
            )

    def subscribe(
        self, job: str | None = None, *, after: int | None = None, buffer: int = BUFFER, live: bool = True
    ) -> Subscription:
        """Listen; see `failwell.jobs.queue_events`."""
        is_over = False
        if job is not None:
            is_over = self.job(job).state.is_final and job not in self._dirty
        return self.hub.subscribe(job, after, buffer, live=live, is_over=is_over)

    def _described(self, entry: Entry, error: BaseException) -> ErrorReport:
        station = self._stations.get(entry.request.instance)
        scene = Scene(
            job=entry.id,
            run=entry.request.run,
            instance=entry.request.instance,
            capability=None if station is None else station.manifest.name,
            attempt=entry.attempt or None,
        )
        return describe(error, scene=scene)

    # -------------------------------------------------------------- seeing, stopping

    @property
    def live(self) -> Mapping[str, Entry]:
        """The jobs that are not over."""
        return self._live

    def waiting(self) -> list[Job]:
        """The jobs that wait, best first, then those whose time has not come."""
        standing = list(self._line)
        known = {entry.id for entry in standing}
        later = [one for one in self._live.values() if one.state is JobState.WAITING and one.id not in known]
        return [entry.job() for entry in (*standing, *later)]

    @property
    def running(self) -> int:
        """How many run."""
        return self._running

    @property
    def trouble(self) -> Fault | None:
        """Why the store does not take anything, if so."""
        return self._trouble

    async def drained(self) -> None:
        """Wait until no job is left."""
        while self._live:
            if self._empty is None or self._empty.done():
                self._empty = self._loop.create_future()
            await asyncio.shield(self._empty)

    async def stop(self, drain: float) -> None:
        """Take nothing more in, let what runs end within `drain` seconds, and leave nobody waiting.

        What has not ended by then is put back, and stays on record as pending.
        """
        self._is_closed = True
        self.is_paused = True
        await self._drain(drain)
        self.is_stopping = True
        for timer in (self._timer, self._rescan, self._retry):
            if timer is not None:
                timer.cancel()
        left = [task for task in self._tasks if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
        for entry in [one for one in self._live.values() if one.is_sent]:
            # Its worker is about to be stopped; what it may still answer comes too late.
            entry.is_sent = False
            self._leave(entry, self._stations[entry.request.instance])
            self._put_back(entry, "the queue was stopped while it ran")
        self._turn()
        for entry in list(self._live.values()):
            stopped = QueueStopped(job=entry.id, was=entry.state.value)
            for waiter in entry.waiters:
                if not waiter.done():
                    waiter.set_exception(stopped)
            if entry.accepted is not None and not entry.accepted.done():
                entry.accepted.set_exception(self._trouble or stopped)
            if entry.items is not None:
                entry.items.put_nowait(_END)
        if self._empty is not None and not self._empty.done():
            self._empty.set_result(None)
        self.hub.end()

    async def _drain(self, seconds: float) -> None:
        """Wait until nothing runs, for so long at most."""
        if not self._running:
            return
        self._idle = self._loop.create_future()
        await asyncio.wait([self._idle], timeout=seconds)

    def _spawn(self, work: Any) -> "asyncio.Task[Any]":
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


_END: Any = object()
"""What stands in a stream's buffer after its last item."""
END = _END


def _stopped(entry: Entry) -> Fault:
    from failwell.fault.capability import CapabilityCancelledError

    return CapabilityCancelledError(entry.request.instance)


def _uses(peaks: Mapping[str, float], pools: set[str]) -> bool:
    return any(peaks.get(pool, 0.0) > ledger.NOTICEABLE for pool in pools)


def _short_words(found: ledger.Short) -> str:
    words = ledger.words_for(found.pool)
    if found.is_reserved:
        return f"needs {found.needed:,.0f} MB of {words}, and running jobs leave {found.available:,.0f} MB"
    return f"needs {found.needed:,.0f} MB more of {words}, and {found.available:,.0f} MB is free"


def _numbered(drafts: list[Draft], first: int) -> list[JobEvent]:
    from json import loads

    return [
        JobEvent(first + index, one.job, one.type, one.at, loads(one.data))
        for index, one in enumerate(drafts)
    ]
