"""Anthropic: the type says it, low credit is a 400 in prose, and a stream fails under a 200."""

import re
from typing import Any

from failwell.testing.laboratory.dialect import Dialect, Refusal, is_text, items, members
from failwell.testing.laboratory.lab_reply import (
    BROKEN_CALL,
    HELLO,
    HOSTED,
    NOTHING,
    Answer,
    LabCall,
    LabTurn,
    Pieces,
    Reply,
    always,
    as_events,
    as_json,
    broken_streams,
    event,
)

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


def message_turn(call: LabCall, turn: LabTurn, number: int, stop: str | None = None) -> Reply:
    """The reply of Messages, whole or streamed."""
    ended = {
        "stop_reason": stop or ("tool_use" if turn.calls else "end_turn"),
        "stop_sequence": None,
    }
    blocks = _blocks(turn, number)
    message: dict[str, Any] = {
        "id": f"msg_lab{number}",
        "type": "message",
        "role": "assistant",
        "model": call.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 5},
    }
    if not call.stream:
        return as_json(200, {**message, **ended, "content": blocks}, *_HEADERS)
    events = [_event("message_start", message=message)]
    arguments = iter(turn.arguments())
    for index, block in enumerate(blocks):
        begun, deltas = _stream(block, next(arguments)[1] if block["type"] == "tool_use" else "")
        events.append(_event("content_block_start", index=index, content_block=begun))
        events += [_event("ping")] * (index == 0)
        events += [_event("content_block_delta", index=index, delta=delta) for delta in deltas]
        events.append(_event("content_block_stop", index=index))
    events.append(_event("message_delta", delta=ended, usage={"output_tokens": 5}))
    return as_events(*events, _event("message_stop"), headers=_HEADERS)


def _blocks(turn: LabTurn, number: int) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if turn.thinking:
        blocks.append({"type": "thinking", "thinking": turn.thinking, "signature": f"sig-lab-{number}"})
    if turn.text:
        blocks.append({"type": "text", "text": turn.text})
    for place, (name, arguments) in enumerate(turn.calls):
        shared = {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": name}
        # The SDK does not look into `input`; a proxy that did not parse it leaves the text there.
        blocks.append({**shared, "input": arguments if isinstance(arguments, str) else dict(arguments)})
    return blocks


def _stream(block: dict[str, Any], arguments: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it begins, and what is added to it."""
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in Pieces(block["thinking"])]
        signature = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signature]
    if block["type"] == "text":
        return {**block, "text": ""}, [
            {"type": "text_delta", "text": piece} for piece in Pieces(block["text"])
        ]
    pieces = ["", *Pieces(arguments)]
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


_HEADERS = (("request-id", "req_lab_011"), ("anthropic-organization-id", "org-lab"))


def _body(kind: str, message: str, **details: Any) -> dict[str, Any]:
    error = {"type": kind, "message": message, **({"details": details} if details else {})}
    return {"type": "error", "error": error, "request_id": "req_lab_011"}


def _error(status: int, kind: str, message: str, **details: Any) -> Answer:
    return always(as_json(status, _body(kind, message, **details), *_HEADERS))


def _rate_limited(call: LabCall) -> Reply:
    message = f"This request would exceed your organization's rate limit of 50 requests per minute.{call.wait.prose}"
    return as_json(429, _body("rate_limit_error", message), *_HEADERS, *call.wait.headers)


def _refuse(call: LabCall) -> Reply | None:
    refusal = refuse_messages(call.body) if call.path.endswith("/messages") else None
    if refusal is None:
        return None
    return as_json(400, _body("invalid_request_error", refusal.message), *_HEADERS)


def _answer(turn: LabTurn, stop: str | None = None) -> Answer:
    return lambda call: message_turn(call, turn, 1, stop)


def _event(kind: str, **members: Any) -> bytes:
    return event({"type": kind, **members}, kind)


_FINE = _answer(HELLO)
_OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}

DIALECTS = {
    "anthropic": Dialect(
        name="anthropic",
        title="Anthropic",
        vendor="anthropic",
        refuse=_refuse,
        scripted=message_turn,
        answers={
            "ok": _FINE,
            "bad_key": _error(401, "authentication_error", "invalid x-api-key"),
            "no_permission": _error(
                403,
                "permission_error",
                "Your API key does not have permission to use the specified resource.",
            ),
            "missing_model": _error(404, "not_found_error", "model: claude-lab"),
            "rate_limited": _rate_limited,
            "daily_quota": _error(
                429,
                "rate_limit_error",
                "Your organization has reached its spend limit for this month.",
                error_code="enforced_spend_limit_reached",
            ),
            "empty_balance": _error(
                400,
                "invalid_request_error",
                "Your credit balance is too low to access the API. Please go to Plans & Billing to upgrade "
                "or purchase credits.",
            ),
            "overloaded": _error(529, "overloaded_error", "Overloaded"),
            "server_error": _error(500, "api_error", "Internal server error"),
            "gateway_timeout": _error(504, "timeout_error", "The request timed out while it was processed."),
            "conflict": _error(409, "conflict_error", "The request conflicts with another one in progress."),
            "content_refused_in": _error(
                400, "invalid_request_error", "Input blocked by content filtering policy"
            ),
            "content_refused_out": _answer(HELLO, "refusal"),
            "context_too_long": _error(
                400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"
            ),
            "bad_schema": _error(
                400, "invalid_request_error", "temperature: Input should be less than or equal to 1"
            ),
            "truncated_output": _answer(HELLO, "max_tokens"),
            "empty_reply": _answer(NOTHING),
            "malformed_tool_call": _answer(BROKEN_CALL),
            # Its block, its message and itself are closed by an event each.
            **broken_streams(_FINE, event(_OVERLOADED, "error"), after=3),
        },
        declines=HOSTED,
    )
}
