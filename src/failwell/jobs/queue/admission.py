"""Which jobs are accepted, and which may start now: lanes, places, memory; and making room where memory is short."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from failwell.adapters.revival import revive
from failwell.errors.facts import ResourceShortfall
from failwell.errors.fault import Fault
from failwell.errors.faults import CapabilityDisabledError, CapabilityNotLoadedError
from failwell.errors.report import ErrorReport
from failwell.jobs.faults import NeverFits, NotReadable, OtherLoop, QueueClosed, check_same
from failwell.jobs.job import JobRequest, check_request, new_job, with_timeout
from failwell.jobs.memory import ledger
from failwell.jobs.memory.evict import Evicted, evict
from failwell.jobs.platform import check_platform
from failwell.jobs.queue.ends import Ends
from failwell.jobs.queue.entry import Entry
from failwell.jobs.queue.events import Items
from failwell.jobs.queue.order import Instance
from failwell.jobs.queue.record import Record
from failwell.jobs.queue.state import QueueState
from failwell.jobs.rate_gate import RateGate


class Intake:
    """Accepts jobs that this process submits."""

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
        """Whether no more jobs are accepted."""

    async def enter(self, request: JobRequest, job: str, items: Items | None = None) -> Entry:
        """Accept a job; it is recorded when this returns.

        Raises:
            Fault: it is refused, and the fault says why. Nothing was kept.
        """
        entry = self._open(request, job, items, is_awaited=True)
        try:
            return entry if entry.accepted is None else await self._accepted(entry, entry.accepted)
        except asyncio.CancelledError:
            if items is not None:
                # Nothing is left that could read the items.
                self._cancel(entry.id)
            raise

    async def call(self, request: JobRequest, job: str) -> Entry:
        """`enter`, then wait. Returns the entry once the job has ended.

        A caller that is cancelled while it waits cancels the job, unless another caller submitted it too.
        """
        # A job with a key may turn out to be an earlier one. Any other needs no answer before it ends.
        entry = self._open(request, job, is_awaited=request.key is not None)
        try:
            if entry.accepted is not None:
                entry = await self._accepted(entry, entry.accepted)
            return await self._over(entry)
        except asyncio.CancelledError:
            entry.wanted -= 1
            if not entry.wanted:
                self._cancel(entry.id)
            raise

    async def _accepted(self, entry: Entry, recorded: "asyncio.Future[Entry]") -> Entry:
        """The entry once it is recorded: itself, or an earlier one under the same key."""
        # Others may wait for the same future; a caller that is cancelled must not cancel it for them.
        accepted = await asyncio.shield(recorded)
        if accepted is not entry:
            accepted.wanted += 1
        return accepted

    def _open(self, request: JobRequest, job: str, items: Items | None = None, *, is_awaited: bool) -> Entry:
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
        instance.arguments.check(request)
        before = None if request.key is None else self._before(request, request.key)
        if before is not None:
            before.wanted += 1
            return before
        request = with_timeout(request, instance.manifest)
        entry = Entry.of(new_job(request, self._state.now(), job), self._state.number())
        entry.since = self._state.since(entry.submitted)
        entry.items = items
        if is_awaited:
            entry.accepted = self._state.loop.create_future()
        self._state.live[job] = entry
        if request.key is not None:
            self._state.once[request.key] = entry
        self._record.say(entry, "submitted", at=entry.submitted)
        self._ends.wait_until_due(entry)
        self._ends.expect(entry)
        self._state.wake()
        return entry

    def _before(self, request: JobRequest, key: str) -> Entry | None:
        """The job that was submitted earlier under this key."""
        before = self._state.once.get(key)
        if before is not None:
            check_same(before.id, before.request, request)
            return before
        job = self._state.store.find_by_key(key)
        return None if job is None else self._record.known(job.id, request)


class Admission:
    """Takes jobs out of the line when they may start."""

    def __init__(self, state: QueueState, record: Record, ends: Ends) -> None:
        self._state = state
        self._record = record
        self._ends = ends
        self._rates = RateGate(state)
        self._rescan: asyncio.TimerHandle | None = None
        self._evicted_for: dict[str, float] = {}
        self._evicting: set[str] = set()
        """The pools in which memory is being freed."""

    def close(self) -> None:
        """Stop looking at the machine and at the clock."""
        self._rates.close()
        if self._rescan is not None:
            self._rescan.cancel()

    def admit(self) -> list[Entry]:
        """Take the jobs that may start now out of the line."""
        starting: list[Entry] = []
        if not self._state.line.size or self._state.is_paused or self._state.is_stopping:
            return starting
        lanes = self._state.rules.lanes
        if self._state.running >= lanes:
            return starting
        blocked_pools: set[str] = set()
        for entry in self._state.line.firsts():
            if self._safely(entry, blocked_pools):
                starting.append(entry)
                if self._state.running >= lanes:
                    break
        return starting

    def _safely(self, entry: Entry, blocked: set[str]) -> bool:
        """`_consider`; an unexpected error fails this job and not the queue."""
        try:
            return self._consider(entry, blocked)
        except Exception as error:  # noqa: BLE001  (a turn that raises is repeated for ever, and nobody gets on)
            instance = self._state.instances.get(entry.request.instance)
            if instance is not None and entry.id in instance.entries:
                self._state.leave(entry, instance)
            self._give_up(entry, error)
            return False

    def _consider(self, entry: Entry, blocked: set[str]) -> bool:
        """Begin a job if it may start."""
        name = entry.request.instance
        if self._ends.is_late(entry):
            self._state.line.leave(entry)
            self._ends.fail(entry, self._ends.late(entry))
            return False
        instance = self._state.find_for_job(name)
        if instance is None:
            self.block(entry, "not loaded here", f"`{name}` is not loaded here")
        elif isinstance(instance, NotReadable):
            self.block(entry, "not readable", str(instance))
        elif isinstance(instance, Fault):
            self._give_up(entry, instance)
        elif not instance.is_enabled:
            self.block(entry, "disabled", f"`{name}` is disabled")
        elif not (instance.is_full or instance.is_closed or self._is_last_lane(instance)) and self._may_start(
            entry, instance, blocked
        ):
            # Last: a start that is counted has to happen.
            wait = self._rates.wait_for(entry, instance)
            if wait is None:
                self._state.line.take(name)
                self._begin(entry, instance)
                return True
            self.block(entry, wait, wait)
        return False

    def _is_last_lane(self, instance: Instance) -> bool:
        """Whether the only free lane is kept for other capabilities: this one has all the others, and might hang."""
        others = self._state.rules.lanes - 1
        if others < 1 or self._state.running < others:
            return False
        name = instance.manifest.name
        return self._state.running_of(name) >= others and self._state.has_other_capability(name)

    def _give_up(self, entry: Entry, error: Exception) -> None:
        self._state.line.leave(entry)
        self._ends.fail(entry, self._state.described(entry, error))

    def _may_start(self, entry: Entry, instance: Instance, blocked: set[str]) -> bool:
        book, instances = self._state.book, self._state.instances.values()
        fit = book.may_start(instance, instances)
        if isinstance(fit, ledger.Fits):
            return not blocked or not _uses(book.needs(instance, instances), blocked)
        if fit is None:
            self.look()
        elif isinstance(fit, ledger.Never):
            self._state.line.leave(entry)
            self._ends.fail(entry, self.never(entry, fit))
        elif isinstance(fit, ledger.Unknown):
            words = ledger.words_for(fit.pool)
            self.block(
                entry, fit.pool, f"nothing tells how much {words} is free, so the jobs that use it take turns"
            )
        else:
            self._wait_for_memory(entry, instance, fit, blocked)
        return False

    def _wait_for_memory(
        self, entry: Entry, instance: Instance, fit: ledger.Short, blocked: set[str]
    ) -> None:
        self.block(entry, f"{fit.pool}{_RESERVED if fit.is_reserved else _IN_USE}", _short_words(fit))
        self._look_again()
        is_starving = self._state.steady() - entry.since > self._state.rules.starving
        if is_starving and fit.needed <= fit.available + self._returning(fit.pool):
            blocked.add(fit.pool)
        if not fit.is_reserved and fit.pool != ledger.DISK:
            self._make_room(entry, instance, fit, is_starving)

    def _returning(self, pool: str) -> float:
        """What the workers give back of a pool before long. A job that has run for long may hang."""
        began = self._state.now() - self._state.rules.long
        soon = [
            instance
            for instance in self._state.instances.values()
            if all((entry.started or 0.0) > began for entry in instance.entries.values())
        ]
        return self._state.book.returning(pool, soon)

    def _begin(self, entry: Entry, instance: Instance) -> None:
        self._state.running += 1
        instance.entries[entry.id] = entry
        self._state.book.reserve(instance, self._state.instances.values())
        instance.worker.limit_memory(self._state.book.limit(instance))
        entry.begin(self._state.now())
        data = {"attempt": entry.attempt} if entry.attempt > 1 else None
        self._record.say(entry, "started", data, entry.started)

    def block(self, entry: Entry, why: str, reason: str) -> None:
        """Record why a job does not start; again only when the reason changes. Changed numbers are no new reason."""
        if entry.block != why:
            entry.block, entry.block_reason = why, reason
            self._record.say(entry, "blocked", {"reason": reason})

    def never(self, entry: Entry, shortage: ledger.Never, cause: ErrorReport | None = None) -> ErrorReport:
        """The report of a job that needs more than the whole machine has; `cause` is the failure that says so."""
        fault = NeverFits(
            instance=entry.request.instance,
            resource=ledger.words_for(shortage.pool),
            needed_mb=round(shortage.needed, 1),
            budget_mb=round(shortage.budget, 1),
            retryable=False,
            resource_shortfall=ResourceShortfall(
                ledger.resource_of(shortage.pool), round(shortage.needed, 1), round(shortage.budget, 1)
            ),
        )
        if cause is not None:
            fault.__cause__ = revive(cause)
        return self._state.described(entry, fault)

    def look(self) -> None:
        """Look at the machine, then run a turn."""
        if not self._state.book.is_looking:
            self._state.spawn(self._looking())

    async def _looking(self) -> None:
        await self._state.book.look()
        self._state.wake()

    def _look_again(self) -> None:
        """Look again later: other programs may free what is short without telling us."""
        if self._rescan is None and not self._state.is_stopping:
            self._rescan = self._state.loop.call_later(self._state.rules.rescan, self._rescanned)

    def _rescanned(self) -> None:
        self._rescan = None
        self.look()

    def _make_room(self, entry: Entry, instance: Instance, shortage: ledger.Short, is_starving: bool) -> None:
        now = self._state.loop.time()
        if (
            shortage.pool in self._evicting
            or now - self._evicted_for.get(entry.id, -1e9) < self._state.rules.calm
        ):
            return
        self._evicted_for = {job: at for job, at in self._evicted_for.items() if job in self._state.live}
        self._evicted_for[entry.id] = now
        target = max((shortage.needed - shortage.available) * ledger.MARGIN, 1.0)
        self._state.spawn(self.evict(shortage.pool, target, instance.id, spare_wanted=not is_starving))

    async def evict(self, pool: str, target: float | None, instance: str, *, spare_wanted: bool) -> None:
        """Free memory for `instance`; with `spare_wanted` not that of instances that have jobs waiting."""

        def excluded() -> set[str]:
            busy = (
                {name for name in self._state.instances if self._state.line.waits_for(name)}
                if spare_wanted
                else set[str]()
            )
            return {instance, *busy}

        self._evicting.add(pool)
        try:
            await evict(self._state.instances, self._state.book, pool, target, excluded, self.evicted)
            await self._state.book.look()
        finally:
            self._evicting.discard(pool)
        self._state.wake()

    def evicted(self, eviction: Evicted) -> None:
        """Record that the memory of a worker was freed."""
        how = "released" if eviction.in_place else "stopped"
        self._record.tell_of_worker(
            "worker:evicted",
            {
                "instance": eviction.instance,
                "resource": ledger.resource_of(eviction.pool),
                "mb": round(eviction.megabytes, 1),
                "how": how,
            },
        )


_RESERVED, _IN_USE = " is reserved", " is in use"
"""The ends of the keys of reasons to wait for memory."""


def waits_for_memory(entry: Entry) -> bool:
    """Whether a job does not start because memory is short."""
    return entry.block is not None and entry.block.endswith((_RESERVED, _IN_USE))


def _uses(peaks: Mapping[str, float], pools: set[str]) -> bool:
    return any(peaks.get(pool, 0.0) > ledger.NOTICEABLE for pool in pools)


def _short_words(shortage: ledger.Short) -> str:
    words = ledger.words_for(shortage.pool)
    if shortage.is_reserved:
        return (
            f"needs {shortage.needed:,.0f} MB of {words}, and running jobs leave {shortage.available:,.0f} MB"
        )
    return f"needs {shortage.needed:,.0f} MB more of {words}, and {shortage.available:,.0f} MB is free"
