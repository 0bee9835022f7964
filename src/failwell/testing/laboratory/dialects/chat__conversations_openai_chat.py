"""What OpenAI's chat completions refuse: calls without results, results without calls, messages without content."""

from typing import Any

from failwell.testing.laboratory.dialect__refusal import Refusal, is_text, items, members

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
