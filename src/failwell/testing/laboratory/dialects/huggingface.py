"""Hugging Face inference: a sentence under `error`, a model that loads, and the RateLimit fields."""

from typing import Any

from failwell.testing.laboratory.delay_forms import EVERYWHERE
from failwell.testing.laboratory.dialect import Dialect, Differs
from failwell.testing.laboratory.dialects.chat import Chat, chat_answers
from failwell.testing.laboratory.lab_reply import HELLO, Answer, LabCall, Reply, always, as_json

_HEADERS = (("x-request-id", "Root=1-lab-hf"), ("vary", "origin"))
_LOADING = 20.0


def _error(status: int, message: str, *headers: tuple[str, str], **members: Any) -> Answer:
    return always(as_json(status, {"error": message, **members}, *_HEADERS, *headers))


def _rate_limited(call: LabCall) -> Reply:
    body: dict[str, Any] = {"error": f"You have reached your request rate limit.{call.wait.prose}"}
    if call.wait.form == "estimated-time":
        body["estimated_time"] = call.wait.seconds
    return as_json(429, body, *_HEADERS, *call.wait.headers)


_CHAT = Chat(_HEADERS)
_ANSWERS = chat_answers(_CHAT, {"error": "Model is overloaded", "error_type": "overloaded"}, refused=None)


def _fine(call: LabCall) -> Reply:
    """Chat on the chat route; a generated text on the older routes, which send `inputs`."""
    if call.member("inputs") is not None and "chat" not in call.path:
        return as_json(200, [{"generated_text": HELLO.text}], *_HEADERS)
    return _ANSWERS["ok"](call)


DIALECTS = {
    "huggingface": Dialect(
        name="huggingface",
        title="Hugging Face",
        scripted=_CHAT.turn,
        wait="ratelimit-field",
        forms=EVERYWHERE | {"estimated-time"},
        answers={
            **_ANSWERS,
            "ok": _fine,
            "bad_key": _error(401, "Invalid credentials in Authorization header"),
            "no_permission": _error(
                403,
                "Access to model lab/model is restricted and you are not in the authorized list.",
                ("x-error-code", "GatedRepo"),
            ),
            "missing_model": _error(404, "Model lab/model does not exist", ("x-error-code", "RepoNotFound")),
            "rate_limited": _rate_limited,
            "daily_quota": _error(429, "You have exceeded your daily quota of inference requests."),
            "empty_balance": _error(
                402, "You have depleted your monthly included credits. Purchase pre-paid credits to continue."
            ),
            "overloaded": _error(429, "Model is overloaded", error_type="overloaded"),
            "server_error": _error(500, "Internal Server Error"),
            "conflict": _error(409, "The endpoint is being updated by another request."),
            "context_too_long": _error(
                422,
                "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` "
                "tokens and 20 `max_new_tokens`",
                error_type="validation",
            ),
            "bad_schema": _error(
                422,
                "Input validation error: `temperature` must be strictly positive",
                error_type="validation",
            ),
            "model_loading": _error(503, "Model lab/model is currently loading", estimated_time=_LOADING),
        },
        declines={
            "content_refused_in": "its models answer such requests or not, in their own words",
            "content_refused_out": "its models have no stop reason for it",
            "out_of_memory": "it does not show its hosts",
        },
        differs={"model_loading": Differs(wait=_LOADING)},
    )
}
