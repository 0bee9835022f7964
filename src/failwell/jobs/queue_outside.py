"""What comes from outside: jobs that an earlier host left, that other processes hand in, or want cancelled."""

from collections.abc import Callable

from failwell.fault.base import Fault
from failwell.jobs.job import JobState
from failwell.jobs.queue_ends import Ends
from failwell.jobs.queue_entry import Entry
from failwell.jobs.queue_faults import HostDied, NoStreamLeft
from failwell.jobs.queue_record import Record
from failwell.jobs.queue_state import State

MOST_LOSSES = 5
"""How often the host may die under a job before the job is suspected of killing it."""


class Outside:
    """Takes up what is in the store and not yet in the queue."""

    def __init__(self, state: State, record: Record, ends: Ends, cancel: Callable[[str], bool]) -> None:
        self._state = state
        self._record = record
        self._ends = ends
        self._cancel = cancel
        self.is_closed = False
        """Whether nothing is taken up any more."""

    def recover(self) -> None:
        """Take up what an earlier host left: what waits goes on waiting, what was running is begun anew."""
        # Whatever is older and has not ended is read here, and need not be looked for again.
        self._state.newest = self._state.store.last_key()
        for row in self._state.store.open_rows():
            self._state.newest = max(self._state.newest, row.key or 0)
            self._take_up(Entry.of(row, self._state.number()), began=row.state == JobState.RUNNING)
        self._state.wake()

    def _take_up(self, entry: Entry, *, began: bool) -> None:
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
            if entry.losses >= MOST_LOSSES:
                self._ends.fail(
                    entry,
                    self._state.described(
                        entry, HostDied(job=entry.id, losses=entry.losses, retryable=False)
                    ),
                )
                return
            entry.state, entry.started = JobState.PENDING, None
            self._record.say(
                entry,
                "requeued",
                {"reason": "the host died while it ran", "attempt": entry.attempt, "losses": entry.losses},
            )
        self._ends.expect(entry)
        if entry.state is JobState.WAITING and (entry.due or 0) > self._state.now():
            self._ends.at(entry.due or 0, "due", entry)
        else:
            self._state.line.add(entry)

    def look(self) -> None:
        """Somebody else may have handed in jobs, or wants some cancelled."""
        if self.is_closed:
            return
        try:
            # In this order: a job is on record before anybody can want it cancelled.
            wishes, rows = self._state.store.wishes(), self._state.store.open_rows(self._state.newest)
        except Fault:
            # The store is away for a moment. The next look, a second later at the most, finds the same.
            return
        for row in rows:
            self._state.newest = max(self._state.newest, row.key or 0)
            if row.id not in self._state.live:
                self._take_up(Entry.of(row, self._state.number()), began=False)
        for wish in wishes:
            if wish.wish == "cancel":
                self._cancel(wish.job)
            # It is forgotten with the record of what came of it, and not before.
            self._record.granted.add(wish.key)
        self._state.wake()
