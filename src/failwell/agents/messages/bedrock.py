"""Amazon Bedrock's Converse: `toolUse` and `toolResult` blocks in messages that must alternate."""

from collections.abc import Sequence
from typing import Any

from failwell.agents.messages.blocks import (
    Block,
    Message,
    MessageFormat,
    Role,
    Turn,
    as_list,
    as_object,
    as_text,
    json_or_text,
)


class Bedrock(MessageFormat):
    """`toolUse`, `toolResult`, `reasoningContent` and `text` blocks."""

    name = "bedrock"
    starts_with_user = True
    alternating = frozenset[Role]({"user", "assistant"})

    def read(self, messages: Sequence[Message]) -> list[Turn]:
        return [
            Turn(
                "assistant" if message.get("role") == "assistant" else "user",
                [self._block(block, index) for block in as_list(message.get("content"))],
                index,
                [message],
            )
            for index, message in enumerate(messages)
        ]

    def _block(self, raw: Any, index: int) -> Block:
        block = as_object(raw) or {}
        if "text" in block:
            is_blank = not as_text(block["text"]).strip()
            return Block("text", raw, index, problem="the text is empty" if is_blank else "")
        if (use := as_object(block.get("toolUse"))) is not None:
            call = Block("call", raw, index, as_text(use.get("toolUseId")), as_text(use.get("name")))
            if not (call.id and call.name and isinstance(use.get("input"), dict)):
                call.problem = "the tool call is incomplete"
            return call
        if (result := as_object(block.get("toolResult"))) is not None:
            found = Block("result", raw, index, as_text(result.get("toolUseId")))
            if not as_list(result.get("content")):
                found.problem = "the result has no content"
            return found
        if (reasoning := as_object(block.get("reasoningContent"))) is not None:
            text = as_object(reasoning.get("reasoningText")) or {}
            is_signed = bool(text.get("signature") or reasoning.get("redactedContent"))
            return Block("thinking", raw, index, problem="" if is_signed else "the thinking is not signed")
        return Block("other", raw, index)

    def write_turn(self, turn: Turn) -> list[Message]:
        role = "assistant" if turn.role == "assistant" else "user"
        return [{"role": role, "content": [block.raw for block in turn.blocks]}]

    def text_block(self, text: str, index: int) -> Block:
        return Block("text", {"text": text}, index)

    def result_block(self, call: Block, text: str) -> Block:
        raw = {"toolResult": {"toolUseId": call.id, "status": "error", "content": [{"text": text}]}}
        return Block("result", raw, call.index, call.id, call.name)

    def result_text(self, result: Block) -> str:
        content = as_list(result.raw["toolResult"].get("content"))
        parts = [as_object(block) or {} for block in content]
        return "\n".join(as_text(part.get("text")) or json_or_text(part) for part in parts)

    def with_result_text(self, result: Block, text: str) -> Block:
        return self._with(result, "toolResult", result.id, content=[{"text": text}])

    def with_id(self, block: Block, call_id: str) -> Block:
        return self._with(
            block, "toolUse" if block.kind == "call" else "toolResult", call_id, toolUseId=call_id
        )

    def with_empty_arguments(self, call: Block) -> Block:
        block = self._with(call, "toolUse", call.id, input={})
        block.problem = ""
        return block

    def _with(self, block: Block, key: str, call_id: str, **members: Any) -> Block:
        raw = {**block.raw, key: {**block.raw[key], **members}}
        return Block(block.kind, raw, block.index, call_id, block.name, block.problem)
