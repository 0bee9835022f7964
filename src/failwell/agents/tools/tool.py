"""A tool that a model may call: its schema, what it does to the world, and how it is run."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from failwell.errors.frozen import frozen

Effect = Literal["read", "idempotent", "once"]
"""What a call does: it changes nothing, it may be repeated, or it must not happen twice."""
Approval = Literal["never", "ask"]
RecoveryMode = Literal["none", "retry", "input"]


@frozen
class ToolContext:
    """What a tool gets besides its arguments."""

    key: str
    """The idempotency key of the call: the same after a crash."""
    folder: Path
    """Where relative paths start."""
    scratch: Path | None
    """A private folder, for long results; `None` keeps only what the model sees of them."""
    protected: Callable[[], frozenset[str]] = frozenset[str]
    """Absolute paths of files and folders that no tool writes: the workflow that is running, its code and its records."""
    grace: float = 2.0
    """Seconds between SIGTERM and SIGKILL for a tool that is stopped."""

    def with_call(self, call: str) -> "ToolContext":
        """The context of one call, with a key of its own."""
        return replace(self, key=f"{self.key}/{call}")


RunTool: TypeAlias = Callable[[Mapping[str, Any], ToolContext], Awaitable[Any]]
CheckTool: TypeAlias = Callable[[Mapping[str, Any], ToolContext], "str | None"]


def allow_all(_arguments: Mapping[str, Any], _context: ToolContext) -> None:
    """The policy of a tool that its author allowed as it is."""


@frozen
class Tool:
    """One tool, granted by being in a registry and in the list of the agent."""

    name: str
    run: RunTool
    description: str = ""
    parameters: Mapping[str, Any] = field(
        default_factory=lambda: dict[str, Any](type="object", properties={}, additionalProperties=False)
    )
    """JSON Schema of the arguments."""
    fixed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Arguments that the file sets. What a model says about them is ignored."""
    effect: Effect = "once"
    approval: Approval = "never"
    check: CheckTool = allow_all
    """The policy, over the complete arguments: the reason for a denial, or `None`."""
    timeout: float | None = None
    attempts: int = 1
    """Runs of one call, the first included. Only failures that a repeat can fix are repeated."""
    recovery: RecoveryMode = "none"
    """What a person is asked after the last attempt: nothing, whether to call it again, or for other arguments."""


@frozen
class ApprovalRequest:
    """A question to a person: may this call be made?"""

    tool: str
    agent: str
    arguments: Mapping[str, Any]
    """Redacted."""
    effect: Effect


Approver: TypeAlias = Callable[[ApprovalRequest], Awaitable[bool]]
