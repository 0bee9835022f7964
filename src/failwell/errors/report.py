"""`ErrorReport`: what happened, once, in a form that outlives the process it happened in.

It holds no live object: no exception, traceback, request or reply. Every text in it was
redacted and capped before it got here, so a sink may store any of it; what may be *shown*, and
to whom, is `failwell.errors.views`' business.

Which failures deserve a person: the severity of a report, from values alone.
"""

import os
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from failwell.errors.axes import Blame, Category, Certainty, Domain
from failwell.errors.facts import Evidence, NotBefore, Origin, ProviderMetadata, ResourceShortfall, UserAction
from failwell.errors.frozen import frozen
from failwell.errors.kind_registry import KINDS, http_status_of, is_kind, is_owned


class Severity(StrEnum):
    """How much attention a failure deserves."""

    INFO = "info"
    """It was handled, or stopped on purpose."""
    WARNING = "warning"
    """Its caller can correct it."""
    ERROR = "error"
    """The work failed, and nobody has to act now."""
    CRITICAL = "critical"
    """A person has to act."""


_FOR_A_PERSON = frozenset(
    {Category.AMBIGUOUS, Category.CAPACITY, Category.CONFIGURATION, Category.FATAL, Category.UNKNOWN}
)
_EXHAUSTED = frozenset({"provider.exhausted", "retry.exhausted"})


def severity_of(kind: str, category: Category, *, handled: bool = False, exhausted: bool = False) -> Severity:
    """The severity of a failure.

    Args:
        kind: Its kind.
        category: Its category.
        handled: Whether it is retried, was ignored on purpose, or something else goes on in its place.
        exhausted: Whether everything that a loop may do about it has been done.
    """
    if handled or category is Category.CANCELLED:
        return Severity.INFO
    if category.domain is Domain.INPUT:
        return Severity.WARNING
    if exhausted or category in _FOR_A_PERSON or kind in _EXHAUSTED:
        return Severity.CRITICAL
    return Severity.ERROR


SCHEMA = "failwell.error/1"
_UTC = timedelta(0)


@frozen
class Scene:
    """Where it happened: as much of the run, the job and the session as was known."""

    run: str | None = None
    workflow: str | None = None
    node: str | None = None
    item: str | None = None
    job: str | None = None
    capability: str | None = None
    instance: str | None = None
    session: str | None = None
    turn: str | None = None
    tool: str | None = None
    attempt: int | None = None


NOWHERE = Scene()


@frozen
class Cause:
    """One exception below the reported one. The list is a tree, written in order with levels."""

    type: str
    kind: str | None = None
    message: str | None = None
    via: Literal["cause", "context", "member"] = "cause"
    """Raised from it, raised while handling it, or one of a group's members."""
    level: int = 1
    notes: tuple[str, ...] = ()


@frozen
class Frame:
    """One boundary that the failure crossed on its way up."""

    boundary: str
    """What was crossed: `node`, `tool`, `workflow`, `job`, …"""
    name: str
    workflow: str | None = None
    type: str | None = None
    kind: str | None = None
    iteration: int | None = None
    item: str | None = None


@frozen
class Attempt:
    """One try, with what it cost and how it ended. A failed try is priced like any other."""

    number: int
    kind: str | None = None
    """How it failed; `None` for the one that succeeded."""
    certainty: Certainty | None = None
    provider: str | None = None
    model: str | None = None
    usage: Mapping[str, int] = field(default_factory=dict[str, int])
    cost: int | None = None
    """Micro-cents; `None` when the model has no known price."""
    wait: float | None = None
    """Seconds waited before the next try."""
    reason: str | None = None
    layer: str | None = None
    """The name of the loop that made it."""
    exhausted: bool | None = None
    """`True` where a limit of its loop ended the loop: attempts, seconds, money or retries."""


@frozen
class Internal:
    """For operators only: where it was raised, and of the original's text what the policy allows."""

    repr: str
    """The original's repr, or the name of its type where its text is withheld."""
    traceback: str | None = None
    """Types, files, lines and functions; with messages and source lines under `full`. `None` if nothing was raised."""


