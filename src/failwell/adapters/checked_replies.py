"""Failures that come as a success: a 200 whose answer is cut off, refused, empty or broken.

`check_reply` looks at a reply before it is used, `checked` at a stream while it is read. Both
raise a fault of ours, with the tokens that were used, because a useless answer was billed too. The
answer itself and the words of a refusal never get into it.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from re import compile as pattern
from types import TracebackType
from typing import Any, Self, cast, overload

from failwell.adapters.causes import CALL, kind_of
from failwell.adapters.classification import Classification
from failwell.adapters.classify import classify
from failwell.adapters.describe import describe
from failwell.adapters.facts import Facts, codes_of, message_of
from failwell.adapters.replies import STOPS, Answer, Stop, feed, items, opened, stop_of, take
from failwell.adapters.revival import revive
from failwell.errors.axes import Certainty
from failwell.errors.facts import ProviderMetadata
from failwell.errors.fault import Fault
from failwell.errors.faults import ProviderCapability, ProviderTransient
from failwell.errors.foreign_objects import safe_call, safe_getattr

_BEGUN = frozenset({"provider.outcome_unknown", "provider.timeout", "provider.connection"})
"""What a transport's failure is called when nothing had come yet; once something had, the stream broke."""
_END = object()


def check_reply(provider: str, reply: object) -> None:
    """Raise if `reply` is no use as an answer, although the call went through.

    Args:
        provider: Who answered; any name, it is only recorded.
        reply: What the SDK returned, or its JSON, or the list of a stream's chunks.

    Raises:
        ProviderCapability: the answer is cut short, refused, empty or malformed.
        ProviderTransient: a stream ended without its last event, or the reply is an error in disguise.
    """
    answer = Answer()
    reply = opened(reply)
    if _is_stream(reply):
        chunks = items(reply)
        for chunk in chunks:
            feed(answer, chunk)
        fault = after_stream(provider, answer, len(chunks))
    elif isinstance(reply, str) and (page := page_instead(provider, reply)) is not None:
        fault = page
    else:
        answer.whole(reply)
        if reply is None:
            answer.known = answer.ended = True
        fault = after_reply(provider, answer)
    if fault is not None:
        raise fault


@overload
def checked(provider: str, stream: Any) -> "CheckedStream": ...


@overload
def checked(stream: Any, /) -> "CheckedStream": ...


def checked(provider: Any, stream: Any = None) -> "CheckedStream":
    """Wrap a stream so that whatever goes wrong in it comes out as a fault of ours.

    Works on iterators, asynchronous iterators, the SDKs' stream objects and the managers that open
    them, with `for`, `async for`, `with` and `async with`. The chunks pass through unchanged.

    Args:
        provider: Who answers; any name, it is only recorded. Leave it out where the stream tells it, as the messages
            of `claude_agent_sdk.query` do: `checked(query(...))`.
        stream: The stream.
    """
    return CheckedStream(None, provider) if stream is None else CheckedStream(provider, stream)


class _Translation:
    """A block that reads a checked stream: an exception that leaves it becomes a fault. Opening is part of the stream."""

    __slots__ = ("_translate",)

    def __init__(self, translate: Callable[[Exception], Fault]) -> None:
        self._translate = translate

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, Exception) and not issubclass(kind, Fault):
            raise self._translate(cast("Exception", error)) from error


