"""Shorten a conversation that is too long for its model, without taking a tool call from its result."""

from collections.abc import Callable, Iterable
from typing import Any

from failwell.agents.messages.conversation import read_tool_results
from failwell.calls.argument_checks import check_callable, check_number

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
        format: As for `failwell.repair`; recognised by the messages if it is not given.
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
