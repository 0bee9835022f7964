"""A scripted turn as a chat completion."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from failwell.testing.laboratory.lab_reply import LabCall, Reply, as_events, as_json, event
from failwell.testing.laboratory.lab_reply__turn import LabTurn, Pieces

_CHUNK = "chat.completion.chunk"
USAGE = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}


def wants_usage(call: LabCall) -> bool:
    """Whether the call asks for a last chunk that counts the tokens of the stream."""
    options: object = call.member("stream_options")
    return isinstance(options, dict) and cast("dict[str, Any]", options).get("include_usage") is True


def chat_turns(
    last: Mapping[str, Any], *, whole_calls: bool = False
) -> Callable[[LabCall, LabTurn, int], Reply]:
    """The replies of a provider whose streams end with these members in the last chunk, and may not split calls."""
    return lambda call, turn, number: chat_turn(call, turn, number, last, whole_calls=whole_calls)


def chat_turn(
    call: LabCall,
    turn: LabTurn,
    number: int,
    last: Mapping[str, Any] | None = None,
    *,
    whole_calls: bool = False,
) -> Reply:
    """The reply of chat completions, whole or streamed."""
    calls: list[dict[str, Any]] = [
        {
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        for place, (name, arguments) in enumerate(turn.arguments())
    ]
    finish = "tool_calls" if calls else "stop"
    if not call.stream:
        message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        return as_json(
            200, {**_envelope(call, number, "chat.completion"), "choices": [choice], "usage": USAGE}
        )
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in Pieces(turn.text)]
    for place, tool in enumerate(calls):
        function = tool["function"]
        if whole_calls:
            deltas.append({"tool_calls": [{"index": place, **tool}]})
            continue
        begun = {"index": place, **tool, "function": {**function, "arguments": ""}}
        deltas.append({"tool_calls": [begun]})
        deltas += [
            {"tool_calls": [{"index": place, "function": {"arguments": piece}}]}
            for piece in Pieces(function["arguments"])
        ]
    chunks = [_chunk(call, number, delta, None) for delta in deltas]
    chunks.append(_chunk(call, number, {}, finish, last))
    if wants_usage(call):
        chunks.append(event({**_envelope(call, number, _CHUNK), "choices": [], "usage": USAGE}))
    return as_events(*chunks, event("[DONE]"))


def _envelope(call: LabCall, number: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-lab{number}", "object": kind, "created": 1_767_225_600, "model": call.model}


def _chunk(
    call: LabCall,
    number: int,
    delta: dict[str, Any],
    finish: str | None,
    more: Mapping[str, Any] | None = None,
) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return event({**_envelope(call, number, _CHUNK), "choices": [choice], **(more or {})})
