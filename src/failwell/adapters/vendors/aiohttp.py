"""aiohttp as a client of its own.

A status error has status and headers and never the body. Connection classes say how far the call
got; a total timeout is Python's own `TimeoutError`, and says nothing.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts, codes_of, message_of, parse_body
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter, gather
from failwell.adapters.traceback_frames import broke_in_stream, came_through
from failwell.errors.foreign_objects import int_attr, safe_getattr


def _refine(error: BaseException, facts: Facts) -> None:
    if int_attr(error, "status") == 0:
        facts.status = None
    # huggingface_hub before version 1 hangs the body it read on aiohttp's error.
    body = parse_body(safe_getattr(error, "response_error_payload"))
    if body is not None:
        facts.body = body
        facts.codes = codes_of(body)
        facts.message = message_of(body) or facts.message


_read = adapter(None, "aiohttp", _refine)


def _row(kind: str, name: str) -> Classification:
    return Classification.from_rule(kind=kind, rule=f"aiohttp.{name}", saw=name)


def raised(error: BaseException) -> Classification | None:
    """A total timeout, which aiohttp raises as Python's own class and without a word."""
    if not isinstance(error, TimeoutError):
        return None
    facts = gather(error, None, "aiohttp")
    # Its clock runs from the start, so only the place where it was stopped tells how far the call got.
    facts.phase = "connect" if came_through(error, "aiohttp.connector") else "read"
    facts.in_stream = broke_in_stream(error)
    return classify(facts)


TABLES: dict[str, Table] = {
    "aiohttp": {
        "ClientError": _read,
        "ContentTypeError": _row("provider.output_invalid", "ContentTypeError"),
        "InvalidURL": _row("validation.input_invalid", "InvalidURL"),
        "NonHttpUrlClientError": _row("validation.input_invalid", "NonHttpUrlClientError"),
        "TooManyRedirects": _row("provider.rejected", "TooManyRedirects"),
        "ServerFingerprintMismatch": _row("provider.tls_failed", "ServerFingerprintMismatch"),
        "WebSocketError": _row("provider.stream_interrupted", "WebSocketError"),
        "EofStream": _row("provider.stream_interrupted", "EofStream"),
        "HttpProcessingError": _row("provider.outcome_unknown", "HttpProcessingError"),
        "WSMessageTypeError": _row("provider.output_invalid", "WSMessageTypeError"),
    }
}
