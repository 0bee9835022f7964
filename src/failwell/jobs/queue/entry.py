"""One job that has not ended, as the queue holds it. Everything else about a job is immutable."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from failwell.errors.report import ErrorReport
from failwell.jobs.job import FINAL, MOST_BYTES, STATE_NAMES, CancelPhase, Job, JobId, JobRequest, JobState
from failwell.jobs.store.records import Values
from failwell.jobs.store.rows import (
    ARGUMENTS_START,
    moment,
    read_result,
    request_to_json,
    result_to_json,
    stored_key,
)
from failwell.processes.wire import encode_text

if TYPE_CHECKING:
    from asyncio import Future, Task

    from failwell.jobs.queue.events import Items


class Entry:
    """A job that has not ended. `values` is what the store writes of it, `job` is what callers see."""

    __slots__ = (
        "_arguments_end",
        "accepted",
        "attempt",
        "block",
        "cancelled",
        "canceller",
        "charged",
        "deadline",
        "due",
        "ended",
        "error",
        "has_result",
        "id",
        "is_queued",
        "is_sent",
        "is_starting",
        "items",
        "key",
        "losses",
        "message",
        "phase",
        "place",
        "progress",
        "reason",
        "request",
        "request_text",
        "result",
        "sequence",
        "since",
        "started",
        "state",
        "submitted",
        "task",
        "waiters",
        "wanted",
        "was",
    )

    def __init__(
        self, job: str, request: JobRequest, submitted: float, sequence: int, arguments: str | None = None
    ) -> None:
        """A new job; `arguments` are those of the request as JSON, if that is known."""
        self.id = job
        self.request = request
        self.request_text = request_to_json(request, arguments)
        self._arguments_end = None if arguments is None else ARGUMENTS_START + len(arguments)
        self.submitted = submitted
        self.since = submitted
        """The same by the monotonic clock; the order of waiting jobs follows it."""
        self.sequence = sequence
        """Rises with every job of this host; decides between jobs of equal rank."""
        self.key: int | None = None
        self.was: str | None = None
        self.state = JobState.PENDING
        self.started: float | None = None
        self.ended: float | None = None
        self.attempt = 0
        self.charged = 0
        self.losses = 0
        self.due = None if request.not_before is None else request.not_before.timestamp()
        self.deadline = None if request.deadline is None else request.deadline.timestamp()
        self.reason: str | None = None
        self.block: str | None = None
        """A short key for the reason; a new event is recorded only when it changes."""
        self.cancelled: float | None = None
        self.phase: CancelPhase | None = None
        self.progress = 0.0
        self.message = ""
        self.result: str | None = None
        """As JSON."""
        self.error: ErrorReport | None = None
        self.has_result = False
        """Whether its result has arrived. A cancel that comes later changes nothing."""
        self.is_starting = False
        """Whether a task waits for its worker to start, and nothing was sent."""
        self.is_sent = False
        """Whether it was sent to a worker that was ready, and no answer has come."""
        self.is_queued = False
        """Whether it is in the waiting line."""
        self.place = 0
        """Which of its tickets in the waiting line is the valid one."""
        self.accepted: Future[Entry] | None = None
        self.waiters: set[Future[Entry]] = set()
        self.wanted = 0
        """The number of callers that submitted it and have not cancelled."""
        self.task: Task[None] | None = None
        self.canceller: Task[Any] | None = None
        self.items: Items | None = None
        """Where the items of a stream go."""

    def arguments(self) -> str:
        """Its arguments as JSON, for the frame of a call."""
        end = self._arguments_end
        # The stored text has escapes, which a frame must have room for.
        if end is None or end > MOST_BYTES:
            return encode_text(self.request.arguments)
        return self.request_text[ARGUMENTS_START:end]

    @classmethod
    def of(cls, job: Job, sequence: int = 0) -> "Entry":
        """The entry of a job that is in the store."""
        entry = cls(job.id, job.request, job.submitted_at.timestamp(), sequence)
        entry.key, entry.was, entry.state, entry.wanted = job.key, job.state.value, job.state, 1
        entry.attempt, entry.charged, entry.losses = job.attempt, job.charged, job.losses
        entry.started, entry.ended = _seconds(job.started_at), _seconds(job.completed_at)
        entry.due, entry.cancelled = _seconds(job.not_before), _seconds(job.cancel_requested_at)
        entry.error, entry.progress = job.error, job.progress
        entry.result = result_to_json(job.result) if job.state is JobState.COMPLETED else None
        return entry

    def values(self) -> Values:
        """What the store writes of it; `failwell.jobs.store.rows.job_values` is the same for a `Job`."""
        return (
            self.was,
            self.key,
            self.id,
            self.request.instance,
            STATE_NAMES[self.state],
            self.request.priority,
            self.submitted,
            self.started,
            self.ended,
            self.attempt,
            self.charged,
            self.losses,
            self.due,
            self.reason,
            self.cancelled,
            None if self.phase is None else self.phase.value,
            self.request_text,
            self.result,
            None if self.error is None else self.error.to_json(),
            None if self.request.key is None else stored_key(self.request, is_over=self.state in FINAL),
            self.deadline,
        )

    def job(self) -> Job:
        """What callers see of it."""
        return Job(
            id=JobId(self.id),
            request=self.request,
            state=self.state,
            submitted_at=moment(self.submitted),
            started_at=_maybe(self.started),
            completed_at=_maybe(self.ended),
            attempt=self.attempt,
            not_before=_maybe(self.due),
            progress=self.progress,
            message=self.message,
            result=None if self.result is None else read_result(self.result),
            error=self.error,
            block_reason=self.reason,
            cancel_requested_at=_maybe(self.cancelled),
            cancel_phase=self.phase,
            key=self.key,
            charged=self.charged,
            losses=self.losses,
        )

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state in FINAL

    def refuse(self, fault: BaseException) -> None:
        """Raise `fault` in every task that waits for it to be accepted or to end."""
        for future in (self.accepted, *self.waiters):
            if future is not None and not future.done():
                future.set_exception(fault)

    def begin(self, now: float) -> None:
        """Begin an attempt."""
        self.state = JobState.RUNNING
        self.started = now
        self.attempt += 1
        self.charged += 1
        self.due = self.reason = self.block = None
        # A new attempt shows no progress of the one before it.
        self.progress, self.message = 0.0, ""

    def never_began(self) -> None:
        """Undo `begin`: the attempt could not be recorded, so it is not made."""
        self.state = JobState.PENDING if self.attempt == 1 else JobState.WAITING
        self.started = None
        self.attempt -= 1
        self.charged -= 1

    def end(self, state: JobState, now: float) -> None:
        """End it."""
        self.state = state
        self.ended = now
        self.due = self.reason = None
        self.place += 1
        if state is JobState.COMPLETED:
            self.progress = 1.0


def _maybe(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()
