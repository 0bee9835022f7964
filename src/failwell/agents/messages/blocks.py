"""A conversation as turns and blocks: the shape that every message format is read into and written from.

A turn that nobody changed is written as the very messages it was read from.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal, TypeGuard, cast

Message = dict[str, Any]
"""One message, content or item, as the provider's JSON has it."""
Role = Literal["system", "user", "assistant", "tool"]
BlockKind = Literal["text", "thinking", "call", "result", "other"]


@dataclass(slots=True)
class Block:
    """One part of a turn: a text, some thinking, a tool call, the result of one, or anything else."""

    kind: BlockKind
    raw: Any
    """The block as the message holds it."""
    index: int
    """The position of its message in the list."""
    id: str = ""
    """The id of the tool call, for calls and results."""
    name: str = ""
    """The tool's name, if the block says it."""
    problem: str = ""
    """Why the provider would refuse the block; empty if it is whole."""
    time: Any = None
    """When its message was written, where messages have a time."""


@dataclass(slots=True)
class Turn:
    """What one side says before the other answers, or one message of it."""

    role: Role
    blocks: list[Block]
    index: int
    """The position of its first message in the list."""
    sources: list[Any] = field(default_factory=list[Any])
    """The messages it was read from."""
    problem: str = ""
    """Why the provider would refuse the message even if its blocks are whole."""
    changed: bool = False

    def of_kind(self, kind: BlockKind) -> list[Block]:
        """Its blocks of one kind."""
        return [block for block in self.blocks if block.kind == kind]


class MessageFormat(ABC):
    """How one provider writes conversations, and which of its rules concern their order."""

    name: str
    results_in_user_turn = True
    """Whether results are blocks of the user's next message, or messages of their own."""
    results_alone = False
    """Whether the results have a message for themselves, apart from the user's texts."""
    starts_with_user = False
    alternating: frozenset[Role] = frozenset()
    """The sides that may not have two turns in a row."""
    unique_ids = True
    """Whether a call's id may occur only once in a conversation."""
    id_pattern: re.Pattern[str] = re.compile(r"[a-zA-Z0-9_-]{1,64}")
    """What the id of a tool call must match in full."""
    id_length = 24
    """The length of an id that replaces one that does not match."""

    @abstractmethod
    def read(self, messages: Sequence[Message]) -> list[Turn]:
        """The turns of a conversation."""

    @abstractmethod
    def write_turn(self, turn: Turn) -> list[Message]:
        """The messages of a turn whose blocks were changed."""

    @abstractmethod
    def text_block(self, text: str, index: int) -> Block:
        """A text of the user."""

    @abstractmethod
    def result_block(self, call: Block, text: str) -> Block:
        """A result for `call`."""

    @abstractmethod
    def result_text(self, result: Block) -> str:
        """The text of a result, or its JSON where it is not text."""

    @abstractmethod
    def with_result_text(self, result: Block, text: str) -> Block:
        """The same result with another text."""

    @abstractmethod
    def with_id(self, block: Block, call_id: str) -> Block:
        """The same call or result with another id."""

    @abstractmethod
    def with_empty_arguments(self, call: Block) -> Block:
        """The same call without arguments."""

    def finish(self, turns: list[Turn]) -> list["Fix"]:
        """Mend what is special to this format, at the end of a repair. Returns what was changed."""
        _ = turns
        return []

    def user_turn(self, text: str, index: int) -> Turn:
        """A message of the user."""
        return Turn("user", [self.text_block(text, index)], index, changed=True)

    def write(self, turns: Iterable[Turn]) -> list[Message]:
        """The messages of a conversation."""
        messages: list[Message] = []
        for turn in turns:
            messages += self.write_turn(turn) if turn.changed else turn.sources
        return messages

    def valid_id(self, call_id: str) -> str:
        """The id itself if this provider accepts it, else one that is derived from it."""
        if self.id_pattern.fullmatch(call_id):
            return call_id
        return sha256(call_id.encode("utf-8", "replace")).hexdigest()[: self.id_length]


@dataclass(frozen=True, slots=True)
class Fix:
    """One thing that a format mended at the end of a repair."""

    index: int
    what: str
    why: str
    call_id: str | None = None


def as_object(value: object) -> dict[str, Any] | None:
    """The value if it is a JSON object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[Any]:
    """The value if it is a list, else nothing."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether the value is a list."""
    return isinstance(value, list)


def as_text(value: object) -> str:
    """The value if it is a string, else nothing."""
    return value if isinstance(value, str) else ""


def is_object_text(text: object) -> bool:
    """Whether the text is a JSON object, as the arguments of a tool call must be."""
    if not isinstance(text, str):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def json_or_text(value: object) -> str:
    """A string as it is, and anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def texts_of(blocks: Iterable[object]) -> str:
    """The texts of a list of content blocks; its JSON if one of them is not text."""
    content = list(blocks)
    texts = [(as_object(block) or {}).get("text") for block in content]
    if all(isinstance(text, str) for text in texts):
        return "\n".join(map(str, texts))
    return json_or_text(content)
