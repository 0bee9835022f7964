"""What the author of a capability raises: four categories, and the runtime's own cases.

    CapabilityError                      fatal unless a subclass says otherwise
    ├── CapabilityInputError             user_input: the caller can fix it and resubmit
    │   ├── CapabilityDisabledError
    │   └── CapabilityConfigError
    ├── CapabilityTransientError         transient: a repeat may succeed
    │   ├── CapabilityTimeoutError
    │   └── CapabilityCancelledError     stopped by an operator: never repeated by itself
    ├── CapabilityResourceError          resource: a repeat may succeed once something is freed
    │   └── WorkerOOMError
    └── CapabilityFatalError             fatal: no repeat will help
        └── CapabilityNotLoadedError

None of them is a `ValueError`: code that catches `ValueError` means bad arguments, and must
not catch a lost connection by it.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from failwell.errors.axes import ActionKind, Certainty, JobCategory
from failwell.errors.facts import NotBefore, ResourceShortfall, UserAction
from failwell.errors.fault import Fault

OOM_CONFIRMED = UserAction(
    ActionKind.FREE_RESOURCES, "Free memory, raise the memory limit, or make the work smaller."
)
OOM_ASSUMED = UserAction(
    ActionKind.CONTACT_SUPPORT,
    "Look for an out-of-memory kill in the kernel log (`journalctl -k` or `dmesg`), and at `oom_kill` in `memory.events` of its control "
    "group. If there is one, free memory or make the work smaller; if there is none, somebody else killed the process.",
)
_RESOURCE_KINDS = {
    "gpu_vram_mb": "resource.gpu_memory",
    "system_ram_mb": "resource.system_memory",
    "disk_mb": "resource.disk",
}


class CapabilityError(Fault, kind="worker.fatal"):
    """The capability failed."""

    category: ClassVar[JobCategory] = "fatal"
    default_retriable: ClassVar[bool] = False
    """Whether resubmitting the same job can make sense."""

    def __init__(self, *args: object, **fields: Any) -> None:
        if args:
            fields["message"] = str(args[0]) if len(args) == 1 else str(args)
        if not self.default_retriable:
            fields.setdefault("retryable", False)
        super().__init__(**fields)
        self.args = args or ((self.message,) if self.message is not None else ())


class CapabilityInputError(CapabilityError, kind="validation.input_invalid"):
    """The caller can correct an input: a bad argument, a missing file."""

    category = "user_input"
    default_retriable = True

    def __init__(self, message: str, *, fields_invalid: Iterable[str] | None = None, **fields: Any) -> None:
        super().__init__(message, fields_invalid=list(fields_invalid or ()), **fields)


class CapabilityTransientError(CapabilityError, kind="worker.transient"):
    """Something passing went wrong: a time-out, a lost connection, a short contention."""

    category = "transient"
    default_retriable = True

    def __init__(self, message: str, *, retry_after_seconds: float | None = None, **fields: Any) -> None:
        if retry_after_seconds is not None:
            fields.setdefault("not_before", NotBefore(after=retry_after_seconds, source="declared"))
        super().__init__(message, **fields)

    @property
    def retry_after_seconds(self) -> float | None:
        """How long to wait before a repeat, if that is known."""
        return None if self.not_before is None else self.not_before.after


class CapabilityResourceError(CapabilityError, kind="resource.exhausted"):
    """Memory of the GPU or of the machine, or disk space, is used up."""

    category = "resource"
    default_retriable = True

    def __init__(
        self, message: str, *, resource_shortfall: ResourceShortfall | None = None, **fields: Any
    ) -> None:
        if resource_shortfall is not None:
            fields.setdefault("kind", _RESOURCE_KINDS.get(resource_shortfall.resource, "resource.exhausted"))
        super().__init__(message, resource_shortfall=resource_shortfall, **fields)


class CapabilityFatalError(CapabilityError, kind="worker.fatal"):
    """The capability knows that no repeat will help."""

    category = "fatal"
    default_retriable = False

    def __init__(self, *args: object, **fields: Any) -> None:
        super().__init__(*args, **fields)


class CapabilityDisabledError(CapabilityInputError, kind="worker.disabled"):
    """Work was submitted to a capability that is switched off."""

    capability_name: str = ""

    def __init__(self, capability_name: str) -> None:
        super().__init__(
            f"capability {capability_name!r} is disabled; enable it and submit again",
            capability_name=capability_name,
        )


class CapabilityConfigError(CapabilityInputError, kind="validation.config_invalid"):
    """A configuration has keys or values that the capability's schema does not accept."""

    config_class_name: str = ""

    def __init__(
        self,
        message: str,
        *,
        fields_invalid: Iterable[str] | None = None,
        config_class_name: str = "",
        **fields: Any,
    ) -> None:
        super().__init__(
            message, fields_invalid=fields_invalid, config_class_name=config_class_name, **fields
        )


