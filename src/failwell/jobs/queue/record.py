"""Records what a turn changed, and handles a store that refuses writes.

Nothing is told to anybody before it is written, with one exception: while the store is away, the ends of
jobs that were running are told, and written once it is back.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any

from failwell.adapters.describe import describe
from failwell.adapters.revival import translate
from failwell.calls.backoff import Backoff
from failwell.calls.budget import Budget, Spent
from failwell.calls.policy import Decision, Match, Policy, Retry, RetryState, Rule, Schedule, decide
from failwell.errors.fault import Fault
from failwell.jobs.faults import UnknownJob, check_same
from failwell.jobs.job import JobRequest, JobState
from failwell.jobs.queue.entry import Entry
from failwell.jobs.queue.events import Hub
from failwell.jobs.queue.state import QueueState
from failwell.jobs.store.records import Committed
from failwell.store.event import Event

_WRITES = Schedule(max_attempts=1_000_000, backoff=Backoff(curve="fixed", first=0.02))
"""A write is repeated as long as `Rules.patience` allows; that is a budget of seconds, not a number of attempts."""
_STORE = Policy(name="store of the queue", rules=(Rule(match=Match(), schedule=_WRITES),))
_REST = 0.02
"""Seconds after which jobs are started again whose memory did not fit beside what other hosts have reserved."""
_PROBE = 0.5
"""Seconds between two attempts to write to a store that has been unavailable for longer than that."""


class Record:
    """What has changed in the queue since the last commit."""

    def __init__(self, state: QueueState, hub: Hub, look_outside: Callable[[], None]) -> None:
        self._state = state
        self.hub = hub
        self._look_outside = look_outside
        self.dirty: dict[str, Entry] = {}
        self._events: list[Event] = []
        self.trouble: Fault | None = None
        """Why the store refuses writes, if it does."""
        self.is_wedged = False
        """Whether it has refused them for so long that no more jobs are accepted."""
        self.granted: set[int] = set()
        """The requests of other processes that this turn applies."""
        self._released: dict[str, Entry] = {}
        self._decision: Decision | None = None
        """What follows from the latest refusal of the store; `None` while it takes writes."""
        self._refusals = 0
        self._refused_since = 0.0
        self._retry: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def is_resting(self) -> bool:
        """Whether a refused write is going to be repeated."""
        return self._retry is not None

    def close(self) -> None:
        """Repeat no more writes."""
        self._is_closed = True
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    async def finish(self) -> None:
        """After `close`: try to write the rest, with the same patience as during the queue's life."""
        self._refusals = 0
        decision = None if self.trouble is None else self._decide(self.trouble)
        while isinstance(decision, Retry):
            await asyncio.sleep(decision.after)
            self._state.turn()
            decision = self._decision

    def write(self, starting: list[Entry], launch: Callable[[list[Entry]], None]) -> bool:
        """Write all changes, then call `launch` with the jobs that start. Returns whether the store took the changes.

        A job that another process has cancelled, or has submitted under the same key, is taken out of `starting`, and so are all
        jobs if their memory does not fit beside what other hosts have reserved.
        """
        if starting and not self._is_booked(starting):
            return False
        rows, events, released = list(self.dirty.values()), self._events, self._released
        book, granted = self._state.book, list(self.granted)
        if not rows and not events and not granted and not released:
            # Learned figures are written with the next event.
            if self._decision is not None:
                self._recovered()
            return True
        try:
            done = self._state.store.commit(
                [entry.values() for entry in rows],
                events,
                list(book.learned.values()) if book.learned else (),
                granted,
                host=self._state.host.key,
                released=[entry.key for entry in released.values() if entry.key is not None]
                if released
                else (),
            )
        except Exception as error:  # noqa: BLE001  (whatever it was, what could not be recorded must not start)
            self._in_trouble(error if isinstance(error, Fault) else translate(error), starting)
            return False
        if self._decision is not None:
            self._recovered()
        self.dirty, self._events = {}, []
        if granted:
            self.granted.difference_update(granted)
        book.learned.clear()
        if done.twins:
            self._leave_unstarted(starting, done.twins)
        if done.cancelled:
            rows = [entry for entry in rows if entry.id not in done.cancelled]
            events = [event for event in events if event.type != "started" or event.job not in done.cancelled]
            self._leave_unstarted(starting, done.cancelled)
            # The requests that say so are still to be read.
            self._look_outside()
        if starting:
            # Before all else: the workers run while this process does the rest.
            launch(starting)
        self._stored(rows, done)
        self._publish(events, done, done.last - done.callbacks)
        if released:
            self._let_go(released)
        self._state.store.wake_followers()
        return True

    def _stored(self, rows: list[Entry], done: Committed) -> None:
        """Tell the callers of jobs that were stored."""
        for entry in rows:
            if done.twins and entry.id in done.twins:
                self._merge(entry, done.twins[entry.id])
                continue
            entry.was = entry.state.value
            if entry.key is None:
                entry.key = done.keys[entry.id]
            if entry.accepted is not None:
                if not entry.accepted.done():
                    entry.accepted.set_result(entry)
                # The future refers to the entry; without this, the cycle would stay until the garbage collector runs.
                entry.accepted = None
            if entry.is_over:
                self.settle(entry)

    def _publish(self, events: list[Event], done: Committed, last: int) -> None:
        """Deliver the events of a commit up to `last`, after those that other processes have stored since the one before.

        Callbacks of groups are submitted after `last`, and are claimed like the jobs of another process.
        """
        if done.twins:
            events = [event for event in events if event.job not in done.twins]
        first = last - len(events) + 1
        if self.hub.has_subscribers:
            self.hub.catch_up(first - 1)
            self.hub.publish([event._replace(seq=first + index) for index, event in enumerate(events)])
        self.hub.last = last
        if done.callbacks:
            self._look_outside()

    def _recovered(self) -> None:
        self.trouble, self.is_wedged = None, False
        self._decision, self._refusals = None, 0

    def release(self, entry: Entry) -> None:
        """Let another host have a waiting job, with the next write."""
        self._state.line.leave(entry)
        self._released[entry.id] = entry

    def _let_go(self, released: Mapping[str, Entry]) -> None:
        """Forget the jobs that were released."""
        self._released = {}
        for entry in released.values():
            if entry.is_over:
                continue
            self._state.live.pop(entry.id, None)
            if entry.request.key is not None:
                self._state.once.pop(entry.request.key, None)
            for waiter in list(entry.waiters):
                if not waiter.done():
                    # It goes on waiting for the other host.
                    waiter.set_result(entry)
            entry.waiters.clear()
        self._state.store.wake_host()

    def _merge(self, entry: Entry, twin: str) -> None:
        """Replace a job by one that another process submitted under the same key a moment earlier."""
        self._state.live.pop(entry.id, None)
        self._state.line.leave(entry)
        entry.state = JobState.CANCELLED
        if entry.request.key is not None and self._state.once.get(entry.request.key) is entry:
            del self._state.once[entry.request.key]
        if entry.accepted is None or entry.accepted.done():
            return
        try:
            entry.accepted.set_result(self.known(twin, entry.request))
        except Fault as fault:
            entry.accepted.set_exception(fault)

    def known(self, job: str, request: JobRequest) -> Entry:
        """The job that was submitted before under the key of `request`.

        Raises:
            KeyTaken: the key belongs to another request.
            Fault: it cannot be had from the store.
        """
        entry = self._state.live.get(job)
        if entry is None:
            stored = self._state.store.find(job)
            if stored is None:
                raise self.trouble or UnknownJob(job=job)
            # If it has not ended, another host has it, or none.
            entry = Entry.of(stored)
        check_same(entry.id, entry.request, request)
        return entry

    def _in_trouble(self, fault: Fault, starting: list[Entry]) -> None:
        """Handle a refused write: running jobs go on, and nothing is started."""
        started = {entry.id for entry in starting}
        for entry in starting:
            self._undo_start(entry)
        self._drop_starts(started)
        self._decision = decision = self._decide(fault)
        self.trouble = fault
        if not isinstance(decision, Retry):
            self.is_wedged = True
            for entry in [item for item in self.dirty.values() if item.key is None]:
                self._refuse(entry, fault)
            for entry in self.dirty.values():
                if entry.is_over:
                    # It has ended whether or not that can be recorded now; its waiters are released.
                    self.settle(entry)
        if self._retry is None and not self._is_closed:
            pause = decision.after if isinstance(decision, Retry) and not self.is_wedged else _PROBE
            self._retry = self._state.loop.call_later(pause, self._try_again)

    def _leave_unstarted(self, starting: list[Entry], jobs: Collection[str]) -> None:
        """Take jobs out of `starting` whose start was not recorded."""
        for entry in [item for item in starting if item.id in jobs]:
            starting.remove(entry)
            self._undo_start(entry)

    def _is_booked(self, starting: list[Entry]) -> bool:
        """Reserve the memory of jobs that start. `False` if the store is unavailable."""
        try:
            if self._state.shared_ledger.publish(self._state.instances.values()):
                return True
        except Exception as error:  # noqa: BLE001  (whatever it was, what could not be reserved must not start)
            self._in_trouble(error if isinstance(error, Fault) else translate(error), starting)
            return False
        started = {entry.id for entry in starting}
        for entry in starting:
            self._undo_start(entry)
        self._drop_starts(started)
        starting.clear()
        # By then the queue knows what the other hosts have reserved.
        self._state.loop.call_later(_REST, self._state.wake)
        return True

    def _drop_starts(self, jobs: Collection[str]) -> None:
        self._events = [item for item in self._events if not (item.type == "started" and item.job in jobs)]

    def _undo_start(self, entry: Entry) -> None:
        """Let a job wait again whose start was not recorded, so that it is not sent to its worker."""
        instance = self._state.instances[entry.request.instance]
        self._state.leave(entry, instance)
        self._state.book.forget(instance)
        entry.never_began()
        self._state.line.add(entry)

    def _decide(self, fault: Fault) -> Decision:
        """Whether to repeat a refused write. Nothing of it was recorded, so a repeat records nothing twice."""
        now = self._state.loop.time()
        if not self._refusals:
            self._refused_since = now
        self._refusals += 1
        budget = Budget(seconds=self._state.rules.patience)
        return decide(
            _STORE,
            describe(fault),
            RetryState(
                attempts=self._refusals,
                budgets=((budget, Spent(seconds=now - self._refused_since)),),
                idempotent=True,
                may_park=False,
            ),
        )

    def _try_again(self) -> None:
        self._retry = None
        if self.is_wedged and not self.dirty and not self._events:
            # Nothing is left to write, so an empty write checks whether the store is available.
            try:
                self._state.store.commit()
            except Fault as fault:
                self._in_trouble(fault, [])
                return
            self._recovered()
        self._state.turn()

    def _refuse(self, entry: Entry, fault: Fault) -> None:
        self.dirty.pop(entry.id, None)
        self._state.live.pop(entry.id, None)
        self._state.line.leave(entry)
        self._events = [event for event in self._events if event.job != entry.id]
        if entry.request.key is not None:
            self._state.once.pop(entry.request.key, None)
        entry.state = JobState.CANCELLED
        entry.refuse(fault)

    def settle(self, entry: Entry) -> None:
        """Release the waiters of a job that has ended, and keep it among the recent ones."""
        self._state.live.pop(entry.id, None)
        if entry.request.key is not None:
            self._state.once.pop(entry.request.key, None)
        for waiter in entry.waiters:
            if not waiter.done():
                waiter.set_result(entry)
        entry.waiters.clear()
        if entry.items is not None:
            entry.items.close()
        self._state.recent.add(entry)

    def say(
        self, entry: Entry, what: str, data: Mapping[str, Any] | None = None, at: float | None = None
    ) -> None:
        """Record an event of a job, `at` the time of the change that it tells of."""
        self.dirty[entry.id] = entry
        self._events.append(Event(0, what, self._state.now() if at is None else at, data or {}, entry.id))

    def withdraw(self, entry: Entry, what: str) -> bool:
        """Take back an event of a job; `False` if it is recorded already."""
        rest = [event for event in self._events if event.type != what or event.job != entry.id]
        is_withdrawn = len(rest) < len(self._events)
        self._events = rest
        return is_withdrawn

    def tell_of_worker(self, what: str, data: Mapping[str, Any]) -> None:
        self._events.append(Event(0, what, self._state.now(), data))
        self._state.wake()
