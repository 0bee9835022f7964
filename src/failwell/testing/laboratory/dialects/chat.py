"""Chat completions as OpenAI shapes them, which many other providers speak as well."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from failwell.testing.laboratory.dialects.chat__scripts_openai_chat import USAGE, wants_usage
from failwell.testing.laboratory.lab_reply import (
    Answer,
    Ending,
    Headers,
    LabCall,
    Reply,
    as_events,
    as_json,
    cut,
    event,
)

TEXT = ("Hello", " from", " the lab.")
_BROKEN_CALL = {
    "id": "call_lab1",
    "type": "function",
    "function": {"name": "find_city", "arguments": '{"city": "Par'},
}
_DONE = event("[DONE]")


def chat_answers(
    error: Mapping[str, Any],
    *,
    headers: Headers = (),
    length: str = "length",
    refused: str | None = "content_filter",
    extra: Mapping[str, Any] | None = None,
    last: Mapping[str, Any] | None = None,
) -> dict[str, Answer]:
    """The answers that are a 200: whole or streamed, with `error` as the event of a failing stream.

    `length` and `refused` are the words for an answer that was cut and for one that was withheld;
    without the second there is no such answer. `last` are further members of a stream's last chunk.
    """

    def answer(finish: str = "stop", **message: Any) -> Answer:
        return lambda call: _streamed(call, finish, message) if call.stream else _whole(call, finish, message)

    def _whole(call: LabCall, finish: str, message: dict[str, Any]) -> Reply:
        content = {"role": "assistant", "content": "".join(TEXT), **message}
        choice = {"index": 0, "message": content, "finish_reason": finish, "logprobs": None}
        return as_json(200, _envelope(call, "chat.completion", [choice]), *headers)

    def _streamed(call: LabCall, finish: str, message: dict[str, Any]) -> Reply:
        events = [_chunk(call, delta, None) for delta in _deltas(message)]
        return as_events(*events, *_closing(call, finish), headers=headers)

    def _closing(call: LabCall, finish: str) -> list[bytes]:
        """The events after the content: the reason of the end, and the tokens where the call wants them."""
        used = {**_envelope(call, "chat.completion.chunk", []), "usage": USAGE}
        return [_chunk(call, {}, finish, last), *([event(used)] * wants_usage(call)), _DONE]

    def _envelope(call: LabCall, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {**_described(call, kind, choices), **(extra or {})}

    def _chunk(
        call: LabCall, delta: dict[str, Any], finish: str | None, more: Mapping[str, Any] | None = None
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        envelope = _envelope(call, "chat.completion.chunk", [choice])
        del envelope["usage"]
        return event({**envelope, **(more or {})})

    def empty(call: LabCall) -> Reply:
        if call.stream:
            return _streamed(call, "stop", {"content": ""})
        return as_json(200, _envelope(call, "chat.completion", []), *headers)

    fine = answer()

    def begun(call: LabCall, ending: Ending = "whole") -> Reply:
        return cut(fine(call), ending, without=len(_closing(call, "stop")))

    def failing(call: LabCall) -> Reply:
        stream = begun(call)
        return replace(stream, pieces=(*(stream.pieces or ()), event(error)))

    answers: dict[str, Answer] = {
        "ok": fine,
        "truncated_output": answer(length),
        "empty_reply": empty,
        "malformed_tool_call": answer("tool_calls", content=None, tool_calls=[_BROKEN_CALL]),
        "truncated_stream": begun,
        "in_stream_error": failing,
        "broken_stream": lambda call: begun(call, "reset"),
    }
    if refused is not None:
        answers["content_refused_out"] = answer(refused)
    return answers


def _described(call: LabCall, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    used = USAGE if choices else {"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9}
    shared = {"id": "chatcmpl-lab1", "object": kind, "created": 1_767_225_600, "model": call.model}
    return {**shared, "choices": choices, "usage": used}


def _deltas(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    texts = TEXT if message.get("content", True) else ()
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": ""},
        *({"content": text} for text in texts),
    ]
    if calls := message.get("tool_calls"):
        deltas.append({"tool_calls": [{"index": place, **call} for place, call in enumerate(calls)]})
    return deltas
