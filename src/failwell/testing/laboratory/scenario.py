"""The scenarios: what goes wrong in each, and what is true about it.

The truth is the one for a call about which nothing was declared: not that it may be repeated, and not
that it may not.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from failwell.errors.axes import Category, Certainty
from failwell.errors.kind_registry import kind as registered
from failwell.testing.laboratory.lab_reply import Answer, Reply, always, as_page


@dataclass(frozen=True, slots=True)
class Truth:
    """The correct classification of the failure that the lab imitates."""

    kind: str | None
    """The kind; `None` if nothing fails."""
    certainty: Certainty | None = None
    wait: float | None = None
    """Seconds after which the provider allows a retry."""

    @property
    def category(self) -> Category | None:
        """What would make it succeed."""
        return None if self.kind is None else registered(self.kind).category

    @property
    def retryable(self) -> bool:
        """Whether the same call may be repeated after a wait."""
        return self.category is not None and self.category.retryable


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to fail, the same for every provider."""

    name: str
    summary: str
    truth: Truth
    streams: bool = False
    """Whether it occurs only in streams."""
    streamed: Truth | None = None
    """The classification for a stream, if it differs."""


def _row(
    name: str, kind: str | None, summary: str, certainty: str | None = None, *, streams: bool = False
) -> Scenario:
    if kind is None:
        return Scenario(name, summary, Truth(None), streams)
    sure = registered(kind).certainty if certainty is None else Certainty(certainty)
    return Scenario(name, summary, Truth(kind, sure), streams)


_ROWS = (
    _row("ok", None, "a short answer, whole or streamed"),
    _row("bad_key", "provider.auth", "the key is wrong"),
    _row("no_permission", "provider.permission", "the key is right and may not do this"),
    _row("missing_model", "provider.model_not_found", "no such model, or not for this account"),
    _row("rate_limited", "provider.rate_limited", "a short window is full; `@form` chooses the form of the delay"),
    _row("daily_quota", "provider.quota_exhausted", "an allowance for a day or longer is used up"),
    _row("empty_balance", "provider.quota_exhausted", "the account has no money left"),
    _row("overloaded", "provider.overloaded", "the provider has no room right now"),
    _row("server_error", "provider.unavailable", "an internal error of the provider"),
    _row("html_502", "provider.unavailable", "a gateway's HTML page instead of an answer"),
    _row("gateway_timeout", "provider.outcome_unknown", "a gateway gave up waiting"),
    _row("cloudflare_524", "provider.outcome_unknown", "the edge gave up waiting for the origin"),
    _row("conflict", "provider.unavailable", "another call was in the way (409)"),
    _row("content_refused_in", "provider.content_refused", "the request is refused for its content"),
    _row("content_refused_out", "provider.content_refused", "the answer is withheld, inside a 200", "partial"),
    _row("context_too_long", "provider.context_too_long", "the request does not fit the model"),
    _row("bad_schema", "provider.bad_request", "a parameter is not valid"),
    _row("truncated_output", "provider.output_truncated", "the answer stops at its length limit, inside a 200"),
    _row("empty_reply", "provider.output_invalid", "a 200 that holds no answer"),
    _row("malformed_tool_call", "provider.output_invalid", "a tool call whose arguments are broken"),
    _row("in_stream_error", "provider.overloaded", "an error event after some content", "partial", streams=True),
    _row("truncated_stream", "provider.stream_interrupted", "the stream ends cleanly without its last event", streams=True),
    _row("broken_stream", "provider.stream_interrupted", "the connection is reset after some content", streams=True),
    _row("reset_before_read", "provider.outcome_unknown", "the connection is reset, the request unread"),
    _row("reset_after_read", "provider.outcome_unknown", "the connection is reset after the request was read"),
    _row("slow_headers", "provider.outcome_unknown", "nothing comes for a long time, then the answer"),
    _row("slow_body", "provider.outcome_unknown", "half an answer comes, and after a long time the rest"),
    _row("garbage_json", "provider.output_invalid", "a 200 with a JSON content type and no JSON"),
    _row("model_loading", "provider.overloaded", "the model is still being loaded"),
    _row("out_of_memory", "resource.system_memory", "the host has too little memory for the model"),
    _row("refused", "provider.connection", "the port is closed"),
)  # fmt: skip

_BROKE_OFF = Truth("provider.stream_interrupted", registered("provider.stream_interrupted").certainty)
_STREAMED = {"slow_body": _BROKE_OFF}
"""A client that stops reading a stream has received a part of the answer."""

SCENARIOS: dict[str, Scenario] = {row.name: replace(row, streamed=_STREAMED.get(row.name)) for row in _ROWS}


_EDGE = (("server", "cloudflare"), ("cf-ray", "8f2a6c0d1e3b4a5c-FRA"))
_JUNK = b'{"id": "lab-1", "object": "resp, and then no more JSON'


def _instead(reply: Reply) -> Callable[[Answer], Answer]:
    return lambda _: always(reply)


def _changed(change: Callable[[Reply], Reply]) -> Callable[[Answer], Answer]:
    return lambda fine: lambda call: change(fine(call))


def _garbled(reply: Reply) -> Reply:
    """The same reply, or the first event of the same stream, with its JSON left open."""
    first, *rest = reply.pieces or (b"",)
    body = first.rstrip()
    if not body.endswith(b"}"):
        return Reply(200, (("content-type", "application/json"),), _JUNK)
    return replace(reply, pieces=(body[:-1] + first[len(body) :], *rest))


BELOW: dict[str, Callable[[Answer], Answer]] = {
    "html_502": _instead(as_page(502, "Bad Gateway", ("server", "nginx"))),
    "gateway_timeout": _instead(as_page(504, "Gateway Time-out", ("server", "nginx"))),
    "cloudflare_524": _instead(as_page(524, "A timeout occurred", *_EDGE)),
    "reset_before_read": _instead(Reply(None, ending="reset", unread=True)),
    "reset_after_read": _instead(Reply(None, ending="reset")),
    "slow_headers": _changed(lambda reply: replace(reply, stall="head")),
    "slow_body": _changed(lambda reply: replace(reply, stall="body")),
    "garbage_json": _changed(_garbled),
    # No request arrives: its address is a closed port.
    "refused": _instead(Reply(None, ending="reset", unread=True)),
}
"""Scenario → how it is built from a dialect's successful answer."""
