"""Messages of LangChain and LangGraph: `AIMessage` with tool calls, and a `ToolMessage` for each result."""

import sys
from collections.abc import Sequence
from typing import Any

from failwell.agents.messages.blocks import Block, MessageFormat, Role, Turn, as_object, is_list, texts_of

_MODULE = "langchain_core.messages"
_ROLES: dict[str, Role] = {"human": "user", "ai": "assistant", "tool": "tool"}


class LangChain(MessageFormat):
    """The messages of LangChain. Which of them a provider gets, and how, is up to its chat model."""

    name = "langchain"
    results_in_user_turn = False
    unique_ids = False

    def read(self, messages: Sequence[Any]) -> list[Turn]:
        return [self._turn(message, index) for index, message in enumerate(messages)]

    def _turn(self, message: Any, index: int) -> Turn:
        # Chunks of a stream are messages too, and begin with the same word.
        role = _ROLES.get(_kind(message), "system")
        if role == "tool":
            return Turn(
                "tool",
                [Block("result", message, index, message.tool_call_id, message.name or "")],
                index,
                [message],
            )
        blocks = [Block("text", None, index)] if message.content else []
        if role == "assistant":
            blocks += [
                Block("call", call, index, call.get("id") or "", call.get("name") or "")
                for call in message.tool_calls
            ]
            # Calls whose arguments could not be parsed; a chat model sends them again as they are.
            blocks += [
                Block(
                    "call",
                    call,
                    index,
                    call.get("id") or "",
                    call.get("name") or "",
                    "the tool call is incomplete",
                )
                for call in message.invalid_tool_calls
            ]
            for block in blocks:
                if block.kind == "call" and not (block.id and block.name):
                    block.problem = "the tool call is incomplete"
            if not blocks and message.additional_kwargs:
                blocks.append(Block("other", None, index))
        return Turn(role, blocks, index, [message])

    def write_turn(self, turn: Turn) -> list[Any]:
        if turn.role == "tool":
            return [block.raw for block in turn.blocks]
        if not turn.sources:
            return [_classes().HumanMessage(block.raw) for block in turn.blocks]
        message = turn.sources[0]
        if turn.role != "assistant":
            return [message]
        calls = [block.raw for block in turn.of_kind("call")]
        ids = {call["id"] for call in calls}
        options = {name: value for name, value in message.additional_kwargs.items() if name != "tool_calls"}
        changes: dict[str, Any] = {
            "tool_calls": calls,
            "invalid_tool_calls": [],
            "additional_kwargs": options,
        }
        # Some chat models keep a call in the content as well.
        if is_list(message.content):
            changes["content"] = [part for part in message.content if not _is_dropped_call(part, ids)]
        return [message.model_copy(update=changes)]

    def text_block(self, text: str, index: int) -> Block:
        return Block("text", text, index)

    def result_block(self, call: Block, text: str) -> Block:
        message = _classes().ToolMessage(content=text, tool_call_id=call.id, name=call.name, status="error")
        return Block("result", message, call.index, call.id, call.name)

    def result_text(self, result: Block) -> str:
        content = result.raw.content
        return texts_of(content) if is_list(content) else str(content)

    def with_result_text(self, result: Block, text: str) -> Block:
        message = result.raw.model_copy(update={"content": text})
        return Block("result", message, result.index, result.id, result.name)

    def with_id(self, block: Block, call_id: str) -> Block:
        if block.kind == "call":
            raw = {**block.raw, "id": call_id}
        else:
            raw = block.raw.model_copy(update={"tool_call_id": call_id})
        return Block(block.kind, raw, block.index, call_id, block.name, block.problem)

    def with_empty_arguments(self, call: Block) -> Block:
        raw: dict[str, Any] = {"name": call.name, "args": {}, "id": call.id, "type": "tool_call"}
        return Block("call", raw, call.index, call.id, call.name)

    def valid_id(self, call_id: str) -> str:
        return call_id


def _kind(message: Any) -> str:
    return str(message.type).removesuffix("MessageChunk").lower()


def _is_dropped_call(part: object, ids: set[str]) -> bool:
    block = as_object(part) or {}
    return (
        block.get("type") in ("tool_use", "tool_call", "function_call")
        and (block.get("call_id") or block.get("id")) not in ids
    )


def _classes() -> Any:
    return sys.modules[_MODULE]
