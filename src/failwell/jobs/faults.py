"""The faults of queues and workers. The errors that capabilities raise are in `failwell.errors.faults`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from failwell.errors.axes import ActionKind
from failwell.errors.facts import ResourceShortfall, UserAction
from failwell.errors.fault import Fault
from failwell.errors.faults import (
    Cancellation,
    CapabilityConfigError,
    CapabilityInputError,
    CapabilityResourceError,
    CapabilityTimeoutError,
    CapabilityTransientError,
    Session,
    Validation,
)
from failwell.processes.worker_memory import OverLimit

if TYPE_CHECKING:
    from failwell.jobs.job import JobRequest


def invalid_config(
    what: str, mistakes: Sequence[tuple[str, str]], *, config_class_name: str = ""
) -> CapabilityConfigError:
    """The error for an invalid configuration: it names every invalid field and its mistake."""
    texts = [f"`{place}` {words}" for place, words in mistakes]
    return CapabilityConfigError(
        f"{what}: {'; '.join(texts)}",
        fields_invalid=sorted({place for place, _ in mistakes}),
        config_class_name=config_class_name,
        details={"mistakes": texts},
    )


class WorkerCrashed(CapabilityTransientError, kind="worker.crashed"):
    """The worker process died while a call ran in it."""

    capability_name: str = ""
    exit_code: int | None = None
    signal: str | None = None
    reason: str | None = None
    """`replaced` or `stopped` if the host ended the process, so that the job is not the cause; else `None`."""
    stderr_tail: str = ""
    quarantined_for: float | None = None

    def own_fields(self) -> dict[str, Any]:
        return {name: value for name, value in super().own_fields().items() if value not in (None, "")}


def ended_by_us(
    capability: str, reason: str | None, *, code: int | None = None, doing: str = "the call ran"
) -> WorkerCrashed:
    """The fault of a call whose process the host ended for a reason that has nothing to do with the call."""
    words = "was replaced" if reason == "replaced" else "was stopped"
    return WorkerCrashed(
        message=f"the worker of capability {capability!r} {words} while {doing}",
        capability_name=capability,
        exit_code=code,
        reason=reason or "stopped",
    )


class WorkerStalled(CapabilityTimeoutError, kind="worker.stalled"):
    """A worker showed no sign of progress for too long and was killed."""

    doing: str = ""
    stderr_tail: str = ""

    def __init__(self, capability_name: str, silence: float, doing: str, stderr_tail: str = "") -> None:
        super().__init__(capability_name, silence)
        self.doing = doing
        self.stderr_tail = stderr_tail
        self.message = f"capability {capability_name!r} showed no sign of progress for {silence:.1f} s while it was {doing}"


class MemoryLimitReached(CapabilityResourceError, kind="resource.system_memory"):
    """A worker used more memory than it may, and was ended."""

    capability_name: str = ""
    used_mb: float = 0.0
    limit_mb: float = 0.0
    limit_source: str = ""
    """`manifest`, `share`, `total` or `together`; see `MemoryLimit`."""
    jobs: int = 1
    """How many jobs ran in it. With more than one it is not known which of them used the memory."""
    out_of_memory: str = "confirmed"
    stderr_tail: str = ""

    def own_fields(self) -> dict[str, Any]:
        return {name: value for name, value in super().own_fields().items() if value != ""}


_LIMITS = {
    "manifest": (
        "its `memory_limit` is {limit}",
        "Raise `memory_limit` in the manifest, or make the work smaller.",
    ),
    "share": (
        "before it is measured it may use {limit}",
        "Set `memory_limit` in the manifest to the megabytes that it needs, or make the work smaller.",
    ),
    "total": (
        "all jobs together may use {limit}",
        "Raise `--memory` of `failwell workers run`, or make the work smaller.",
    ),
    "together": (
        "they may use {limit}",
        "Raise `--memory` of `failwell workers run`, run fewer jobs at a time, or make the work smaller.",
    ),
}


def memory_limit_reached(
    capability: str, over: OverLimit, *, jobs: int = 1, stderr_tail: str = ""
) -> MemoryLimitReached:
    """The fault of a worker that was ended because of its memory limit."""
    limit, advice = _LIMITS.get(over.source, _LIMITS["manifest"])
    used, most = round(over.used, 1), round(over.limit, 1)
    subject = "the workers together used" if over.source == "together" else "it used"
    return MemoryLimitReached(
        message=f"the worker of capability {capability!r} was ended: {subject} {used:,.0f} MB of memory, and"
        f" {limit.format(limit=f'{most:,.0f} MB')}",
        resource_shortfall=ResourceShortfall("system_ram_mb", used, most),
        capability_name=capability,
        used_mb=used,
        limit_mb=most,
        limit_source=over.source,
        jobs=jobs,
        stderr_tail=stderr_tail,
        user_action=UserAction(ActionKind.FREE_RESOURCES, advice),
    )


class WorkerStartFailed(CapabilityInputError, kind="worker.start_failed"):
    """The worker process could not be started."""

    capability_name: str = ""
    exit_code: int | None = None
    stderr_tail: str = ""

    def own_fields(self) -> dict[str, Any]:
        return {name: value for name, value in super().own_fields().items() if value not in (None, "")}


class LeaseLost(Session, kind="session.locked"):
    """Another host has taken over jobs that this one still has."""

    host: int

    def summary(self) -> str:
        return (
            "another host has taken over jobs of this one, which it took to be dead: the folder `jobs/hosts` of the store was"
            " changed; end this process"
        )


class NotReadable(CapabilityConfigError, kind="validation.config_invalid"):
    """The stored settings of an instance cannot be read, so it is unknown whether its jobs can run."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class UnknownJob(Session, kind="session.no_snapshot"):
    """The store has no job with that id."""

    job: str
    near: list[str] | None = None

    def summary(self) -> str:
        return f"no job `{self.job}` is recorded here; list them with `failwell jobs list`"


