"""OpenAI's chat completions, which many providers speak: each result is a message of its own with the role `tool`."""

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
    is_object_text,
    texts_of,
)

_BRIDGE = "(interrupted)"
_ROLES = {"user": "user", "assistant": "assistant", "tool": "tool"}


class OpenAIChat(MessageFormat):
    """`role`, `content`, `tool_calls` and `tool_call_id`."""

    name = "openai"
    results_in_user_turn = False
    unique_ids = False
    id_pattern = re.compile(r".{1,40}", re.DOTALL)

    def read(self, messages: Sequence[Message]) -> list[Turn]:
        return [self._turn(message, index) for index, message in enumerate(messages)]

    def _turn(self, message: Message, index: int) -> Turn:
        role = _ROLES.get(as_text(message.get("role")), "system")
        if role == "tool":
            return Turn("tool", [self._result(message, index)], index, [message])
        blocks = self._content(message, index, assistant=role == "assistant")
        if role == "assistant":
            blocks += [self._call(call, index) for call in as_list(message.get("tool_calls"))]
            if message.get("function_call") is not None or message.get("audio") is not None:
                blocks.append(Block("other", None, index))
        turn = Turn("assistant" if role == "assistant" else "user", blocks, index, [message])
        if role == "system":
            turn.role = "system"
        if role == "assistant" and [] in (message.get("tool_calls"), message.get("content")):
            turn.problem = "an empty list is refused"
        return turn

    def _content(self, message: Message, index: int, *, assistant: bool) -> list[Block]:
        content = message.get("content")
        if is_list(content):
            return [self._part(part, index, assistant=assistant) for part in as_list(content)]
        blocks: list[Block] = []
        if isinstance(content, str) and (content or not assistant):
            blocks.append(Block("text", content, index))
        if content is None and not assistant:
            blocks.append(Block("text", content, index, problem="the message has no content"))
        if assistant and as_text(message.get("refusal")):
            blocks.append(Block("other", None, index))
        return blocks

    def _part(self, part: Any, index: int, *, assistant: bool) -> Block:
        block = as_object(part) or {}
        if block.get("type") == "text":
            is_empty = assistant and not block.get("text")
            return Block("text", part, index, problem="the text is empty" if is_empty else "")
        return Block("other", part, index)

    def _call(self, raw: Any, index: int) -> Block:
        call = as_object(raw) or {}
        function = as_object(call.get("function"))
        if function is None:
            # A custom tool has free text as its input.
            custom = as_object(call.get("custom")) or {}
            block = Block("call", raw, index, as_text(call.get("id")), as_text(custom.get("name")))
            is_whole = bool(block.id and block.name and isinstance(custom.get("input"), str))
        else:
            block = Block("call", raw, index, as_text(call.get("id")), as_text(function.get("name")))
            is_whole = bool(block.id and block.name and is_object_text(function.get("arguments")))
        block.problem = "" if is_whole else "the tool call is incomplete"
        return block

    def _result(self, message: Message, index: int) -> Block:
        block = Block(
            "result", message, index, as_text(message.get("tool_call_id")), as_text(message.get("name"))
        )
        if message.get("content") is None:
            block.problem = "the result has no content"
        return block

    def write_turn(self, turn: Turn) -> list[Message]:
        if turn.role == "tool":
            return [block.raw for block in turn.blocks]
        base: Message = dict(turn.sources[0]) if turn.sources else {"role": turn.role}
        texts = turn.of_kind("text")
        if is_list(base.get("content")):
            base["content"] = [
                block.raw for block in turn.blocks if block.kind != "call" and block.raw is not None
            ]
        elif texts:
            base["content"] = "".join(block.raw for block in texts)
        else:
            base["content"] = None
        calls = [block.raw for block in turn.of_kind("call")]
        base.pop("tool_calls", None)
        if calls:
            base["tool_calls"] = calls
            base["content"] = base["content"] or None
        return [base]

    def text_block(self, text: str, index: int) -> Block:
        return Block("text", text, index)

    def result_block(self, call: Block, text: str) -> Block:
        raw = {"role": "tool", "tool_call_id": call.id, "content": text}
        return Block("result", raw, call.index, call.id, call.name)

    def result_text(self, result: Block) -> str:
        content = result.raw.get("content")
        return texts_of(content) if is_list(content) else as_text(content)

    def with_result_text(self, result: Block, text: str) -> Block:
        return Block("result", {**result.raw, "content": text}, result.index, result.id, result.name)

    def with_id(self, block: Block, call_id: str) -> Block:
        key = "id" if block.kind == "call" else "tool_call_id"
        return Block(block.kind, {**block.raw, key: call_id}, block.index, call_id, block.name, block.problem)

    def with_empty_arguments(self, call: Block) -> Block:
        function = {**(as_object(call.raw.get("function")) or {}), "arguments": "{}"}
        raw = {**call.raw, "type": "function", "function": function}
        return Block("call", raw, call.index, call.id, call.name)


class Mistral(OpenAIChat):
    """Mistral's chat completions: ids are nine letters or digits, and every result names its tool."""

    name = "mistral"
    id_pattern = re.compile(r"[a-zA-Z0-9]{9}")
    id_length = 9

    def result_block(self, call: Block, text: str) -> Block:
        block = super().result_block(call, text)
        block.raw["name"] = call.name
        return block

    def finish(self, turns: list[Turn]) -> list[Fix]:
        """Let the model answer every result before the user speaks again: Mistral refuses a user after a tool."""
        fixes: list[Fix] = []
        ordered: list[Turn] = []
        for turn in turns:
            if turn.role == "user" and ordered and ordered[-1].role == "tool":
                message = {"role": "assistant", "content": _BRIDGE}
                ordered.append(Turn("assistant", [Block("text", _BRIDGE, turn.index)], turn.index, [message]))
                fixes.append(Fix(turn.index, "add_message", "a message of the user may not follow a result"))
            ordered.append(turn)
        turns[:] = ordered
        return fixes


class Cohere(OpenAIChat):
    """Cohere's second version of chat: as OpenAI's, with ids of any form and texts about a plan to call tools."""

    name = "cohere"
    id_pattern = re.compile(r".+", re.DOTALL)

    def write_turn(self, turn: Turn) -> list[Message]:
        messages = super().write_turn(turn)
        for message in messages:
            if message.get("content") is None:
                message.pop("content", None)
        return messages
