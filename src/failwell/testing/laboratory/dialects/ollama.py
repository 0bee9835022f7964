"""Ollama: one sentence under `error`, lines of JSON as a stream, and memory that is too small.

At `/chat/completions` it speaks as OpenAI does.
"""

import json
from typing import Any

from failwell.errors.axes import Certainty
from failwell.testing.laboratory.dialect import Dialect, Differs
from failwell.testing.laboratory.dialects.chat import Chat, chat_answers
from failwell.testing.laboratory.lab_reply import (
    BROKEN_CALL,
    HELLO,
    NOTHING,
    Answer,
    LabCall,
    LabTurn,
    Pieces,
    Reply,
    as_events,
    as_json,
    broken_streams,
)

_LINES = "application/x-ndjson"
_NUMBERS = {"total_duration": 5_000_000, "prompt_eval_count": 9, "eval_count": 5}


_JSON = "application/json; charset=utf-8"
_TYPES = {400: "invalid_request_error", 404: "not_found_error"}


def _speaks_chat(call: LabCall) -> bool:
    return call.path.endswith("/chat/completions")


def _body(call: LabCall, status: int, message: str) -> dict[str, Any]:
    if not _speaks_chat(call):
        return {"error": message}
    kind = _TYPES.get(status, "api_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _error(status: int, message: str) -> Answer:
    return lambda call: as_json(status, _body(call, status, message), kind=_JSON)


def _rate_limited(call: LabCall) -> Reply:
    return as_json(429, _body(call, 429, f"too many requests{call.wait.prose}"), *call.wait.headers)


def _line(call: LabCall, text: str, **members: Any) -> dict[str, Any]:
    shared = {"model": call.model, "created_at": "2026-01-01T00:00:00Z"}
    content: dict[str, Any] = {"message": {"role": "assistant", "content": text}}
    if call.path.endswith("/generate"):
        content = {"response": text}
    return {**shared, **content, "done": False, **members}


def _turn(call: LabCall, turn: LabTurn, reason: str = "stop") -> Reply:
    """A chat of its own API. Calls come whole, as Ollama sends them."""
    message: dict[str, Any] = {"role": "assistant", "content": "" if call.stream else turn.text}
    if turn.calls:
        calls = [
            {"function": {"name": name, "arguments": values if isinstance(values, str) else dict(values)}}
            for name, values in turn.calls
        ]
        message["tool_calls"] = calls
    last = _line(call, message["content"], done=True, done_reason=reason, **_NUMBERS)
    if "message" in last:
        last["message"] = message
    if not call.stream:
        return as_json(200, last, kind=_JSON)
    lines = [*(_line(call, piece) for piece in Pieces(turn.text)), last]
    return as_events(*(json.dumps(line).encode() + b"\n" for line in lines), kind=_LINES)


def _answer(turn: LabTurn, reason: str = "stop") -> Answer:
    return lambda call: _turn(call, turn, reason)


_FINE = _answer(HELLO)


_BROKE = json.dumps({"error": "an error was encountered while running the model"}).encode() + b"\n"


def scripted(call: LabCall, turn: LabTurn, number: int) -> Reply:
    """A scripted turn as a chat of its own API, or as a chat completion."""
    return Chat().turn(call, turn, number) if _speaks_chat(call) else _turn(call, turn)


_CHAT = {
    # An error in a stream reaches clients of chat completions as a stream that ends too early.
    **(chat := chat_answers(Chat(), {}, refused=None)),
    "in_stream_error": chat["truncated_stream"],
}


def _either(scenario: str, answer: Answer) -> Answer:
    """The answer of its own API, or that of chat completions."""
    completion = _CHAT[scenario]
    return lambda call: completion(call) if _speaks_chat(call) else answer(call)


_CLOUD = "it has no accounts; its cloud names no balance"

DIALECTS = {
    "ollama": Dialect(
        name="ollama",
        title="Ollama",
        wait="none",
        streams_by_default=True,
        scripted=scripted,
        answers={
            "ok": _either("ok", _FINE),
            "bad_key": _error(401, "unauthorized"),
            "no_permission": _error(403, "this model requires a subscription, upgrade for access"),
            "missing_model": _error(404, "model 'lab-model' not found"),
            "rate_limited": _rate_limited,
            "daily_quota": _error(
                429, "you have reached your weekly usage limit, please upgrade to continue"
            ),
            "overloaded": _error(503, "server busy, please try again. maximum pending requests exceeded"),
            "server_error": _error(500, "llama runner process has terminated: exit status 2"),
            "context_too_long": _error(400, "the input length exceeds the context length"),
            "bad_schema": _error(
                400, "json: cannot unmarshal string into Go struct field ChatRequest.options"
            ),
            "truncated_output": _either("truncated_output", _answer(HELLO, "length")),
            "empty_reply": _either("empty_reply", _answer(NOTHING)),
            "malformed_tool_call": _either("malformed_tool_call", _answer(BROKEN_CALL)),
            **{name: _either(name, answer) for name, answer in broken_streams(_FINE, _BROKE).items()},
            "out_of_memory": _error(
                500, "model requires more system memory (9.6 GiB) than is available (7.1 GiB)"
            ),
        },
        declines={
            "empty_balance": _CLOUD,
            "conflict": "it has nothing that two calls could change at once",
            "content_refused_in": "its models answer such requests or not, in their own words",
            "content_refused_out": "its models have no stop reason for it",
            "model_loading": "it loads a model while the caller waits",
        },
        differs={"in_stream_error": Differs("provider.unavailable", Certainty.PARTIAL)},
    )
}