class UnknownGroup(Session, kind="session.no_snapshot"):
    """The store has no group with that id."""

    group: str
    near: list[str] | None = None

    def summary(self) -> str:
        return f"no group `{self.group}` is recorded here; list them with `failwell groups list`"


class UnknownSchedule(Session, kind="session.no_snapshot"):
    """The store has no schedule with that id."""

    schedule: str

    def summary(self) -> str:
        return f"no schedule `{self.schedule}` is recorded here; list them with `failwell schedules list`"


class NotOver(Session, kind="session.illegal_transition"):
    """The result of a job was requested before the job ended."""

    job: str
    stands: str

    def summary(self) -> str:
        return f"job `{self.job}` is {self.stands} and has no result yet; wait for it first"


class NotEnded(CapabilityInputError, kind="validation.input_invalid"):
    """A job was to be submitted again before it ended."""

    def __init__(self, job: str, state: str) -> None:
        super().__init__(
            f"job {job} has not ended ({state}); a retry would do its work a second time",
            user_action=UserAction(
                ActionKind.DECIDE, f"run `failwell jobs wait {job}` or `failwell jobs cancel {job}` first"
            ),
        )


class KeyTaken(CapabilityInputError, kind="validation.input_invalid"):
    """An idempotency key was used for two different jobs."""

    def __init__(self, key: str, job: str, first: "JobRequest", request: "JobRequest") -> None:
        super().__init__(
            f"the key `{key}` belongs to job `{job}`, which is `{first.action}` of `{first.instance}`, but"
            f" this job is `{request.action}` of `{request.instance}`; give it another key",
            fields_invalid=["key"],
        )


def check_same(job: str, first: "JobRequest", request: "JobRequest") -> None:
    """Check that two requests with the same key have the same instance and action; arguments may differ.

    Raises:
        KeyTaken: they differ.
    """
    if (first.instance, first.action) != (request.instance, request.action):
        raise KeyTaken(request.key or "", job, first, request)


class QueueStopped(Cancellation, kind="cancel.run"):
    """The queue stopped while a caller waited for a job. The job stays stored as it is."""

    job: str
    was: str

    def summary(self) -> str:
        return (
            f"the queue stopped while job `{self.job}` was {self.was}; the job is stored, and continues"
            " when a queue is started on the same store"
        )


class QueueClosed(Validation, kind="validation.input_invalid"):
    """A job was submitted to a queue that has stopped or is stopping."""

    def summary(self) -> str:
        return "the queue is stopping and accepts no more jobs; submit the job after it is started again"


class OtherLoop(Validation, kind="validation.input_invalid"):
    """A job was submitted from another event loop than the queue's."""

    def summary(self) -> str:
        return (
            "a queue accepts jobs only on the event loop that it was started on; from another thread, submit"
            " them with `asyncio.run_coroutine_threadsafe`"
        )


class NotEntered(Validation, RuntimeError, kind="validation.input_invalid"):
    """The runtime of jobs was used outside of `async with`."""

    def summary(self) -> str:
        return "a Runtime can only be used within `async with`"


class MissingMainGuard(Validation, RuntimeError, kind="validation.input_invalid"):
    """A worker imports a module that starts a host or submits a job while it is imported."""

    module: str
    doing: str

    def summary(self) -> str:
        return (
            f"module `{self.module}` {self.doing} when it is imported, and a worker imports it to run its capability;"
            ' put that under `if __name__ == "__main__":`'
        )


def check_not_imported(doing: str) -> None:
    """Check that no worker imports the calling code right now: it would start workers, or submit jobs, without end.

    Raises:
        MissingMainGuard: it does.
    """
    from sys import modules

    # The worker's own module, whatever version of failwell the capability has.
    module = getattr(modules.get("_failwell_worker.author"), "importing", None)
    if module is not None:
        raise MissingMainGuard(module=module, doing=doing)


class EnteredTwice(Validation, RuntimeError, kind="validation.input_invalid"):
    """The runtime of jobs was started while it runs."""

    def summary(self) -> str:
        return "this Runtime is already running; leave its `async with` first, or create another Runtime"


class DeadlinePassed(Fault, kind="limit.run_timeout"):
    """A job did not end by its deadline."""

    job: str
    deadline: str

    def summary(self) -> str:
        return (
            f"job `{self.job}` did not end by its deadline, {self.deadline}; submit it again with more time"
        )


class NeverFits(Fault, kind="resource.never_fits"):
    """A job needs more of a resource than all jobs may use on this machine."""

    instance: str
    resource: str
    needed_mb: float
    budget_mb: float

    def summary(self) -> str:
        return (
            f"`{self.instance}` needs {self.needed_mb:,.0f} MB of {self.resource}, as measured, but jobs may use"
            f" only {self.budget_mb:,.0f} MB here; reduce the work, or change the configuration, which is then"
            " measured again"
        )


class HostDied(Fault, kind="worker.crashed"):
    """The host died too often while the job was running."""

    job: str
    losses: int

    def summary(self) -> str:
        return (
            f"the host died {self.losses} times while job `{self.job}` was running, so the job is not started"
            " again by itself; look at its last output, then `failwell jobs retry`"
        )


class NoStreamLeft(Fault, kind="worker.crashed"):
    """The process that consumed the items of a job has ended."""

    job: str

    def summary(self) -> str:
        return (
            f"the process that consumed the items of job `{self.job}` has ended, so the job was not started again;"
            " submit it again"
        )
