"""OpenAI: an `error` object with message, type, param and code; a quota that looks like a rate limit."""

from typing import Any

from failwell.errors.axes import Certainty
from failwell.testing.laboratory.dialect import Dialect, Differs
from failwell.testing.laboratory.dialects.chat import Chat, chat_answers, refuse_chat
from failwell.testing.laboratory.dialects.responses import refuse_responses, response_turn, with_responses
from failwell.testing.laboratory.lab_reply import HOSTED, Answer, LabCall, LabTurn, Reply, always, as_json

_HEADERS = (
    ("x-request-id", "req_lab_7f3a"),
    ("openai-processing-ms", "41"),
    ("openai-version", "2020-10-01"),
)
_CHAT = Chat(_HEADERS)


def error_body(message: str, kind: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """An error as OpenAI writes it."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _error(status: int, message: str, kind: str, code: str | None = None, param: str | None = None) -> Answer:
    return always(as_json(status, error_body(message, kind, code, param), *_HEADERS))


def _rate_limited(call: LabCall) -> Reply:
    message = (
        f"Rate limit reached for {call.model} in organization org-lab on requests per min (RPM): "
        f"Limit 60, Used 60, Requested 1.{call.wait.prose}"
    )
    body = error_body(message, "requests", "rate_limit_exceeded")
    return as_json(429, body, *_HEADERS, *call.wait.headers)


def refuse(call: LabCall) -> Reply | None:
    """The reply to a conversation that chat completions or Responses do not accept."""
    if call.path.endswith("/responses"):
        refusal = refuse_responses(call.body)
    else:
        refusal = refuse_chat(call.body) if call.path.endswith("/chat/completions") else None
    if refusal is None:
        return None
    body = error_body(refusal.message, "invalid_request_error", refusal.code, refusal.param)
    return as_json(400, body, *_HEADERS)


def scripted(call: LabCall, turn: LabTurn, number: int) -> Reply:
    """The reply with a script's turn, in the shape that the client calls for."""
    if call.path.endswith("/responses"):
        return response_turn(call, turn, number, headers=_HEADERS)
    return _CHAT.turn(call, turn, number)


_BROKE = error_body(
    "The server had an error while processing your request. Sorry about that!", "server_error"
)

DIALECTS = {
    "openai": Dialect(
        name="openai",
        title="OpenAI",
        refuse=refuse,
        scripted=scripted,
        answers={
            **with_responses(chat_answers(_CHAT, _BROKE), _HEADERS),
            "bad_key": _error(
                401,
                "Incorrect API key provided: sk-lab-****0000.",
                "invalid_request_error",
                "invalid_api_key",
            ),
            "no_permission": _error(
                403,
                "You have insufficient permissions for this operation. Missing scopes: model.request.",
                "invalid_request_error",
                "missing_scope",
            ),
            "missing_model": _error(
                404,
                "The model `gpt-lab` does not exist or you do not have access to it.",
                "invalid_request_error",
                "model_not_found",
                "model",
            ),
            "rate_limited": _rate_limited,
            "daily_quota": _error(
                429,
                "Rate limit reached for gpt-lab in organization org-lab on requests per day (RPD): "
                "Limit 200, Used 200, Requested 1.",
                "requests",
                "rate_limit_exceeded",
            ),
            "empty_balance": _error(
                429,
                "You exceeded your current quota, please check your plan and billing details.",
                "insufficient_quota",
                "insufficient_quota",
            ),
            "overloaded": _error(
                503, "The engine is currently overloaded, please try again later.", "server_error"
            ),
            "server_error": _error(500, _BROKE["error"]["message"], "server_error"),
            "conflict": _error(
                409, "The resource was changed by another request. Please try again.", "invalid_request_error"
            ),
            "content_refused_in": _error(
                400,
                "Your request was rejected as a result of our safety system.",
                "invalid_request_error",
                "content_policy_violation",
            ),
            "context_too_long": _error(
                400,
                "This model's maximum context length is 128000 tokens. However, your messages resulted in "
                "140211 tokens. Please reduce the length of the messages.",
                "invalid_request_error",
                "context_length_exceeded",
                "messages",
            ),
            "bad_schema": _error(
                400,
                "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.",
                "invalid_request_error",
                "decimal_above_max_value",
                "temperature",
            ),
        },
        declines=HOSTED,
        differs={"in_stream_error": Differs("provider.unavailable", Certainty.PARTIAL)},
    )
}
