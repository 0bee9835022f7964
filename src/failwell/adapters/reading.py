"""What an adapter reads off somebody else's exception: a kind, the rule, and safe facts.

A reading never holds the exception's own text. SDKs render bodies, prompts and headers into
`str(exc)`, so an adapter composes a sentence from the facts it recognises or says nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

from failwell.fault.axes import Blame, Certainty
from failwell.fault.facts import NotBefore, ProviderMetadata, ResourceShortfall
from failwell.fault.frozen import frozen


@frozen
class Reading:
    """One classification with the evidence for it. Unset fields follow from the kind."""

    kind: str
    rule: str
    """Which rule spoke, e.g. `python.FileNotFoundError`."""
    basis: str = "type"
    saw: str = ""
    runners: tuple[tuple[str, str], ...] = ()
    """Rules that fitted as well, each with the kind it would have given."""
    message: str | None = None
    certainty: Certainty | None = None
    retryable: bool | None = None
    """`False` where the provider itself forbids a repeat."""
    blame: Blame | None = None
    provider: str | None = None
    model: str | None = None
    provider_metadata: ProviderMetadata | None = None
    not_before: NotBefore | None = None
    fields_invalid: tuple[str, ...] | None = None
    resource_shortfall: ResourceShortfall | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    inner: BaseException | None = None
    """An exception that this one only carries: what that is decides, and `kind` only if nobody knows it."""
    recorded: Mapping[str, Any] | None = None
    """A report that travelled in the exception, as it was written."""


Adapter = Callable[[BaseException], Reading | None]
"""Reads one exception, or returns `None` to let its base classes try."""


def declared(reading: Reading, *, idempotent: bool | None) -> Reading:
    """`reading`, judged for a call that may (or must not) be repeated."""
    if idempotent is None:
        return reading
    if idempotent and reading.kind == "provider.outcome_unknown":
        return replace(
            reading, kind="provider.timeout", rule=f"{reading.rule}.idempotent", certainty=Certainty.UNKNOWN
        )
    status = None if reading.provider_metadata is None else reading.provider_metadata.status_code
    tried = reading.basis == "status" and status is not None and status >= 500
    if not idempotent and tried and reading.kind in ("provider.unavailable", "provider.overloaded"):
        # Where the provider said in words or codes that it did not start, it did not.
        return replace(
            reading, kind="provider.outcome_unknown", rule=f"{reading.rule}.not_idempotent", certainty=None
        )
    return reading
