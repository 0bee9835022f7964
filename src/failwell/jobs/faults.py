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
