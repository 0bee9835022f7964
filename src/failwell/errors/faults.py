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
"""

from typing import Any, ClassVar, Self

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
