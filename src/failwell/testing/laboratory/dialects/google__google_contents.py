"""What Google's generateContent refuses: turns out of order, as many responses as there are not calls, unsigned calls."""

import re
from typing import Any

from failwell.testing.laboratory.dialect__refusal import Refusal, is_text, items, members

_SIGNED_MODELS = re.compile(r"gemini-[3-9]")
"""Models whose function calls carry a signature that must come back."""


def refuse_contents(body: object, path: str) -> Refusal | None:
    """Why this request is refused; `None` if its contents are in order."""
    contents = [members(content) for content in items(members(body).get("contents"))]
    if not contents:
        return Refusal("* GenerateContentRequest.contents: contents is not specified\n")
    for place, content in enumerate(contents):
        refusal = _shape(content, f"* GenerateContentRequest.contents[{place}]")
        if refusal is not None:
            return refusal
    refusal = _order(contents)
    if refusal is None and _SIGNED_MODELS.search(path):
        refusal = _signatures(contents)
    if refusal is None and contents[-1].get("role") == "model":
        return Refusal("Please ensure that multiturn requests ends with a user role or a function response.")
    return refusal


def _shape(content: dict[str, Any], where: str) -> Refusal | None:
    if content.get("role", "user") not in ("user", "model", "function"):
        return Refusal("Please use a valid role: user, model.")
    if not items(content.get("parts")):
        return Refusal(f"{where}.parts: contents.parts must not be empty.\n")
    for position, part in enumerate(items(content["parts"])):
        data = {
            name: value
            for name, value in members(part).items()
            if name not in ("thought", "thoughtSignature")
        }
        if not data or (data.get("text") == "" and "thoughtSignature" not in members(part)):
            return Refusal(
                f"{where}.parts[{position}].data: required oneof field 'data' must have one initialized field\n"
            )
        for kind, name in (("functionCall", "function_call"), ("functionResponse", "function_response")):
            if kind in data and not is_text(members(data[kind]).get("name")):
                return Refusal(f"{where}.parts[{position}].{name}.name: Name cannot be empty.\n")
        arguments = members(data.get("functionCall")).get("args")
        if not (arguments is None or isinstance(arguments, dict)):
            return Refusal(
                f"Invalid value at '{where.removeprefix('* GenerateContentRequest.')}.parts[{position}].function_call.args'"
                " (type.googleapis.com/google.protobuf.Struct)"
            )
        response = members(data.get("functionResponse"))
        if response and not isinstance(response.get("response"), dict):
            return Refusal(f"{where}.parts[{position}].function_response.response: response is required.\n")
    return None


def _order(contents: list[dict[str, Any]]) -> Refusal | None:
    open_calls = 0
    before = ""
    for content in contents:
        calls, responses = _count(content, "functionCall"), _count(content, "functionResponse")
        if responses and not open_calls:
            return Refusal(
                "Please ensure that function response turn comes immediately after a function call turn."
            )
        if responses != open_calls:
            return Refusal(
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        role = content.get("role", "user")
        if calls and (role != "model" or before not in ("user", "function")):
            return Refusal(
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
        open_calls, before = calls, role
    if open_calls:
        return Refusal(
            "Please ensure that the number of function response parts is equal to the number of function call parts of "
            "the function call turn."
        )
    return None


def _signatures(contents: list[dict[str, Any]]) -> Refusal | None:
    """The first call of every step since the user's last text must be signed."""
    start = 0
    for place, content in enumerate(contents):
        parts = [members(part) for part in items(content["parts"])]
        if content.get("role", "user") == "user" and any("text" in part for part in parts):
            start = place
    for place in range(start, len(contents)):
        calls = [part for part in map(members, items(contents[place]["parts"])) if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            name = calls[0]["functionCall"]["name"]
            return Refusal(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
                "correctly, and missing thought_signature may lead to degraded model performance. Additional data, "
                f"function call `default_api:{name}` , position {place + 1}. Please refer to "
                "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
            )
    return None


def _count(content: dict[str, Any], kind: str) -> int:
    return sum(kind in members(part) for part in items(content.get("parts")))
