"""The tool results of a conversation, to be read and replaced: in the formats of providers, and in the messages of frameworks.

LangChain's and Pydantic AI's messages are recognised by their attributes, so neither library is imported.
A conversation that is too long for its model is shortened without taking a tool call from its result.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import partial
from typing import Any, cast

from failwell.agents.messages.blocks import MessageFormat, Turn, json_or_text
from failwell.agents.messages.formats import detect_format, message_format, plain_messages, plain_value
from failwell.calls.argument_checks import check_callable, check_number
from failwell.errors.foreign_objects import safe_call, safe_getattr


@dataclass(slots=True)
class ToolResult:
    """The result of one tool call."""

    text: str
    is_read: bool
    """Whether the model has answered since."""
    replace: Callable[[str], object]
    """Puts another text in its place; the call and its id stay."""


@dataclass(slots=True)
class Conversation:
    """A conversation whose tool results can be replaced."""

    length: int
    """Characters of all messages as JSON, about."""
    results: list[ToolResult]
    """In order."""
    write: Callable[[], list[Any]]
    """The messages with what was replaced; the others are the same objects."""


def read_tool_results(messages: Sequence[Any], format_name: str | None) -> Conversation:
    """Find the tool results in `messages`.

    Raises:
        ValueError: there is no such format.
        TypeError: a message is neither a dictionary nor an object that becomes one.
    """
    if format_name is None and messages and all(map(_is_framework_message, messages)):
        return _read_objects(list(messages))
    plain = plain_messages(messages)
    chosen = message_format(detect_format(plain) if format_name is None else format_name)
    turns = chosen.read(plain)
    last = _last(turn.role == "assistant" for turn in turns)
    results = [
        ToolResult(chosen.result_text(block), place < last, partial(_replace_block, chosen, turn, position))
        for place, turn in enumerate(turns)
        for position, block in enumerate(turn.blocks)
        if block.kind == "result"
    ]
    return Conversation(_length(plain), results, lambda: _restored(messages, plain, chosen.write(turns)))


def _replace_block(chosen: MessageFormat, turn: Turn, position: int, text: str) -> None:
    turn.blocks[position] = chosen.with_result_text(turn.blocks[position], text)
    turn.changed = True


def _restored(before: Sequence[Any], plain: list[Any], after: list[Any]) -> list[Any]:
    """The messages of an SDK as its own objects again, where they were some."""
    if len(after) != len(before):
        return after
    return [
        original if new is old else _as_type_of(original, new)
        for original, old, new in zip(before, plain, after, strict=True)
    ]


def _as_type_of(original: Any, data: Any) -> Any:
    validate = safe_getattr(cast("object", type(original)), "model_validate")
    return safe_call(cast("Any", validate), data, data) if callable(validate) else data


def _is_framework_message(message: Any) -> bool:
    return _is_langchain(message) or _is_pydantic_ai(message)


def _is_langchain(message: Any) -> bool:
    return (
        not isinstance(message, dict)
        and safe_getattr(message, "type") in ("human", "ai", "tool", "system", "function", "chat", "remove")
        and callable(safe_getattr(message, "model_copy"))
    )


def _is_pydantic_ai(message: Any) -> bool:
    return safe_getattr(message, "kind") in ("request", "response") and is_dataclass(message)


def _read_objects(messages: list[Any]) -> Conversation:
    last = _last(safe_getattr(message, "kind", "type") in ("response", "ai") for message in messages)
    results: list[ToolResult] = []
    for place, message in enumerate(messages):
        if _is_langchain(message):
            if message.type == "tool":
                change = partial(_replace_content, messages, place)
                results.append(ToolResult(json_or_text(message.content), place < last, change))
            continue
        for position, part in enumerate(message.parts):
            if safe_getattr(part, "part_kind") == "tool-return":
                change = partial(_replace_part, messages, place, position)
                text = json_or_text(plain_value(part.content))
                results.append(ToolResult(text, place < last, change))
    return Conversation(_length(messages), results, lambda: messages)


def _replace_content(messages: list[Any], place: int, text: str) -> None:
    messages[place] = messages[place].model_copy(update={"content": text})


def _replace_part(messages: list[Any], place: int, position: int, text: str) -> None:
    parts = list(messages[place].parts)
    parts[position] = replace(parts[position], content=text)
    messages[place] = replace(messages[place], parts=parts)


def _last(flags: Any) -> int:
    return max((place for place, flag in enumerate(flags) if flag), default=-1)


def _length(messages: Sequence[Any]) -> int:
    return len(json.dumps([plain_value(message) for message in messages], ensure_ascii=False, default=str))


_SHORTEST = 500
"""Characters that remain of a result that the model has not read yet."""
_SMALL = 200
"""A result of so many characters is not worth a note in its place."""


def drop_oldest_tool_results(
    messages: Iterable[Any],
    format: str | None = None,  # noqa: A002  (the word that callers look for)
    *,
    share: float = 0.5,
    summarize: Callable[[str], str] | None = None,
) -> list[Any]:
    """Take the texts of the oldest tool results out of the messages, until about `share` of their length remains.

    Calls and results stay in place, so the provider accepts the messages: only the text of a result is replaced, by a note
    that says so. Results that the model has not answered yet are cut at their end, and only where the older ones are not
    enough. The list that was passed is not changed. It is returned as it is where there is nothing to take out.

    Args:
        messages: The conversation, as dictionaries of the provider's API, as its SDK's own objects, or as messages of LangChain
            or Pydantic AI.
        format: As for `failwell.agents.repair`; recognised by the messages if it is not given.
        share: The part of the length that may remain, from 0 to 1.
        summarize: Called with the text of each result that is taken out; what it returns is put behind the note.

    Raises:
        ValueError: there is no such format, or `share` is not from 0 to 1.
        TypeError: a message is neither a dictionary nor an object that becomes one.

    Example:
        >>> from failwell.agents import drop_oldest_tool_results
        >>> call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        >>> result = {"role": "tool", "tool_call_id": "call_1", "content": "a line " * 1000}
        >>> question = {"role": "user", "content": "Read it."}
        >>> answer = {"role": "assistant", "content": "Done."}
        >>> shorter = drop_oldest_tool_results([question, {"role": "assistant", "tool_calls": [call]}, result, answer])
        >>> shorter[2]["content"]
        '[The result was removed, 7000 characters: the conversation was too long.]'
    """
    check_number("share", share, most=1.0)
    if summarize is not None:
        check_callable("summarize", summarize)
    before = list(messages)
    conversation = read_tool_results(before, format)
    left = round(conversation.length * (1 - share))
    has_changed = False
    for result in sorted(conversation.results, key=lambda result: not result.is_read):
        if left <= 0:
            break
        if len(result.text) <= _SMALL:
            continue
        shorter = _note(result.text, summarize) if result.is_read else _cut(result.text, left)
        if len(shorter) < len(result.text):
            result.replace(shorter)
            has_changed = True
            left -= len(result.text) - len(shorter)
    return conversation.write() if has_changed else before


def _note(text: str, summarize: Callable[[str], str] | None) -> str:
    """What stands for a result that the model has read."""
    note = f"[The result was removed, {len(text)} characters: the conversation was too long.]"
    summary = "" if summarize is None else summarize(text)
    return f"{note}\n{summary}" if summary else note


def _cut(text: str, left: int) -> str:
    """The beginning of a result that the model has not read yet."""
    length = max(_SHORTEST, len(text) - left)
    note = f"\n[The rest was removed, {len(text) - length} characters: the conversation was too long.]"
    return text if length >= len(text) else text[:length] + note
