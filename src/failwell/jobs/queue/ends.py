"""How jobs end, and the timers of deadlines and waits."""

import asyncio
from heapq import heapify, heappop, heappush
from typing import Any

from failwell.errors.axes import Certainty
from failwell.errors.report import ErrorReport
from failwell.jobs.cancelled_job import cancelled_report, end_data
from failwell.jobs.faults import DeadlinePassed
from failwell.jobs.job import JobState
from failwell.jobs.queue.entry import Entry
from failwell.jobs.queue.record import Record
from failwell.jobs.queue.state import QueueState

_FEW = 64
_EARLY = 0.001


class Ends:
    """Ends jobs, and keeps their timers."""

    def __init__(self, state: QueueState, record: Record) -> None:
        self._state = state
        self._record = record
        self._timers: list[tuple[float, int, str, Entry]] = []
        self._timer: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def fail(self, entry: Entry, report: ErrorReport) -> None:
        """End a job as failed."""
        entry.error = report
        self.end(entry, JobState.FAILED)

    def end(self, entry: Entry, state: JobState) -> None:
        """End a job."""
        entry.end(state, self._state.now())
        data: dict[str, Any] | None = None
        if state is JobState.COMPLETED:
            entry.error = None
        elif entry.error is not None:
            data = end_data(entry.error, entry.attempt)
        self._record.say(entry, state.value, data, entry.ended)
        if self._record.is_wedged:
            self._record.settle(entry)
        self._state.wake()

    def cancel(self, entry: Entry, last: Certainty | None = None) -> None:
        """End a job as cancelled; `last` says what the attempt did that the cancel ended, if one was running."""
        entry.error = cancelled_report(
            entry.request.instance, self._state.scene(entry), entry.attempt, last, entry.error
        )
        self.end(entry, JobState.CANCELLED)

    def put_back(self, entry: Entry, reason: str) -> None:
        """Let a job wait again whose attempt was lost through no fault of its own."""
        entry.state = JobState.PENDING
        entry.charged -= 1
        entry.started = None
        self._record.say(entry, "requeued", {"reason": reason, "attempt": entry.attempt})
        self._state.wake()

    def late(self, entry: Entry) -> ErrorReport:
        """The report of a job whose deadline has passed."""
        return self._state.described(entry, passed(entry))

    def is_late(self, entry: Entry) -> bool:
        """Whether its deadline has passed."""
        return entry.deadline is not None and self._state.now() >= entry.deadline

    def expect(self, entry: Entry) -> None:
        """Set the timer of its deadline."""
        if entry.deadline is not None:
            self.at(entry.deadline, "deadline", entry)

    def wait_until_due(self, entry: Entry) -> None:
        """Put a job into the line, now or when it is due."""
        if entry.due is not None and entry.due > self._state.now():
            self.at(entry.due, "due", entry)
        else:
            entry.due = None
            self._state.line.add(entry)

    def _is_due(self, entry: Entry) -> None:
        if entry.state is JobState.PENDING:
            if entry.due is not None and entry.due > self._state.now() + _EARLY:
                # The clock was set back. The first start keeps its time, as a deadline does.
                self.at(entry.due, "due", entry)
                return
            # It begins to wait for its turn now.
            entry.since = self._state.steady()
        entry.due = None
        self._state.line.add(entry)

    def at(self, when: float, what: str, entry: Entry) -> None:
        """Set a timer by the wall clock: `due`, or `deadline`.

        A wait for a retry keeps its length if the clock is set meanwhile; a first start and a deadline keep their time.
        """
        if len(self._timers) > 2 * len(self._state.live) + _FEW:
            self._timers = [timer for timer in self._timers if not timer[3].is_over]
            heapify(self._timers)
        rings = self._state.loop.time() + max(0.0, when - self._state.now())
        heappush(self._timers, (rings, self._state.number(), what, entry))
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._timers and self._timers[0][3].is_over:
            heappop(self._timers)
        if self._timers and not self._state.is_stopping:
            self._timer = self._state.loop.call_at(self._timers[0][0], self._rang)

    def _rang(self) -> None:
        self._timer = None
        again: list[Entry] = []
        due: list[Entry] = []
        # A timer may fire a little early.
        now = self._state.loop.time() + _EARLY
        while self._timers and self._timers[0][0] <= now:
            _, _, what, entry = heappop(self._timers)
            if entry.is_over or self._state.live.get(entry.id) is not entry:
                # It has ended, or another host has it.
                continue
            if what == "due" and entry.state in (JobState.PENDING, JobState.WAITING):
                due.append(entry)
            elif what == "deadline" and not self.is_late(entry):
                # The clock was set back, so there is more time.
                again.append(entry)
            elif what == "deadline" and entry.state in (JobState.PENDING, JobState.WAITING):
                self._state.line.leave(entry)
                self.fail(entry, self.late(entry))
        for entry in again:
            self.expect(entry)
        for entry in due:
            # Its deadline may have rung with it.
            if not entry.is_over:
                self._is_due(entry)
        self._set_timer()
        self._state.wake()


def passed(entry: Entry) -> DeadlinePassed:
    """The fault of a job whose deadline has passed."""
    deadline = entry.request.deadline
    text = "" if deadline is None else deadline.isoformat(timespec="seconds")
    return DeadlinePassed(job=entry.id, deadline=text)
