"""OpenAI's Responses: a flat list of items, where a reasoning item belongs to the item that follows it."""

import re
from collections.abc import Sequence

from failwell.agents.messages.blocks import (
    Block,
    BlockKind,
    Message,
    MessageFormat,
    Role,
    Turn,
    as_object,
    as_text,
    is_list,
    is_object_text,
    json_or_text,
    texts_of,
)

_CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
_OUTPUTS = {output: call for call, output in _CALLS.items()}


class OpenAIResponses(MessageFormat):
    """`message`, `reasoning`, `function_call` and `function_call_output` items."""

    name = "openai-responses"
    results_in_user_turn = False
    id_pattern = re.compile(r".{1,64}", re.DOTALL)

    def read(self, messages: Sequence[Message]) -> list[Turn]:
        turns: list[Turn] = []
        for index, item in enumerate(messages):
            role, block = self._item(item, index)
            problem = "" if block.raw is item else "the message is still marked as in progress"
            # What the model produces in one go is one turn, so that results come after all of its calls.
            if role == "assistant" and turns and turns[-1].role == "assistant":
                turns[-1].blocks.append(block)
                turns[-1].sources.append(item)
                turns[-1].problem = turns[-1].problem or problem
            else:
                turns.append(Turn(role, [block], index, [item], problem))
        return turns

    def _item(self, item: Message, index: int) -> tuple[Role, Block]:
        kind = as_text(item.get("type")) or "message"
        is_open = item.get("status") == "in_progress"
        if kind in _CALLS:
            call = Block("call", item, index, as_text(item.get("call_id")), as_text(item.get("name")))
            is_whole = kind != "function_call" or is_object_text(item.get("arguments"))
            if not (call.id and call.name and is_whole) or is_open:
                call.problem = "the tool call is incomplete"
            return "assistant", call
        if kind in _OUTPUTS:
            result = Block("result", item, index, as_text(item.get("call_id")))
            result.problem = "the result has no content" if item.get("output") is None else ""
            return "tool", result
        if kind == "reasoning":
            return "assistant", Block(
                "thinking", item, index, problem="the reasoning is incomplete" if is_open else ""
            )
        if kind == "message":
            return self._message(item, index)
        # Calls of the provider's own tools, with their result inside.
        return "assistant", Block(
            "other", item, index, problem="the tool call is incomplete" if is_open else ""
        )

    def _message(self, item: Message, index: int) -> tuple[Role, Block]:
        role = as_text(item.get("role"))
        content = item.get("content")
        block_kind: BlockKind = "text" if isinstance(content, str) else "other"
        block = Block(block_kind, item, index)
        if role == "assistant":
            if is_list(content):
                block.kind = "text"
            parts = content if is_list(content) else [{"text": content}]
            members = [as_object(part) or {} for part in parts]
            if not any(part.get("text") or part.get("refusal") for part in members):
                block.problem = "the text is empty"
            elif item.get("status") == "in_progress":
                block.raw = {**item, "status": "incomplete"}
            return "assistant", block
        return ("user" if role == "user" else "system"), block

    def write_turn(self, turn: Turn) -> list[Message]:
        return [block.raw for block in turn.blocks]

    def text_block(self, text: str, index: int) -> Block:
        return Block("text", {"role": "user", "content": text}, index)

    def result_block(self, call: Block, text: str) -> Block:
        kind = _CALLS[call.raw["type"]]
        return Block(
            "result", {"type": kind, "call_id": call.id, "output": text}, call.index, call.id, call.name
        )

    def result_text(self, result: Block) -> str:
        output = result.raw.get("output")
        return texts_of(output) if is_list(output) else json_or_text(output)

    def with_result_text(self, result: Block, text: str) -> Block:
        return Block("result", {**result.raw, "output": text}, result.index, result.id, result.name)

    def with_id(self, block: Block, call_id: str) -> Block:
        raw = {**block.raw, "call_id": call_id}
        return Block(block.kind, raw, block.index, call_id, block.name, block.problem)

    def with_empty_arguments(self, call: Block) -> Block:
        raw = {**call.raw, "arguments": "{}", "status": "completed"}
        return Block("call", raw, call.index, call.id, call.name)
