"""Linkup search: a code in capitals, and money that is short behind a 429."""

from typing import Any

from failwell.testing.laboratory.dialect import Dialect
from failwell.testing.laboratory.lab_reply import Answer, LabCall, Reply, always, as_json

_HEADERS = (("x-request-id", "lab-lk-1"),)
_SOURCE = {"name": "The lab", "url": "http://127.0.0.1/lab", "snippet": "Hello from the lab.", "favicon": ""}
_RESULT = {"type": "text", "name": "The lab", "url": "http://127.0.0.1/lab", "content": "Hello from the lab."}


def _body(status: int, code: str, message: str, *details: dict[str, str]) -> dict[str, Any]:
    return {"statusCode": status, "error": {"code": code, "message": message, "details": list(details)}}


def _error(status: int, code: str, message: str, *details: dict[str, str]) -> Answer:
    return always(as_json(status, _body(status, code, message, *details), *_HEADERS))


def _rate_limited(call: LabCall) -> Reply:
    body = _body(429, "TOO_MANY_REQUESTS", f"Too many requests.{call.wait.prose}")
    return as_json(429, body, *_HEADERS, *call.wait.headers)


def _fine(call: LabCall) -> Reply:
    if call.path.endswith("/fetch"):
        return as_json(200, {"markdown": "Hello from the lab."}, *_HEADERS)
    if call.member("outputType") == "searchResults":
        return as_json(200, {"results": [_RESULT]}, *_HEADERS)
    return as_json(200, {"answer": "Hello from the lab.", "sources": [_SOURCE]}, *_HEADERS)


_NO_CHAT = "it searches and has no model of its own to show"

DIALECTS = {
    "linkup": Dialect(
        name="linkup",
        title="Linkup",
        wait="none",
        answers={
            "ok": _fine,
            "bad_key": _error(401, "UNAUTHORIZED", "The API key is not valid."),
            "no_permission": _error(403, "IP_NOT_WHITELISTED", "This address may not use the API key."),
            "rate_limited": _rate_limited,
            "daily_quota": _error(429, "EXCEED_BUDGET_LIMIT", "The API key has reached its budget limit."),
            "empty_balance": _error(429, "INSUFFICIENT_FUNDS_CREDITS", "You do not have enough credits."),
            "overloaded": _error(503, "SERVICE_UNAVAILABLE", "The service is overloaded, try again later."),
            "server_error": _error(500, "INTERNAL_SERVER_ERROR", "Internal server error."),
            "gateway_timeout": _error(504, "REQUEST_DEADLINE_EXCEEDED", "The request took too long."),
            "bad_schema": _error(
                400,
                "VALIDATION_ERROR",
                "Validation failed.",
                {"field": "depth", "message": "must be one of fast, deep"},
            ),
            "empty_reply": always(as_json(200, {}, *_HEADERS)),
        },
        declines={
            "missing_model": _NO_CHAT,
            "conflict": "it has nothing that two calls could change at once",
            "content_refused_in": _NO_CHAT,
            "content_refused_out": _NO_CHAT,
            "context_too_long": _NO_CHAT,
            "truncated_output": _NO_CHAT,
            "malformed_tool_call": _NO_CHAT,
            "in_stream_error": "it does not stream",
            "truncated_stream": "it does not stream",
            "broken_stream": "it does not stream",
            "model_loading": _NO_CHAT,
            "out_of_memory": "it does not show its hosts",
        },
    )
}
