"""The parts of a chain: entries, the policy, and the removal of reasoning between providers.

Who served a reply of a chain, and why not the entries before it.

A call whose messages are shortened once, where they are too long for the model.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import eq
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar, cast

from failwell.calls.argument_checks import check_callable, check_count, check_number, check_type
from failwell.calls.backoff import Backoff
from failwell.calls.circuit_breaker import CallTarget
from failwell.calls.policy import IN_PROCESS_LIMIT, Match, Policy, Rule, Schedule
from failwell.calls.streams.timeouts import StreamTimeouts
from failwell.errors.foreign_objects import safe_call
from failwell.errors.frozen import frozen
from failwell.errors.report import ErrorReport

if TYPE_CHECKING:
    from failwell.calls.operation import Operation

Shorten: TypeAlias = Callable[[list[Any]], Any]
"""Takes messages and returns shorter ones; `None` or the same messages where it cannot. May be async in async code."""
_NAMES = ("messages", "contents", "input")
"""What providers call the messages of a request."""


class ShortenedCall:
    """A function with its arguments, of which the messages can be replaced between two attempts."""

    __slots__ = ("_function", "_shrink", "args", "kwargs")

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        shrink: Shorten | None,
    ) -> None:
        self._function = function
        self._shrink = shrink
        self.args = args
        self.kwargs = kwargs

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        """Make the call with the arguments in force, whatever it is called with."""
        return self._function(*self.args, **self.kwargs)

    def under(self, operation: "Operation") -> Self:
        """Let `operation` shorten the messages."""
        operation.shorten = self.shorten
        return self

    def shorten(self) -> bool | Awaitable[bool]:
        """Replace the messages by shorter ones; whether there are any and they could be shortened."""
        place = self._place()
        if place is None or self._shrink is None:
            return False
        messages = self.args[place] if isinstance(place, int) else self.kwargs[place]
        shorter = self._shrink(messages)
        if hasattr(shorter, "__await__"):
            return self._replace_later(place, messages, shorter)
        return self._replace(place, messages, shorter)

    def _place(self) -> int | str | None:
        for name in _NAMES:
            if isinstance(self.kwargs.get(name), list):
                return name
        return next((place for place, value in enumerate(self.args) if isinstance(value, list)), None)

    async def _replace_later(self, place: int | str, before: list[Any], after: Awaitable[Any]) -> bool:
        return self._replace(place, before, await after)

    def _replace(self, place: int | str, before: list[Any], after: Any) -> bool:
        # Messages of a framework are compared by code of its own.
        if after is None or after is before or safe_call(cast("Any", eq), None, after, before) is True:
            return False
        if isinstance(place, int):
            self.args = (*self.args[:place], after, *self.args[place + 1 :])
        else:
            self.kwargs = {**self.kwargs, place: after}
        return True


_PARTS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content", "encrypted_reasoning"})
_KEYS = ("reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks")

Message = Mapping[str, Any]


def without_reasoning(messages: list[Any]) -> list[Any]:
    """The conversation for the next provider: without reasoning, without emptied messages, and with no role twice in a row."""
    results = [_clean(cast("object", message)) for message in messages]
    if all(after is before for after, before in zip(results, messages, strict=True)):
        return messages
    remaining: list[Any] = []
    for message in results:
        if message is None:
            continue
        joined = _join(remaining[-1], message) if remaining else None
        if joined is None:
            remaining.append(message)
        else:
            remaining[-1] = joined
    return remaining


def neutral(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call's arguments, with every conversation among them freed of reasoning."""
    return tuple(_without_reasoning(value) for value in args), {
        name: _without_reasoning(value) for name, value in kwargs.items()
    }


