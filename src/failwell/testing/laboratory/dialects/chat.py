"""Chat completions as OpenAI shapes them, which many other providers speak as well.

What OpenAI's chat completions refuse: calls without results, results without calls, messages without content.

A scripted turn as a chat completion.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from failwell.testing.laboratory.dialect import Refusal, is_text, items, members
from failwell.testing.laboratory.lab_reply import (
    Answer,
    Ending,
    Headers,
    LabCall,
    LabTurn,
    Pieces,
    Reply,
    as_events,
    as_json,
    cut,
    event,
)

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


_ROLES = ("system", "assistant", "user", "function", "tool", "developer")
_LONGEST_ID = 40


def refuse_chat(body: object) -> Refusal | None:
    """Why this request is refused; `None` if its messages are in order."""
    if "messages" not in members(body):
        return Refusal("Missing required parameter: 'messages'.", "messages", "missing_required_parameter")
    messages = items(members(body)["messages"])
    if not messages:
        return _empty_list("messages")
    for place, message in enumerate(messages):
        refusal = _shape(members(message), place)
        if refusal is not None:
            return refusal
    return _order([members(message) for message in messages])


def _shape(message: dict[str, Any], place: int) -> Refusal | None:
    role = message.get("role")
    if role not in _ROLES:
        shown = "', '".join(_ROLES[:-1])
        return Refusal(
            f"Invalid value: '{role}'. Supported values are: '{shown}', and '{_ROLES[-1]}'.",
            f"messages[{place}].role",
            "invalid_value",
        )
    calls = message.get("tool_calls") if role == "assistant" else None
    if calls == []:
        return _empty_list(f"messages[{place}].tool_calls")
    for position, call in enumerate(items(calls)):
        refusal = _call(members(call), f"messages[{place}].tool_calls[{position}]")
        if refusal is not None:
            return refusal
    return _content(message, place, may_be_null=bool(calls))


def _content(message: dict[str, Any], place: int, *, may_be_null: bool) -> Refusal | None:
    content = message.get("content")
    if content == []:
        return _empty_list(f"messages[{place}].content")
    if content is None and not may_be_null and not is_text(message.get("refusal")):
        return Refusal(
            "Invalid value for 'content': expected a string, got null.", f"messages.[{place}].content"
        )
    return None


def _call(call: dict[str, Any], where: str) -> Refusal | None:
    if not isinstance(call.get("id"), str):
        return Refusal(
            f"Missing required parameter: '{where}.id'.", f"{where}.id", "missing_required_parameter"
        )
    if len(call["id"]) > _LONGEST_ID:
        return Refusal(
            f"Invalid '{where}.id': string too long. Expected a string with maximum length {_LONGEST_ID}, but got a "
            f"string with length {len(call['id'])} instead.",
            f"{where}.id",
            "string_above_max_length",
        )
    if call.get("type") == "custom":
        return None
    function = members(call.get("function"))
    for name in ("name", "arguments"):
        if not isinstance(function.get(name), str):
            path = f"{where}.function.{name}"
            return Refusal(f"Missing required parameter: '{path}'.", path, "missing_required_parameter")
    if not function["name"]:
        path = f"{where}.function.name"
        return Refusal(
            f"Invalid '{path}': empty string. Expected a string with minimum length 1, but got an empty string "
            "instead.",
            path,
            "empty_string",
        )
    return None


def _order(messages: list[dict[str, Any]]) -> Refusal | None:
    open_ids: list[str] = []
    known: set[str] = set()
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            call_id = message.get("tool_call_id")
            if not known:
                return Refusal(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    "'tool_calls'.",
                    f"messages.[{place}].role",
                )
            if call_id not in known:
                return Refusal(
                    f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of previous message.",
                    f"messages.[{place}].tool_call_id",
                )
            open_ids = [known_id for known_id in open_ids if known_id != call_id]
            continue
        if open_ids:
            return _unanswered(open_ids, place)
        open_ids = [members(call)["id"] for call in items(message.get("tool_calls"))]
        known = set(open_ids)
    return _unanswered(open_ids, len(messages)) if open_ids else None


def _unanswered(ids: list[str], place: int) -> Refusal:
    return Refusal(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(ids)}",
        f"messages.[{place}].role",
    )


def _empty_list(path: str) -> Refusal:
    return Refusal(
        f"Invalid '{path}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        path,
        "empty_array",
    )
