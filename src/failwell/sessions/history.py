"""The state of a session, folded from its events, and the conversation as a model gets it.

The events hold the conversation: `session:input`, `session:answered`, `session:tool_started`, `session:tool_ended`, and for each
turn one of `session:turn_ended`, `session:turn_failed` and `session:turn_cancelled`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from failwell.calls.budget import dollars
from failwell.sessions.manifest import Manifest, read_manifest
from failwell.store.event import Event

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

TurnStatus = Literal["none", "running", "ended", "failed", "cancelled"]
_ENDS: Mapping[str, TurnStatus] = {
    "session:turn_ended": "ended",
    "session:turn_failed": "failed",
    "session:turn_cancelled": "cancelled",
}


@dataclass(slots=True)
class OpenCall:
    """A tool call without a result."""

    id: str
    tool: str
    is_started: bool = False


@dataclass(slots=True)
class Usage:
    """Tokens and money."""

    tokens: dict[str, int] = field(default_factory=dict[str, int])
    cost: int | None = 0
    """Micro-cents, or `None` once a call had no known price."""

    def plus(self, tokens: Mapping[str, int], cost: int | None) -> "Usage":
        """This, and what was used besides."""
        total = Counter(self.tokens)
        total.update(tokens)
        return Usage(dict(total), None if self.cost is None or cost is None else self.cost + cost)

    def to_dict(self) -> dict[str, Any]:
        """The usage as JSON."""
        return {"tokens": self.tokens, "cost_micro_cents": self.cost}


@dataclass(slots=True)
class SessionState:
    """What the events of a session add up to."""

    manifest: Manifest | None = None
    turn: int = 0
    """The number of the latest turn; turns count from 1."""
    turn_status: TurnStatus = "none"
    last_kind: str | None = None
    """The kind of the failure of the latest turn."""
    items: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])
    """The conversation: inputs, answers and results, in order."""
    open_calls: dict[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    used: dict[int, Usage] = field(default_factory=dict[int, Usage])
    """What each turn used."""
    effects: Counter[str] = field(default_factory=Counter[str])
    """Calls that must not happen twice → how often each succeeded."""
    answers: Counter[str] = field(default_factory=Counter[str])
    """Model → how many answers it gave."""
    retries: int = 0

    @property
    def total(self) -> Usage:
        """What the whole session used."""
        total = Usage()
        for used in self.used.values():
            total = total.plus(used.tokens, used.cost)
        return total

    def fold(self, events: Iterable[Event]) -> None:
        """Add events.

        Raises:
            ValueError: one is not as this version writes it.
        """
        for event in events:
            try:
                self._add(event.type, event.data)
            except (KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"its event {event.seq} is not readable") from error

    def _add(self, type_: str, data: Mapping[str, Any]) -> None:
        if type_ in ("session:started", "session:resumed"):
            self.manifest = read_manifest(data.get("manifest"))
        elif type_ == "session:input":
            self.turn, self.turn_status = int(data["turn"]), "running"
            self.items.append((type_, data))
        elif type_ == "session:retried":
            self.turn_status = "running"
            self.retries += 1
        elif type_ == "session:answered":
            self._answered(data)
        elif type_ == "session:tool_started":
            call = self.open_calls.get(data["call"])
            if call is not None:
                call.is_started = True
        elif type_ == "session:tool_ended":
            self.open_calls.pop(data["call"], None)
            self.items.append((type_, data))
            self.effects.update(data.get("effects") or ())
        elif type_ in _ENDS:
            self.turn_status = _ENDS[type_]
            self.last_kind = data.get("kind")
        self._count(data)

    def _answered(self, data: Mapping[str, Any]) -> None:
        self.items.append(("session:answered", data))
        self.answers[data.get("model") or ""] += 1
        for part in data["message"]["parts"]:
            if part.get("part_kind") == "tool-call":
                call = OpenCall(part["tool_call_id"], part["tool_name"])
                self.open_calls[call.id] = call

    def _count(self, data: Mapping[str, Any]) -> None:
        used = data.get("used")
        if isinstance(used, Mapping):
            usage = cast("Mapping[str, Any]", used)
            self.used[int(data["turn"])] = Usage(dict(usage["tokens"]), usage["cost_micro_cents"])

    def messages(self, system: str | None) -> "list[ModelMessage]":
        """The conversation, in a form that every provider accepts.

        Args:
            system: What the model is told about its part.
        """
        from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart

        from failwell.agents.message_repair import repair

        messages: list[ModelMessage] = []
        results: ModelRequest | None = None
        for type_, data in self.items:
            if type_ == "session:tool_ended":
                part = ToolReturnPart(data["tool"], data["result"], tool_call_id=data["call"])
                if results is None:
                    results = ModelRequest(parts=[part], instructions=system)
                    messages.append(results)
                else:
                    results.parts = [*results.parts, part]
                continue
            results = None
            if type_ == "session:input":
                messages.append(ModelRequest(parts=[UserPromptPart(data["text"])], instructions=system))
            else:
                messages.append(read_message(data["message"]))
        return repair(messages, "pydantic-ai").messages


def read_message(value: Any) -> "ModelMessage":
    """The message that `write_message` wrote.

    Raises:
        ValueError: it is none.
    """
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return ModelMessagesTypeAdapter.validate_python([value])[0]


def write_message(message: "ModelMessage") -> dict[str, Any]:
    """A message as JSON."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return ModelMessagesTypeAdapter.dump_python([message], mode="json")[0]


_MICRO_CENTS_PER_DOLLAR = 100_000_000


def usage_json(used: Usage | None) -> dict[str, Any]:
    """Tokens, and the cost where it is known."""
    if used is None:
        return {}
    cost = {} if used.cost is None else {"cost_usd": used.cost / _MICRO_CENTS_PER_DOLLAR}
    return {**used.tokens, **cost}


def usage_words(used: Usage | None) -> str:
    """`120 tokens in, 34 out, $0.0012`."""
    if used is None or not used.tokens:
        return "nothing used"
    tokens = used.tokens
    read = (
        tokens.get("input_tokens", 0)
        + tokens.get("cache_read_tokens", 0)
        + tokens.get("cache_write_tokens", 0)
    )
    cost = "cost unknown" if used.cost is None else dollars(used.cost)
    return f"{read:,} tokens in, {tokens.get('output_tokens', 0):,} out, {cost}"
