"""Cohere's chat: a bare `message`, trial keys counted by the month, and typed stream events."""

from typing import Any

from failwell.testing.laboratory.dialect import Dialect, Differs
from failwell.testing.laboratory.lab_reply import (
    BROKEN_CALL,
    HELLO,
    HOSTED,
    NOTHING,
    Answer,
    LabCall,
    LabTurn,
    Pieces,
    Reply,
    always,
    as_events,
    as_json,
    broken_streams,
    event,
)


def cohere_turn(call: LabCall, turn: LabTurn, number: int, finish: str | None = None) -> Reply:
    """The reply of chat in its second version, whole or streamed."""
    finish = finish or ("TOOL_CALL" if turn.calls else "COMPLETE")
    calls: list[dict[str, Any]] = [
        {
            "id": f"{name}_{number}_{place}",
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        for place, (name, arguments) in enumerate(turn.arguments())
    ]
    if not call.stream:
        content = [{"type": "text", "text": turn.text}] if turn.text else []
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if calls:
            message["tool_calls"] = calls
        body = {"id": f"lab-{number}", "message": message, "finish_reason": finish, "usage": _USAGE}
        return as_json(200, body, *_HEADERS)
    events = [
        _event("message-start", id=f"lab-{number}", delta={"message": {"role": "assistant", "content": []}})
    ]
    if turn.text:
        start = {"message": {"content": {"type": "text", "text": ""}}}
        events.append(_event("content-start", index=0, delta=start))
        texts = [{"message": {"content": {"text": piece}}} for piece in Pieces(turn.text)]
        events += [_event("content-delta", index=0, delta=delta) for delta in texts]
        events.append(_event("content-end", index=0))
    for place, tool in enumerate(calls):
        function = tool["function"]
        begun = {**tool, "function": {**function, "arguments": ""}}
        events.append(_event("tool-call-start", index=place, delta={"message": {"tool_calls": begun}}))
        for piece in Pieces(function["arguments"]):
            delta = {"message": {"tool_calls": {"function": {"arguments": piece}}}}
            events.append(_event("tool-call-delta", index=place, delta=delta))
        events.append(_event("tool-call-end", index=place))
    events.append(_event("message-end", delta={"finish_reason": finish, "usage": _USAGE}))
    return as_events(*events, headers=_HEADERS)


_HEADERS = (("server", "envoy"), ("x-debug-trace-id", "lab-7b31"))
_USAGE = {
    "billed_units": {"input_tokens": 9, "output_tokens": 5},
    "tokens": {"input_tokens": 9, "output_tokens": 5},
}


def _error(status: int, message: str) -> Answer:
    return always(as_json(status, {"id": "lab-1", "message": message}, *_HEADERS))


def _rate_limited(call: LabCall) -> Reply:
    message = f"You are using a Trial key, which is limited to 20 API calls / minute.{call.wait.prose}"
    return as_json(429, {"id": "lab-1", "message": message}, *_HEADERS, *call.wait.headers)


def _answer(turn: LabTurn, finish: str | None = None) -> Answer:
    return lambda call: cohere_turn(call, turn, 1, finish)


def _event(kind: str, **members: Any) -> bytes:
    return event({"type": kind, **members}, kind)


_FINE = _answer(HELLO)
_BROKE = {"finish_reason": "ERROR", "error": "internal server error while generating"}

DIALECTS = {
    "cohere": Dialect(
        name="cohere",
        title="Cohere",
        scripted=cohere_turn,
        wait="none",
        answers={
            "ok": _FINE,
            "bad_key": _error(401, "invalid api token"),
            "no_permission": _error(403, "your api token may not use this endpoint"),
            "missing_model": _error(
                404, "model 'command-lab' not found, make sure the correct model ID was used."
            ),
            "rate_limited": _rate_limited,
            "daily_quota": _error(
                429, "You are using a Trial key, which is limited to 1000 API calls / month."
            ),
            "empty_balance": _error(402, "please add or update your payment method to continue"),
            "overloaded": _error(503, "the service is temporarily overloaded, please try again later"),
            "server_error": _error(500, "internal server error"),
            "content_refused_out": _answer(NOTHING, "ERROR_TOXIC"),
            "context_too_long": _error(
                400,
                "too many tokens: total number of tokens in the prompt exceeds the limit of 128000 tokens",
            ),
            "bad_schema": _error(
                422, "invalid type: parameter temperature is of type string but should be of type float"
            ),
            "truncated_output": _answer(HELLO, "MAX_TOKENS"),
            "empty_reply": _answer(NOTHING),
            "malformed_tool_call": _answer(BROKEN_CALL),
            # Its content and its message are closed by an event each.
            **broken_streams(_FINE, _event("message-end", delta=_BROKE), after=2),
        },
        declines={
            "conflict": "it has nothing that two calls could change at once",
            "content_refused_in": "it judges the answer, not the request",
            **HOSTED,
        },
        differs={"in_stream_error": Differs("provider.output_rejected")},
    )
}
