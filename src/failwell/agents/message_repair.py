"""Make the messages of an interrupted run acceptable again, in the format of any provider.

Providers refuse a conversation in which a tool call has no result, a result no call, or a message is half written. One
pass over the messages, no clock and no random numbers: the same messages give the same result, and a repaired list stays
as it is.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from failwell.agents.messages.blocks import Block, MessageFormat, Turn
from failwell.agents.messages.formats import open_conversation
from failwell.errors.kind_registry import kind as registered

INTERRUPTED = "tool.interrupted"
"""The kind of the result that closes a call."""
_NO_CONTENT = "(no content)"


@dataclass(frozen=True, slots=True)
class MessageChange:
    """One thing that `repair` changed."""

    index: int
    """The position of the message in the list that was passed."""
    what: str
    """`close_call`, `drop_call`, `drop_result`, `move_result`, `fill_result`, `empty_arguments`, `rename_call`,
    `sign_call`, `drop_block`, `drop_message`, `merge_messages`, `rewrite_message`,
    `trim_text`, `add_message` or `add_prompt`."""
    why: str
    call_id: str | None = None
    """The tool call that it is about, if it is about one and the call has an id."""


class RepairedMessages(NamedTuple):
    """The messages to send, and what was changed."""

    messages: list[Any]
    changes: tuple[MessageChange, ...]


def repair(
    messages: Iterable[object],
    format: str | None = None,  # noqa: A002  (the word that callers look for)
    *,
    started: Collection[str] | None = None,
    continue_with: str | None = None,
) -> RepairedMessages:
    """Close open tool calls and drop what is half written, so that the provider accepts the next request.

    A call without a result gets one that says that the call was interrupted and whether it may have run. Results without a
    call, empty texts, unsigned thinking and calls whose arguments are cut off are dropped. The list that was passed is not
    changed; messages that need no change are the same objects in the new list.

    Args:
        messages: The conversation, as dictionaries of the provider's API or as its SDK's own objects. A system prompt that
            the provider takes as a parameter of its own is not part of it.
        format: `openai` (chat completions and everything compatible), `openai-responses`, `anthropic`, `google`, `bedrock`,
            `mistral` or `cohere`; for the message objects of a framework `pydantic-ai` or `langchain`. It is recognised by
            the messages if it is not given.
        started: The ids of the tool calls that were started, if you know them. The results of the others say that they
            did not run. Without it every open call may have run.
        continue_with: The text of a user's message that is added if the model spoke last. Several providers refuse a request
            that ends with the model's turn.

    Raises:
        ValueError: there is no such format.
        TypeError: a message is neither a dictionary nor an object that becomes one.

    Example:
        >>> from failwell.agents import repair
        >>> call = {"id": "call_1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
        >>> messages, changes = repair([{"role": "user", "content": "Pay."}, {"role": "assistant", "tool_calls": [call]}])
        >>> messages[-1]["tool_call_id"], changes[0].what
        ('call_1', 'close_call')
    """
    chosen, plain = open_conversation(messages, format)
    task = _Repair(chosen, started)
    turns = task.emit(chosen.read(plain))
    if continue_with is not None and (not turns or turns[-1].role in ("assistant", "system")):
        turns.append(chosen.user_turn(continue_with, len(plain)))
        task.note(len(plain), "add_prompt", "the model spoke last")
    return RepairedMessages(chosen.write(turns), tuple(task.changes))


def interrupted_result(tool: str, *, may_have_run: bool) -> str:
    """The result of a call that was interrupted, as the model sees it: JSON with the kind, the advice and the tool."""
    kind = registered(INTERRUPTED)
    shown: dict[str, Any] = {
        "kind": INTERRUPTED,
        "title": kind.title,
        "category": kind.category.value,
        "retryable": False,
        "action": kind.action.value,
        "advice": kind.advice,
        "context": {"tool": tool, "may_have_run": may_have_run},
    }
    return json.dumps(shown, ensure_ascii=False)


@dataclass(slots=True)
class _Pair:
    """A tool call and its result."""

    call: Block
    turn: Turn
    own_id: str
    """The call's id in the messages that were passed."""
    result: Block | None = None
    result_turn: Turn | None = None
    place: int = 0
    is_in_place: bool = True


@dataclass(slots=True)
class _Repair:
    """One repair: the format, and what was changed so far."""

    format: MessageFormat
    started: Collection[str] | None
    changes: list[MessageChange] = field(default_factory=list[MessageChange])
    ids: Counter[str] = field(default_factory=Counter[str])
    has_begun: bool = False
    """Whether the user has spoken."""

    def note(self, index: int, what: str, why: str, block: Block | None = None) -> None:
        shown = None if block is None or block.id.startswith("#") else block.id or None
        self.changes.append(MessageChange(index, what, why, shown))

    def emit(self, turns: list[Turn]) -> list[Turn]:
        """The turns that the provider accepts."""
        pairs = self._pair(turns)
        out: list[Turn] = []
        answers: Turn | None = None
        for turn in turns:
            if turn.role == "assistant":
                answers = self._emit_assistant(turn, pairs.get(id(turn), []), out)
            elif turn.role == "tool":
                continue
            else:
                self._emit_user(turn, answers, out)
                answers = None
        out = self._merge(out)
        for fix in self.format.finish(out):
            self.changes.append(MessageChange(fix.index, fix.what, fix.why, fix.call_id))
        return out

    def _pair(self, turns: list[Turn]) -> dict[int, list[_Pair]]:
        """The calls of each turn with their results. Results that belong to no call are noted."""
        pairs: dict[int, list[_Pair]] = {}
        open_calls: dict[str, list[_Pair]] = {}
        owner: Turn | None = None
        place = 0
        for turn in turns:
            is_first = True
            for block in turn.blocks:
                place += 1
                if block.kind == "call" and turn.role == "assistant":
                    pair = _Pair(block, turn, block.id, place=place)
                    pairs.setdefault(id(turn), []).append(pair)
                    same = open_calls.get(block.id)
                    if same is None or same[0].turn is not turn:
                        same = open_calls[block.id] = []
                    same.append(pair)
                elif block.kind == "result":
                    self._answer(
                        block, turn, open_calls.get(block.id, []), place, owner if is_first else None
                    )
                else:
                    is_first = False
            if turn.role == "assistant":
                owner = turn
            elif turn.role != "tool":
                owner = None
        return pairs

    def _answer(self, result: Block, turn: Turn, pairs: list[_Pair], place: int, owner: Turn | None) -> None:
        pair = next((pair for pair in pairs if pair.result is None), None)
        if pair is None and pairs and result.id:
            last = pairs[-1]
            # The tool answered after all, when its call had already been closed.
            if self._is_placeholder(last.result) and not self._is_placeholder(result):
                assert last.result is not None
                self.note(last.result.index, "drop_result", "the tool's own result came later", result)
                pair = last
        if pair is None or not result.id:
            why = (
                "its call has a result already" if pairs and result.id else "it belongs to no call before it"
            )
            self.note(result.index, "drop_result", why, result)
            return
        pair.result, pair.result_turn, pair.place = result, turn, place
        pair.is_in_place = owner is pair.turn

    def _is_placeholder(self, result: Block | None) -> bool:
        return result is not None and INTERRUPTED in self.format.result_text(result)[:500]

    def _emit_assistant(self, turn: Turn, pairs: list[_Pair], out: list[Turn]) -> Turn | None:
        """Append the model's turn and the results of its calls. Returns the turn of the results if the user's is."""
        if self.format.starts_with_user and not self.has_begun:
            self.note(turn.index, "drop_message", "a conversation starts with the user")
            for pair in pairs:
                if pair.result is not None:
                    self.note(pair.result.index, "drop_result", "its call was dropped", pair.result)
            return None
        live = self._clean_assistant(turn, pairs)
        if not turn.blocks:
            self.note(turn.index, "drop_message", "nothing of it is complete")
            return None
        if turn.problem:
            self.note(turn.index, "rewrite_message", turn.problem)
            turn.changed = True
        out.append(turn)
        if not live:
            return None
        turns = self._results(turn, live)
        out += turns
        return turns[0] if self.format.results_in_user_turn else None

    def _clean_assistant(self, turn: Turn, pairs: list[_Pair]) -> list[_Pair]:
        """Drop the half blocks of a model's turn and mend the others. Returns the calls that remain."""
        by_call = {id(pair.call): pair for pair in pairs}
        blocks: list[Block] = []
        live: list[_Pair] = []
        before = turn.blocks
        for block in before:
            pair = by_call.get(id(block))
            if pair is not None and block.problem and pair.result is not None and block.name:
                # It was answered, so it stays, with arguments that the provider accepts.
                self.note(block.index, "empty_arguments", "its arguments are not a JSON object", block)
                pair.call = self.format.with_empty_arguments(block)
            elif block.problem:
                self._drop(block, pair)
                continue
            if pair is not None:
                self._rename(pair)
                live.append(pair)
                block = pair.call  # noqa: PLW2901  (the mended call takes its place)
            blocks.append(block)
        while blocks and blocks[-1].kind == "thinking":
            thinking = blocks.pop()
            self.note(thinking.index, "drop_block", "nothing follows the thinking", thinking)
        turn.changed |= len(blocks) != len(before) or any(
            a is not b for a, b in zip(blocks, before, strict=False)
        )
        turn.blocks = blocks
        return live

    def _drop(self, block: Block, pair: _Pair | None) -> None:
        what = "drop_call" if block.kind == "call" else "drop_block"
        self.note(block.index, what, block.problem, block)
        if pair is not None and pair.result is not None:
            self.note(pair.result.index, "drop_result", "its call was dropped", pair.result)

    def _rename(self, pair: _Pair) -> None:
        """Give the call and its result another id if the provider would refuse this one."""
        current = pair.call.id
        wanted = self.format.valid_id(current)
        key = wanted if self.format.unique_ids else f"{id(pair.turn)} {wanted}"
        while self.ids[key]:
            self.ids[key] += 1
            wanted = self.format.valid_id(f"{wanted[:50]}_{self.ids[key]}")
            key = wanted if self.format.unique_ids else f"{id(pair.turn)} {wanted}"
        self.ids[key] = 1
        if wanted == current:
            return
        self.note(pair.call.index, "rename_call", "its id is refused or used twice", pair.call)
        pair.call = self.format.with_id(pair.call, wanted)
        if pair.result is not None:
            pair.result = self.format.with_id(pair.result, wanted)

    def _results(self, turn: Turn, live: list[_Pair]) -> list[Turn]:
        """The turns with the results of a turn's calls: existing ones in their order, then those that are added."""
        results: list[tuple[Block, Turn | None]] = []
        for pair in sorted((pair for pair in live if pair.result is not None), key=lambda pair: pair.place):
            result = pair.result
            assert result is not None
            if result.problem:
                self.note(result.index, "fill_result", result.problem, result)
                result = self.format.with_result_text(result, _NO_CONTENT)
            if not pair.is_in_place:
                self.note(result.index, "move_result", "results follow their calls at once", result)
            results.append((result, pair.result_turn))
        for pair in live:
            if pair.result is None:
                may_have_run = self.started is None or pair.own_id in self.started
                text = interrupted_result(pair.call.name, may_have_run=may_have_run)
                results.append((self.format.result_block(pair.call, text), None))
                self.note(pair.call.index, "close_call", "the call has no result", pair.call)
        if self.format.results_in_user_turn:
            return [Turn("user", [result for result, _ in results], turn.index, changed=True)]
        return [
            home
            if home is not None and len(home.blocks) == 1 and home.blocks[0] is result
            else Turn("tool", [result], result.index, changed=True)
            for result, home in results
        ]

    def _emit_user(self, turn: Turn, answers: Turn | None, out: list[Turn]) -> None:
        """Append a turn of the user or the system, behind the results that belong into it."""
        if turn.role == "system" or (self.format.results_alone and not turn.of_kind("result")):
            answers = None
        rest: list[Block] = []
        for block in turn.blocks:
            if block.kind == "result":
                continue
            if block.problem:
                self.note(block.index, "drop_block", block.problem)
            else:
                rest.append(block)
        blocks = [*(answers.blocks if answers is not None else ()), *rest]
        if not blocks:
            if not turn.of_kind("result"):
                self.note(turn.index, "drop_message", "it is empty")
            return
        self.has_begun |= turn.role == "user"
        if turn.problem:
            self.note(turn.index, "rewrite_message", turn.problem)
            turn.changed = True
        if [id(block) for block in blocks] != [id(block) for block in turn.blocks]:
            turn = Turn(turn.role, blocks, turn.index, turn.sources, changed=True)
        if answers is not None:
            # Nothing was appended since: the results are the last turn.
            out[-1] = turn
        else:
            out.append(turn)

    def _merge(self, turns: list[Turn]) -> list[Turn]:
        merged: list[Turn] = []
        for turn in turns:
            last = merged[-1] if merged else None
            if last is not None and last.role == turn.role and turn.role in self.format.alternating:
                self.note(turn.index, "merge_messages", "two messages of one side in a row are refused")
                last.blocks += turn.blocks
                last.changed = True
            else:
                merged.append(turn)
        return merged