class CapabilityNotLoadedError(CapabilityFatalError, kind="worker.not_loaded"):
    """Work was submitted to a capability that was never loaded."""

    capability_name: str = ""

    def __init__(self, capability_name: str) -> None:
        super().__init__(
            f"capability {capability_name!r} is not loaded; register its file with `failwell capabilities add FILE`",
            capability_name=capability_name,
        )


class CapabilityTimeoutError(CapabilityTransientError, kind="worker.timeout"):
    """A job did not finish within its time limit."""

    capability_name: str = ""
    timeout_seconds: float = 0.0

    def __init__(
        self, capability_name: str, timeout_seconds: float, *, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(
            f"capability {capability_name!r} did not finish within {timeout_seconds:.1f} s",
            retry_after_seconds=retry_after_seconds,
            capability_name=capability_name,
            timeout_seconds=timeout_seconds,
        )


_AFTER_A_CANCEL = {
    Certainty.UNKNOWN: UserAction(
        ActionKind.CHECK_OUTCOME, "It may have run: check what it did before it is started again."
    ),
    Certainty.PARTIAL: UserAction(
        ActionKind.CHECK_OUTCOME, "It was interrupted: check what it did before it is started again."
    ),
    Certainty.DONE_BUT_LOST: UserAction(
        ActionKind.CHECK_OUTCOME,
        "Its work was done and only its result was dropped: start it again only if the work may be done twice.",
    ),
}


class CapabilityCancelledError(CapabilityTransientError, kind="cancel.job"):
    """An operator stopped the job. It may be started again, but never by itself.

    `certainty` says what the job did: `not_sent` (it never began), `unknown` or `partial` (it may have run), or
    `done_but_lost` (it had finished).
    """

    default_retriable = False
    capability_name: str = ""

    def __init__(self, capability_name: str, *, certainty: Certainty | None = None) -> None:
        super().__init__(
            f"capability {capability_name!r} was cancelled by operator",
            capability_name=capability_name,
            certainty=certainty,
            user_action=None if certainty is None else _AFTER_A_CANCEL.get(certainty),
        )


class WorkerOOMError(CapabilityResourceError, kind="worker.oom"):
    """The worker process was killed during a call; memory is the most likely reason.

    It has no shortfall: only a capability that catches the allocation itself knows the numbers. `out_of_memory` says how sure it is:
    `confirmed` by the kernel's counter, a limit of ours or the process itself, or `assumed` from the signal. The advice follows.
    """

    capability_name: str = ""
    process_returncode: int | None = None
    out_of_memory: str = "assumed"

    def __init__(
        self,
        capability_name: str,
        *,
        process_returncode: int | None = None,
        message: str | None = None,
        confirmed: bool = False,
    ) -> None:
        code = "" if process_returncode is None else f" (returncode={process_returncode})"
        super().__init__(
            message or f"the worker of capability {capability_name!r} was killed during the call{code}",
            capability_name=capability_name,
            process_returncode=process_returncode,
            out_of_memory="confirmed" if confirmed else "assumed",
            user_action=OOM_CONFIRMED if confirmed else OOM_ASSUMED,
        )
