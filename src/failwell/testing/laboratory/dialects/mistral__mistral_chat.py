"""What Mistral's chat completions refuse: ids of another form, roles out of order, calls and results that do not meet."""

import re
from typing import Any

from failwell.testing.laboratory.dialect__refusal import Refusal, items, members

_ID = re.compile(r"[a-zA-Z0-9]{9}")
_AFTER = {
    "system": {"system", "user", "assistant"},
    "user": {"system", "user", "assistant"},
    "assistant": {"user", "assistant", "tool"},
    "tool": {"assistant", "tool"},
}
"""Role → the roles that may follow it."""
_ORDER = {"kind": "invalid_request_message_order", "code": "3230"}


def refuse_mistral(body: object) -> Refusal | None:
    """Why this request is refused; `None` if its messages are in order."""
    messages = [members(message) for message in items(members(body).get("messages"))]
    if not messages:
        return Refusal("Conversation must have at least one message", **_ORDER)
    open_ids: list[str] = []
    before: str | None = None
    for message in messages:
        role = str(message.get("role"))
        if (before is None and role == "tool") or (
            before is not None and role not in _AFTER.get(before, set())
        ):
            return Refusal(f"Unexpected role '{role}' after role '{before}'", **_ORDER)
        if role == "tool":
            if message.get("tool_call_id") not in open_ids:
                return _unequal()
            open_ids.remove(str(message["tool_call_id"]))
        else:
            if open_ids:
                return _unequal()
            refusal = _shape(message) if role == "assistant" else None
            if refusal is not None:
                return refusal
            open_ids = [members(call)["id"] for call in items(message.get("tool_calls"))]
        before = role
    if open_ids:
        return _unequal()
    if before == "assistant" and not messages[-1].get("prefix"):
        return Refusal(
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
            **_ORDER,
        )
    return None


def _shape(message: dict[str, Any]) -> Refusal | None:
    if not message.get("content") and not message.get("tool_calls"):
        return Refusal(
            "Assistant message must have either content or tool_calls, but not none.",
            code="3240",
            kind="invalid_request_assistant_message",
        )
    for call in map(members, items(message.get("tool_calls"))):
        if not _ID.fullmatch(str(call.get("id"))):
            return Refusal(
                f"Tool call id was {call.get('id')} but must be a-z, A-Z, 0-9, with a length of 9.",
                code="3280",
                kind="invalid_function_call",
            )
    return None


def _unequal() -> Refusal:
    return Refusal("Not the same number of function calls and responses", **_ORDER)
