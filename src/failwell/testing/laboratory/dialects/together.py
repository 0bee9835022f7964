"""Together: OpenAI's shape with an id around it, and a limit in every reply."""

from typing import Any

from failwell.testing.laboratory.dialect import Dialect
from failwell.testing.laboratory.dialects.chat import Chat, chat_answers
from failwell.testing.laboratory.lab_reply import Answer, LabCall, Reply, always, as_json

_HEADERS = (("server", "cloudflare"), ("x-request-id", "req_lab_tg"))
_KIND = "application/json; charset=utf-8"


def _body(message: str, kind: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    return {"id": "lab-1", "error": {"message": message, "type": kind, "param": param, "code": code}}


def _error(status: int, message: str, kind: str, code: str | None = None, param: str | None = None) -> Answer:
    return always(as_json(status, _body(message, kind, code, param), *_HEADERS, kind=_KIND))


def _rate_limited(call: LabCall) -> Reply:
    message = (
        f"You have reached the rate limit specific to this model {call.model}. The maximum rate limit for this "
        f"model is 10.0 queries per minute.{call.wait.prose}"
    )
    return as_json(
        429,
        _body(message, "model_rate_limit"),
        *_HEADERS,
        ("x-ratelimit", "true"),
        *call.wait.headers,
        kind=_KIND,
    )


_BUSY = ("The model is overloaded. Please try again later.", "service_unavailable", "model_overloaded")

DIALECTS = {
    "together": Dialect(
        name="together",
        title="Together",
        answers={
            **chat_answers(Chat(_HEADERS), _body(*_BUSY), refused=None),
            "bad_key": _error(401, "Invalid API key provided.", "invalid_request_error", "invalid_api_key"),
            "no_permission": _error(
                403,
                "Your account does not have access to this resource.",
                "invalid_request_error",
                "forbidden",
            ),
            "missing_model": _error(
                404,
                "Unable to access model lab/model. Please visit the list of models to see those supported.",
                "invalid_request_error",
                "model_not_available",
            ),
            "rate_limited": _rate_limited,
            "daily_quota": _error(
                429, "You have reached the daily limit of requests for your tier.", "rate_limit"
            ),
            "empty_balance": _error(
                402, "Credit limit exceeded. Please add credits to your account.", "credit_limit"
            ),
            "overloaded": _error(503, *_BUSY),
            "server_error": _error(500, "Internal server error", "server_error"),
            "context_too_long": _error(
                422,
                "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` "
                "tokens and 512 `max_new_tokens`",
                "invalid_request_error",
                param="max_tokens",
            ),
            "bad_schema": _error(
                400,
                "[{'type': 'less_than_equal', 'loc': ('body', 'temperature'), 'msg': 'Input should be less than "
                "or equal to 2', 'input': 3}]",
                "invalid_request_error",
            ),
        },
        declines={
            "conflict": "it has nothing that two calls could change at once",
            "content_refused_in": "it answers such requests",
            "content_refused_out": "it has no stop reason for it",
            "model_loading": "its serverless models are always loaded",
            "out_of_memory": "it does not show its hosts",
        },
    )
}
