"""Groq: OpenAI's shape; the window is in prose only, and a broken tool call is a 400."""

from typing import Any

from failwell.testing.laboratory.dialect import Dialect, Differs
from failwell.testing.laboratory.dialects.chat import USAGE, Chat, chat_answers
from failwell.testing.laboratory.lab_reply import HOSTED, Answer, LabCall, Reply, always, as_json

_HEADERS = (("server", "cloudflare"), ("x-groq-region", "fra"), ("x-request-id", "req_lab_gq"))
_CHAT = Chat(_HEADERS, last={"x_groq": {"id": "req_lab_gq", "usage": USAGE}})
"""The last chunk of a stream counts its tokens in a member of its own."""
_LIMITED = (
    "Rate limit reached for model `{model}` in organization `org_lab` service tier `on_demand` on tokens per "
    "{window}: Limit {limit}, Used {limit}, Requested 812."
)


def _body(message: str, kind: str, code: str | None = None, **members: Any) -> dict[str, Any]:
    error = {"message": message, "type": kind, **members}
    return {"error": {**error, "code": code} if code else error}


def _error(status: int, message: str, kind: str, code: str | None = None, **members: Any) -> Answer:
    return always(as_json(status, _body(message, kind, code, **members), *_HEADERS))


def _rate_limited(call: LabCall) -> Reply:
    message = _LIMITED.format(model=call.model, window="minute (TPM)", limit=6000) + call.wait.prose
    return as_json(429, _body(message, "tokens", "rate_limit_exceeded"), *_HEADERS, *call.wait.headers)


def _daily_quota(call: LabCall) -> Reply:
    message = _LIMITED.format(model=call.model, window="day (TPD)", limit=100000)
    body = _body(f"{message} Please try again in 7m12s.", "tokens", "rate_limit_exceeded")
    return as_json(429, body, *_HEADERS, ("retry-after", "432"))


DIALECTS = {
    "groq": Dialect(
        name="groq",
        title="Groq",
        scripted=_CHAT.turn,
        answers={
            **chat_answers(
                _CHAT,
                _body(
                    "The model is over capacity. Please try again.",
                    "internal_server_error",
                    "model_overloaded",
                ),
                refused=None,
            ),
            "bad_key": _error(401, "Invalid API Key", "invalid_request_error", "invalid_api_key"),
            "no_permission": _error(
                403, "Access denied. Please check your network settings.", "permission_error", "forbidden"
            ),
            "missing_model": _error(
                404,
                "The model `lab-model` does not exist or you do not have access to it.",
                "invalid_request_error",
                "model_not_found",
            ),
            "rate_limited": _rate_limited,
            "daily_quota": _daily_quota,
            "empty_balance": _error(
                402,
                "Your spend limit has been reached. Raise it to continue.",
                "invalid_request_error",
                "blocked_api_access",
            ),
            "overloaded": _error(
                503,
                "lab-model is currently over capacity. Please try again and back off exponentially.",
                "internal_server_error",
            ),
            "server_error": _error(500, "Internal Server Error", "internal_server_error"),
            "context_too_long": _error(
                400,
                "Please reduce the length of the messages or completion.",
                "invalid_request_error",
                "context_length_exceeded",
                param="messages",
            ),
            "bad_schema": _error(
                400, "'temperature' : must be less than or equal to 2", "invalid_request_error"
            ),
            "malformed_tool_call": _error(
                400,
                "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
                "invalid_request_error",
                "tool_use_failed",
                failed_generation='<function=find_city{"city": "Par',
            ),
        },
        declines={
            "conflict": "it has nothing that two calls could change at once",
            "content_refused_in": "it answers such requests",
            "content_refused_out": "it has no stop reason for it",
            **HOSTED,
        },
        differs={
            "daily_quota": Differs(wait=432.0),
            "malformed_tool_call": Differs("provider.output_rejected"),
        },
    )
}
