"""A scripted turn as a chat completion."""

from typing import Any

from failwell.apps.lab.lab_reply import LabCall, Reply, as_events, as_json, event
from failwell.apps.lab.scripts.turn import LabTurn, Pieces


def chat_turn(call: LabCall, turn: LabTurn, number: int) -> Reply:
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
        usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
        return as_json(
            200, {**_envelope(call, number, "chat.completion"), "choices": [choice], "usage": usage}
        )
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in Pieces(turn.text)]
    for place, tool in enumerate(calls):
        function = tool["function"]
        begun = {"index": place, **tool, "function": {**function, "arguments": ""}}
        deltas.append({"tool_calls": [begun]})
        deltas += [
            {"tool_calls": [{"index": place, "function": {"arguments": piece}}]}
            for piece in Pieces(function["arguments"])
        ]
    chunks = [_chunk(call, number, delta, None) for delta in deltas]
    return as_events(*chunks, _chunk(call, number, {}, finish), event("[DONE]"))


def _envelope(call: LabCall, number: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-lab{number}", "object": kind, "created": 1_767_225_600, "model": call.model}


def _chunk(call: LabCall, number: int, delta: dict[str, Any], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return event({**_envelope(call, number, "chat.completion.chunk"), "choices": [choice]})
