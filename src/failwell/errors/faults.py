"""The eight families of faults that the runtime itself raises.

A family says who reacts; the kind says what happened. Families are closed, kinds are open:
an author's kind may be raised in any family, a kind of the runtime's only in its own.

    Fault
    ├── Validation            refused before anything ran
    ├── ProviderTransient     a model call that another time may answer
    ├── ProviderCapability    a model call that only a change will answer
    ├── ToolTransient         a tool call that another time may answer
    ├── ToolTerminal          a tool call that goes back to the model as it is
    ├── Session               the record of the work is not as it should be
    ├── Cancellation          stopped on purpose
    └── ExtensionHost         an extension failed its host

What the author of a capability raises: four categories, and the runtime's own cases.
"""

from collections.abc import Iterable
from typing import Any, ClassVar, Self

from failwell.errors.axes import ActionKind, Certainty, JobCategory
from failwell.errors.facts import NotBefore, ResourceShortfall, UserAction
from failwell.errors.fault import Fault
from failwell.errors.kind_registry import is_owned

__all__ = [
    "Cancellation",
    "ExtensionHost",
    "ProviderCapability",
    "ProviderTransient",
    "Session",
    "ToolTerminal",
    "ToolTransient",
    "Validation",
]

_PROVIDER_TRANSIENT = frozenset(
    f"provider.{name}"
    for name in (
        "rate_limited", "overloaded", "unavailable", "timeout", "connection",
        "stream_interrupted", "outcome_unknown", "output_rejected", "exhausted",
    )
)  # fmt: skip
_TOOL_TRANSIENT = frozenset({"tool.timeout", "tool.busy", "tool.interrupted"})


class _Family(Fault):
    """A fault that must say its kind, and may only claim kinds of its family."""

    prefix: ClassVar[str]
    only: ClassVar[frozenset[str]] = frozenset()
    never: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def holds(cls, kind: str) -> bool:
        """Whether the runtime's `kind` belongs to this family."""
        if not kind.startswith(cls.prefix) or kind in cls.never:
            return False
        return not cls.only or kind in cls.only

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        kind = self.own_kind
        if kind is None:
            raise TypeError(f"{type(self).__name__} needs `kind`")
        if is_owned(kind) and not self.holds(kind):
            raise TypeError(f"`{kind}` is not a kind of {type(self).__name__}; it belongs to {family(kind)}")

    @classmethod
    def wrap(cls, cause: BaseException, message: str | None = None, **fields: Any) -> Self:
        """A fault of this family around `cause`, of the kind of `cause` unless another is passed."""
        inherited = cause.kind if isinstance(cause, Fault) else None
        if inherited is not None and "kind" not in fields and cls.declared_kind is None:
            # The kind is the cause's word and not the wrapper's, so the wrapper does not vouch for its own.
            fields = {"caller_facing": False, **fields, "kind": inherited}
        return super().wrap(cause, message, **fields)


class Validation(_Family):
    """An input cannot be accepted."""

    prefix = "validation."


class ProviderTransient(_Family):
    """A provider could not serve the call this time."""

    prefix = "provider."
    only = _PROVIDER_TRANSIENT


class ProviderCapability(_Family):
    """A provider will not serve the call as it stands."""

    prefix = "provider."
    never = _PROVIDER_TRANSIENT


class ToolTransient(_Family):
    """A tool could not do its work this time."""

    prefix = "tool."
    only = _TOOL_TRANSIENT


class ToolTerminal(_Family):
    """A tool will not do its work as it stands."""

    prefix = "tool."
    never = _TOOL_TRANSIENT


class Session(_Family):
    """The record of the work is missing, locked, foreign or damaged."""

    prefix = "session."


class Cancellation(_Family):
    """The work was stopped on purpose."""

    prefix = "cancel."


class ExtensionHost(_Family):
    """An extension failed its host."""

    prefix = "extension."


FAMILIES: tuple[type[_Family], ...] = (
    Validation,
    ProviderTransient,
    ProviderCapability,
    ToolTransient,
    ToolTerminal,
    Session,
    Cancellation,
    ExtensionHost,
)


def family(kind: str) -> str | None:
    """The name of the family that the runtime's `kind` belongs to, or `None`."""
    return next((cls.__name__ for cls in FAMILIES if cls.holds(kind)), None)


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
