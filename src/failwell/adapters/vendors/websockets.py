"""websockets: a handshake that was refused is a reply like any other; a close has a code of its own."""

import re

from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts, message_of, parse_body
from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table
from failwell.adapters.safe_getattr import int_attr, safe_getattr, str_attr
from failwell.adapters.sdk import adapter, text_of
from failwell.fault.axes import Certainty

_CLOSES: dict[int, str] = {
    1002: "provider.rejected",
    1003: "provider.rejected",
    1007: "provider.bad_request",
    1008: "provider.rejected",
    1009: "provider.context_too_long",
    1010: "provider.capability_missing",
    1013: "provider.overloaded",
    3000: "provider.auth",
    3003: "provider.permission",
    3008: "provider.outcome_unknown",
}
"""Close codes that say why. Any other means that the conversation broke off."""
_OWN = range(4_000, 5_000)


def _refine(error: BaseException, facts: Facts) -> None:
    response = safe_getattr(error, "response")
    body = parse_body(safe_getattr(response, "body"))
    facts.body = body
    facts.message = message_of(body) or facts.message


def _closed(error: BaseException) -> Reading:
    frame = safe_getattr(error, "rcvd")
    code = int_attr(frame, "code")
    reason = str_attr(frame, "reason", limit=500) or ""
    if code is not None and (code == 1008 or code in _OWN) and reason:
        reading = classify(
            Facts(
                sdk="websockets", exception_type=type(error).__name__, codes=(_word(reason),), message=reason
            )
        )
        if reading.kind != "provider.unknown":
            return _with_close_code(reading, code)
    if code is not None and _status(code) is not None:
        return _with_close_code(
            classify(Facts(sdk="websockets", exception_type=type(error).__name__, status=_status(code))), code
        )
    kind = "provider.stream_interrupted" if code is None else _CLOSES.get(code, "provider.stream_interrupted")
    return Reading.from_rule(
        kind=kind,
        rule="websockets.ConnectionClosed",
        basis="code",
        saw="no close frame" if code is None else str(code),
        certainty=Certainty.PARTIAL,
        details={} if code is None else {"close_code": code},
    )


def _with_close_code(reading: Reading, code: int) -> Reading:
    from dataclasses import replace

    return replace(reading, certainty=Certainty.PARTIAL, details={**reading.details, "close_code": code})


def _word(reason: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", reason.lower())[:80].strip("_")


def _status(code: int) -> int | None:
    """Many services close with 4000 and the HTTP status that a reply would have had: 4429, 4401."""
    status = code - 4_000
    return status if 400 <= status < 600 else None


def raised(error: BaseException) -> Reading | None:
    """A builtin exception that came out of websockets: the handshake took too long."""
    if isinstance(error, TimeoutError) and "opening handshake" in text_of(error):
        return classify(Facts(sdk="websockets", exception_type="TimeoutError", phase="connect"))
    return None


def _is(kind: str, *names: str) -> Table:
    return {name: Reading.from_rule(kind=kind, rule=f"websockets.{name}", saw=name) for name in names}


_reply = adapter(None, "websockets", _refine)

TABLES: dict[str, Table] = {
    "websockets": {
        "ConnectionClosed": _closed,
        "InvalidHandshake": _reply,
        "InvalidStatus": _reply,
        "InvalidProxyStatus": _reply,
        **_is("provider.stream_interrupted", "ProtocolError"),
        **_is("provider.context_too_long", "PayloadTooBig", "TooManyFragments"),
        **_is("validation.input_invalid", "InvalidURI"),
        **_is("validation.config_invalid", "InvalidProxy"),
        **_is("internal.bug", "ConcurrencyError", "InvalidState"),
        **_is("provider.unknown", "WebSocketException"),
    }
}
