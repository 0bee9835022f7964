"""A scripted turn as a reply of Cohere's chat."""

from typing import Any

from failwell.testing.laboratory.lab_reply import LabCall, Reply, as_events, as_json, event
from failwell.testing.laboratory.lab_reply__turn import LabTurn, Pieces

_USAGE = {
    "billed_units": {"input_tokens": 9, "output_tokens": 5},
    "tokens": {"input_tokens": 9, "output_tokens": 5},
}


def cohere_turn(call: LabCall, turn: LabTurn, number: int) -> Reply:
    """The reply of chat in its second version, whole or streamed."""
    finish = "TOOL_CALL" if turn.calls else "COMPLETE"
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
        return as_json(
            200, {"id": f"lab-{number}", "message": message, "finish_reason": finish, "usage": _USAGE}
        )
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
    return as_events(*events)


def _event(kind: str, **members: Any) -> bytes:
    return event({"type": kind, **members}, kind)
