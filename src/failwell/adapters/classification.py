"""`Classification`: the classification of one failure, with its evidence and the facts that are safe to keep.

A reading never holds the exception's own text. SDKs print bodies, prompts and headers into `str(exc)`, so
an adapter composes a sentence from the facts that it recognises, or leaves the message out.
"""

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, Literal, NamedTuple

from failwell.errors.axes import Blame, Certainty
from failwell.errors.facts import Evidence, NotBefore, Origin, ProviderMetadata, ResourceShortfall, UserAction
from failwell.errors.frozen import frozen

_LONGEST = 200

Phase = Literal["handles", "pool", "dns", "connect", "proxy", "tls", "write", "read", "closed"]
"""How far a call got when the transport failed; up to `tls` nothing was sent. `handles`: no file handle was left."""


@frozen
class Classification:
    """One classification with the evidence for it. Unset fields follow from the kind."""

    kind: str
    evidence: tuple[Evidence, ...]
    """The rule that decided comes first; the rules that matched as well follow as runners-up."""
    exact: bool = False
    """For rows of a table: whether the row is for this very class and for none of its subclasses."""
    message: str | None = None
    """A composed or authored sentence; `None` where only the kind's summary is left."""
    caller_facing: bool = False
    certainty: Certainty | None = None
    retryable: bool | None = None
    """`False` where the provider, or a fault on the way, forbids a repeat."""
    blame: Blame | None = None
    user_action: UserAction | None = None
    provider: str | None = None
    model: str | None = None
    provider_metadata: ProviderMetadata | None = None
    not_before: NotBefore | None = None
    fields_invalid: Any = None
    """Names of fields; a fault's author may have put anything here, and the report checks it."""
    resource_shortfall: ResourceShortfall | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    inner: BaseException | None = None
    """The exception that this one only carries. Its kind decides; `kind` counts only if it is unknown."""
    origin: Origin | None = None
    """Where it arose; `None` where the kind says it."""
    recorded: Mapping[str, Any] | None = None
    """A report that travelled in the exception, as it was written."""

    @classmethod
    def from_rule(
        cls, *, kind: str, rule: str, basis: str = "type", saw: str = "", **facts: Any
    ) -> "Classification":
        """A reading that one rule decided, e.g. `python.FileNotFoundError`."""
        return cls(kind=kind, evidence=(Evidence(rule=rule, basis=basis, saw=saw[:_LONGEST]),), **facts)

    @property
    def rule(self) -> str:
        """The rule that classified the exception."""
        return self.evidence[0].rule

    def by(self, rule: str, kind: str, **changes: Any) -> "Classification":
        """The same facts, classified as `kind` by another rule."""
        first, *runners_up = self.evidence
        return replace(self, kind=kind, evidence=(replace(first, rule=rule), *runners_up), **changes)


class Rule(NamedTuple):
    """What decided: the name of the row, the kind that follows, and the sort of evidence that it is."""

    name: str
    kind: str
    basis: str
    saw: str = ""
    is_documented: bool = False
    """Whether it is a row of a table of codes, and not read from the words of a code."""
    is_soft: bool = False
    """Whether a short window that the text names turns a quota into a rate limit."""


Adapter = Callable[[BaseException], Classification | None]
"""Reads one exception, or returns `None` to let its base classes try."""


def declared(reading: Classification, *, idempotent: bool | None) -> Classification:
    """`reading` for a call that the caller declared safe, or unsafe, to repeat.

    A lost reply to a call that may be repeated is a time-out and nothing worse. A server's failure in a
    call that must not be repeated leaves open whether the work was done.
    """
    if idempotent is None:
        return reading
    if idempotent and reading.kind == "provider.outcome_unknown":
        return reading.by(f"{reading.rule}.idempotent", "provider.timeout", certainty=Certainty.UNKNOWN)
    status = None if reading.provider_metadata is None else reading.provider_metadata.status_code
    # A 409 to a submission may be the conflict with the very work that it submitted before.
    tried = reading.evidence[0].basis == "status" and status is not None and (status >= 500 or status == 409)
    if not idempotent and tried and reading.kind in ("provider.unavailable", "provider.overloaded"):
        # Where the provider said in words or codes that it did not start, it did not.
        return reading.by(f"{reading.rule}.not_idempotent", "provider.outcome_unknown", certainty=None)
    return reading
