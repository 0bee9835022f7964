"""The model calls of an agent framework under one retry authority: what every plugin holds.

A plugin is a function `reliability(...)` in the module of its framework. It returns what the framework takes
(a capability, a middleware, a plugin, a handler), and every framework gets the parameters of `retry`.
There are two ways to connect, and both use the loop of `failwell.retry`:

- *Wrap*, where the framework passes the call: `await calls.run_async(provider, model, lambda: handler(request))`.
  With the messages as an argument, `run_async(provider, model, call, messages)`, the user's `shrink` may replace them.
  A stream: `calls.astream(provider, model, lambda: handler(request))`, with the user's `stream` deadlines; `calls.stream`
  where it is plain. Where the framework reads the stream itself, `calls.reading()` inside the call.
- *Decide*, where the framework repeats and asks a hook: `operation = calls.operation(provider, model)` when the
  request begins, `delay = await operation.failed_async(error)` after each failure (`None` is the end, a long wait
  raises `Parked`), `await operation.wait_async(delay)` before the repeat, `operation.succeeded()` at the end.
  `calls.shrink_with(operation, messages, replace)` lets the user's `shrink` replace the messages of the request.
  Where the hook knows nothing but the number of the attempt, `await calls.decide(provider, model, attempt, error)`.

What a failed tool call becomes is in `failwell.agents.tool_errors`.

Subclasses of a framework's classes whose methods run under one retry authority.
"""

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, cast

from failwell.adapters.describe import describe
from failwell.calls.chain.entry import ShortenedCall
from failwell.calls.operation import Operation, current_operation
from failwell.calls.retry import run, run_async
from failwell.calls.retry_options import RetryOptions, RetryParameters, merge_options
from failwell.calls.sdk_retries import RetriesNotSwitchable, without_sdk_retries
from failwell.calls.streams.repeat import repeat_astream, repeat_stream
from failwell.calls.streams.timeouts import StreamTimedOut, StreamTimeouts
from failwell.calls.suppress import OnRaise
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import safe_getattr

_P = ParamSpec("_P")
_R = TypeVar("_R")
_MOST_TARGETS = 256
_TIMED_OUT = ("provider.timeout", "provider.outcome_unknown")


