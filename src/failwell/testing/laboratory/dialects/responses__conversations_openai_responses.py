"""What OpenAI's Responses refuse: calls and outputs that do not meet, reasoning without its item, items that occur twice."""

from typing import Any

from failwell.testing.laboratory.dialect__refusal import Refusal, is_text, items, members

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
        return _message(item, where) if kind == "message" else None
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


def _message(item: dict[str, Any], where: str) -> Refusal | None:
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
