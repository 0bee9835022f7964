"""Google's contents: `functionCall` and `functionResponse` parts, often without ids, as many in one turn as in the other."""

from collections.abc import Sequence
from typing import Any

from failwell.agents.messages.blocks import (
    Block,
    Fix,
    Message,
    MessageFormat,
    Role,
    Turn,
    as_list,
    as_object,
    as_text,
    json_or_text,
)

_PLACEHOLDER = "skip_thought_signature_validator"
"""The signature that Google documents for calls that carry none of their own."""


class Google(MessageFormat):
    """`parts` with `text`, `thought`, `functionCall` and `functionResponse`, in camel case or as the SDK's dictionaries."""

    name = "google"
    results_alone = True
    starts_with_user = True
    alternating = frozenset[Role]({"assistant"})
    unique_ids = False

    def read(self, messages: Sequence[Message]) -> list[Turn]:
        turns: list[Turn] = []
        waiting: dict[str, list[str]] = {}
        names: dict[str, str] = {}
        for index, content in enumerate(messages):
            blocks = [self._block(part, index) for part in as_list(content.get("parts"))]
            role = "assistant" if content.get("role") == "model" else "user"
            if role == "assistant" and any(block.kind == "call" for block in blocks):
                waiting = {}
            for position, block in enumerate(blocks):
                # Where there are no ids, a response belongs to the first call of its name that has none.
                if block.kind == "call" and not block.id:
                    block.id = f"#{index}.{position}"
                    waiting.setdefault(block.name, []).append(block.id)
                elif block.kind == "result" and not block.id:
                    ids = waiting.get(block.name)
                    block.id = ids.pop(0) if ids else ""
                if block.kind == "call":
                    names[block.id] = block.name
            turn = Turn(role, blocks, index, [content])
            for position, block in enumerate(blocks):
                if block.kind == "result" and not block.name and names.get(block.id):
                    blocks[position] = self._with(block, block.id, name=names[block.id])
                    turn.problem = "a response has the name of its function"
            turns.append(turn)
        return turns

    def _block(self, raw: Any, index: int) -> Block:
        part = as_object(raw) or {}
        if (function := as_object(_member(part, "functionCall"))) is not None:
            call = Block("call", raw, index, as_text(function.get("id")), as_text(function.get("name")))
            arguments = function.get("args")
            if not call.name or not (arguments is None or isinstance(arguments, dict)):
                call.problem = "the tool call is incomplete"
            return call
        if (function := as_object(_member(part, "functionResponse"))) is not None:
            result = Block("result", raw, index, as_text(function.get("id")), as_text(function.get("name")))
            result.problem = "" if isinstance(function.get("response"), dict) else "the result has no content"
            return result
        if "text" in part:
            kind = "thinking" if part.get("thought") else "text"
            # The signature of a whole turn may come in a part of its own, with an empty text.
            is_empty = not part["text"] and not _member(part, "thoughtSignature")
            return Block(kind, raw, index, problem="the text is empty" if is_empty else "")
        return Block("other", raw, index, problem="" if part else "the part is empty")

    def write_turn(self, turn: Turn) -> list[Message]:
        role = "model" if turn.role == "assistant" else "user"
        return [{"role": role, "parts": [block.raw for block in turn.blocks]}]

    def text_block(self, text: str, index: int) -> Block:
        return Block("text", {"text": text}, index)

    def result_block(self, call: Block, text: str) -> Block:
        response: dict[str, Any] = {"name": call.name, "response": {"error": text}}
        if not call.id.startswith("#"):
            response = {"id": call.id, **response}
        return Block("result", {"functionResponse": response}, call.index, call.id, call.name)

    def result_text(self, result: Block) -> str:
        function = as_object(_member(result.raw, "functionResponse")) or {}
        return json_or_text(function.get("response"))

    def with_result_text(self, result: Block, text: str) -> Block:
        return self._with(result, result.id, response={"result": text})

    def with_id(self, block: Block, call_id: str) -> Block:
        return self._with(block, call_id, id=call_id)

    def with_empty_arguments(self, call: Block) -> Block:
        block = self._with(call, call.id, args={})
        block.problem = ""
        return block

    def valid_id(self, call_id: str) -> str:
        return call_id

    def _with(self, block: Block, call_id: str, **members: Any) -> Block:
        camel, snake = ("functionCall", "function_call") if block.kind == "call" else _RESPONSE
        key = camel if camel in block.raw else snake
        raw = {**block.raw, key: {**block.raw[key], **members}}
        return Block(block.kind, raw, block.index, call_id, block.name, block.problem)

    def finish(self, turns: list[Turn]) -> list[Fix]:
        """Sign the first call of each step of the current turn, where the model signs its calls."""
        if not any(_is_signed(block) for turn in turns for block in turn.blocks):
            return []
        start = max(
            (n for n, turn in enumerate(turns) if turn.role == "user" and turn.of_kind("text")), default=0
        )
        fixes: list[Fix] = []
        for turn in turns[start:]:
            calls = turn.of_kind("call") if turn.role == "assistant" else []
            if calls and not _is_signed(calls[0]):
                calls[0].raw = {**calls[0].raw, "thoughtSignature": _PLACEHOLDER}
                turn.changed = True
                why = "the first call of a step must be signed"
                fixes.append(Fix(calls[0].index, "sign_call", why, _shown_id(calls[0])))
        return fixes


_RESPONSE = ("functionResponse", "function_response")


def _member(part: dict[str, Any], camel: str) -> Any:
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in camel)
    return part[camel] if camel in part else part.get(snake)


def _is_signed(block: Block) -> bool:
    return block.kind == "call" and bool(_member(block.raw, "thoughtSignature"))


def _shown_id(block: Block) -> str | None:
    return None if block.id.startswith("#") else block.id