def _without_reasoning(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    items = cast("list[Any]", value)
    return without_reasoning(items) if any(_is_message(item) for item in items) else items


def _is_message(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    message = cast("Message", value)
    return "role" in message or message.get("type") in _PARTS


def _clean(value: object) -> Any:
    """A message without the reasoning of the provider that failed, for the next one; `None` where nothing is left."""
    if not isinstance(value, Mapping):
        return value
    message = cast("Message", value)
    if message.get("type") in _PARTS:
        return None
    content = message.get("content")
    parts = cast("list[Any]", content) if isinstance(content, list) else None
    remaining = None if parts is None else [part for part in parts if not _is_reasoning(part)]
    extra = [name for name in _KEYS if name in message]
    if not extra and (parts is None or remaining is None or len(remaining) == len(parts)):
        return message
    shortened = {name: value for name, value in message.items() if name not in extra}
    if parts is not None:
        shortened["content"] = remaining
    says_nothing = not shortened.get("content") and not shortened.get("tool_calls")
    return None if says_nothing else shortened


def _is_reasoning(part: object) -> bool:
    return isinstance(part, Mapping) and cast("Message", part).get("type") in _PARTS


def _join(before: object, after: object) -> Any:
    """Two messages of one role as one; `None` where they cannot be joined."""
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return None
    earlier, later = cast("Message", before), cast("Message", after)
    role = earlier.get("role")
    if role not in ("user", "assistant") or later.get("role") != role:
        return None
    first, second = earlier.get("content"), later.get("content")
    if isinstance(first, str) and isinstance(second, str):
        content: Any = f"{first}\n\n{second}"
    else:
        content = [*_parts(first), *_parts(second)]
    joined = {**earlier, **later, "content": content}
    calls: list[Any] = [*(earlier.get("tool_calls") or ()), *(later.get("tool_calls") or ())]
    return {**joined, "tool_calls": calls} if calls else joined


def _parts(content: object) -> list[Any]:
    if isinstance(content, list):
        return [*cast("list[Any]", content)]
    return [{"type": "text", "text": content}] if content else []


_R_co = TypeVar("_R_co", covariant=True)

CHAIN_BACKOFF = Backoff(first=0.25, longest=8.0, jitter=0.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Generic[_R_co]):
    """One way to make the call: the provider, the model, and how often to try."""

    provider: str
    model: str
    call: Callable[..., _R_co]
    """Any callable: a plain function, an async one, or one that returns a stream."""
    attempts: int = 1
    backoff: Backoff = CHAIN_BACKOFF
    capabilities: frozenset[str] | None = None
    """What this entry can do; `None` when that is not declared, which means everything."""
    account: str = ""
    credential: Callable[[], Any] | None = None
    """Looks up the key before every attempt; it is passed to `call` as the keyword `credential`."""
    stream: StreamTimeouts | None = None
    """How long a stream of this entry may take; that of the chain's policy if it is unset."""

    def __post_init__(self) -> None:
        check_type("provider", self.provider, str, "the name of a provider")
        check_type("model", self.model, str, "the name of a model")
        entry = f"entry `{self.provider}/{self.model}"
        check_callable(f"call` of {entry}", self.call)
        check_type(f"backoff` of {entry}", self.backoff, Backoff, "a `Backoff`, such as `Backoff(first=2.0)`")
        if self.credential is not None:
            check_callable(f"credential` of {entry}", self.credential)
        check_type(f"stream` of {entry}", self.stream, (StreamTimeouts, NoneType), "`StreamTimeouts`")
        check_count(f"attempts` of entry `{self.provider}/{self.model}", self.attempts)

    @property
    def called(self) -> CallTarget:
        """Who is called, for breakers and cool-downs."""
        return CallTarget(self.provider, self.account, self.model)

    def lacks(self, needs: Iterable[str]) -> list[str]:
        """What a call needs and this entry cannot do."""
        return [] if self.capabilities is None else sorted(set(needs) - self.capabilities)

    def policy(self, limit: float = IN_PROCESS_LIMIT, *, repeat_exhausted: bool = False) -> Policy:
        """The entry's own attempts and waits as a policy; a requested delay beyond `limit` is not slept."""
        schedule = Schedule(max_attempts=self.attempts, backoff=self.backoff)
        rule = Rule(match=Match(), schedule=schedule, name=f"entry {self.provider}/{self.model}")
        return Policy(rules=(rule,), in_process_limit=limit, repeat_exhausted=repeat_exhausted)


@frozen
class ChainPolicy:
    """How a chain behaves beyond its entries."""

    cooldown: float = 30.0
    """Seconds that an account or model is skipped after a rate limit."""
    idempotent: bool | None = None
    """Whether a repeat is harmless although the outcome is unknown."""
    keyed: bool = False
    """Whether the calls send `idempotency_key()`; see `RetryOptions`."""
    longest_wait: float = 8.0
    """A longer wait than this is not waited for while there is another entry."""
    repeat_exhausted: bool = False
    """Whether an entry is repeated after a loop inside its callable has repeated the call up to its limit."""
    refresh: Callable[[str], bool | Awaitable[bool]] | None = None
    """Renews a provider's credentials; tried once per provider until a call works, `True` if it worked."""
    before: Callable[[Entry[Any]], object] | None = None
    """Called before every attempt; raising stops the chain. Use it for limits of your own."""
    handover: Callable[[tuple[Any, ...], Mapping[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]] = neutral
    """Prepares the arguments for another provider than the last."""
    usage: Callable[[Any], Mapping[str, int]] | None = None
    """Reads the tokens off a reply, a chunk or an exception; by default the common shapes are known."""
    shrink: Shorten | None = None
    """Shortens the messages of a call that is too long for the model; called once in a call of the chain, and the
    same entry is called again. Without it such a call fails."""
    stream: StreamTimeouts | None = None
    """How long the streams of `Chain.stream` and `Chain.astream` may take. One that stalls before its first chunk is
    a failed attempt, so it is repeated or the next entry is tried."""

    def __post_init__(self) -> None:
        for name in ("refresh", "before", "handover", "usage", "shrink"):
            hook = getattr(self, name)
            if hook is not None:
                check_callable(name, hook)
        check_type("stream", self.stream, (StreamTimeouts, NoneType), "`StreamTimeouts`")
        check_number("cooldown", self.cooldown)
        check_number("longest_wait", self.longest_wait, endless=True)


_T = TypeVar("_T")


@frozen
class PassedEntry:
    """An entry of a chain that did not serve the reply."""

    provider: str
    model: str
    reason: str
    """Why the chain went on to the next entry."""
    report: ErrorReport | None = None
    """Its latest failure; `None` if it was not called."""

    def to_dict(self) -> dict[str, Any]:
        """It as JSON-safe values."""
        data: dict[str, Any] = {"provider": self.provider, "model": self.model, "reason": self.reason}
        return data if self.report is None else {**data, "report": self.report.to_dict()}

    def __str__(self) -> str:
        kind = "" if self.report is None else f"{self.report.kind}, "
        return f"{self.provider}/{self.model} ({kind}{self.reason})"


@frozen
class ReplySource:
    """Who served a reply."""

    provider: str
    model: str
    is_primary: bool
    """Whether it is the first entry of the chain."""
    passed_over: tuple[PassedEntry, ...] = ()
    """The entries before it, in order, and why they did not serve it."""

    def to_dict(self) -> dict[str, Any]:
        """It as JSON-safe values."""
        data: dict[str, Any] = {
            "provider": self.provider,
            "model": self.model,
            "is_primary": self.is_primary,
        }
        if self.passed_over:
            data["passed_over"] = [entry.to_dict() for entry in self.passed_over]
        return data

    def __str__(self) -> str:
        served = f"served by {self.provider}/{self.model}"
        if not self.passed_over:
            return served
        return f"{served} instead of {', '.join(str(entry) for entry in self.passed_over)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainReply(Generic[_T]):
    """What a chain returned, and who served it."""

    value: _T
    source: ReplySource
