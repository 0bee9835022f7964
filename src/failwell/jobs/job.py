"""A job as values: its request, its state and its result."""

import os
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from enum import StrEnum
from time import time
from typing import Any, Literal, NewType

from failwell.errors.faults__capability import CapabilityCancelledError
from failwell.errors.frozen import frozen
from failwell.errors.report import ErrorReport
from failwell.jobs.faults import NotOver
from failwell.jobs.job_error import job_error

JobId = NewType("JobId", str)

NO_ARGUMENTS: Mapping[str, Any] = {}
DEFAULT_TIMEOUT = 3600.0
"""Seconds that one attempt may run if neither the job nor its manifest says."""
NO_TIMEOUT: Literal["none"] = "none"

FOREVER = "forever"
UNTIL_ENDED = "ended"
UNIQUE = (FOREVER, UNTIL_ENDED)
"""How long the key of a job is taken."""


class JobState(StrEnum):
    """The state of a job. The last three are final."""

    PENDING = "pending"
    """Accepted and stored; it waits until it may start."""
    RUNNING = "running"
    """A worker runs it."""
    WAITING = "waiting"
    """An attempt failed; the next one starts at `not_before`, or when memory is free."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether the job has ended."""
        return self in FINAL


FINAL = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})
STATE_NAMES: Mapping[JobState, str] = {state: state.value for state in JobState}
"""`JobState.value` runs code of `enum`; this does not."""

TRANSITIONS: Mapping[JobState, frozenset[JobState]] = {
    JobState.PENDING: frozenset({JobState.RUNNING, JobState.FAILED, JobState.CANCELLED}),
    JobState.RUNNING: frozenset(
        {JobState.WAITING, JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.PENDING}
    ),
    JobState.WAITING: frozenset({JobState.RUNNING, JobState.FAILED, JobState.CANCELLED}),
    JobState.COMPLETED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELLED: frozenset(),
}
"""The allowed changes of state. A job whose host died goes from running back to pending."""


class CancelPhase(StrEnum):
    """The progress of cancelling a running job."""

    COOPERATIVE = "cooperative"
    """The capability was asked to stop."""
    FORCE = "force"
    """It did not stop, and its worker is being killed."""
    RELOADING = "reloading"
    """A new worker is being started."""
    COMPLETED = "completed"


class NotAllowed(ValueError):
    """A change of state that is not in `TRANSITIONS`."""


@frozen
class JobRequest:
    """A request to call a capability, before it is stored as a job."""

    instance: str
    """The instance to call; the default instance is named like its capability."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Keyword arguments of the call, as JSON."""
    action: str = "execute"
    """The method of the capability."""
    stream: bool = False
    """Whether the results are streamed, one item at a time."""
    priority: int = 0
    """Jobs with a higher priority start first."""
    timeout: float | Literal["none"] | None = None
    """Seconds that one attempt may run; `"none"` for no limit. Left out, the manifest decides, and without it an hour.
    A stored job has the seconds that apply to it, or `None` for no limit."""
    deadline: datetime | None = None
    """When the job must have ended, waiting included."""
    key: str | None = None
    """Idempotency key: a second request with the same key is the same job."""
    run: str | None = None
    actor: str | None = None
    control: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Flags for the queue; the capability does not get them."""
    unique: str = FOREVER
    """How long the key is taken: `forever`, which is as long as the job is stored, or until the job has
    `ended`."""
    not_before: datetime | None = None
    """When the first attempt may start; at once by default."""


@frozen
class Job:
    """One stored call to a capability."""

    id: JobId
    request: JobRequest
    state: JobState
    submitted_at: datetime
    started_at: datetime | None = None
    """When the current attempt started."""
    completed_at: datetime | None = None
    attempt: int = 0
    """How many attempts were started."""
    not_before: datetime | None = None
    progress: float = 0.0
    """From 0 to 1 within the current attempt, or -1 if the capability does not know."""
    message: str = ""
    result: Any = None
    error: ErrorReport | None = None
    block_reason: str | None = None
    """Why the job does not start."""
    cancel_requested_at: datetime | None = None
    cancel_phase: CancelPhase | None = None
    key: int | None = None
    """Its number in the store, which increases from job to job; `None` until it is stored."""
    charged: int = 0
    """How many attempts count towards its limit."""
    losses: int = 0
    """How often the host died while it ran."""

    @property
    def retry_count(self) -> int:
        """How many attempts followed the first one."""
        return max(0, self.attempt - 1)

    def resubmission(self) -> JobRequest:
        """The same request for a new job. The idempotency key and the times belong to this job only."""
        control = {**self.request.control, "resubmitted": self.id}
        # A stored job without a time limit has none; the new one must not get the default.
        timeout = self.request.timeout or NO_TIMEOUT
        return replace(
            self.request,
            key=None,
            unique=FOREVER,
            deadline=None,
            not_before=None,
            control=control,
            timeout=timeout,
        )

    def moved(self, state: JobState, **changes: Any) -> "Job":
        """A copy of the job in `state`.

        Raises:
            NotAllowed: the change of state is not allowed.
        """
        if state not in TRANSITIONS[self.state]:
            raise NotAllowed(f"job {self.id} cannot go from {self.state} to {state}")
        return replace(self, state=state, **changes)


def result_of(job: Job) -> Any:
    """The result of an ended job.

    Raises:
        Fault: the job failed or was cancelled; see `job_error`.
        NotOver: the job has not ended.
    """
    if not job.state.is_final:
        raise NotOver(job=job.id, stands=job.state.value)
    if job.state is JobState.COMPLETED:
        return job.result
    if job.error is not None:
        raise job_error(job.error)
    raise CapabilityCancelledError(job.request.instance)


def new_job(request: JobRequest, now: float) -> Job:
    """A job for `request`, as it is stored first; `now` is in seconds since 1970."""
    return Job(
        id=JobId(new_job_id()),
        request=request,
        state=JobState.PENDING,
        submitted_at=datetime.fromtimestamp(now, UTC),
        not_before=request.not_before,
    )


def new_job_id() -> str:
    """A unique id for a job; ids sort by time."""
    return f"{int(time() * 1000):011x}{os.urandom(5).hex()}"


def new_job_ids(count: int) -> list[str]:
    """Many ids at once."""
    prefix, digits = f"{int(time() * 1000):011x}", os.urandom(5 * count).hex()
    return [prefix + digits[start : start + 10] for start in range(0, 10 * count, 10)]
