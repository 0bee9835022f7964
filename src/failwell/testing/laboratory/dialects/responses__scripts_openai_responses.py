"""A scripted turn as a response of OpenAI's Responses."""

from typing import Any

from failwell.testing.laboratory.lab_reply import LabCall, Reply, as_events, as_json, event
from failwell.testing.laboratory.lab_reply__turn import LabTurn, Pieces

_Event = tuple[str, dict[str, Any]]
_USAGE = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 14,
}


def response_turn(call: LabCall, turn: LabTurn, number: int) -> Reply:
    """The reply of Responses, whole or streamed."""
    output = _output(turn, number)
    body = {**_response(call, number), "status": "completed", "output": output, "usage": _USAGE}
    if not call.stream:
        return as_json(200, body)
    begun: dict[str, Any] = {**_response(call, number), "status": "in_progress", "output": [], "usage": None}
    events: list[_Event] = [("response.created", {"response": begun})]
    for place, item in enumerate(output):
        events += _events(place, item)
    events.append(("response.completed", {"response": body}))
    return as_events(
        *(
            event({"type": kind, "sequence_number": order, **members}, kind)
            for order, (kind, members) in enumerate(events)
        )
    )


def _output(turn: LabTurn, number: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if turn.thinking:
        summary = [{"type": "summary_text", "text": turn.thinking}]
        items.append({"id": f"rs_lab{number}", "type": "reasoning", "summary": summary})
    if turn.text:
        part: dict[str, Any] = {"type": "output_text", "text": turn.text, "annotations": []}
        shared = {"id": f"msg_lab{number}", "type": "message", "role": "assistant", "status": "completed"}
        items.append({**shared, "content": [part]})
    for place, (name, arguments) in enumerate(turn.arguments()):
        call = {"id": f"fc_lab{number}_{place}", "type": "function_call", "status": "completed"}
        items.append({**call, "call_id": f"call_{number}_{place}", "name": name, "arguments": arguments})
    return items


def _response(call: LabCall, number: int) -> dict[str, Any]:
    shared = {
        "id": f"resp_lab{number}",
        "object": "response",
        "created_at": 1_767_225_600,
        "model": call.model,
    }
    settings: dict[str, Any] = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {**shared, **settings, "incomplete_details": None, "error": None}


def _events(place: int, item: dict[str, Any]) -> list[_Event]:
    where = {"item_id": item["id"], "output_index": place}
    done = ("response.output_item.done", {"output_index": place, "item": item})
    if item["type"] == "reasoning":
        inside = {**where, "summary_index": 0}
        part = {"type": "summary_text", "text": ""}
        text = item["summary"][0]["text"]
        return [
            _added(place, {**item, "summary": []}),
            ("response.reasoning_summary_part.added", {**inside, "part": part}),
            *(
                ("response.reasoning_summary_text.delta", {**inside, "delta": piece})
                for piece in Pieces(text)
            ),
            ("response.reasoning_summary_text.done", {**inside, "text": text}),
            ("response.reasoning_summary_part.done", {**inside, "part": {**part, "text": text}}),
            done,
        ]
    if item["type"] == "function_call":
        arguments = item["arguments"]
        return [
            _added(place, {**item, "arguments": "", "status": "in_progress"}),
            *(
                ("response.function_call_arguments.delta", {**where, "delta": piece})
                for piece in Pieces(arguments)
            ),
            (
                "response.function_call_arguments.done",
                {**where, "arguments": arguments, "name": item["name"]},
            ),
            done,
        ]
    inside = {**where, "content_index": 0}
    part = item["content"][0]
    return [
        _added(place, {**item, "content": [], "status": "in_progress"}),
        ("response.content_part.added", {**inside, "part": {**part, "text": ""}}),
        *(
            ("response.output_text.delta", {**inside, "delta": piece, "logprobs": []})
            for piece in Pieces(part["text"])
        ),
        ("response.output_text.done", {**inside, "text": part["text"], "logprobs": []}),
        ("response.content_part.done", {**inside, "part": part}),
        done,
    ]


def _added(place: int, item: dict[str, Any]) -> _Event:
    return "response.output_item.added", {"output_index": place, "item": item}
