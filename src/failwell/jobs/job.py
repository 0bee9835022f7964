"""What a job is: a request, where it stands, and how it ended. Values only; nothing here runs anything."""

import os
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum
from time import time
from typing import Any, NewType

from failwell.fault.capability import CapabilityCancelledError
from failwell.fault.frozen import frozen
from failwell.jobs.faults import NotOver
from failwell.report.record import ErrorReport
from failwell.report.revive import revive

JobId = NewType("JobId", str)

NO_ARGUMENTS: Mapping[str, Any] = {}


class JobState(StrEnum):
    """Where a job stands. The set is closed, and the last three are final."""

    PENDING = "pending"
    """Accepted and written down; waits for room."""
    RUNNING = "running"
    """A worker has it."""
    WAITING = "waiting"
    """An attempt failed; the next one starts at `not_before` or once something was freed."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing can happen to the job any more."""
        return self in _FINAL


_FINAL = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})

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
"""Every move there is. From running back to pending goes a job whose host died under it."""


class CancelPhase(StrEnum):
    """How far the cancelling of a running job has got."""

    COOPERATIVE = "cooperative"
    """The capability was asked to stop."""
    FORCE = "force"
    """It did not, and its worker is being ended."""
    RELOADING = "reloading"
    """A fresh worker is being started in its place."""
    COMPLETED = "completed"


class NotAllowed(ValueError):
    """A job was to make a move that does not exist."""


@frozen
class JobRequest:
    """What somebody wants done, before it has an id."""

    instance: str
    """Which instance of which capability; the default instance is named like its capability."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Keyword arguments of the call, as JSON."""
    action: str = "execute"
    """Which method of the capability."""
    stream: bool = False
    """Whether the results are wanted one by one as they are made."""
    priority: int = 0
    """Higher goes first."""
    timeout: float | None = None
    """Seconds that one attempt may run."""
    deadline: datetime | None = None
    """When the result is of no use any more, waiting included."""
    key: str | None = None
    """Idempotency key: a second request with the same one is the first."""
    run: str | None = None
    actor: str | None = None
    control: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Flags for the runtime; they never reach the capability's arguments."""


@frozen
class Job:
    """One request on its way."""

    id: JobId
    request: JobRequest
    state: JobState
    submitted_at: datetime
    started_at: datetime | None = None
    """When the present attempt began."""
    completed_at: datetime | None = None
    attempt: int = 0
    """How many attempts were begun."""
    not_before: datetime | None = None
    progress: float = 0.0
    """From 0 to 1 within the present attempt, or -1 where the capability cannot tell."""
    message: str = ""
    result: Any = None
    error: ErrorReport | None = None
    block_reason: str | None = None
    """Why a job that could run does not."""
    cancel_requested_at: datetime | None = None
    cancel_phase: CancelPhase | None = None
    key: int | None = None
    """Its number in the store, which rises from job to job; `None` until it is stored."""
    charged: int = 0
    """How many attempts count against those that it may fail."""
    losses: int = 0
    """How often its host died while it ran."""

    @property
    def retry_count(self) -> int:
        """How many attempts followed the first one."""
        return max(0, self.attempt - 1)

    def moved(self, state: JobState, **changes: Any) -> "Job":
        """The same job in `state`.

        Raises:
            NotAllowed: there is no such move.
        """
        if state not in TRANSITIONS[self.state]:
            raise NotAllowed(f"job {self.id} cannot go from {self.state} to {state}")
        return replace(self, state=state, **changes)


def result_of(job: Job) -> Any:
    """What came of an ended job.

    Raises:
        Fault: it failed or was cancelled.
        NotOver: it has not ended.
    """
    if not job.state.is_final:
        raise NotOver(job=job.id, stands=job.state.value)
    if job.state is JobState.COMPLETED:
        return job.result
    if job.error is not None:
        raise revive(job.error)
    raise CapabilityCancelledError(job.request.instance)


def new_job_id() -> str:
    """An id for a job: sorted by time, never given twice."""
    return f"{int(time() * 1000):011x}{os.urandom(5).hex()}"
