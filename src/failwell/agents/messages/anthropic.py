"""Anthropic's messages: calls and results are blocks, and the results come first in the user's very next message."""

import re
from collections.abc import Sequence
from typing import Any

from failwell.agents.messages.blocks import (
    Block,
    Fix,
    Message,
    MessageFormat,
    Turn,
    as_list,
    as_object,
    as_text,
    is_list,
    json_or_text,
    texts_of,
)

_SERVER_RESULT = "_tool_result"


class Anthropic(MessageFormat):
    """`tool_use`, `tool_result`, `thinking` and `text` blocks."""

    name = "anthropic"
    starts_with_user = True
    id_pattern = re.compile(r"[a-zA-Z0-9_-]+")

    def read(self, messages: Sequence[Message]) -> list[Turn]:
        return [self._turn(message, index) for index, message in enumerate(messages)]

    def _turn(self, message: Message, index: int) -> Turn:
        role = message.get("role")
        content = message.get("content")
        if is_list(content):
            blocks = [self._block(block, index) for block in as_list(content)]
            _mark_server_results(blocks)
        elif isinstance(content, str):
            problem = "" if content.strip() else "the text is empty"
            blocks = [Block("text", content, index, problem=problem)]
        else:
            blocks = []
        turn = Turn("assistant" if role == "assistant" else "user", blocks, index, [message])
        if role not in ("assistant", "user"):
            turn.role = "system"
        if turn.role == "assistant":
            if not message.keys() <= {"role", "content"}:
                turn.problem = "a message of a request has a role and content only"
            # A stored reply without a stop reason was cut off.
            if "stop_reason" in message and message["stop_reason"] is None and blocks:
                last = blocks[-1]
                if last.kind == "call" and not last.problem:
                    last.problem = "the tool call is incomplete"
        return turn

    def _block(self, raw: Any, index: int) -> Block:
        block = as_object(raw) or {}
        kind = as_text(block.get("type"))
        if kind == "text":
            return Block(
                "text", raw, index, problem="" if as_text(block.get("text")).strip() else "the text is empty"
            )
        if kind == "thinking":
            return Block(
                "thinking", raw, index, problem="" if block.get("signature") else "the thinking is not signed"
            )
        if kind == "redacted_thinking":
            return Block(
                "thinking", raw, index, problem="" if block.get("data") else "the thinking is not signed"
            )
        if kind in ("tool_use", "server_tool_use"):
            call = Block("call" if kind == "tool_use" else "other", raw, index, as_text(block.get("id")))
            call.name = as_text(block.get("name"))
            if not (call.id and call.name and isinstance(block.get("input"), dict)):
                call.problem = "the tool call is incomplete"
            return call
        if kind == "tool_result":
            return Block("result", raw, index, as_text(block.get("tool_use_id")))
        return Block("other", raw, index, as_text(block.get("tool_use_id")))

    def write_turn(self, turn: Turn) -> list[Message]:
        role = (
            "assistant"
            if turn.role == "assistant"
            else as_text(turn.sources[0].get("role"))
            if turn.sources
            else "user"
        )
        if len(turn.blocks) == 1 and isinstance(turn.blocks[0].raw, str):
            return [{"role": role, "content": turn.blocks[0].raw}]
        return [{"role": role, "content": [_as_block(block.raw) for block in turn.blocks]}]

    def text_block(self, text: str, index: int) -> Block:
        return Block("text", {"type": "text", "text": text}, index)

    def result_block(self, call: Block, text: str) -> Block:
        raw = {"type": "tool_result", "tool_use_id": call.id, "is_error": True, "content": text}
        return Block("result", raw, call.index, call.id, call.name)

    def result_text(self, result: Block) -> str:
        content = result.raw.get("content", "")
        return texts_of(content) if is_list(content) else json_or_text(content)

    def with_result_text(self, result: Block, text: str) -> Block:
        return Block("result", {**result.raw, "content": text}, result.index, result.id, result.name)

    def with_id(self, block: Block, call_id: str) -> Block:
        key = "id" if block.kind == "call" else "tool_use_id"
        return Block(block.kind, {**block.raw, key: call_id}, block.index, call_id, block.name, block.problem)

    def with_empty_arguments(self, call: Block) -> Block:
        return Block("call", {**call.raw, "input": {}}, call.index, call.id, call.name)

    def finish(self, turns: list[Turn]) -> list[Fix]:
        """Cut the white space at the end of the model's last text: a request may not end with it."""
        if not turns or turns[-1].role != "assistant" or turns[-1].blocks[-1].kind != "text":
            return []
        last = turns[-1].blocks[-1]
        text = last.raw if isinstance(last.raw, str) else as_text(last.raw.get("text"))
        if text == text.rstrip():
            return []
        last.raw = text.rstrip() if isinstance(last.raw, str) else {**last.raw, "text": text.rstrip()}
        turns[-1].changed = True
        return [Fix(last.index, "trim_text", "the last message of the model ends with white space")]


def _as_block(raw: Any) -> Any:
    return {"type": "text", "text": raw} if isinstance(raw, str) else raw


def _mark_server_results(blocks: list[Block]) -> None:
    """Mark results of the provider's own tools whose call is not in the same message."""
    known: set[str] = set()
    for block in blocks:
        kind = as_text((as_object(block.raw) or {}).get("type"))
        if kind == "server_tool_use" and not block.problem:
            known.add(block.id)
        elif block.kind == "other" and kind.endswith(_SERVER_RESULT) and block.id not in known:
            block.problem = "the result belongs to no call"
