"""Repeat a call as its failures allow: a decorator, a written-out loop, and two functions.

They call, pass each failure to one `Operation`, wait, and call again. What finally comes out is the caller's
own exception, with the ledger on it.
"""

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
)
from dataclasses import replace
from functools import partial, wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage]  (as logging and namedtuple do)
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, Unpack, overload

from failwell.calls.chain.entry import ShortenedCall
from failwell.calls.operation import AsyncOperation, Operation
from failwell.calls.retry_options import RetryOptions, RetryParameters, merge_options
from failwell.calls.streams.repeat import read_astream, read_stream, repeat_astream, repeat_stream

_P = ParamSpec("_P")
_R = TypeVar("_R")


@overload
def retry(function: Callable[_P, _R], /) -> Callable[_P, _R]: ...


@overload
def retry(
    **parameters: Unpack[RetryParameters],
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...


def retry(function: Any = None, /, **parameters: Unpack[RetryParameters]) -> Any:
    """Repeat a function as its failures allow; plain, async, generator and async generator functions.

    Without arguments each kind's default applies: six calls for a rate limit, three for a server failure,
    one for failures that a retry cannot fix. A generator is repeated only before it has yielded anything.

    Args:
        function: The function to repeat, when used without parentheses.
        parameters: The following ones, all optional.
        attempts: Calls in all, the first included.
        backoff: The waits between them.
        on: Repeat only these failures: a `Match`, a kind, or the beginning of one with its dot.
        policy: Rules that decide which failures are repeated.
        timeout: Seconds over all attempts and waits.
        idempotent: Whether a repeat is harmless although the outcome is unknown.
        keyed: Whether the call sends `idempotency_key()`, which makes a repeat harmless.
        provider: The provider that is called, for reports, breakers and retry buckets.
        model: The model that is called.
        account: The account that is used, where breakers and buckets are to be apart.
        name: The name of this loop in ledgers and reports; by default the qualified name of the function.
        repeat_exhausted: Whether to repeat what a loop inside the function has already repeated up to its
            limit. By default such a failure is raised, because the calls of both loops would multiply.
        evict: Frees what a report says is short; returns `False` when nothing could be freed.
        reconcile: Says whether work with an unknown outcome was done: `True`, `False` or `None`.
        guard: Breakers and retry buckets that several loops share.
        budget: A budget that several loops share.
        watcher: Called with each failed attempt and with the end.
        cancel: The scope that stops the loop; the one around it by default.
        shrink: Shortens the messages of a call that is too long for the model, such as
            `failwell.agents.drop_oldest_tool_results`. It is called once with them and the call repeated once with what
            it returns. The messages are the argument called `messages`, `contents` or `input`, or else the first list.
        stream: How long the stream that the function yields or returns may take. A stream that stalls before its
            first chunk is repeated, and one that stalls later is not.
        clock: Tells the time and waits.
        jitter: Draws a number in [0, 1) for each wait.
        options: All of these as one value. A parameter beside it wins.

    Raises:
        TypeError: a parameter has the wrong type.
        ValueError: a number makes no sense: no attempt at all, a negative time.
    """
    merged = merge_options(**parameters)
    if function is not None:
        return _decorate(function, merged)

    def decorate(decorated: Any) -> Any:
        return _decorate(decorated, merged)

    return decorate


def retrying(**parameters: Unpack[RetryParameters]) -> "RetryLoop":
    """Repeat a block in a written-out loop.

    Write `for attempt in retrying():` and, inside it, `with attempt:`. Works with `async for` and `async with`
    as well. The parameters are those of `retry`; the name is that of the function around the loop by default.
    """
    # The caller's frame, which is this function's own.
    caller = _getframe(1).f_code.co_qualname.replace(".<locals>.", ".")
    return RetryLoop(merge_options({"name": caller}, **parameters))


def run(options: RetryOptions, function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Call `function` as often as `options` allow."""
    operation = Operation(options)
    if options.guard is not None:
        operation.hold()
    call: Callable[..., Any] = function
    if options.shrink is not None:
        call = ShortenedCall(function, args, kwargs, options.shrink).under(operation)
    while True:
        with operation:
            return call(*args, **kwargs)
        operation.wait()


async def run_async(
    options: RetryOptions, function: Callable[_P, Awaitable[_R]], /, *args: _P.args, **kwargs: _P.kwargs
) -> _R:
    """Await `function(...)` as often as `options` allow."""
    operation = AsyncOperation(options)
    if options.guard is not None:
        await operation.hold_async()
    call: Callable[..., Any] = function
    if options.shrink is not None:
        call = ShortenedCall(function, args, kwargs, options.shrink).under(operation)
    while True:
        with operation:
            return await call(*args, **kwargs)
        await operation.conclude()


def _decorate(function: Any, options: RetryOptions) -> Any:
    _check_callable(function)
    if options.name is None:
        options = replace(options, name=_name_of(function))
    from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction

    body = _body(function)
    if isasyncgenfunction(body):
        return repeat_astream(function, options)
    if isgeneratorfunction(body) or (options.stream is not None and not iscoroutinefunction(body)):
        return repeat_stream(function, options)
    if options.stream is not None:
        streamed = repeat_astream(function, options)

        @wraps(function)
        async def opened(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            return streamed(*args, **kwargs)

        return opened
    if iscoroutinefunction(body):

        @wraps(function)
        async def repeated_async(*args: Any, **kwargs: Any) -> Any:
            return await run_async(options, function, *args, **kwargs)

        return repeated_async

    @wraps(function)
    def repeated(*args: Any, **kwargs: Any) -> Any:
        return run(options, function, *args, **kwargs)

    return repeated


def _check_callable(function: object) -> None:
    if not callable(function):
        decorator = type(function).__name__
        hint = f"; put `@{decorator}` above `@retry`" if decorator in ("classmethod", "property") else ""
        raise TypeError(f"`retry` repeats a function, not {type(function).__name__}{hint}")


def _name_of(function: Any) -> str:
    """The qualified name of a function, of the function below partials, or of an object's class."""
    while type(function) is partial:
        function = function.func
    name = getattr(function, "__qualname__", None)
    return (name if isinstance(name, str) else type(function).__qualname__).replace(".<locals>.", ".")


def _body(function: Any) -> Any:
    """The function that runs when `function` is called: below partials, and the `__call__` of an object."""
    target: Any = function
    while type(target) is partial:
        target = target.func
    if type(target) is staticmethod:
        target = target.__func__
    is_function = isinstance(target, type) or hasattr(target, "__code__") or hasattr(target, "__func__")
    return target if is_function else type(target).__call__


class RetryAttempt:
    """One round of `for attempt in retrying(): with attempt: …`."""

    __slots__ = ("_calls", "_operation", "number")

    def __init__(self, operation: Operation, number: int, calls: list[ShortenedCall]) -> None:
        self._operation = operation
        self._calls = calls
        """The call of this loop, once its messages are known."""
        self.number = number

    def __enter__(self) -> Self:
        self._operation.enter()
        return self

    def __exit__(
        self, cls: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return self._operation.__exit__(cls, error, trace)

    async def __aenter__(self) -> Self:
        self._operation.enter()
        return self

    async def __aexit__(
        self, cls: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return await self._operation.__aexit__(cls, error, trace)

    def messages(self, messages: list[Any]) -> list[Any]:
        """The messages to send in this attempt: `messages`, or those that the loop's `shrink` has made of them."""
        shrink = self._operation.options.shrink
        if shrink is None:
            return messages
        if not self._calls:
            self._calls.append(ShortenedCall(list, (messages,), {}, shrink).under(self._operation))
        return self._calls[0].args[0]

    def stream(self, source: Iterable[_R]) -> Generator[_R]:
        """Read a stream inside the attempt: with the `stream` timeouts of the loop, and not repeated after its first chunk."""
        return read_stream(self._operation, source)

    def astream(self, source: AsyncIterable[_R] | Awaitable[AsyncIterable[_R]]) -> AsyncGenerator[_R]:
        """`stream` for an async iterable, or for the awaitable that opens one."""
        return read_astream(self._operation, source)


class RetryLoop:
    """What `retrying` returns: an iterable of attempts. An attempt without its `with` block is the last one."""

    def __init__(self, options: RetryOptions) -> None:
        self._options = options

    def __iter__(self) -> Iterator[RetryAttempt]:
        operation = Operation(self._options)
        operation.hold()
        number = 0
        calls: list[ShortenedCall] = []
        while True:
            number += 1
            operation.delay = None
            yield RetryAttempt(operation, number, calls)
            if operation.delay is None:
                return
            operation.wait()

    async def __aiter__(self) -> AsyncIterator[RetryAttempt]:
        operation = Operation(self._options)
        await operation.hold_async()
        number = 0
        calls: list[ShortenedCall] = []
        while True:
            number += 1
            operation.delay = None
            yield RetryAttempt(operation, number, calls)
            if operation.delay is None:
                return
            await operation.wait_async()
