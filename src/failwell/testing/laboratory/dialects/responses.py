"""OpenAI's Responses: the other shape of its answers, chosen by the path that a client calls."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from failwell.testing.laboratory.dialects.chat import TEXT
from failwell.testing.laboratory.lab_reply import (
    Answer,
    Headers,
    LabCall,
    Reply,
    as_events,
    as_json,
    cut,
    event,
)

_USAGE = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 14,
}
_BROKEN_CALL: dict[str, Any] = {
    "id": "fc_lab1",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_lab1",
    "name": "find_city",
    "arguments": '{"city": "Par',
}
_PATH = "/responses"
_AFTER_CONTENT = 4
"""The events that close a stream: of its text, of its part, of its item, of itself."""


def with_responses(answers: Mapping[str, Answer], headers: Headers) -> dict[str, Answer]:
    """The same answers, and in the shape of a response where a client calls for one."""
    shaped = _answers(headers)

    def either(name: str, chat: Answer) -> Answer:
        other = shaped.get(name)
        if other is None:
            return chat
        return lambda call: (other if call.path.endswith(_PATH) else chat)(call)

    return {name: either(name, answer) for name, answer in answers.items()}


def _answers(headers: Headers) -> dict[str, Answer]:
    def answer(reason: str | None = None, output: list[dict[str, Any]] | None = None) -> Answer:
        def reply(call: LabCall) -> Reply:
            items = [_message("".join(TEXT))] if output is None else output
            body = _response(call, items, reason)
            return (
                as_events(*_events(call, body), headers=headers)
                if call.stream
                else as_json(200, body, *headers)
            )

        return reply

    def failing(call: LabCall) -> Reply:
        begun = cut(fine(call), "whole", without=_AFTER_CONTENT)
        entries = {"code": "server_error", "message": "The server had an error.", "param": None}
        pieces = begun.pieces or ()
        return replace(begun, pieces=(*pieces, _event("error", len(pieces), **entries)))

    fine = answer()
    return {
        "ok": fine,
        "content_refused_out": answer("content_filter"),
        "truncated_output": answer("max_output_tokens"),
        "empty_reply": answer(output=[]),
        "malformed_tool_call": answer(output=[_BROKEN_CALL]),
        "in_stream_error": failing,
        "truncated_stream": lambda call: cut(fine(call), "whole", without=_AFTER_CONTENT),
        "broken_stream": lambda call: cut(fine(call), "reset", without=_AFTER_CONTENT),
    }


def _response(call: LabCall, output: list[dict[str, Any]], reason: str | None) -> dict[str, Any]:
    shared: dict[str, Any] = {
        "id": "resp_lab1",
        "object": "response",
        "created_at": 1_767_225_600,
        "model": call.model,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    ended = {
        "status": "completed" if reason is None else "incomplete",
        "incomplete_details": None if reason is None else {"reason": reason},
        "error": None,
    }
    return {**shared, **ended, "output": output, "usage": _USAGE}


def _message(text: str) -> dict[str, Any]:
    return {
        "id": "msg_lab1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [_part(text)],
    }


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def _events(call: LabCall, body: dict[str, Any]) -> list[bytes]:
    begun = {**_response(call, [], None), "status": "in_progress", "usage": None}
    entries: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": begun}),
        ("response.in_progress", {"response": begun}),
    ]
    for place, item in enumerate(body["output"]):
        entries += _item(place, item)
    entries.append((f"response.{body['status']}", {"response": body}))
    return [_event(kind, number, **members) for number, (kind, members) in enumerate(entries)]


def _item(place: int, item: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """One item of the output, as it comes in."""
    where = {"item_id": item["id"], "output_index": place}
    if item["type"] == "function_call":
        empty: dict[str, Any] = {**item, "arguments": "", "status": "in_progress"}
        return [
            ("response.output_item.added", {"output_index": place, "item": empty}),
            ("response.function_call_arguments.delta", {**where, "delta": item["arguments"]}),
            ("response.function_call_arguments.done", {**where, "arguments": item["arguments"]}),
            ("response.output_item.done", {"output_index": place, "item": item}),
        ]
    inside = {**where, "content_index": 0}
    empty = {**item, "content": [], "status": "in_progress"}
    words: list[tuple[str, dict[str, Any]]] = [
        ("response.output_text.delta", {**inside, "delta": text, "logprobs": []}) for text in TEXT
    ]
    return [
        ("response.output_item.added", {"output_index": place, "item": empty}),
        ("response.content_part.added", {**inside, "part": _part("")}),
        *words,
        ("response.output_text.done", {**inside, "text": "".join(TEXT), "logprobs": []}),
        ("response.content_part.done", {**inside, "part": item["content"][0]}),
        ("response.output_item.done", {"output_index": place, "item": item}),
    ]


def _event(kind: str, number: int, **members: Any) -> bytes:
    return event({"type": kind, "sequence_number": number, **members}, kind)