@frozen
class ErrorReport:
    """One failure as data. Made by `failwell.describe`, carried unchanged from there on."""

    id: str
    kind: str
    category: Category
    certainty: Certainty
    blame: Blame
    retryable: bool
    """Whether the runtime may repeat the same call by itself, after a wait."""
    message: str
    title: str
    error_type: str
    """The original class, by its short name."""
    user_action: UserAction
    fingerprint: str
    """The same for every occurrence of the same failure, whatever its ids and numbers."""
    occurred_at: datetime
    """Always aware, always UTC."""
    caller_facing: bool = False
    """Whether `message` was written for the caller."""
    handled: bool = False
    """Whether it is no longer a failure of the work: it is retried, was ignored on purpose, or another provider took over."""
    origin: Origin | None = None
    """Where it arose: in this program's `code`, in a `call` that it made, in a `tool`, or in `input` that it was given."""
    scene: Scene = NOWHERE
    provider: str | None = None
    model: str | None = None
    provider_metadata: ProviderMetadata | None = None
    not_before: NotBefore | None = None
    fields_invalid: tuple[str, ...] | None = None
    resource_shortfall: ResourceShortfall | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    causes: tuple[Cause, ...] = ()
    frames: tuple[Frame, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    internal: Internal | None = None
    schema: str = SCHEMA
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Keys of a newer peer that this version does not know, kept so they can be passed on."""

    def __post_init__(self) -> None:
        known = KINDS.get(self.kind)
        if known is None and not is_kind(self.kind):
            raise ValueError(f"{self.kind!r} is not a kind")
        if known is not None and known.category is not self.category:
            raise ValueError(f"`{self.kind}` is {known.category}, not {self.category}: the kind decides")
        if self.retryable and not self.category.retryable:
            raise ValueError(f"a {self.category} failure cannot be retryable")
        if self.retryable and known is None and is_owned(self.kind):
            raise ValueError(f"`{self.kind}` is not known here, and what is unknown is never repeated")
        if self.occurred_at.tzinfo is not UTC and self.occurred_at.utcoffset() != _UTC:
            raise ValueError("`occurred_at` must be an aware time in UTC")

    def __hash__(self) -> int:
        return hash((self.id, self.kind))

    @property
    def domain(self) -> Domain:
        """Who can make it succeed: the caller, the operator, or the running system."""
        return self.category.domain

    @property
    def http_status(self) -> int:
        """The status an HTTP server should answer with."""
        return http_status_of(self.kind, self.category)

    @property
    def resubmit(self) -> bool:
        """Whether it makes sense for a person to submit the same work again."""
        known = KINDS.get(self.kind)
        return self.category.resubmit if known is None else known.resubmit

    @property
    def severity(self) -> Severity:
        """How much attention it deserves; `critical` means that a person has to act."""
        exhausted = bool(self.attempts) and self.attempts[-1].exhausted is True
        return severity_of(self.kind, self.category, handled=self.handled, exhausted=exhausted)

    def to_dict(self) -> dict[str, Any]:
        """This report as JSON-safe values, without nulls."""
        from failwell.errors.wire import to_dict

        return to_dict(self)

    def to_json(self) -> str:
        """This report as one line of JSON, at most 64 KiB."""
        from failwell.errors.wire import to_json

        return to_json(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ErrorReport":
        """The exact inverse of `to_dict`; anything it would not write is refused by name."""
        from failwell.errors.wire import from_dict

        return from_dict(data)

    @classmethod
    def from_json(cls, text: str | bytes) -> "ErrorReport":
        """The exact inverse of `to_json`."""
        from failwell.errors.wire import from_json

        return from_json(text)

    @classmethod
    def read(cls, source: Mapping[str, Any] | str | bytes) -> "ErrorReport":
        """Read a report of any version: known keys are read, the others go to `extra`."""
        from failwell.errors.wire import read

        return read(source)

    def view(self, audience: Literal["user", "model", "operator", "audit"], **options: Any) -> dict[str, Any]:
        """What one audience may see of this report, as JSON-safe values."""
        from failwell.errors.views import view

        return view(self, audience, **options)


ENVIRONMENT_VARIABLE = "FAILWELL_TRACEBACK"


class TracebackPolicy(StrEnum):
    """What a report records of the exception's text; whatever is recorded is redacted.

    Types, files, lines and functions of the traceback are recorded under every policy: they are the program's own.
    """

    FULL = "full"
    """Its message, its repr, and messages and source lines in the traceback."""
    REPR_ONLY = "repr_only"
    """Its message and its repr."""
    NONE = "none"
    """Its repr."""
    STRICT = "strict"
    """None of its text."""

    @property
    def keeps_message(self) -> bool:
        """Whether the exception's own message may be recorded."""
        return self is TracebackPolicy.FULL or self is TracebackPolicy.REPR_ONLY


def default_policy(unset: TracebackPolicy = TracebackPolicy.STRICT) -> TracebackPolicy:
    """How much of an exception's text reports keep, as the environment says: `unset` if it says nothing, `strict` for nonsense."""
    return named_policy(os.environ.get(ENVIRONMENT_VARIABLE), unset)


def named_policy(value: str | None, unset: TracebackPolicy = TracebackPolicy.STRICT) -> TracebackPolicy:
    """The policy that `value` names: `unset` where there is none, `strict` for nonsense."""
    if not value:
        return unset
    try:
        return TracebackPolicy(value.strip().lower())
    except ValueError:
        # A typing mistake in the environment must not make reports say more than the default does.
        return TracebackPolicy.STRICT


def origin_of(kind: str, *, caller_facing: bool = False) -> Origin:
    """Where a failure of `kind` arose, where nothing but the kind says it.

    A tool's failure arose in the tool unless the application itself names the kind (`caller_facing`): then it speaks to its caller.
    """
    if kind.startswith("provider."):
        return "call"
    if kind.startswith("tool.") and not caller_facing:
        return "tool"
    return "input" if kind.startswith("validation.") else "code"
