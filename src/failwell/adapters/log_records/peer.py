"""What another service or a tool says about a failure, as evidence and not as our word.

A peer may name a kind of the registry, or make us more careful: forbid a repeat, request a delay, leave the outcome
open. Everything else that it writes is masked, cut and kept in `details["peer"]`, which operators and the audit
see. Titles, advice, messages and places of a report stay ours.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from failwell.adapters.author_values import wait
from failwell.adapters.describe import advice_of, report_of_kind
from failwell.errors.axes import Certainty
from failwell.errors.facts import LONGEST_WAIT, NotBefore
from failwell.errors.foreign_objects import safe_call
from failwell.errors.json_walk import map_values
from failwell.errors.kind_registry import KINDS, is_kind, is_owned
from failwell.errors.redact import redact_text, redact_value
from failwell.errors.report import ErrorReport, Evidence

SPEAKABLE = ("provider.", "tool.", "validation.")
"""Namespaces that a peer may name. The others speak of this program, this machine or this run."""
CLAIMS = (
    "kind", "title", "detail", "message", "category", "certainty", "retryable", "user_action", "action", "advice", "scene",
    "fields_invalid", "context", "not_before", "wait_seconds", "resource_shortfall", "id", "occurred_at", "error_type",
    "provider", "model", "provider_metadata", "causes",
)  # fmt: skip
"""What is kept of a peer's document."""
_CAREFUL = {Certainty.UNKNOWN, Certainty.PARTIAL, Certainty.DONE_BUT_LOST}
_LONGEST_TEXT = 500
_MOST_ITEMS = 10
_DEEPEST = 3


def claimed_kind(kind: object, *, trusted: bool = False) -> str | None:
    """The kind that a peer claims, if it may; `trusted` admits kinds that nobody registered here."""
    if type(kind) is not str:
        return None
    if is_owned(kind):
        return kind if kind.startswith(SPEAKABLE) and kind in KINDS else None
    return kind if kind in KINDS or (trusted and is_kind(kind)) else None


def report_of_claim(kind: str, claim: Mapping[str, Any], *, error_type: str, rule: str) -> ErrorReport:
    """The report of a failure that a peer calls `kind`, in our words."""
    known = KINDS.get(kind)
    report = report_of_kind(kind, kind if known is None else known.summary)
    evidence = (Evidence(rule=rule, basis="declared", saw=kind),)
    return as_evidence(
        replace(report, error_type=error_type, caller_facing=False, evidence=evidence),
        claim,
        source=error_type,
    )


def as_evidence(report: ErrorReport, claim: Mapping[str, Any], *, source: str) -> ErrorReport:
    """`report`, made no bolder and at most more careful by what a peer claims, with the claim beside it."""
    certainty = safe_call(Certainty, None, claim.get("certainty"))
    delay = longer(report.not_before, requested_delay(claim, source, report.occurred_at))
    known = KINDS.get(report.kind)
    return replace(
        report,
        retryable=report.retryable and claim.get("retryable") is not False,
        certainty=certainty if certainty in _CAREFUL else report.certainty,
        not_before=delay,
        user_action=advice_of(known, delay) if known is not None else report.user_action,
        details={**report.details, **_numbers(claim, report.kind), "peer": peer_claims(claim, source)},
    )


def requested_delay(claim: Mapping[str, Any], source: str, when: datetime) -> NotBefore | None:
    """The delay from `when` on that a peer's report requests, if it is a credible one."""
    stated = claim.get("not_before")
    seconds: Any = claim.get("wait_seconds")
    if isinstance(stated, Mapping):
        seconds = cast("Mapping[str, Any]", stated).get("after")
    if type(seconds) not in (int, float) or not 0 <= seconds <= LONGEST_WAIT:
        return None
    return wait(NotBefore(after=float(seconds), source=source, confidence="medium"), when)


def longer(first: NotBefore | None, second: NotBefore | None) -> NotBefore | None:
    """Of the delays of two reports the one that ends later."""
    if first is None or second is None:
        return first or second
    return first if first.after >= second.after else second


def peer_claims(claim: Mapping[str, Any], source: str) -> dict[str, Any]:
    """What a peer wrote, masked, cut and bounded."""
    claims = {name: claim[name] for name in CLAIMS if claim.get(name) is not None}
    small = {
        name: map_values(value, _small, key=lambda key: key[:80], deepest=_DEEPEST, most=_MOST_ITEMS)
        for name, value in redact_value(claims).items()
    }
    return {"source": source, **small}


def _small(leaf: Any) -> Any:
    return redact_text(leaf, _LONGEST_TEXT) if isinstance(leaf, str) else leaf


def _numbers(claim: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The numbers in a claim's context that a model may see. A text could be an instruction."""
    known, context = KINDS.get(kind), claim.get("context")
    if known is None or not isinstance(context, Mapping):
        return {}
    facts = cast("Mapping[str, Any]", context)
    numbers: dict[str, Any] = {name: facts.get(name) for name in known.model_keys}
    return {
        name: value for name, value in numbers.items() if type(value) in (int, float) and abs(value) < 1e15
    }
