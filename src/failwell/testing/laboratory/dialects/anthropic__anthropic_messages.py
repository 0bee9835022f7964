"""What Anthropic's Messages refuse: calls without results in the next message, empty texts, thinking without a signature."""

import re
from typing import Any

from failwell.testing.laboratory.dialect__refusal import Refusal, is_text, items, members

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_WITHOUT_PREFILL = re.compile(r"claude-(?:opus|sonnet)-4-[6-9]|claude-[a-z]+-[5-9]")
"""Models that do not continue a message of the assistant."""


def refuse_messages(body: object) -> Refusal | None:
    """Why this request is refused; `None` if its messages are in order."""
    messages = [members(message) for message in items(members(body).get("messages"))]
    if not messages:
        return Refusal("messages: at least one message is required")
    for place, message in enumerate(messages):
        refusal = _shape(message, place, is_last=place == len(messages) - 1)
        if refusal is not None:
            return refusal
    if messages[0]["role"] != "user":
        return Refusal('messages: first message must use the "user" role')
    return _pairs(messages) or _end(messages[-1], str(members(body).get("model")))


def _shape(message: dict[str, Any], place: int, *, is_last: bool) -> Refusal | None:
    role = message.get("role")
    if role not in ("user", "assistant"):
        return Refusal(
            f'messages: Unexpected role "{role}". The Messages API accepts a top-level `system` parameter, not '
            f'"{role}" as an input message role.'
        )
    extra = next((name for name in message if name not in ("role", "content")), None)
    if extra is not None:
        return Refusal(f"messages.{place}.{extra}: Extra inputs are not permitted")
    content = message.get("content")
    if not content and not (is_last and role == "assistant"):
        if role == "user":
            return Refusal(f"messages.{place}: user messages must have non-empty content")
        return Refusal(
            f"messages.{place}: all messages must have non-empty content except for the optional final assistant "
            "message"
        )
    if isinstance(content, str):
        return _text(content) if content else None
    for position, block in enumerate(items(content)):
        refusal = _block(members(block), str(role), f"messages.{place}.content.{position}")
        if refusal is not None:
            return refusal
    last = members(items(content)[-1]).get("type") if items(content) else None
    if role == "assistant" and last in ("thinking", "redacted_thinking"):
        return Refusal(
            f"messages.{place}.content.{len(items(content)) - 1}: The final block in an assistant message cannot be "
            f"`{last}`."
        )
    return None


def _text(text: str) -> Refusal | None:
    if not text:
        return Refusal("messages: text content blocks must be non-empty")
    if not text.strip():
        return Refusal("messages: text content blocks must contain non-whitespace text")
    return None


def _block(block: dict[str, Any], role: str, where: str) -> Refusal | None:
    kind = block.get("type")
    message = where.rpartition(".content.")[0]
    if kind == "text":
        return (
            _text(block["text"])
            if isinstance(block.get("text"), str)
            else Refusal(f"{where}.text.text: Field required")
        )
    if kind == "thinking":
        if "signature" not in block:
            return Refusal(f"{where}.thinking.signature: Field required")
        return None if block["signature"] else Refusal(f"{where}: Invalid `signature` in `thinking` block")
    if kind == "tool_use":
        if role != "assistant":
            return Refusal(f"{message}: `tool_use` blocks can only be in `assistant` messages")
        if not _ID.fullmatch(str(block.get("id", ""))):
            return Refusal(f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        if not is_text(block.get("name")):
            return Refusal(f"{where}.tool_use.name: String should have at least 1 character")
        if not isinstance(block.get("input"), dict):
            return Refusal(f"{where}.tool_use.input: Input should be a valid dictionary")
    if kind == "tool_result" and role != "user":
        return Refusal(f"{message}: `tool_result` blocks can only be in `user` messages")
    return None


def _pairs(messages: list[dict[str, Any]]) -> Refusal | None:
    """Each call is answered by the blocks with which the next message begins. Messages of one side in a row are one."""
    used: set[str] = set()
    open_ids: list[str] = []
    opened_at = 0
    for place, message in _joined(messages):
        blocks = [members(block) for block in items(message["content"])]
        if message["role"] == "assistant":
            open_ids, opened_at = [], place
            for block in blocks:
                if block.get("type") != "tool_use":
                    continue
                if block["id"] in used:
                    return Refusal(f"messages.{place}.content: `tool_use` ids must be unique")
                used.add(block["id"])
                open_ids.append(block["id"])
            continue
        refusal = _results(blocks, place, open_ids, opened_at)
        if refusal is not None:
            return refusal
        open_ids = []
    return _unanswered(open_ids, opened_at) if open_ids else None


def _results(blocks: list[dict[str, Any]], place: int, open_ids: list[str], opened_at: int) -> Refusal | None:
    leading: set[str] = set()
    is_leading = True
    for position, block in enumerate(blocks):
        if block.get("type") != "tool_result":
            is_leading = False
            continue
        call_id = str(block.get("tool_use_id"))
        if call_id not in open_ids:
            return Refusal(
                f"messages.{place}.content.{position}: unexpected `tool_use_id` found in `tool_result` blocks: {call_id}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        if call_id in leading:
            return Refusal(
                f"messages.{place}.content.{position}: each tool_use must have a single result. Found multiple "
                f"`tool_result` blocks with id: {call_id}"
            )
        if is_leading:
            leading.add(call_id)
    missing = [call_id for call_id in open_ids if call_id not in leading]
    return _unanswered(missing, opened_at) if missing else None


def _unanswered(ids: list[str], place: int) -> Refusal:
    return Refusal(
        f"messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(ids)}. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def _joined(messages: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    joined: list[tuple[int, dict[str, Any]]] = []
    for place, message in enumerate(messages):
        content: Any = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(items(content))
        if joined and joined[-1][1]["role"] == message["role"]:
            joined[-1][1]["content"].extend(blocks)
        else:
            joined.append((place, {"role": message["role"], "content": blocks}))
    return joined


def _end(message: dict[str, Any], model: str) -> Refusal | None:
    if message["role"] != "assistant":
        return None
    if _WITHOUT_PREFILL.search(model):
        return Refusal(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    content = message.get("content")
    last = members(items(content)[-1]).get("text") if items(content) else content
    if isinstance(last, str) and last != last.rstrip():
        return Refusal("messages: final assistant content cannot end with trailing whitespace")
    return None
