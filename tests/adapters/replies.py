"""Replies and stream events as the vendors send them, for tests."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from failwell import Fault, adapters

SAID = "the patient's diagnosis is"
"""What the model said: it may be in no report."""


def as_json(value: Any) -> Any:
    """A reply as parsed JSON."""
    return value


def as_object(value: Any) -> Any:
    """JSON as an SDK hands it out: objects with attributes."""
    if isinstance(value, dict):
        return SimpleNamespace(**{k: as_object(v) for k, v in cast("dict[str, Any]", value).items()})
    return [as_object(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value


def chat(stop: str | None, content: Any = SAID, **message: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "model": "m-1",
        "choices": [{"index": 0, "finish_reason": stop, "message": {"role": "assistant", "content": content, **message}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 20},
    }  # fmt: skip


def response(status: str, *output: Any, reason: str | None = None) -> dict[str, Any]:
    return {
        "object": "response",
        "status": status,
        "incomplete_details": {"reason": reason} if reason else None,
        "output": list(output),
        "usage": {"input_tokens": 10, "output_tokens": 20},
    }


def output(**part: Any) -> dict[str, Any]:
    return {"type": "message", "content": [part]}


def claude(stop: str | None, *content: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "model": "m-1",
        "stop_reason": stop,
        "content": list(content),
        "usage": {"input_tokens": 10, "output_tokens": 20},
    }


def gemini(stop: str | None, *parts: Any) -> dict[str, Any]:
    return {
        "candidates": [{"finishReason": stop, "content": {"parts": list(parts)}}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 20},
    }


def converse(stop: str, *content: Any) -> dict[str, Any]:
    return {
        "output": {"message": {"role": "assistant", "content": list(content)}},
        "stopReason": stop,
        "usage": {"inputTokens": 10, "outputTokens": 20},
    }


def cohere(stop: str, text: str = SAID) -> dict[str, Any]:
    return {
        "finish_reason": stop,
        "message": {"content": [{"type": "text", "text": text}]},
        "usage": {"tokens": {"input_tokens": 10.0, "output_tokens": 20.0}},
    }


def ollama(*, done: bool = True, stop: str | None = None, content: str = SAID) -> dict[str, Any]:
    reply = {"message": {"content": content}, "done": done, "prompt_eval_count": 10, "eval_count": 20}
    return reply | ({"done_reason": stop} if stop else {})


def tool(arguments: Any) -> list[dict[str, Any]]:
    return [
        {"index": 0, "id": "call_1", "type": "function", "function": {"name": "find", "arguments": arguments}}
    ]


TEXT = {"type": "text", "text": SAID}


def chat_chunk(text: str | None = None, stop: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text, **delta}, "finish_reason": stop}]}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def claude_stream(stop: str, *deltas: Any) -> list[Any]:
    return [
        event("message_start", message=claude(None)),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        *(event("content_block_delta", index=0, delta=delta) for delta in deltas),
        event("content_block_stop", index=0),
        event("message_delta", delta={"stop_reason": stop}, usage={"output_tokens": 20}),
        event("message_stop"),
    ]


def caught(provider: str, reply: Any) -> Fault:
    with pytest.raises(Fault) as raised:
        adapters.check_reply(provider, reply)
    return raised.value