class ModelCalls:
    """Repeats and records the model calls of one plugin."""

    __slots__ = ("_options", "_streams", "_targets")

    def __init__(self, framework: str, **parameters: Unpack[RetryParameters]) -> None:
        """Read the parameters of a plugin.

        Args:
            framework: The name of the framework, for ledgers and for calls whose provider is unknown.
            parameters: Those of `failwell.retry`. A model call is idempotent unless they say otherwise.

        Raises:
            TypeError: a parameter has the wrong type, or there is none of that name.
            ValueError: a number makes no sense.
        """
        # A guard counts by provider, and that is known with the call.
        defaults = {"provider": framework, "name": f"{framework} model call", "idempotent": True}
        self._options = merge_options(defaults, **parameters)
        self._targets: dict[tuple[str | None, str | None], RetryOptions] = {}
        self._streams: dict[tuple[str | None, str | None], tuple[Callable[..., Any], Callable[..., Any]]] = {}
        """The readers of plain and async streams, for each model."""

    @property
    def timeouts(self) -> StreamTimeouts | None:
        """How long a stream may take."""
        return self._options.stream

    @property
    def shrinks(self) -> bool:
        """Whether messages that are too long are shortened."""
        return self._options.shrink is not None

    def options(self, provider: str | None, model: str | None) -> RetryOptions:
        """The options of a call to this model."""
        options = self._targets.get((provider, model))
        if options is None:
            if len(self._targets) >= _MOST_TARGETS:
                self._targets.clear()
                self._streams.clear()
            base = self._options
            options = replace(base, provider=provider or base.provider, model=model or base.model)
            self._targets[provider, model] = options
        return options

    def run(
        self,
        provider: str | None,
        model: str | None,
        call: Callable[_P, _R],
        /,
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _R:
        """Make `call(...)` as often as the options allow; messages among the arguments may be shortened."""
        return run(self.options(provider, model), call, *args, **kwargs)

    async def run_async(
        self,
        provider: str | None,
        model: str | None,
        call: Callable[_P, Awaitable[_R]],
        /,
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _R:
        """Await `call(...)` as often as the options allow; messages among the arguments may be shortened."""
        return await run_async(self.options(provider, model), call, *args, **kwargs)

    def astream(
        self,
        provider: str | None,
        model: str | None,
        call: Callable[_P, AsyncIterable[_R] | Awaitable[AsyncIterable[_R]]],
        /,
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> AsyncGenerator[_R]:
        """Yield the chunks of the stream that `call(...)` opens; it is opened again only before its first chunk."""
        return self._readers(provider, model)[1](call, *args, **kwargs)

    def stream(
        self,
        provider: str | None,
        model: str | None,
        call: Callable[_P, Iterable[_R]],
        /,
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> Generator[_R]:
        """`astream` for a plain stream."""
        return self._readers(provider, model)[0](call, *args, **kwargs)

    def _readers(
        self, provider: str | None, model: str | None
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        options = self.options(provider, model)
        readers = self._streams.get((provider, model))
        if readers is None:
            readers = repeat_stream(_plain_chunks, options), repeat_astream(_chunks, options)
            self._streams[provider, model] = readers
        return readers

    def shrink_with(
        self, operation: Operation, messages: Sequence[Any], replace_messages: Callable[[list[Any]], object]
    ) -> None:
        """Let the user's `shrink`, if there is one, shorten the messages of `operation`: once, if they are too long."""
        if operation.options.shrink is None or operation.shorten is not None:
            return
        call = ShortenedCall(list, ([*messages],), {}, operation.options.shrink)

        async def shorten() -> bool:
            shortened = call.shorten()
            if (await shortened) if isinstance(shortened, Awaitable) else shortened:
                replace_messages([*call.args[0]])
                return True
            return False

        operation.shorten = shorten

    @contextmanager
    def reading(self) -> Generator[Callable[[], None]]:
        """A block inside a call in which the framework reads a stream itself: call what it yields with every chunk shown.

        After a chunk there is no repeat. The time limit is that of the framework's HTTP client (`read_limit`); where it
        ends the stream, the failure is the one that `stream` raises.

        Raises:
            StreamTimedOut: the stream stalled after its first chunk.
        """
        chunks = [0]
        operation = current_operation()

        def take_note() -> None:
            chunks[0] += 1
            if operation is not None:
                operation.visible = True

        def failed(error: Exception) -> None:
            # Every client has a class of its own for a read that took too long.
            limit = self.read_limit
            if limit is None or not chunks[0] or describe(error, origin="call").kind not in _TIMED_OUT:
                return
            kind, certainty = "provider.stream_interrupted", Certainty.PARTIAL
            raise StreamTimedOut(
                kind=kind, certainty=certainty, phase="idle", seconds=limit, chunks=chunks[0]
            ) from error

        with OnRaise(failed):
            yield take_note

    @property
    def read_limit(self) -> float | None:
        """Seconds for which an HTTP client may wait for more of a stream."""
        timeouts = self.timeouts
        limits = () if timeouts is None else (timeouts.first, timeouts.idle, timeouts.total)
        return min((limit for limit in limits if limit is not None), default=None)

    def operation(self, provider: str | None, model: str | None) -> Operation:
        """One call that the framework repeats itself.

        Raises:
            BudgetExceeded: there is no attempt left.
            CircuitOpen: the guard lets no call through.
            Cancellation: the scope around it was stopped.
        """
        return Operation(self.options(provider, model))

    async def decide(
        self, provider: str | None, model: str | None, attempt: int, error: Exception
    ) -> float | None:
        """Seconds after which attempt number `attempt`, which failed, is repeated; `None` to stop.

        Attempts of one call are told apart from those of other calls by the task they run in.

        Raises:
            Parked: the wait is too long to sleep.
            BudgetExceeded: there is no attempt left.
            CircuitOpen: the guard lets no call through.
            Cancellation: the scope around it was stopped.
        """
        owner, operation = _current.get()
        if attempt <= 1 or owner is not self or operation is None:
            operation = self.operation(provider, model)
            _current.set((self, operation))
        return await operation.failed_async(error)


async def _chunks(call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> AsyncGenerator[Any]:
    stream: Any = call(*args, **kwargs)
    if hasattr(stream, "__await__"):
        stream = await stream
    try:
        async for chunk in stream:
            yield chunk
    finally:
        close = safe_getattr(stream, "aclose")
        if callable(close):
            # Otherwise it would be closed some time later, with its connection open until then.
            await cast("Any", close)()


def _plain_chunks(call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Generator[Any]:
    stream: Any = call(*args, **kwargs)
    try:
        yield from stream
    finally:
        close = safe_getattr(stream, "close")
        if callable(close):
            cast("Any", close)()


_current: ContextVar[tuple[ModelCalls | None, Operation | None]] = ContextVar(
    "failwell_model_call", default=(None, None)
)


def refuse_options(options: RetryOptions, framework: str, *names: str) -> None:
    """Refuse parameters that a plugin cannot keep: one that had no effect would be found out too late.

    Raises:
        TypeError: one of them is set.
    """
    for name in names:
        if getattr(options, name) is not None:
            raise TypeError(f"`reliability` of {framework} cannot keep `{name}`: {_INSTEAD[name]}")


_INSTEAD = {
    "guard": "it is asked after a failure and not before a call; put the guard where the model is called",
    "shrink": "it does not see the messages of the model; shorten them where the model is called (`failwell.retry(shrink=...)`)",
    "stream": "it does not see the stream; limit it where it is read (`failwell.calls.limit_stream`)",
}


def switch_off_sdk_retries(holder: object, *names: str) -> bool:
    """Replace the clients in the attributes `names` of `holder` by ones without retries of their own.

    Returns:
        Whether no client in them repeats by itself any more. Where one still does, the retry loop notices its
        calls, warns about the nested loops and counts them in the ledger.
    """
    is_off = True
    for name in names:
        client = safe_getattr(holder, name)
        if client is None:
            continue
        try:
            setattr(holder, name, without_sdk_retries(client))
        except (RetriesNotSwitchable, AttributeError, TypeError):
            # An attribute without a setter, or a client that can only be told where it is made.
            is_off = False
    return is_off


_BASE = "failwell_base"
_MOST_KNOWN = 64
_K = TypeVar("_K")
_V = TypeVar("_V")


class ByIdentity(Generic[_K, _V]):
    """Remembers what `make` returned for each object, of the latest ones. Threads may share it."""

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[[_K], _V]) -> None:
        self._make = make
        self._known: dict[int, tuple[_K, _V]] = {}
        """By the `id` of the object, which is held so that no other gets the same."""

    def of(self, target: _K) -> _V:
        """What `make(target)` returned first."""
        known = self._known.get(id(target))
        if known is not None:
            return known[1]
        value = self._make(target)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[id(target)] = target, value
        return value


class Subclasses:
    """Gives objects a subclass of their class: one for each class, with the methods that `methods(cls)` returns."""

    __slots__ = ("_made", "_methods")

    def __init__(self, methods: Callable[[Any], Mapping[str, Callable[..., Any]]]) -> None:
        self._methods = methods
        self._made: dict[Any, Any] = {}

    def holds(self, target: object) -> bool:
        """Whether the object has one of these subclasses."""
        return type(target) in self._made.values()

    def put(self, target: Any) -> None:
        """Give the object its subclass. One that another plugin gave it is replaced, so that calls do not multiply."""
        cls = cast("Any", type(target))
        base: Any = cls.__dict__.get(_BASE, cls)
        if base not in self._made:
            self._made[base] = _subclass_of(base, self._methods(base))
        target.__class__ = self._made[base]


class Copies:
    """Copies of models with a subclass of their class: one for each model, which stays as it is."""

    __slots__ = ("_copies", "_prepare", "_subclasses")

    def __init__(
        self, methods: Callable[[Any], Mapping[str, Callable[..., Any]]], prepare: Callable[[Any], Any]
    ) -> None:
        """Read how a copy differs.

        Args:
            methods: Returns the methods of the subclass of a class.
            prepare: Copies a model, with the retries of its client off.
        """
        self._subclasses = Subclasses(methods)
        self._prepare = prepare
        self._copies = ByIdentity[Any, Any](self._copy)

    def of(self, model: Any) -> Any:
        """The copy of a model; a copy itself is returned as it is."""
        return model if self._subclasses.holds(model) else self._copies.of(model)

    def _copy(self, model: Any) -> Any:
        copy = self._prepare(model)
        self._subclasses.put(copy)
        return copy


def _subclass_of(cls: Any, methods: Mapping[str, Callable[..., Any]]) -> Any:
    """It has the name of `cls`: saved states and traces stay as they are."""
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    made = type(cls)(cls.__name__, (cls,), {**names, **methods})
    type.__setattr__(made, _BASE, cls)
    return made


def has_field(target: object, name: str) -> bool:
    """Whether the class of a pydantic model has this field."""
    fields: Any = getattr(type(target), "model_fields", ())
    return name in fields
