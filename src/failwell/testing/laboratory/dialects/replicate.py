"""Replicate: problem documents for the API, and predictions that fail inside a 201."""

from typing import Any

from failwell.errors.axes import Certainty
from failwell.testing.laboratory.dialect import Dialect, Differs
from failwell.testing.laboratory.lab_reply import (
    HELLO,
    Answer,
    LabCall,
    Pieces,
    Reply,
    always,
    as_events,
    as_json,
    cut,
    event,
)

_HEADERS = (("server", "cloudflare"),)
_PROBLEM = "application/problem+json"


def _error(status: int, title: str, detail: str, **members: Any) -> Answer:
    body = {"title": title, "detail": detail, "status": status, **members}
    return always(as_json(status, body, *_HEADERS, kind=_PROBLEM))


def _rate_limited(call: LabCall) -> Reply:
    body = {
        "title": "Too many requests",
        "detail": f"Request was throttled.{call.wait.prose}",
        "status": 429,
    }
    return as_json(429, body, *_HEADERS, *call.wait.headers, kind=_PROBLEM)


def _prediction(call: LabCall, status: str, **members: Any) -> dict[str, Any]:
    urls = {
        "get": f"{call.base}/v1/predictions/lab1",
        "cancel": f"{call.base}/v1/predictions/lab1/cancel",
        "stream": f"{call.base}/v1/streams/lab1",
    }
    shared: dict[str, Any] = {"id": "lab1", "model": "lab/model", "version": "1" * 64, "status": status}
    times = {"created_at": "2026-01-01T00:00:00Z", "started_at": None, "completed_at": None}
    rest: dict[str, Any] = {
        "input": {"prompt": "hi"},
        "output": None,
        "error": None,
        "logs": "",
        "metrics": {},
    }
    return {**shared, **rest, **times, "urls": urls, **members}


def _answer(status: str = "succeeded", **members: Any) -> Answer:
    def reply(call: LabCall) -> Reply:
        if "/streams/" in call.path:
            return as_events(*_events(members), headers=_HEADERS)
        code = 201 if call.method == "POST" else 200
        return as_json(code, _prediction(call, status, **members), *_HEADERS)

    return reply


def _events(members: dict[str, Any]) -> list[bytes]:
    """The same prediction, as it streams from an address of its own."""
    words = Pieces(HELLO.text) if members.get("output") else ()
    events = [event(word, "output", id=f"1:{place}") for place, word in enumerate(words)]
    failed = members.get("error")
    if failed is None:
        return [*events, event("{}", "done", id="1:9")]
    return [
        *events,
        event({"detail": failed}, "error", id="1:8"),
        event('{"reason": "error"}', "done", id="1:9"),
    ]


_FINE = _answer(output=HELLO.text)


_BROKE = _answer(output=HELLO.text, error="An internal server error occurred while the model ran.")


def _failing(call: LabCall) -> Reply:
    """The prediction itself is accepted; only its stream shows that it failed."""
    return (_BROKE if "/streams/" in call.path else _FINE)(call)


def _cut_off(ending: str) -> Answer:
    def reply(call: LabCall) -> Reply:
        fine = _FINE(call)
        return fine if fine.pieces is None else cut(fine, "reset" if ending == "reset" else "whole")

    return reply


_NO_CHAT = "a prediction has an output and no reason why it stopped"

DIALECTS = {
    "replicate": Dialect(
        name="replicate",
        title="Replicate",
        answers={
            "ok": _FINE,
            "bad_key": _error(401, "Unauthenticated", "You did not pass a valid authentication token"),
            "no_permission": _error(403, "Forbidden", "You do not have permission to perform this action."),
            "missing_model": _error(
                422,
                "Invalid version or not permitted",
                "The specified version does not exist (or perhaps you don't have permission to use it?)",
            ),
            "rate_limited": _rate_limited,
            "daily_quota": _error(
                402, "Monthly spend limit reached", "You have reached your monthly spend limit."
            ),
            "empty_balance": _error(
                402, "Insufficient credit", "You have insufficient credit to run this model. Purchase credit."
            ),
            "overloaded": _error(503, "Service unavailable", "The service is overloaded, try again later."),
            "server_error": _error(500, "Internal server error", "An unexpected error occurred."),
            "conflict": _error(409, "Conflict", "A deployment of that name is being changed."),
            "content_refused_in": _answer(
                "failed",
                error="The input was flagged as sensitive. Please try again with different inputs. (E005)",
            ),
            "content_refused_out": _answer(
                "failed", error="NSFW content detected. Try running it again, or try a different prompt."
            ),
            "bad_schema": _error(
                422,
                "Input validation failed",
                "- input.width: Must be less than or equal to 1440",
                invalid_fields=[
                    {
                        "type": "number_lte",
                        "field": "input.width",
                        "description": "Must be less than or equal to 1440",
                    }
                ],
            ),
            "empty_reply": _answer(),
            "in_stream_error": _failing,
            "truncated_stream": _cut_off("whole"),
            "broken_stream": _cut_off("reset"),
            "model_loading": _error(
                503, "Service unavailable", "The model is currently loading, try again shortly."
            ),
        },
        declines={
            "context_too_long": _NO_CHAT,
            "truncated_output": _NO_CHAT,
            "malformed_tool_call": _NO_CHAT,
            "out_of_memory": "it does not show its hosts",
        },
        differs={"in_stream_error": Differs("provider.unavailable", Certainty.PARTIAL)},
    )
}
