"""Messages of Pydantic AI: requests and responses with parts, as `message_history` takes them.

The objects stay what they are: parts are copied with their own dataclasses, and new ones are made by the module that
defined the messages, which is loaded if there is a message of it.
"""

import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from failwell.agents.messages.blocks import Block, MessageFormat, Turn, is_object_text, json_or_text

_CALLS = frozenset({"tool-call"})
_RESULTS = frozenset({"tool-return", "retry-prompt"})
_MODULE = "pydantic_ai.messages"


class PydanticAI(MessageFormat):
    """`ModelRequest` and `ModelResponse`. Which of them a provider gets, and how, is up to Pydantic AI."""

    name = "pydantic-ai"
    unique_ids = False

    def read(self, messages: Sequence[Any]) -> list[Turn]:
        turns: list[Turn] = []
        for index, message in enumerate(messages):
            is_response = message.kind == "response"
            blocks = [self._block(part, index) for part in message.parts]
            for block in blocks:
                block.time = message.timestamp
            turns.append(Turn("assistant" if is_response else "user", blocks, index, [message]))
        return turns

    def _block(self, part: Any, index: int) -> Block:
        kind = part.part_kind
        if kind in _CALLS:
            call = Block("call", part, index, part.tool_call_id, part.tool_name)
            is_whole = part.args is None or isinstance(part.args, dict) or is_object_text(part.args)
            call.problem = "" if is_whole and part.tool_name else "the tool call is incomplete"
            return call
        # A request to try again answers a call if it names a tool, and is a text of the user otherwise.
        if kind in _RESULTS and part.tool_name is not None:
            return Block("result", part, index, part.tool_call_id, part.tool_name)
        if kind == "thinking":
            return Block("thinking", part, index)
        if kind == "text":
            return Block("text", part, index, problem="" if part.content else "the text is empty")
        return Block("other", part, index)

    def write_turn(self, turn: Turn) -> list[Any]:
        parts = [block.raw for block in turn.blocks]
        if turn.sources:
            return [replace(turn.sources[0], parts=parts)]
        return [_classes().ModelRequest(parts=parts)]

    def text_block(self, text: str, index: int) -> Block:
        return Block("text", _classes().UserPromptPart(text), index)

    def result_block(self, call: Block, text: str) -> Block:
        kind = _classes().ToolReturnPart
        known = {field.name for field in fields(kind)}
        options: dict[str, Any] = {"outcome": "interrupted"} if "outcome" in known else {}
        if call.time is not None:
            # The time of the call, so that the same history gives the same result.
            options["timestamp"] = call.time
        part = kind(tool_name=call.name, content=text, tool_call_id=call.id, **options)
        return Block("result", part, call.index, call.id, call.name)

    def result_text(self, result: Block) -> str:
        return json_or_text(result.raw.content)

    def with_result_text(self, result: Block, text: str) -> Block:
        return Block("result", replace(result.raw, content=text), result.index, result.id, result.name)

    def with_id(self, block: Block, call_id: str) -> Block:
        part = replace(block.raw, tool_call_id=call_id)
        return Block(block.kind, part, block.index, call_id, block.name, block.problem, block.time)

    def with_empty_arguments(self, call: Block) -> Block:
        return Block("call", replace(call.raw, args={}), call.index, call.id, call.name, time=call.time)

    def valid_id(self, call_id: str) -> str:
        return call_id


def _classes() -> Any:
    return sys.modules[_MODULE]
