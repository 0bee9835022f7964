"""Anthropic: the type says it, low credit is a 400 in prose, and a stream fails under a 200."""

from dataclasses import replace
from typing import Any

from failwell.testing.laboratory.dialect import Dialect
from failwell.testing.laboratory.dialects.anthropic__anthropic_messages import refuse_messages
from failwell.testing.laboratory.dialects.anthropic__scripts_anthropic import message_turn
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

_HEADERS = (("request-id", "req_lab_011"), ("anthropic-organization-id", "org-lab"))
_TEXT = ("Hello", " from", " the lab.")
_BROKEN_JSON = '{"city": "Par'


def _body(kind: str, message: str, **details: Any) -> dict[str, Any]:
    error = {"type": kind, "message": message, **({"details": details} if details else {})}
    return {"type": "error", "error": error, "request_id": "req_lab_011"}


def _error(status: int, kind: str, message: str, **details: Any) -> Answer:
    return always(as_json(status, _body(kind, message, **details), *_HEADERS))


def _rate_limited(call: LabCall) -> Reply:
    message = f"This request would exceed your organization's rate limit of 50 requests per minute.{call.wait.prose}"
    return as_json(429, _body("rate_limit_error", message), *_HEADERS, *call.wait.headers)


def _refuse(call: LabCall) -> Reply | None:
    refusal = refuse_messages(call.body) if call.path.endswith("/messages") else None
    if refusal is None:
        return None
    return as_json(400, _body("invalid_request_error", refusal.message), *_HEADERS)


def _answer(stop: str = "end_turn", *, text: bool = True, broken_call: bool = False) -> Answer:
    def whole(call: LabCall) -> Reply:
        content: list[dict[str, Any]] = [{"type": "text", "text": "".join(_TEXT)}] if text else []
        if broken_call:
            # The SDK does not look into `input`; a proxy that did not parse it leaves the text there.
            content = [{"type": "tool_use", "id": "toolu_lab1", "name": "find_city", "input": _BROKEN_JSON}]
        return as_json(200, {**_message(call), "content": content, "stop_reason": stop}, *_HEADERS)

    def streamed(call: LabCall) -> Reply:
        return as_events(*_events(call, stop, text=text, broken_call=broken_call), headers=_HEADERS)

    return lambda call: streamed(call) if call.stream else whole(call)


def _message(call: LabCall) -> dict[str, Any]:
    usage = {"input_tokens": 9, "output_tokens": 5}
    shared: dict[str, Any] = {
        "id": "msg_lab1",
        "type": "message",
        "role": "assistant",
        "model": call.model,
        "content": [],
    }
    return {**shared, "stop_reason": None, "stop_sequence": None, "usage": usage}


def _events(call: LabCall, stop: str, *, text: bool, broken_call: bool) -> list[bytes]:
    block: dict[str, Any] = {"type": "text", "text": ""}
    deltas: list[dict[str, Any]] = [{"type": "text_delta", "text": part} for part in _TEXT]
    if broken_call:
        block = {"type": "tool_use", "id": "toolu_lab1", "name": "find_city", "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": _BROKEN_JSON}]
    events = [_event("message_start", message=_message(call))]
    if text or broken_call:
        events.append(_event("content_block_start", index=0, content_block=block))
        events.append(_event("ping"))
        events += [_event("content_block_delta", index=0, delta=delta) for delta in deltas]
        events.append(_event("content_block_stop", index=0))
    ended = {"stop_reason": stop, "stop_sequence": None}
    events.append(_event("message_delta", delta=ended, usage={"output_tokens": 5}))
    events.append(_event("message_stop"))
    return events


def _event(kind: str, **members: Any) -> bytes:
    return event({"type": kind, **members}, kind)


_FINE = _answer()
_AFTER_CONTENT = 3
"""The events that close a stream: of its block, of its message, of itself."""


def _failing(call: LabCall) -> Reply:
    begun = cut(_FINE(call), "whole", without=_AFTER_CONTENT)
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    return replace(begun, pieces=(*(begun.pieces or ()), event(error, "error")))


DIALECTS = {
    "anthropic": Dialect(
        name="anthropic",
        title="Anthropic",
        vendor="anthropic",
        refuse=_refuse,
        scripted=message_turn,
        answers={
            "ok": _FINE,
            "bad_key": _error(401, "authentication_error", "invalid x-api-key"),
            "no_permission": _error(
                403,
                "permission_error",
                "Your API key does not have permission to use the specified resource.",
            ),
            "missing_model": _error(404, "not_found_error", "model: claude-lab"),
            "rate_limited": _rate_limited,
            "daily_quota": _error(
                429,
                "rate_limit_error",
                "Your organization has reached its spend limit for this month.",
                error_code="enforced_spend_limit_reached",
            ),
            "empty_balance": _error(
                400,
                "invalid_request_error",
                "Your credit balance is too low to access the API. Please go to Plans & Billing to upgrade "
                "or purchase credits.",
            ),
            "overloaded": _error(529, "overloaded_error", "Overloaded"),
            "server_error": _error(500, "api_error", "Internal server error"),
            "gateway_timeout": _error(504, "timeout_error", "The request timed out while it was processed."),
            "conflict": _error(409, "conflict_error", "The request conflicts with another one in progress."),
            "content_refused_in": _error(
                400, "invalid_request_error", "Input blocked by content filtering policy"
            ),
            "content_refused_out": _answer("refusal"),
            "context_too_long": _error(
                400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"
            ),
            "bad_schema": _error(
                400, "invalid_request_error", "temperature: Input should be less than or equal to 1"
            ),
            "truncated_output": _answer("max_tokens"),
            "empty_reply": _answer(text=False),
            "malformed_tool_call": _answer("tool_use", broken_call=True),
            "in_stream_error": _failing,
            "truncated_stream": lambda call: cut(_FINE(call), "whole", without=_AFTER_CONTENT),
            "broken_stream": lambda call: cut(_FINE(call), "reset", without=_AFTER_CONTENT),
        },
        declines={
            "model_loading": "its models are always loaded",
            "out_of_memory": "it does not show its hosts",
        },
    )
}
