"""fal: a queue to submit to and poll, `detail` as a sentence or a list, and a balance behind a 403."""

from typing import Any

from failwell.testing.laboratory.dialect import Dialect
from failwell.testing.laboratory.lab_reply import (
    Answer,
    LabCall,
    Reply,
    always,
    as_events,
    as_json,
    cut,
    event,
)

_HEADERS = (("x-fal-request-id", "lab-req-1"),)
_PICTURE = {"url": "http://127.0.0.1/lab.png", "width": 512, "height": 512, "content_type": "image/png"}


def _error(status: int, detail: Any, kind: str | None = None) -> Answer:
    extra = (("x-fal-error-type", kind),) if kind else ()
    return always(as_json(status, {"detail": detail}, *_HEADERS, *extra))


def _item(kind: str, field: str, message: str) -> list[dict[str, Any]]:
    return [{"loc": ["body", field], "msg": message, "type": kind, "input": None}]


def _rate_limited(call: LabCall) -> Reply:
    return as_json(
        429, {"detail": f"Too many concurrent requests.{call.wait.prose}"}, *_HEADERS, *call.wait.headers
    )


def _answer(result: Any) -> Answer:
    def reply(call: LabCall) -> Reply:
        if call.path.endswith("/stream"):
            return as_events(*(event({"progress": part}) for part in (1, 2)), event(result), headers=_HEADERS)
        request = f"{call.base}/lab/requests/lab-req-1"
        if call.path.endswith("/status"):
            body: Any = {"status": "COMPLETED", "request_id": "lab-req-1", "logs": [], "metrics": {}}
            return as_json(200, {**body, "response_url": request}, *_HEADERS)
        if call.method == "GET":
            return as_json(200, result, *_HEADERS)
        # A call that waits has one answer as well; a client reads what it knows of it.
        urls = {"response_url": request, "status_url": f"{request}/status", "cancel_url": f"{request}/cancel"}
        extra = {"status": "IN_QUEUE", "request_id": "lab-req-1", "queue_position": 0, **urls}
        return as_json(200, {**extra, **result}, *_HEADERS)

    return reply


_FINE = _answer({"images": [_PICTURE], "seed": 7, "has_nsfw_concepts": [False]})
_NO_CHAT = "it makes pictures and sound, not chat"

DIALECTS = {
    "fal": Dialect(
        name="fal",
        title="fal",
        wait="none",
        answers={
            "ok": _FINE,
            "bad_key": _error(401, "No user found for Key ID and Secret"),
            "no_permission": _error(403, "You are not authorized to access this application"),
            "missing_model": _error(404, "Application 'lab' not found"),
            "rate_limited": _rate_limited,
            "empty_balance": _error(
                403, "User is locked. Reason: Exhausted balance. Top up your balance in the dashboard."
            ),
            "overloaded": _error(503, "No runners available.", "runner_scheduling_failure"),
            "server_error": _error(500, "Internal Server Error", "internal_server_error"),
            "gateway_timeout": _error(504, "Request timed out", "request_timeout"),
            "content_refused_in": _error(
                422,
                _item(
                    "content_policy_violation",
                    "prompt",
                    "The content could not be processed because it was flagged by a content checker.",
                ),
            ),
            "bad_schema": _error(
                422, _item("less_than_equal", "num_images", "Input should be less than or equal to 4")
            ),
            "empty_reply": _answer({"images": []}),
            "broken_stream": lambda call: cut(_FINE(call), "reset"),
        },
        declines={
            "daily_quota": "it counts a balance, not days",
            "conflict": "every submitted request is one of its own",
            "content_refused_out": "it refuses before it answers",
            "context_too_long": _NO_CHAT,
            "truncated_output": _NO_CHAT,
            "malformed_tool_call": _NO_CHAT,
            "in_stream_error": "its streams have no form for an error",
            "truncated_stream": "its streams have no last event that could be missing",
            "model_loading": "it queues a request until a runner is up",
            "out_of_memory": "it does not show its hosts",
        },
    )
}
