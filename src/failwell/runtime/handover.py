"""What must not go from one provider to another: reasoning that only its own model may be shown again.

Providers sign their models' reasoning and refuse somebody else's. So it is taken out where a request
changes hands; what is left is made one that strict providers accept.
"""

from collections.abc import Mapping
from typing import Any, cast

_PARTS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content", "encrypted_reasoning"})
_KEYS = ("reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks")

Message = Mapping[str, Any]


def without_reasoning(messages: list[Any]) -> list[Any]:
    """The conversation without reasoning, without emptied messages, and with no role twice in a row."""
    cleaned = [_cleaned(cast("object", message)) for message in messages]
    if all(after is before for after, before in zip(cleaned, messages, strict=True)):
        return messages
    kept: list[Any] = []
    for message in cleaned:
        if message is None:
            continue
        joined = _joined(kept[-1], message) if kept else None
        if joined is None:
            kept.append(message)
        else:
            kept[-1] = joined
    return kept


def neutral(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call's arguments, with every conversation among them freed of reasoning."""
    return tuple(_free(value) for value in args), {name: _free(value) for name, value in kwargs.items()}


def _free(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    held = cast("list[Any]", value)
    return without_reasoning(held) if any(_is_message(one) for one in held) else held


def _is_message(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    held = cast("Message", value)
    return "role" in held or held.get("type") in _PARTS


def _cleaned(message: object) -> Any:
    """The message, the same object where nothing had to go; `None` where nothing is left."""
    if not isinstance(message, Mapping):
        return message
    held = cast("Message", message)
    if held.get("type") in _PARTS:
        return None
    content = held.get("content")
    parts = cast("list[Any]", content) if isinstance(content, list) else None
    kept = None if parts is None else [part for part in parts if not _is_reasoning(part)]
    extra = [name for name in _KEYS if name in held]
    if not extra and (parts is None or kept is None or len(kept) == len(parts)):
        return held
    left = {name: value for name, value in held.items() if name not in extra}
    if parts is not None:
        left["content"] = kept
    says_nothing = not left.get("content") and not left.get("tool_calls")
    return None if says_nothing else left


def _is_reasoning(part: object) -> bool:
    return isinstance(part, Mapping) and cast("Message", part).get("type") in _PARTS


def _joined(before: object, after: object) -> Any:
    """Two messages of one role as one; `None` where they cannot be joined."""
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return None
    one, two = cast("Message", before), cast("Message", after)
    role = one.get("role")
    if role not in ("user", "assistant") or two.get("role") != role:
        return None
    said, more = one.get("content"), two.get("content")
    if isinstance(said, str) and isinstance(more, str):
        content: Any = f"{said}\n\n{more}"
    else:
        content = [*_parts(said), *_parts(more)]
    joined = {**one, **two, "content": content}
    calls: list[Any] = [*(one.get("tool_calls") or ()), *(two.get("tool_calls") or ())]
    return {**joined, "tool_calls": calls} if calls else joined


def _parts(content: object) -> list[Any]:
    if isinstance(content, list):
        return [*cast("list[Any]", content)]
    return [{"type": "text", "text": content}] if content else []
