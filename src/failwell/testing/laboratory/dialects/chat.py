"""Chat completions as OpenAI shapes them, which many other providers speak as well."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

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

_CHUNK = "chat.completion.chunk"
USAGE = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}


def wants_usage(call: LabCall) -> bool:
    """Whether the call asks for a last chunk that counts the tokens of the stream."""
    options: object = call.member("stream_options")
    return isinstance(options, dict) and cast("dict[str, Any]", options).get("include_usage") is True


class Chat(NamedTuple):
    """How a provider speaks chat completions."""

    headers: Headers = ()
    extra: Mapping[str, Any] = {}
    """Further members of a reply and of each chunk."""
    last: Mapping[str, Any] = {}
    """Further members of a stream's last chunk."""
    whole_calls: bool = False
    """Whether its streams do not split tool calls."""

    def turn(self, call: LabCall, turn: LabTurn, number: int, finish: str | None = None) -> Reply:
        """The reply with a script's turn, whole or streamed."""
        calls: list[dict[str, Any]] = [
            {
                "id": f"call_{number}_{place}",
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for place, (name, arguments) in enumerate(turn.arguments())
        ]
        finish = finish or ("tool_calls" if calls else "stop")
        if not call.stream:
            message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
            if calls:
                message["tool_calls"] = calls
            choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
            return as_json(200, self.whole(call, number, [choice], USAGE), *self.headers)
        chunks = [self._chunk(call, number, delta, None) for delta in self._deltas(turn, calls)]
        chunks.append(self._chunk(call, number, {}, finish, self.last))
        if wants_usage(call):
            chunks.append(event({**self._envelope(call, number, _CHUNK), "choices": [], "usage": USAGE}))
        return as_events(*chunks, event("[DONE]"), headers=self.headers)

    def whole(
        self, call: LabCall, number: int, choices: list[Any], usage: Mapping[str, int]
    ) -> dict[str, Any]:
        """A reply that is not streamed."""
        return {**self._envelope(call, number, "chat.completion"), "choices": choices, "usage": usage}

    def _deltas(self, turn: LabTurn, calls: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        yield {"role": "assistant", "content": ""}
        for piece in Pieces(turn.text):
            yield {"content": piece}
        for place, tool in enumerate(calls):
            function = tool["function"]
            if self.whole_calls:
                yield {"tool_calls": [{"index": place, **tool}]}
                continue
            yield {"tool_calls": [{"index": place, **tool, "function": {**function, "arguments": ""}}]}
            for piece in Pieces(function["arguments"]):
                yield {"tool_calls": [{"index": place, "function": {"arguments": piece}}]}

    def _envelope(self, call: LabCall, number: int, kind: str) -> dict[str, Any]:
        shared = {
            "id": f"chatcmpl-lab{number}",
            "object": kind,
            "created": 1_767_225_600,
            "model": call.model,
        }
        return {**shared, **self.extra}

    def _chunk(
        self,
        call: LabCall,
        number: int,
        delta: dict[str, Any],
        finish: str | None,
        more: Mapping[str, Any] | None = None,
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return event({**self._envelope(call, number, _CHUNK), "choices": [choice], **(more or {})})


def chat_answers(
    chat: Chat, error: Mapping[str, Any], *, length: str = "length", refused: str | None = "content_filter"
) -> dict[str, Answer]:
    """The answers that are a 200: whole or streamed, with `error` as the event of a failing stream.

    `length` and `refused` are the words for an answer that was cut and for one that was withheld;
    without the second there is no such answer.
    """

    def answer(turn: LabTurn, finish: str | None = None) -> Answer:
        return lambda call: chat.turn(call, turn, 1, finish)

    def empty(call: LabCall) -> Reply:
        if call.stream:
            return chat.turn(call, NOTHING, 1)
        usage = {"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9}
        return as_json(200, chat.whole(call, 1, [], usage), *chat.headers)

    fine = answer(HELLO)

    answers: dict[str, Answer] = {
        "ok": fine,
        "truncated_output": answer(HELLO, length),
        "empty_reply": empty,
        "malformed_tool_call": answer(BROKEN_CALL),
        # The reason of the end, the tokens where the call wants them, and the last event.
        **broken_streams(fine, event(error), after=lambda call: 2 + wants_usage(call)),
    }
    if refused is not None:
        answers["content_refused_out"] = answer(HELLO, refused)
    return answers


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
