"""OpenRouter: the status again as `code`, and what lies behind it in `metadata`."""

from datetime import UTC, datetime
from typing import Any

from failwell.errors.axes import Certainty
from failwell.testing.laboratory.dialect import Dialect, Differs
from failwell.testing.laboratory.dialects.chat import Chat, chat_answers
from failwell.testing.laboratory.lab_reply import Answer, LabCall, Reply, always, as_json

_HEADERS = (("server", "cloudflare"), ("x-request-id", "req_lab_or"))
_UNTIL_MIDNIGHT = 21_600


def _body(status: int, message: str, **metadata: Any) -> dict[str, Any]:
    error: dict[str, Any] = {"message": message, "code": status}
    return {"error": {**error, "metadata": metadata} if metadata else error, "user_id": "user_lab"}


def _error(status: int, message: str, **metadata: Any) -> Answer:
    return always(as_json(status, _body(status, message, **metadata), *_HEADERS))


def _rate_limited(call: LabCall) -> Reply:
    message = f"Rate limit exceeded: free-models-per-min.{call.wait.prose}"
    if call.wait.form != "epoch-ms":
        return as_json(429, _body(429, message), *_HEADERS, *call.wait.headers)
    # Here the window is in the body, as the headers of a reply that was never sent.
    headers = dict(call.wait.headers)
    return as_json(429, _body(429, message, headers=headers), *_HEADERS)


def _daily_quota(_: LabCall) -> Reply:
    reset = round((datetime.now(UTC).timestamp() + _UNTIL_MIDNIGHT) * 1000)
    headers = {"X-RateLimit-Limit": "50", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(reset)}
    message = "Rate limit exceeded: free-models-per-day. Add credits to unlock more free requests per day."
    return as_json(429, _body(429, message, headers=headers), *_HEADERS)


_CUT_OFF = {
    "id": "gen-lab1",
    "object": "chat.completion.chunk",
    "error": {"code": "server_error", "message": "Provider disconnected"},
    "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
}

DIALECTS = {
    "openrouter": Dialect(
        name="openrouter",
        title="OpenRouter",
        wait="epoch-ms",
        answers={
            **chat_answers(Chat(_HEADERS, extra={"provider": "Lab"}), _CUT_OFF),
            "bad_key": _error(401, "No auth credentials found"),
            "no_permission": _error(
                403, "Your account is not allowed to use this provider. Check its privacy settings."
            ),
            "missing_model": _error(404, "No endpoints found for lab/model."),
            "rate_limited": _rate_limited,
            "daily_quota": _daily_quota,
            "empty_balance": _error(
                402,
                "This request requires more credits, or fewer max_tokens. You requested up to 4096 tokens, but "
                "can only afford 12.",
            ),
            "overloaded": _error(
                503,
                "Provider returned error",
                provider_name="Lab",
                raw="The model is overloaded. Please try again later.",
            ),
            "server_error": _error(500, "Internal Server Error"),
            "gateway_timeout": _error(408, "Your request timed out"),
            "content_refused_in": _error(
                403,
                "Your chosen model requires moderation and your input was flagged for a violation of its "
                "content policy.",
                reasons=["violence"],
                flagged_input="…",
                provider_name="Lab",
                model_slug="lab/model",
            ),
            "context_too_long": _error(
                400,
                "This endpoint's maximum context length is 131072 tokens. However, you requested about 140211 "
                "tokens. Please reduce the length of either one.",
            ),
            "bad_schema": _error(
                400,
                "Provider returned error",
                provider_name="Lab",
                raw='{"error": {"message": "temperature must be between 0 and 2", "type": "invalid_request_error"}}',
            ),
        },
        declines={
            "conflict": "it has nothing that two calls could change at once",
            "model_loading": "it leaves loading to the providers behind it",
            "out_of_memory": "it does not show its hosts",
        },
        differs={
            "daily_quota": Differs(wait=float(_UNTIL_MIDNIGHT)),
            "in_stream_error": Differs("provider.unavailable", Certainty.PARTIAL),
        },
    )
}
