"""Azure OpenAI: OpenAI's answers, errors that are often only a status in quotes, and an `innererror`."""

from typing import Any

from failwell.errors.axes import Certainty
from failwell.testing.laboratory.dialect import Dialect, Differs
from failwell.testing.laboratory.dialects.chat import Chat, chat_answers
from failwell.testing.laboratory.dialects.openai import refuse, scripted
from failwell.testing.laboratory.dialects.responses import with_responses
from failwell.testing.laboratory.lab_reply import Answer, LabCall, Reply, always, as_json

_HEADERS = (
    ("x-ms-region", "East US"),
    ("apim-request-id", "lab-5a1e"),
    ("x-ms-client-request-id", "lab-5a1f"),
)
_FILTERED = {
    "hate": {"filtered": False, "severity": "safe"},
    "violence": {"filtered": True, "severity": "high"},
}


def _body(code: str, message: str, /, **members: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, **members}}


def _error(status: int, code: str, message: str, /, **members: Any) -> Answer:
    return always(as_json(status, _body(code, message, **members), *_HEADERS))


def _rate_limited(call: LabCall) -> Reply:
    message = (
        "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have "
        f"exceeded call rate limit of your current OpenAI S0 pricing tier.{call.wait.prose}"
    )
    return as_json(429, _body("RateLimitReached", message), *_HEADERS, *call.wait.headers)


_BROKE = _body(
    "InternalServerError", "The server had an error while processing your request.", type="server_error"
)

DIALECTS = {
    "azure-openai": Dialect(
        name="azure-openai",
        title="Azure OpenAI",
        refuse=refuse,
        scripted=scripted,
        answers={
            **with_responses(chat_answers(Chat(_HEADERS), _BROKE), _HEADERS),
            "bad_key": _error(
                401,
                "401",
                "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a "
                "valid key for an active subscription.",
            ),
            "no_permission": _error(
                401,
                "PermissionDenied",
                "The principal `lab` lacks the required data action "
                "`Microsoft.CognitiveServices/accounts/OpenAI/deployments/chat/completions/action`.",
            ),
            "missing_model": _error(
                404,
                "DeploymentNotFound",
                "The API deployment for this resource does not exist. If you created the deployment within the "
                "last 5 minutes, please wait a moment and try again.",
            ),
            "rate_limited": _rate_limited,
            "daily_quota": _error(
                429,
                "RateLimitReached",
                "Your requests have exceeded the tokens per day limit of your current pricing tier.",
            ),
            "empty_balance": _error(
                429,
                "insufficient_quota",
                "You exceeded your current quota, please check your plan and billing details.",
                type="insufficient_quota",
            ),
            "overloaded": _error(
                503,
                "ServiceUnavailable",
                "The service is temporarily unable to process your request. Please try again later.",
            ),
            "server_error": always(as_json(500, _BROKE, *_HEADERS)),
            "gateway_timeout": _error(408, "Timeout", "The operation was timeout."),
            "conflict": _error(409, "Conflict", "Another operation on the deployment is in progress."),
            "content_refused_in": _error(
                400,
                "content_filter",
                "The response was filtered due to the prompt triggering Azure OpenAI's content management "
                "policy. Please modify your prompt and retry.",
                type=None,
                param="prompt",
                status=400,
                innererror={"code": "ResponsibleAIPolicyViolation", "content_filter_result": _FILTERED},
            ),
            "context_too_long": _error(
                400,
                "context_length_exceeded",
                "This model's maximum context length is 128000 tokens. However, your messages resulted in "
                "140211 tokens. Please reduce the length of the messages.",
                type="invalid_request_error",
                param="messages",
            ),
            "bad_schema": _error(
                400,
                "decimal_above_max_value",
                "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.",
                type="invalid_request_error",
                param="temperature",
            ),
        },
        declines={
            "model_loading": "its deployments are always loaded",
            "out_of_memory": "it does not show its hosts",
        },
        differs={"in_stream_error": Differs("provider.unavailable", Certainty.PARTIAL)},
    )
}
