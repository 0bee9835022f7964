"""Shorten a conversation that is too long for its model, without taking a tool call from its result."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from failwell.agents.messages.formats import open_conversation
from failwell.agents.messages.turns import MessageFormat, Turn
from failwell.decision.bounds import check_callable, check_number

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
        messages: The conversation, as dictionaries of the provider's API or as its SDK's own objects.
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
    conversation = list(messages)
    chosen, plain = open_conversation(conversation, format)
    turns = chosen.read(plain)
    length = len(json.dumps(plain, ensure_ascii=False, default=str))
    task = _Shortening(chosen, round(length * (1 - share)), summarize)
    last = max((place for place, turn in enumerate(turns) if turn.role == "assistant"), default=-1)
    for turn in turns[: max(last, 0)]:
        task.shorten(turn, task.without)
    for turn in turns[last + 1 :]:
        task.shorten(turn, task.cut)
    return chosen.write(turns) if task.has_changed else conversation


@dataclass(slots=True)
class _Shortening:
    """How much is still to be taken out of the results."""

    format: MessageFormat
    left: int
    """Characters."""
    summarize: Callable[[str], str] | None
    has_changed: bool = False

    def shorten(self, turn: Turn, shorter: Callable[[str], str]) -> None:
        for place, block in enumerate(turn.blocks):
            if self.left <= 0:
                return
            if block.kind != "result":
                continue
            text = self.format.result_text(block)
            replacement = shorter(text) if len(text) > _SMALL else text
            if len(replacement) < len(text):
                turn.blocks[place] = self.format.with_result_text(block, replacement)
                turn.changed = self.has_changed = True
                self.left -= len(text) - len(replacement)

    def without(self, text: str) -> str:
        """The note that stands for a result."""
        note = f"[The result was removed, {len(text)} characters: the conversation was too long.]"
        summary = "" if self.summarize is None else self.summarize(text)
        return f"{note}\n{summary}" if summary else note

    def cut(self, text: str) -> str:
        """The beginning of a result that the model has not read yet."""
        length = max(_SHORTEST, len(text) - self.left)
        note = f"\n[The rest was removed, {len(text) - length} characters: the conversation was too long.]"
        return text if length >= len(text) else text[:length] + note
