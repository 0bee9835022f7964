"""The status words of gRPC, and the details that Google's services attach to them, as facts to judge.

Details travel as protocol buffers. The few messages that matter here have a handful of fields, so
they are read by hand and no library is needed.
"""

import re
from collections.abc import Iterator
from typing import Any

from failwell.adapters.classification import Classification, Phase
from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts
from failwell.adapters.protocols.wire import HTTP_OF_GRPC, kind_of_grpc
from failwell.errors.lazy_regex import lazy_regex

_SPOKEN: dict[str, str] = {
    "RESOURCE_EXHAUSTED": "resource_exhausted",
    "UNAUTHENTICATED": "unauthenticated",
    "PERMISSION_DENIED": "permission_denied",
    "DEADLINE_EXCEEDED": "deadline_exceeded",
}
"""Words that the rules know as codes."""
_NO_CONNECTION = lazy_regex(
    r"failed to connect to (?:all|remote)|connection refused|name resolution|dns resolution|address lookup"
    r"|no such host|tcp connect error|dns error|endpoint is not connected",
    re.IGNORECASE,
)
_LOST = lazy_regex(
    r"socket closed|connection reset|stream (?:removed|reset|terminated)|goaway|broken pipe|connection (?:closed|aborted)"
    r"|end of (?:tcp )?stream|transport (?:error|closed)|h2 protocol error|recvmsg",
    re.IGNORECASE,
)
_TOO_LARGE = lazy_regex(r"(?:received|sent) message larger than max", re.IGNORECASE)
_RULED = frozenset({"CANCELLED", "UNIMPLEMENTED", "UNKNOWN", "DATA_LOSS"})
"""Words that decide alone: a message says nothing more about them."""
_CLOSING = ("the client connection is closing", "context canceled")
"""What gRPC for Go says of calls that its own program ended."""
_MOST = 32


def read_rpc(
    word: str, message: str, *, sdk: str, name: str, provider: str | None = None,
    headers: dict[str, str] | None = None, details: bytes = b"", cancelled_here: bool = False,
) -> Classification:  # fmt: skip
    """The reading of one failed call: its status word, its text, its trailing metadata."""
    metadata = headers or {}
    body = {"details": list(details_of(details))} if details else None
    phase = _phase(word, message)
    if phase is None and word in _RULED and not (word == "UNKNOWN" and body):
        # A server can send the word as well; only the client knows whether this program cancelled the call.
        ended_here = cancelled_here or any(words in message for words in _CLOSING)
        kind = "cancel.run" if word == "CANCELLED" and ended_here else kind_of_grpc(word)
        return Classification.from_rule(
            kind=kind or "provider.unknown", rule=f"grpc.{word}", basis="code", saw=word, provider=provider
        )
    too_large = word == "RESOURCE_EXHAUSTED" and _TOO_LARGE.search(message) is not None
    codes = [detail["reason"].lower() for detail in (body or {}).get("details", ()) if "reason" in detail]
    if word in _SPOKEN:
        codes.append("request_too_large" if too_large else _SPOKEN[word])
    facts = Facts(
        provider=provider,
        sdk=sdk,
        exception_type=name,
        status=None if phase else HTTP_OF_GRPC.get(word),
        codes=() if phase else tuple(codes),
        message="" if phase else message,
        headers=metadata,
        body=body,
        phase=phase,
    )
    return classify(facts)


def _phase(word: str, message: str) -> Phase | None:
    """If the connection failed, `UNAVAILABLE` comes from the client and not from the server."""
    if word not in ("UNAVAILABLE", "UNKNOWN", "INTERNAL"):
        return None
    if _NO_CONNECTION.search(message):
        return "connect"
    return "closed" if _LOST.search(message) else None


def details_of(packed: bytes) -> Iterator[dict[str, Any]]:
    """The known details of a packed `google.rpc.Status`."""
    for number, value in _fields(packed):
        if number == 3 and isinstance(value, bytes):
            members = dict(_fields(value))
            url, inner = members.get(1), members.get(2)
            if isinstance(url, bytes) and isinstance(inner, bytes):
                detail = _detail(url.rpartition(b".")[2].decode("ascii", "replace"), inner)
                if detail:
                    yield detail


def _detail(name: str, packed: bytes) -> dict[str, Any]:
    if name == "RetryInfo":
        span = next((value for number, value in _fields(packed) if number == 1), None)
        members = dict(_fields(span)) if isinstance(span, bytes) else {}
        return {"retryDelay": {"seconds": members.get(1, 0), "nanos": members.get(2, 0)}}
    if name == "ErrorInfo":
        reason = next((value for number, value in _fields(packed) if number == 1), b"")
        return {"reason": _text(reason)}
    if name == "QuotaFailure":
        rows = [
            dict(_fields(value))
            for number, value in _fields(packed)
            if number == 1 and isinstance(value, bytes)
        ]
        return {
            "violations": [
                {"quotaId": _text(row.get(1, b"")), "description": _text(row.get(2, b""))} for row in rows
            ]
        }
    return {}


def _text(value: object) -> str:
    return value.decode("utf-8", "replace")[:400] if isinstance(value, bytes) else ""


def _fields(packed: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of one message; what is cut off or of another wire type ends the walk."""
    at = 0
    for _ in range(_MOST):
        key, at = _varint(packed, at)
        if key is None:
            return
        number, wire = key >> 3, key & 7
        size, at = _varint(packed, at)
        if size is None or wire not in (0, 2):
            return
        if wire == 0:
            yield number, size
            continue
        if at + size > len(packed):
            return
        yield number, packed[at : at + size]
        at += size


def _varint(packed: bytes, at: int) -> tuple[int | None, int]:
    value = 0
    for shift in range(0, 64, 7):
        if at >= len(packed):
            return None, at
        byte = packed[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
    return None, at
