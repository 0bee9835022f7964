"""websockets: a handshake that was refused is a reply like any other; a close has a code of its own."""

import re

from failwell.adapters.classification import Classification
from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts, message_of, parse_body
from failwell.adapters.protocols.wire import (
    http_of_close_code,
    is_private_close_code,
    kind_of_close_code,
)
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter, text_of
from failwell.adapters.vendor_tables import rows
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import int_attr, safe_getattr, str_attr

_WORDED = frozenset({1008, 1011, 1013})
"""Close codes of the standard whose reason says more: a policy, an internal error, a server that is busy."""


def _refine(error: BaseException, facts: Facts) -> None:
    response = safe_getattr(error, "response")
    body = parse_body(safe_getattr(response, "body"))
    facts.body = body
    facts.message = message_of(body) or facts.message


def _closed(error: BaseException) -> Classification:
    frame = safe_getattr(error, "rcvd")
    code = int_attr(frame, "code")
    reason = str_attr(frame, "reason", limit=500) or ""
    if code is not None and (code in _WORDED or is_private_close_code(code)) and reason:
        reading = classify(
            Facts(
                sdk="websockets", exception_type=type(error).__name__, codes=(_word(reason),), message=reason
            )
        )
        if reading.kind != "provider.unknown":
            return _with_close_code(reading, code)
    status = None if code is None else http_of_close_code(code)
    if code is not None and status is not None:
        return _with_close_code(
            classify(Facts(sdk="websockets", exception_type=type(error).__name__, status=status)), code
        )
    kind = kind_of_close_code(code) or "provider.stream_interrupted"
    return Classification.from_rule(
        kind=kind,
        rule="websockets.ConnectionClosed",
        basis="code",
        saw="no close frame" if code is None else str(code),
        certainty=Certainty.PARTIAL,
        details={} if code is None else {"close_code": code},
    )


def _with_close_code(reading: Classification, code: int) -> Classification:
    from dataclasses import replace

    return replace(reading, certainty=Certainty.PARTIAL, details={**reading.details, "close_code": code})


def _word(reason: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", reason.lower())[:80].strip("_")


def raised(error: BaseException) -> Classification | None:
    """A builtin exception that came out of websockets: the handshake took too long."""
    if isinstance(error, TimeoutError) and "opening handshake" in text_of(error):
        return classify(Facts(sdk="websockets", exception_type="TimeoutError", phase="connect"))
    return None


_reply = adapter(None, "websockets", _refine)

TABLES: dict[str, Table] = {
    "websockets": {
        "ConnectionClosed": _closed,
        "InvalidHandshake": _reply,
        "InvalidStatus": _reply,
        "InvalidProxyStatus": _reply,
        **rows(
            "websockets",
            {
                "provider.stream_interrupted": "ProtocolError",
                "provider.context_too_long": "PayloadTooBig TooManyFragments",
                "validation.input_invalid": "InvalidURI",
                "validation.config_invalid": "InvalidProxy",
                "internal.bug": "ConcurrencyError InvalidState",
                "provider.unknown": "WebSocketException",
            },
        ),
    }
}
