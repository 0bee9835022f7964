"""What a worker process can do wrong, beside what its capability raises."""

from typing import Any

from failwell.fault.capability import (
    CapabilityInputError,
    CapabilityTimeoutError,
    CapabilityTransientError,
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
