"""A scripted turn as a reply of Bedrock's Converse."""

from typing import Any

from failwell.testing.laboratory.http_wire__eventstream import aws_event
from failwell.testing.laboratory.lab_reply import LabCall, Reply, as_events, as_json
from failwell.testing.laboratory.lab_reply__turn import LabTurn, Pieces

_USAGE = {"inputTokens": 9, "outputTokens": 5, "totalTokens": 14}
_METRICS = {"latencyMs": 41}
_STREAM = "application/vnd.amazon.eventstream"


def converse_turn(call: LabCall, turn: LabTurn, number: int) -> Reply:
    """The reply of Converse, whole or as a stream of binary frames."""
    stop = "tool_use" if turn.calls else "end_turn"
    if not call.stream:
        message = {"message": {"role": "assistant", "content": _content(turn, number)}}
        return as_json(200, {"output": message, "stopReason": stop, "usage": _USAGE, "metrics": _METRICS})
    events = [aws_event("messageStart", {"role": "assistant"})]
    for index, block in enumerate(_content(turn, number)):
        place = {"contentBlockIndex": index}
        deltas: list[dict[str, Any]]
        if "toolUse" in block:
            use = block["toolUse"]
            begun = {"toolUseId": use["toolUseId"], "name": use["name"]}
            events.append(aws_event("contentBlockStart", {**place, "start": {"toolUse": begun}}))
            arguments = turn.arguments()[index - bool(turn.text)][1]
            deltas = [{"toolUse": {"input": piece}} for piece in Pieces(arguments)]
        else:
            deltas = [{"text": piece} for piece in Pieces(block["text"])]
        events += [aws_event("contentBlockDelta", {**place, "delta": delta}) for delta in deltas]
        events.append(aws_event("contentBlockStop", place))
    events.append(aws_event("messageStop", {"stopReason": stop}))
    events.append(aws_event("metadata", {"usage": _USAGE, "metrics": _METRICS}))
    return as_events(*events, kind=_STREAM)


def _content(turn: LabTurn, number: int) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
    for place, (name, arguments) in enumerate(turn.calls):
        use = {"toolUseId": f"tooluse_{number}_{place}", "name": name, "input": dict(arguments)}
        content.append({"toolUse": use})
    return content
