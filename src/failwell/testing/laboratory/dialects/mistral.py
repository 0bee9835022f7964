"""Mistral: flat errors with a number as code, FastAPI's `detail` for parameters."""

import re
from typing import Any

from failwell.testing.laboratory.dialect import Dialect, Refusal, items, members
from failwell.testing.laboratory.dialects.chat import USAGE, Chat, chat_answers
from failwell.testing.laboratory.lab_reply import HOSTED, Answer, LabCall, Reply, always, as_json

_ID = re.compile(r"[a-zA-Z0-9]{9}")
_AFTER = {
    "system": {"system", "user", "assistant"},
    "user": {"system", "user", "assistant"},
    "assistant": {"user", "assistant", "tool"},
    "tool": {"assistant", "tool"},
}
"""Role → the roles that may follow it."""
_ORDER = {"kind": "invalid_request_message_order", "code": "3230"}


def refuse_mistral(body: object) -> Refusal | None:
    """Why this request is refused; `None` if its messages are in order."""
    messages = [members(message) for message in items(members(body).get("messages"))]
    if not messages:
        return Refusal("Conversation must have at least one message", **_ORDER)
    open_ids: list[str] = []
    before: str | None = None
    for message in messages:
        role = str(message.get("role"))
        if (before is None and role == "tool") or (
            before is not None and role not in _AFTER.get(before, set())
        ):
            return Refusal(f"Unexpected role '{role}' after role '{before}'", **_ORDER)
        if role == "tool":
            if message.get("tool_call_id") not in open_ids:
                return _unequal()
            open_ids.remove(str(message["tool_call_id"]))
        else:
            if open_ids:
                return _unequal()
            refusal = _shape(message) if role == "assistant" else None
            if refusal is not None:
                return refusal
            open_ids = [members(call)["id"] for call in items(message.get("tool_calls"))]
        before = role
    if open_ids:
        return _unequal()
    if before == "assistant" and not messages[-1].get("prefix"):
        return Refusal(
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
            **_ORDER,
        )
    return None


def _shape(message: dict[str, Any]) -> Refusal | None:
    if not message.get("content") and not message.get("tool_calls"):
        return Refusal(
            "Assistant message must have either content or tool_calls, but not none.",
            code="3240",
            kind="invalid_request_assistant_message",
        )
    for call in map(members, items(message.get("tool_calls"))):
        if not _ID.fullmatch(str(call.get("id"))):
            return Refusal(
                f"Tool call id was {call.get('id')} but must be a-z, A-Z, 0-9, with a length of 9.",
                code="3280",
                kind="invalid_function_call",
            )
    return None


def _unequal() -> Refusal:
    return Refusal("Not the same number of function calls and responses", **_ORDER)


_HEADERS = (("server", "cloudflare"), ("mistral-correlation-id", "lab-0198"), ("x-kong-request-id", "lab01"))


def _body(message: str, kind: str, code: str | None = None) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def _error(status: int, message: str, kind: str, code: str | None = None) -> Answer:
    return always(as_json(status, _body(message, kind, code), *_HEADERS))


def _rate_limited(call: LabCall) -> Reply:
    body = _body(f"Rate limit exceeded{call.wait.prose}", "rate_limited", "1300")
    return as_json(429, body, *_HEADERS, *call.wait.headers)


def _refuse(call: LabCall) -> Reply | None:
    refusal = refuse_mistral(call.body) if call.path.endswith("/chat/completions") else None
    if refusal is None:
        return None
    return _error(400, refusal.message, refusal.kind or "invalid_request_error", refusal.code)(call)


_FULL = _body("Service tier capacity exceeded for this model.", "service_tier_capacity_exceeded", "3505")
_CHAT = Chat(_HEADERS, last={"usage": USAGE}, whole_calls=True)
"""The last chunk of a stream always counts its tokens."""
_INVALID = {
    "type": "less_than_equal",
    "loc": ["body", "temperature"],
    "msg": "Input should be less than or equal to 1.5",
    "input": 3,
}

DIALECTS = {
    "mistral": Dialect(
        name="mistral",
        title="Mistral",
        refuse=_refuse,
        scripted=_CHAT.turn,
        wait="none",
        answers={
            **chat_answers(_CHAT, _FULL, refused=None),
            "bad_key": always(as_json(401, {"detail": "Unauthorized"}, *_HEADERS)),
            "no_permission": _error(
                403, "Your organization is not allowed to use this model.", "permission_denied"
            ),
            "missing_model": _error(400, "Invalid model: mistral-lab", "invalid_model", "1500"),
            "rate_limited": _rate_limited,
            "daily_quota": _error(
                429, "Monthly token limit reached for your workspace.", "rate_limited", "1300"
            ),
            "empty_balance": always(
                as_json(402, {"detail": "Payment required: add a payment method or credits."}, *_HEADERS)
            ),
            "overloaded": always(as_json(429, _FULL, *_HEADERS)),
            "server_error": _error(500, "Internal server error.", "internal_server_error", "1000"),
            "conflict": _error(409, "The resource was changed by another request.", "conflict"),
            "context_too_long": _error(
                400,
                "Prompt contains 40211 tokens and 0 draft tokens, too large for model with 32768 maximum "
                "context length",
                "invalid_request_prompt",
                "3051",
            ),
            "bad_schema": always(as_json(422, {"detail": [_INVALID]}, *_HEADERS)),
        },
        declines={
            "content_refused_in": "it answers such requests, unless the caller requests a guard",
            "content_refused_out": "it has no stop reason for it",
            **HOSTED,
        },
    )
}
