"""google-genai with its three trees, google.api_core, google.auth and google.adk.

All of them live under one top-level module, and some share class names, so an adapter asks where a
class was defined. What a limit counts and how long to wait is in `details`, not in the message.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from failwell.adapters.classification import Classification
from failwell.adapters.facts import Facts, codes_of, message_of
from failwell.adapters.registry import Table, read
from failwell.adapters.sdk_exceptions import adapter, body_of
from failwell.adapters.vendor_tables import rows
from failwell.adapters.vendors.google_adk import read_tool_error
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import safe_getattr, str_attr

_VERTEX = "aiplatform.googleapis.com"
_MOST_DETAILS = 16
_FIELDS = ("reason", "domain", "retry_delay", "violations", "field_violations")
_VIOLATION = ("quota_id", "quota_metric", "description", "subject", "field")


def _provider(error: BaseException) -> str:
    url = safe_getattr(
        safe_getattr(safe_getattr(error, "response"), "request") or safe_getattr(error, "request"), "url"
    )
    return "google-vertex" if url is not None and _VERTEX in str(url)[:500] else "google"


def _refine(error: BaseException, facts: Facts) -> None:
    facts.provider = _provider(error)
    # An error object in the middle of a stream comes with the stream instead of a reply.
    if safe_getattr(safe_getattr(error, "response"), "response_stream") is not None:
        facts.in_stream = True
    if type(error).__name__ == "APITimeoutError" and facts.phase is None:
        facts.phase = "read"


def _call(error: BaseException, facts: Facts) -> None:
    """google.api_core: details are messages of google.rpc, or absent, with the JSON in the response."""
    facts.provider = "google"
    details = [_plain(detail, _FIELDS) for detail in _several(safe_getattr(error, "details"))]
    body = body_of(None, safe_getattr(error, "response"))
    if any(details) or body is None:
        body = {
            "error": {
                "message": str_attr(error, "message", limit=2_000),
                "details": [d for d in details if d],
            }
        }
    facts.body = body
    facts.codes = tuple(dict.fromkeys((*codes_of(body), *facts.codes)))
    facts.message = message_of(body) or facts.message


def _several(value: object) -> list[object]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return []
    return [item for item, _ in zip(cast("Iterable[object]", value), range(_MOST_DETAILS), strict=False)]


def _plain(message: object, names: tuple[str, ...]) -> dict[str, Any]:
    """The named fields of one google.rpc message, or of the dict that stands for it."""
    if isinstance(message, dict):
        return cast("dict[str, Any]", message)
    fields_read: dict[str, Any] = {}
    for name in names:
        value = safe_getattr(message, name)
        if isinstance(value, str) and value:
            fields_read["quotaId" if name == "quota_id" else name] = value
        elif name == "retry_delay" and value is not None:
            fields_read[name] = {
                "seconds": safe_getattr(value, "seconds", default=0),
                "nanos": safe_getattr(value, "nanos", default=0),
            }
        elif name in ("violations", "field_violations") and value is not None:
            fields_read["violations"] = [_plain(violation, _VIOLATION) for violation in _several(value)]
    return fields_read


_genai = adapter("google", "google-genai", _refine)
_api_core = adapter("google", "google-api-core", _call)


def _retried(error: BaseException) -> Classification | None:
    # It says only that retries were given up; what went wrong each time is its cause.
    cause = safe_getattr(error, "cause")
    return read(cause) if isinstance(cause, BaseException) else None


def _continued(error: BaseException) -> Classification:
    # Earlier parts of the answer were generated and billed, whatever stopped the next one.
    cause = error.__cause__
    reading = None if cause is None else read(cause)
    if reading is None:
        return Classification.from_rule(
            kind="provider.stream_interrupted", rule="google.ContinuationInterruptedError", provider="google"
        )
    return replace(reading, certainty=Certainty.PARTIAL)


def _transport(error: BaseException) -> Classification | None:
    # Fetching a token failed on the way: the call it was for was never sent.
    reading = _auth_transport(error)
    return (
        replace(reading, certainty=Certainty.NOT_SENT, kind="provider.connection")
        if reading.kind == "provider.outcome_unknown"
        else reading
    )


_auth_transport = adapter("google", "google-auth")


def _row(kind: str, name: str) -> Classification:
    return Classification.from_rule(kind=kind, rule=f"google.{name}", saw=name, provider="google")


def _not_sent(kind: str, name: str) -> Classification:
    return replace(_row(kind, name), certainty=Certainty.NOT_SENT)


TABLES: dict[str, Table] = {
    "google": {
        # google-genai, and the two trees inside it for newer endpoints
        "APIError": _genai,
        "GeminiNextGenAPIClientError": _genai,
        "GenAiError": _genai,
        "NoResponseError": _row("provider.outcome_unknown", "NoResponseError"),
        "ContinuationInterruptedError": _continued,
        "ContinuationTimeoutError": _row("provider.outcome_unknown", "ContinuationTimeoutError"),
        "UnknownApiResponseError": _row("provider.output_invalid", "UnknownApiResponseError"),
        "UnknownFunctionCallArgumentError": _row(
            "provider.output_invalid", "UnknownFunctionCallArgumentError"
        ),
        "UnsupportedFunctionError": _row("validation.input_invalid", "UnsupportedFunctionError"),
        "FunctionInvocationError": _row("tool.failed", "FunctionInvocationError"),
        "EphemeralTokenAPIKeyError": _not_sent("provider.auth", "EphemeralTokenAPIKeyError"),
        # google.api_core
        "GoogleAPIError": _api_core,
        "AsyncRestUnsupportedParameterError": _row(
            "validation.input_invalid", "AsyncRestUnsupportedParameterError"
        ),
        "RetryError": _retried,
        "DuplicateCredentialArgs": _row("validation.config_invalid", "DuplicateCredentialArgs"),
        "UploadCancelledError": _row("cancel.run", "UploadCancelledError"),
        # google.auth
        "TransportError": _transport,
        "TimeoutError": _not_sent("provider.connection", "TimeoutError"),
        "GoogleAuthError": _not_sent("provider.auth", "GoogleAuthError"),
        # google.adk
        "ToolExecutionError": read_tool_error,
        **rows("google.adk", {
            "limit.turn_limit": "LlmCallsLimitExceededError",
            "validation.input_invalid": "InputValidationError AlreadyExistsError NotFoundError",
            "session.no_snapshot": "SessionNotFoundError InvocationNotFoundError",
            "session.locked": "StaleSessionError",
        }),
    }
}  # fmt: skip