class CheckedStream:
    """A checked reply in pieces: it does not end quietly when something is missing."""

    def __init__(self, provider: str | None, stream: Any) -> None:
        self._provider = provider
        # Bedrock hands out its stream inside a reply.
        inner = cast("Mapping[str, Any]", stream).get("stream") if isinstance(stream, Mapping) else None
        self._stream: Any = stream if inner is None else inner
        self._source: Any = None
        self._answer = Answer()
        self._chunks = 0
        self._over = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        if self._over:
            raise StopIteration
        with _Translation(self._broken):
            if self._source is None:
                self._source = iter(self._stream)
            chunk = next(self._source, _END)
        if chunk is _END:
            self._finish()
            raise StopIteration
        self._see(chunk)
        return chunk

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        if self._over:
            raise StopAsyncIteration
        with _Translation(self._broken):
            if self._source is None:
                self._source = aiter(await _awaited(self._stream))
            chunk = await anext(self._source, _END)
        if chunk is _END:
            self._finish()
            raise StopAsyncIteration
        self._see(chunk)
        return chunk

    def __enter__(self) -> Self:
        if _can(self._stream, "__enter__"):
            with _Translation(self._broken):
                self._enter(self._stream.__enter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        manager = self._manager
        if _can(manager, "__exit__"):
            manager.__exit__(kind, error, trace)

    async def __aenter__(self) -> Self:
        with _Translation(self._broken):
            self._stream = await _awaited(self._stream)
            if _can(self._stream, "__aenter__"):
                self._enter(await self._stream.__aenter__())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        manager = self._manager
        if _can(manager, "__aexit__"):
            await manager.__aexit__(kind, error, trace)

    def __getattr__(self, name: str) -> Any:
        # The SDKs' streams have more than chunks: `close`, `response`, `get_final_message`.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._stream, name)

    _entered: Any = None

    @property
    def _manager(self) -> Any:
        return self._stream if self._entered is None else self._entered

    def _enter(self, opened_stream: Any) -> None:
        self._entered, self._stream = self._stream, opened_stream

    def _see(self, chunk: object) -> None:
        self._chunks += 1
        # A chunk that raises while it is looked at is still the caller's chunk.
        if not safe_call(_fed, None, self._answer, chunk):
            self._answer.known = False

    def _finish(self) -> None:
        self._over = True
        fault = after_stream(self._provider, self._answer, self._chunks)
        if fault is not None:
            raise fault

    def _broken(self, error: Exception) -> Fault:
        self._over = True
        details = {"chunks": self._chunks, **usage_of(self._answer)}
        if self._chunks and kind_of(error, CALL) in _BEGUN:
            return ProviderTransient.wrap(
                error,
                kind="provider.stream_interrupted",
                provider=self._provider,
                model=self._answer.model,
                details=details,
            )
        report = describe(error, provider=self._provider, model=self._answer.model, origin="call")
        if self._chunks:
            report = replace(report, certainty=Certainty.PARTIAL, details={**report.details, **details})
        return revive(report)


async def _awaited(stream: Any) -> Any:
    # The asynchronous clients return their stream from a coroutine.
    return await stream if _can(stream, "__await__") else stream


def _can(thing: object, method: str) -> bool:
    return hasattr(type(thing), method)


def _is_stream(reply: object) -> bool:
    if not isinstance(reply, list | tuple):
        return False
    parts = items(cast("object", reply))
    # The inference API wraps a whole answer in a list; a piece of a stream has its token with it.
    return not parts or any(
        take(part, "generated_text") is None or take(part, "token") is not None for part in parts
    )


def _fed(answer: Answer, chunk: object) -> bool:
    feed(answer, chunk)
    return True


_ORDER: tuple[Stop, ...] = (
    "refused", "too_long", "truncated", "malformed", "overloaded", "failed", "interrupted", "cancelled",
)  # fmt: skip
"""Of several answers to one call, the worst counts; one that the caller can change comes first."""
_KINDS: dict[str, tuple[str, Certainty | None]] = {
    "refused": ("provider.content_refused", Certainty.PARTIAL),
    "too_long": ("provider.context_too_long", Certainty.PARTIAL),
    "truncated": ("provider.output_truncated", None),
    "malformed": ("provider.output_invalid", None),
    "overloaded": ("provider.overloaded", Certainty.PARTIAL),
    "failed": ("provider.output_rejected", None),
    "interrupted": ("provider.stream_interrupted", None),
    # Nobody here cancelled it: the provider, or somebody else with an account there, did.
    "cancelled": ("provider.stream_interrupted", Certainty.PARTIAL),
    "empty": ("provider.output_invalid", None),
}
_SENTENCES = {
    "malformed": "The model called a tool in a form that cannot be read.",
    "empty": "The reply holds no answer.",
    "overloaded": "The provider ran out of room while it was answering.",
}
_ID = pattern(r"[\w.:\-]{1,200}")


def after_stream(provider: str | None, answer: Answer, chunks: int) -> Fault | None:
    """The fault that a stream is after its last chunk, if it is one."""
    unfinished = (answer.known or not chunks) and not answer.ended and answer.failure is None
    if unfinished and answer.error is None and not answer.refused:
        return _fault(provider, answer, "interrupted", details={"chunks": chunks})
    return after_reply(provider, answer, in_stream=chunks > 1)


def after_reply(provider: str | None, answer: Answer, *, in_stream: bool = False) -> Fault | None:
    """The fault that a finished answer is, if it is one."""
    if answer.failure is not None:
        return _read_fault(provider, answer, answer.failure)
    if answer.error is not None:
        return _error(provider, answer, in_stream=in_stream)
    if not answer.known:
        return None
    stops = {stop_of(word, provider or ""): word for word in answer.stops}
    if answer.refused:
        stops.setdefault("refused", answer.stops[0] if answer.blocked else "refusal")
    worst = next((stop for stop in _ORDER if stop in stops), None)
    if worst is not None:
        return _fault(provider, answer, worst, stops[worst])
    if not answer.ended:
        return _fault(provider, answer, "interrupted")
    if not answer.calls_are_sound():
        return _fault(provider, answer, "malformed")
    if not answer.spoke and not answer.pending:
        return _fault(provider, answer, "empty")
    return None


def _fault(
    provider: str | None,
    answer: Answer,
    what: str,
    word: str | None = None,
    details: dict[str, Any] | None = None,
) -> Fault:
    kind, certainty = _KINDS[what]
    if what == "refused" and answer.blocked:
        certainty = None
    facts = {**(details or {}), **usage_of(answer)}
    if word in STOPS:
        facts["stop"] = word
    family = ProviderTransient if ProviderTransient.holds(kind) else ProviderCapability
    return family(
        kind=kind,
        message=_SENTENCES.get(what),
        certainty=certainty,
        provider=provider,
        model=answer.model,
        provider_metadata=_metadata(answer),
        details=facts or None,
    )


def _error(provider: str | None, answer: Answer, *, in_stream: bool) -> Fault:
    """An error that came inside a reply with a good status, judged like any other."""
    body = _as_mapping(answer.error)
    error_facts = Facts(
        provider=provider,
        codes=codes_of({"error": body}),
        message=message_of(body),
        body=body,
        in_stream=in_stream,
        model=answer.model,
        request_id=answer.id,
    )
    return _read_fault(provider, answer, classify(error_facts))


def _read_fault(provider: str | None, answer: Answer, reading: Classification) -> Fault:
    kind = reading.kind
    family = ProviderTransient if ProviderTransient.holds(kind) else ProviderCapability
    facts: dict[str, Any] = {
        "kind": kind,
        "message": reading.message,
        "caller_facing": False,
        "certainty": reading.certainty,
        "retryable": reading.retryable,
        "provider": provider or reading.provider,
        "model": answer.model,
        "provider_metadata": reading.provider_metadata,
        "not_before": reading.not_before,
        "details": {**reading.details, **usage_of(answer)} or None,
    }
    return family(**facts) if family.holds(kind) else Fault(**facts)


def page_instead(provider: str, reply: str) -> Fault | None:
    """A web page where an answer should be: the address is not the API's."""
    reading = classify(Facts(provider=provider, status=200, message=reply[:2_000]))
    if reading.evidence[0].basis != "body":
        return None
    return ProviderCapability(
        kind=reading.kind, message=reading.message, caller_facing=False, provider=provider
    )


def usage_of(answer: Answer) -> dict[str, Any]:
    """The tokens that a checked reply used, as an entry for a fault's details."""
    return {"usage": dict(answer.usage)} if answer.usage else {}


def _metadata(answer: Answer) -> ProviderMetadata | None:
    known = answer.id if answer.id is not None and _ID.fullmatch(answer.id) else None
    return None if known is None else ProviderMetadata(request_id=known)


def _as_mapping(error: object) -> object:
    """An error object of an SDK as a plain mapping, for the rules."""
    if error is None or isinstance(error, str | int | Mapping | list):
        return cast("object", error)
    return {
        name: value
        for name in ("code", "type", "message", "param", "error")
        if (value := safe_getattr(error, name)) is not None
    }
