"""What can go wrong with a queue or a worker, beside what a capability raises."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from failwell.fault.base import Fault
from failwell.fault.capability import (
    CapabilityConfigError,
    CapabilityInputError,
    CapabilityTimeoutError,
    CapabilityTransientError,
)
from failwell.fault.classes import Cancellation, Session, Validation

if TYPE_CHECKING:
    from failwell.jobs.job import JobRequest


def invalid_config(
    what: str, mistakes: Sequence[tuple[str, str]], *, config_class_name: str = ""
) -> CapabilityConfigError:
    """The error that says of `what` every field that is wrong, and what is wrong with it."""
    texts = [f"`{place}` {words}" for place, words in mistakes]
    return CapabilityConfigError(
        f"{what}: {'; '.join(texts)}",
        fields_invalid=sorted({place for place, _ in mistakes}),
        config_class_name=config_class_name,
        details={"mistakes": texts},
    )


class WorkerCrashed(CapabilityTransientError, kind="worker.crashed"):
    """The worker process died while it worked."""

    capability_name: str = ""
    exit_code: int | None = None
    signal: str | None = None
    reason: str | None = None
    """`replaced` or `stopped` where we ended the process and the job is not to blame; else left out."""
    stderr_tail: str = ""
    quarantined_for: float | None = None

    def own_fields(self) -> dict[str, Any]:
        return {name: value for name, value in super().own_fields().items() if value not in (None, "")}


def ended_by_us(
    capability: str, reason: str | None, *, code: int | None = None, doing: str = "the call ran"
) -> WorkerCrashed:
    """The fault of whatever lost its process because we ended it: nothing of its own is to blame."""
    words = "was replaced" if reason == "replaced" else "was stopped"
    return WorkerCrashed(
        message=f"the worker of capability {capability!r} {words} while {doing}",
        capability_name=capability,
        exit_code=code,
        reason=reason or "stopped",
    )


class WorkerStalled(CapabilityTimeoutError, kind="worker.stalled"):
    """A worker showed no sign of progress for longer than it may, and was ended."""

    doing: str = ""
    stderr_tail: str = ""

    def __init__(self, capability_name: str, silence: float, doing: str, stderr_tail: str = "") -> None:
        super().__init__(capability_name, silence)
        self.doing = doing
        self.stderr_tail = stderr_tail
        self.message = f"capability {capability_name!r} showed no sign of progress for {silence:.1f} s while it was {doing}"


class WorkerStartFailed(CapabilityInputError, kind="worker.start_failed"):
    """The worker process could not be made ready."""

    capability_name: str = ""
    exit_code: int | None = None
    stderr_tail: str = ""

    def own_fields(self) -> dict[str, Any]:
        return {name: value for name, value in super().own_fields().items() if value not in (None, "")}


class HostElsewhere(Session, kind="session.locked"):
    """Another process runs the jobs of this store."""

    pid: int | None = None
    host: str | None = None
    since: str | None = None

    def summary(self) -> str:
        process = "another process" if self.pid is None else f"process {self.pid}"
        place = "" if self.host is None else f" on {self.host}"
        return f"{process}{place} already runs the jobs of this store; submit yours there, or give another `--store DIR`"


class NotReadable(CapabilityConfigError, kind="validation.config_invalid"):
    """What is kept of an instance cannot be read, so nobody knows whether its jobs could be done."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class UnknownJob(Session, kind="session.no_snapshot"):
    """No job of that name is recorded here."""

    job: str
    near: list[str] | None = None

    def summary(self) -> str:
        return f"no job `{self.job}` is recorded here; list them with `failwell jobs list`"


class NotOver(Session, kind="session.illegal_transition"):
    """Somebody asked what came of a job that has not ended."""

    job: str
    stands: str

    def summary(self) -> str:
        return f"job `{self.job}` is {self.stands}, so nothing has come of it yet; wait for it first"


class KeyTaken(CapabilityInputError, kind="validation.input_invalid"):
    """An idempotency key was given twice, for different things."""

    def __init__(self, key: str, job: str, first: "JobRequest", request: "JobRequest") -> None:
        super().__init__(
            f"the key `{key}` belongs to job `{job}`, which is `{first.action}` of `{first.instance}`, and"
            f" `{request.action}` of `{request.instance}` is something else; give it a key of its own",
            fields_invalid=["key"],
        )


def check_same(job: str, first: "JobRequest", request: "JobRequest") -> None:
    """See that two requests with the same key are about the same thing. The arguments of the first one count.

    Raises:
        KeyTaken: they are not.
    """
    if (first.instance, first.action) != (request.instance, request.action):
        raise KeyTaken(request.key or "", job, first, request)


class QueueStopped(Cancellation, kind="cancel.run"):
    """The queue stopped while somebody waited for a job. The job stays on record as it is."""

    job: str
    was: str

    def summary(self) -> str:
        return (
            f"the queue stopped while job `{self.job}` was {self.was}; it is kept, and goes on"
            " when a queue is started on the same store"
        )


class QueueClosed(Validation, kind="validation.input_invalid"):
    """Work was handed to a queue that has stopped or is stopping."""

    def summary(self) -> str:
        return "the queue is stopping and takes no more work; start it again and submit it then"


class OtherLoop(Validation, kind="validation.input_invalid"):
    """Work was submitted from another event loop than the queue's own."""

    def summary(self) -> str:
        return (
            "a queue takes work on the event loop that it was started on; submit it there, from another"
            " thread with `asyncio.run_coroutine_threadsafe`"
        )


class NotEntered(Validation, RuntimeError, kind="validation.input_invalid"):
    """A runtime was used before `async with` or after it."""

    def summary(self) -> str:
        return "a Runtime is used within `async with`"


class EnteredTwice(Validation, RuntimeError, kind="validation.input_invalid"):
    """A runtime that runs was to be started."""

    def summary(self) -> str:
        return "this Runtime runs already; leave its `async with` first, or make another Runtime"


class DeadlinePassed(Fault, kind="limit.run_timeout"):
    """A job was not done by the time it had to be."""

    job: str
    deadline: str

    def summary(self) -> str:
        return f"job `{self.job}` was not done by its deadline, {self.deadline}; give it more time and submit it again"


class NeverFits(Fault, kind="resource.never_fits"):
    """A job needs more of something than the whole machine may give."""

    instance: str
    resource: str
    needed_mb: float
    budget_mb: float

    def summary(self) -> str:
        return (
            f"`{self.instance}` was seen to need {self.needed_mb:,.0f} MB of {self.resource}, and"
            f" {self.budget_mb:,.0f} MB is all that jobs may use here; make the work smaller, or change the"
            " configuration, which is then measured anew"
        )


class HostDied(Fault, kind="worker.crashed"):
    """The process that ran the queue died while the job was running, once too often."""

    job: str
    losses: int

    def summary(self) -> str:
        return (
            f"the host died {self.losses} times while job `{self.job}` was running, so the job is not started"
            " again by itself; look at its last output, then `failwell jobs retry`"
        )


class NoStreamLeft(Fault, kind="worker.crashed"):
    """Somebody was to take the items of a job as they came, and that process is gone."""

    job: str

    def summary(self) -> str:
        return (
            f"whoever took the items of job `{self.job}` is gone, so it was not started again; submit it anew"
        )
