"""A scripted turn as a message of Anthropic's."""

from typing import Any

from failwell.testing.laboratory.lab_reply import LabCall, Reply, as_events, as_json, event
from failwell.testing.laboratory.lab_reply__turn import LabTurn, Pieces


def message_turn(call: LabCall, turn: LabTurn, number: int) -> Reply:
    """The reply of Messages, whole or streamed."""
    stop = {"stop_reason": "tool_use" if turn.calls else "end_turn", "stop_sequence": None}
    if not call.stream:
        return as_json(200, {**_message(call, number), **stop, "content": _blocks(turn, number)})
    events = [_event("message_start", message=_message(call, number))]
    arguments = iter(turn.arguments())
    for index, block in enumerate(_blocks(turn, number)):
        begun, deltas = _stream(block, next(arguments)[1] if block["type"] == "tool_use" else "")
        events.append(_event("content_block_start", index=index, content_block=begun))
        events += [_event("content_block_delta", index=index, delta=delta) for delta in deltas]
        events.append(_event("content_block_stop", index=index))
    events.append(_event("message_delta", delta=stop, usage={"output_tokens": 5}))
    return as_events(*events, _event("message_stop"))


def _blocks(turn: LabTurn, number: int) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if turn.thinking:
        blocks.append({"type": "thinking", "thinking": turn.thinking, "signature": f"sig-lab-{number}"})
    if turn.text:
        blocks.append({"type": "text", "text": turn.text})
    for place, (name, arguments) in enumerate(turn.calls):
        shared = {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": name}
        blocks.append({**shared, "input": dict(arguments)})
    return blocks


def _stream(block: dict[str, Any], arguments: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it begins, and what is added to it."""
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in Pieces(block["thinking"])]
        signature = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signature]
    if block["type"] == "text":
        return {**block, "text": ""}, [
            {"type": "text_delta", "text": piece} for piece in Pieces(block["text"])
        ]
    pieces = ["", *Pieces(arguments)]
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def _message(call: LabCall, number: int) -> dict[str, Any]:
    shared: dict[str, Any] = {
        "id": f"msg_lab{number}",
        "type": "message",
        "role": "assistant",
        "model": call.model,
    }
    ended = {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 5}}
    return {**shared, "content": [], **ended}


def _event(kind: str, **members: Any) -> bytes:
    return event({"type": kind, **members}, kind)
