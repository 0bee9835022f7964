"""The fault that an answer is when it is no use, although the call went through.

What the answer or a refusal said is not in it; the tokens that were used are, because they were billed.
"""

from collections.abc import Mapping
from re import compile as pattern
from typing import Any, cast

from failwell.adapters.answers import STOPS, Answer, Stop, stop_of
from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts, codes_of, message_of
from failwell.adapters.safe_getattr import safe_getattr
from failwell.fault.axes import Certainty
from failwell.fault.base import Fault
from failwell.fault.classes import Cancellation, ProviderCapability, ProviderTransient
from failwell.fault.facts import ProviderMetadata

_ORDER: tuple[Stop, ...] = (
    "refused", "too_long", "truncated", "malformed", "overloaded", "failed", "interrupted", "cancelled",
)  # fmt: skip
"""Of several answers to one call, the worst speaks; what can be changed is said first."""
_KINDS: dict[str, tuple[str, Certainty | None]] = {
    "refused": ("provider.content_refused", Certainty.PARTIAL),
    "too_long": ("provider.context_too_long", Certainty.PARTIAL),
    "truncated": ("provider.output_truncated", None),
    "malformed": ("provider.output_invalid", None),
    "overloaded": ("provider.overloaded", Certainty.PARTIAL),
    "failed": ("provider.output_rejected", None),
    "interrupted": ("provider.stream_interrupted", None),
    "cancelled": ("cancel.run", None),
    "empty": ("provider.output_invalid", None),
}
_SENTENCES = {
    "malformed": "The model called a tool in a form that cannot be read.",
    "empty": "The reply holds no answer.",
    "overloaded": "The provider ran out of room while it was answering.",
}
_ID = pattern(r"[\w.:\-]{1,200}")


def after_stream(provider: str, answer: Answer, chunks: int) -> Fault | None:
    """The fault that a stream is after its last chunk, if it is one."""
    unfinished = (answer.known or not chunks) and not answer.ended
    if unfinished and answer.error is None and not answer.refused:
        return _fault(provider, answer, "interrupted", details={"chunks": chunks})
    return after_reply(provider, answer, in_stream=chunks > 1)


def after_reply(provider: str, answer: Answer, *, in_stream: bool = False) -> Fault | None:
    """The fault that a finished answer is, if it is one."""
    if answer.error is not None:
        return _error(provider, answer, in_stream=in_stream)
    if not answer.known:
        return None
    stops = {stop_of(word, provider): word for word in answer.stops}
    if answer.refused:
        stops.setdefault("refused", answer.stops[0] if answer.blocked else "refusal")
    worst = next((stop for stop in _ORDER if stop in stops), None)
    if worst is not None:
        return _fault(provider, answer, worst, stops[worst])
    if not answer.ended:
        return _fault(provider, answer, "interrupted")
    if not answer.calls_are_sound():
        return _fault(provider, answer, "malformed")
    if not answer.spoke and not answer.pending:
        return _fault(provider, answer, "empty")
    return None


def _fault(
    provider: str, answer: Answer, what: str, word: str | None = None, details: dict[str, Any] | None = None
) -> Fault:
    kind, certainty = _KINDS[what]
    if what == "refused" and answer.blocked:
        certainty = None
    told = {**(details or {}), **usage_of(answer)}
    if word in STOPS:
        told["stop"] = word
    family = next(one for one in (ProviderTransient, ProviderCapability, Cancellation) if one.holds(kind))
    return family(
        kind=kind,
        message=_SENTENCES.get(what),
        certainty=certainty,
        provider=provider,
        model=answer.model,
        provider_metadata=_metadata(answer),
        details=told or None,
    )


def _error(provider: str, answer: Answer, *, in_stream: bool) -> Fault:
    """An error that came inside a reply with a good status, judged like any other."""
    body = _as_mapping(answer.error)
    found = Facts(
        provider=provider,
        codes=codes_of({"error": body}),
        message=message_of(body),
        body=body,
        in_stream=in_stream,
        model=answer.model,
        request_id=answer.id,
    )
    reading = classify(found)
    kind = reading.kind
    family = ProviderTransient if ProviderTransient.holds(kind) else ProviderCapability
    facts: dict[str, Any] = {
        "kind": kind,
        "message": reading.message,
        "caller_facing": False,
        "certainty": reading.certainty,
        "provider": provider,
        "model": answer.model,
        "provider_metadata": reading.provider_metadata,
        "not_before": reading.not_before,
        "details": {**reading.details, **usage_of(answer)} or None,
    }
    return family(**facts) if family.holds(kind) else Fault(**facts)


def page_instead(provider: str, reply: str) -> Fault | None:
    """A web page where an answer should be: the address is not the API's."""
    reading = classify(Facts(provider=provider, status=200, message=reply[:2_000]))
    if reading.evidence[0].basis != "body":
        return None
    return ProviderCapability(
        kind=reading.kind, message=reading.message, caller_facing=False, provider=provider
    )


def usage_of(answer: Answer) -> dict[str, Any]:
    """The tokens that were counted, as an entry for a fault's details."""
    return {"usage": dict(answer.usage)} if answer.usage else {}


def _metadata(answer: Answer) -> ProviderMetadata | None:
    known = answer.id if answer.id is not None and _ID.fullmatch(answer.id) else None
    return None if known is None else ProviderMetadata(request_id=known)


def _as_mapping(error: object) -> object:
    """An error object of an SDK as a plain mapping, for the rules."""
    if error is None or isinstance(error, str | int | Mapping | list):
        return cast("object", error)
    return {
        name: value
        for name in ("code", "type", "message", "param", "error")
        if (value := safe_getattr(error, name)) is not None
    }
