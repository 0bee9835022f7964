"""gRPC's status words, WebSocket close codes and HTTP/2 error codes."""

_GRPC: dict[str, str] = {
    "CANCELLED": "provider.outcome_unknown",
    "UNKNOWN": "provider.unknown",
    "INVALID_ARGUMENT": "provider.bad_request",
    "DEADLINE_EXCEEDED": "provider.outcome_unknown",
    "NOT_FOUND": "provider.bad_request",
    "ALREADY_EXISTS": "provider.bad_request",
    "PERMISSION_DENIED": "provider.permission",
    "RESOURCE_EXHAUSTED": "provider.rate_limited",
    "FAILED_PRECONDITION": "provider.bad_request",
    "ABORTED": "provider.unavailable",
    "OUT_OF_RANGE": "provider.bad_request",
    "UNIMPLEMENTED": "provider.rejected",
    "INTERNAL": "provider.unavailable",
    "UNAVAILABLE": "provider.overloaded",
    "DATA_LOSS": "provider.unknown",
    "UNAUTHENTICATED": "provider.auth",
}
"""grpc.io, "Status codes and their use in gRPC". The order is that of the numbers, from 1 to 16."""

GRPC_WORDS: tuple[str, ...] = ("OK", *_GRPC)
"""The status words by their numbers."""

HTTP_OF_GRPC: dict[str, int] = {
    "INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400, "OUT_OF_RANGE": 400, "ALREADY_EXISTS": 400,
    "NOT_FOUND": 404, "ABORTED": 409, "UNAVAILABLE": 503, "INTERNAL": 500,
}  # fmt: skip
"""google.rpc.Code: the HTTP status for words about which a message can say more. A repeat does not cure `ALREADY_EXISTS`."""

CLOSE_CODES: dict[int, str] = {
    1000: "provider.stream_interrupted",
    1001: "provider.stream_interrupted",
    1002: "provider.rejected",
    1003: "provider.rejected",
    1005: "provider.stream_interrupted",
    1006: "provider.stream_interrupted",
    1007: "provider.bad_request",
    1008: "provider.rejected",
    1009: "provider.context_too_long",
    1010: "provider.capability_missing",
    1011: "provider.unavailable",
    1012: "provider.unavailable",
    1013: "provider.overloaded",
    1014: "provider.unavailable",
    1015: "provider.tls_failed",
    3000: "provider.auth",
    3003: "provider.permission",
    3008: "provider.outcome_unknown",
}
"""RFC 6455 section 7.4.1, and IANA's "WebSocket Close Code Number Registry"."""
_PRIVATE = range(4_000, 5_000)

HTTP2_CODES: dict[str, tuple[int, str]] = {
    # The server says that it did nothing with the request.
    "REFUSED_STREAM": (7, "provider.connection"),
    "ENHANCE_YOUR_CALM": (11, "provider.rate_limited"),
    "INADEQUATE_SECURITY": (12, "provider.tls_failed"),
    "HTTP_1_1_REQUIRED": (13, "provider.rejected"),
}
"""RFC 9113 section 7: the codes that say more than that a stream or a connection ended, each with its number."""


def kind_of_grpc(word: str | None) -> str | None:
    """The kind for a status word of gRPC, where nothing else is known of the call."""
    return None if word is None else _GRPC.get(word.upper())


def kind_of_close_code(code: int | None) -> str | None:
    """The kind for a WebSocket close code; `None` for private ones and those of libraries."""
    return None if code is None else CLOSE_CODES.get(code)


def http_of_close_code(code: int) -> int | None:
    """The HTTP status in a private close code: many services close with 4429 or 4401."""
    status = code - _PRIVATE.start
    return status if code in _PRIVATE and 400 <= status < 600 else None


def is_private_close_code(code: int) -> bool:
    """Whether the meaning of a close code is the service's own."""
    return code in _PRIVATE
