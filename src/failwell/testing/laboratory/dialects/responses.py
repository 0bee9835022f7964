"""OpenAI's Responses: the other shape of its answers, chosen by the path that a client calls."""

from collections.abc import Mapping
from typing import Any

from failwell.testing.laboratory.dialect import Refusal, is_text, items, members
from failwell.testing.laboratory.lab_reply import (
    BROKEN_CALL,
    HELLO,
    NOTHING,
    Answer,
    Headers,
    LabCall,
    LabTurn,
    Pieces,
    Reply,
    as_events,
    as_json,
    broken_streams,
    event,
)

_USAGE = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 14,
}
_PATH = "/responses"
_BROKE = {"code": "server_error", "message": "The server had an error.", "param": None}


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
    def answer(turn: LabTurn, reason: str | None = None) -> Answer:
        return lambda call: response_turn(call, turn, 1, reason, headers)

    fine = answer(HELLO)
    return {
        "ok": fine,
        "content_refused_out": answer(HELLO, "content_filter"),
        "truncated_output": answer(HELLO, "max_output_tokens"),
        "empty_reply": answer(NOTHING),
        "malformed_tool_call": answer(BROKEN_CALL),
        # Its text, its part, its item and itself are closed by an event each.
        **broken_streams(fine, _event("error", 6, **_BROKE), after=4),
    }


def _event(kind: str, number: int, **members: Any) -> bytes:
    return event({"type": kind, "sequence_number": number, **members}, kind)


_CALLS = {"function_call": "function call", "custom_tool_call": "custom tool call"}
_PARTS = ("output_text", "refusal")
_LONGEST_ID = 64


def refuse_responses(body: object) -> Refusal | None:
    """Why this request is refused; `None` if its input is in order."""
    request = members(body)
    if not isinstance(request.get("input"), list):
        return None
    entries = [members(item) for item in items(request["input"])]
    for place, item in enumerate(entries):
        refusal = _shape(item, f"input[{place}]")
        if refusal is not None:
            return refusal
    # Items of an earlier response are in the provider's own store.
    return _pairs(entries, is_continued=bool(request.get("previous_response_id"))) or _reasoning(entries)


def _shape(item: dict[str, Any], where: str) -> Refusal | None:
    kind = item.get("type", "message")
    if kind in _CALLS:
        texts = ("call_id", "name", "arguments" if kind == "function_call" else "input")
    elif kind in ("function_call_output", "custom_tool_call_output"):
        texts = ("call_id",)
        if item.get("output") is None:
            return _missing(f"{where}.output")
    else:
        return _message_shape(item, where) if kind == "message" else None
    for name in texts:
        if not isinstance(item.get(name), str):
            return _missing(f"{where}.{name}")
        if name != "arguments" and not is_text(item[name]):
            return Refusal(
                f"Invalid '{where}.{name}': empty string. Expected a string with minimum length 1, but got an empty "
                "string instead.",
                f"{where}.{name}",
                "empty_string",
            )
    if len(item["call_id"]) > _LONGEST_ID:
        return Refusal(
            f"Invalid '{where}.call_id': string too long. Expected a string with maximum length {_LONGEST_ID}, but got "
            f"a string with length {len(item['call_id'])} instead.",
            f"{where}.call_id",
            "string_above_max_length",
        )
    return None


def _message_shape(item: dict[str, Any], where: str) -> Refusal | None:
    if "content" not in item:
        return _missing(f"{where}.content")
    for position, part in enumerate(items(item["content"])):
        kind = members(part).get("type")
        if item.get("role") == "assistant" and kind not in _PARTS:
            return Refusal(
                f"Invalid value: '{kind}'. Supported values are: 'output_text' and 'refusal'.",
                f"{where}.content[{position}]",
                "invalid_value",
            )
    return None


def _pairs(entries: list[dict[str, Any]], *, is_continued: bool) -> Refusal | None:
    calls: dict[str, str] = {}
    answered: set[str] = set()
    ids: set[str] = set()
    for item in entries:
        kind = str(item.get("type", "message"))
        if is_text(item.get("id")):
            if item["id"] in ids:
                return Refusal(
                    f"Duplicate item found with id {item['id']}. Remove duplicate items from your input and try again.",
                    "input",
                )
            ids.add(item["id"])
        if kind in _CALLS:
            calls[item["call_id"]] = _CALLS[kind]
        elif kind.endswith("_output") and kind.removesuffix("_output") in _CALLS:
            if item["call_id"] not in calls and not is_continued:
                label = _CALLS[kind.removesuffix("_output")]
                return Refusal(
                    f"No tool call found for {label} output with call_id {item['call_id']}.", "input"
                )
            answered.add(item["call_id"])
    for call_id, label in calls.items():
        if call_id not in answered:
            return Refusal(f"No tool output found for {label} {call_id}.", "input")
    return None


def _reasoning(entries: list[dict[str, Any]]) -> Refusal | None:
    """Every reasoning item is followed by something else that the model produced."""
    waiting: str | None = None
    for item in entries:
        kind = str(item.get("type", "message"))
        if kind == "reasoning":
            waiting = str(item.get("id"))
            continue
        is_input = kind.endswith("_output") or (kind == "message" and item.get("role") != "assistant")
        if waiting is not None and is_input:
            break
        waiting = None
    if waiting is None:
        return None
    return Refusal(
        f"Item '{waiting}' of type 'reasoning' was provided without its required following item.", "input"
    )


def _missing(path: str) -> Refusal:
    return Refusal(f"Missing required parameter: '{path}'.", path, "missing_required_parameter")


_Event = tuple[str, dict[str, Any]]


def response_turn(
    call: LabCall, turn: LabTurn, number: int, reason: str | None = None, headers: Headers = ()
) -> Reply:
    """The reply of Responses, whole or streamed; `reason` says why it is incomplete."""
    output = _output(turn, number)
    begun: dict[str, Any] = {
        "id": f"resp_lab{number}",
        "object": "response",
        "created_at": 1_767_225_600,
        "model": call.model,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": "in_progress",
        "incomplete_details": None,
        "error": None,
        "output": [],
        "usage": None,
    }
    ended = {
        "status": "completed" if reason is None else "incomplete",
        "incomplete_details": None if reason is None else {"reason": reason},
        "output": output,
        "usage": _USAGE,
    }
    body = {**begun, **ended}
    if not call.stream:
        return as_json(200, body, *headers)
    events: list[_Event] = [
        ("response.created", {"response": begun}),
        ("response.in_progress", {"response": begun}),
    ]
    for place, item in enumerate(output):
        events += _item(place, item)
    events.append((f"response.{ended['status']}", {"response": body}))
    pieces = (_event(kind, order, **members) for order, (kind, members) in enumerate(events))
    return as_events(*pieces, headers=headers)


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


def _item(place: int, item: dict[str, Any]) -> list[_Event]:
    """One item of the output, as it comes in."""
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
