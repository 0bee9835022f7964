"""A job as the queue holds it: the record that the store writes, and what is needed to run it."""

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from failwell.jobs.job import Job, JobState
from failwell.jobs.store.records import Values
from failwell.jobs.store.rows import job_values, read_result, request_to_json, result_to_json

if TYPE_CHECKING:
    from asyncio import Future, Task

    from failwell.jobs.queue.events import Items

_OF_JOB = tuple(part.name for part in fields(Job))


@dataclass(slots=True, kw_only=True, eq=False)
class Entry(Job):
    """A job that has not ended. The queue changes it in place; callers get a copy of the record."""

    request_text: str
    """The request as JSON."""
    result_text: str | None = None
    """The result as JSON."""
    was: str | None = None
    """The state in which it was stored last."""
    sequence: int = 0
    """Rises with every job of this host; decides between jobs of equal rank."""
    since: float = 0.0
    """When it was submitted, by the monotonic clock; the order of waiting jobs follows it."""
    block: str | None = None
    """A short key for `block_reason`; a new event is recorded only when it changes."""
    has_result: bool = False
    """Whether its result has arrived. A cancel that comes later changes nothing."""
    is_starting: bool = False
    """Whether a task waits for its worker to start, and nothing was sent."""
    is_sent: bool = False
    """Whether it was sent to a worker that was ready, and no answer has come."""
    is_queued: bool = False
    """Whether it is in the waiting line."""
    place: int = 0
    """Which of its tickets in the waiting line is the valid one."""
    wanted: int = 1
    """The number of callers that submitted it and have not cancelled."""
    accepted: "Future[Entry] | None" = None
    waiters: "set[Future[Entry]]" = field(default_factory=set["Future[Entry]"])
    task: "Task[None] | None" = None
    canceller: "Task[Any] | None" = None
    items: "Items | None" = None
    """Where the items of a stream go."""

    @classmethod
    def of(cls, job: Job, sequence: int = 0) -> "Entry":
        """The entry of a job that is in the store, or is to be."""
        return cls(
            **{name: getattr(job, name) for name in _OF_JOB},
            request_text=request_to_json(job.request),
            result_text=result_to_json(job.result) if job.state is JobState.COMPLETED else None,
            was=None if job.key is None else job.state.value,
            sequence=sequence,
            since=job.submitted,
        )

    def values(self) -> Values:
        """What the store writes of it."""
        return job_values(self, self.was, self.request_text, self.result_text)

    def job(self) -> Job:
        """What callers see of it."""
        record = Job(**{name: getattr(self, name) for name in _OF_JOB})
        if self.result_text is not None:
            record.result = read_result(self.result_text)
        return record

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state.is_final

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
        self.due = self.block_reason = self.block = None
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
        self.due = self.block_reason = None
        self.place += 1
        if state is JobState.COMPLETED:
            self.progress = 1.0
