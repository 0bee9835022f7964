"""Jobs that are in the store and not yet in the queue: of an earlier host, or submitted by another process."""

from collections.abc import Callable

from failwell.decision.match import Match
from failwell.decision.policy import Lost, Policy, Rule, Tries, decide
from failwell.decision.verdict import Retry
from failwell.fault.axes import Certainty
from failwell.fault.base import Fault
from failwell.jobs.faults import HostDied, NoStreamLeft
from failwell.jobs.job import JobState
from failwell.jobs.queue.ends import Ends
from failwell.jobs.queue.entry import Entry
from failwell.jobs.queue.record import Record
from failwell.jobs.queue.state import QueueState

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
        """Whether no more jobs are resumed."""

    def recover(self) -> None:
        """Resume the jobs of an earlier host: waiting ones wait, running ones are started again."""
        # Older jobs that have not ended are read here and need not be searched again.
        self._state.newest = self._state.store.last_key()
        for job in self._state.store.unfinished():
            self._state.newest = max(self._state.newest, job.key or 0)
            self._resume(Entry.of(job, self._state.number()), began=job.state is JobState.RUNNING)
        self._state.wake()

    def _resume(self, entry: Entry, *, began: bool) -> None:
        # A job that was submitted for later waits for its turn since then.
        is_first = entry.state is JobState.PENDING and entry.due is not None
        entry.since = self._state.since(
            max(entry.submitted, entry.due or 0.0) if is_first else entry.submitted
        )
        self._state.live[entry.id] = entry
        if entry.request.key is not None:
            self._state.once[entry.request.key] = entry
        if entry.cancelled is not None:
            # It was to be cancelled, and ended with the host.
            self._ends.cancel(entry, Certainty.UNKNOWN if began else None)
            return
        if entry.request.stream:
            self._ends.fail(entry, self._state.described(entry, NoStreamLeft(job=entry.id, retryable=False)))
            return
        if began:
            entry.losses += 1
            # The attempt stays recorded and does not count against the attempts of the job.
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
        self._ends.wait_until_due(entry)

    def look(self) -> None:
        """Read the jobs and the cancellations that other processes submitted."""
        if self.is_closed:
            return
        try:
            # In this order: a job is recorded before it can be cancelled.
            requests, jobs = (
                self._state.store.control_requests(),
                self._state.store.unfinished(self._state.newest),
            )
        except Fault:
            # The store is unavailable for a moment. The next look, at most a second later, reads the same.
            return
        for job in jobs:
            self._state.newest = max(self._state.newest, job.key or 0)
            if job.id not in self._state.live:
                self._resume(Entry.of(job, self._state.number()), began=False)
        for control in requests:
            if control.action == "cancel":
                self._cancel(control.job)
            # It is deleted together with the record of its result, and not before.
            self._record.granted.add(control.key)
        self._state.wake()
