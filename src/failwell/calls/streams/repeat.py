"""Streams under `retry`: repeated until their first chunk, and never after it."""

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Generator, Iterable
from functools import partial, wraps
from typing import Any, TypeVar

from failwell.calls.chain.entry import ShortenedCall
from failwell.calls.clock import Clock
from failwell.calls.operation import Operation, StreamOperation
from failwell.calls.retry_options import RetryOptions
from failwell.calls.streams.timeouts import StreamTimeouts

_T = TypeVar("_T")


def repeat_stream(
    function: Callable[..., Any], options: RetryOptions
) -> Callable[..., Generator[Any, Any, Any]]:
    """A generator function that yields what `function` yields, a generator function unless `options.stream` is set.

    With `options.stream` it may also return any iterable.
    """

    @wraps(function)
    def repeated(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        operation = StreamOperation(options)
        operation.hold()
        call = _bind(operation, function, args, kwargs)
        while True:
            with operation:
                source: Generator[Any, Any, Any] = open_source(call, options.stream, options.clock)
                try:
                    item = next(source)
                    # The context of a generator is the caller's from the first item on.
                    operation.detach()
                    operation.visible = True
                    while True:
                        try:
                            sent = yield item
                        except (GeneratorExit, KeyboardInterrupt, SystemExit):
                            raise
                        except BaseException as error:  # noqa: BLE001  (it is the caller's, and goes to the source)
                            operation.thrown = error
                            item = source.throw(error)
                        else:
                            if sent is None:
                                return (yield from source)
                            item = source.send(sent)
                except StopIteration as end:
                    return end.value
                finally:
                    source.close()
            operation.wait()

    return repeated


def repeat_astream(
    function: Callable[..., Any], options: RetryOptions
) -> Callable[..., AsyncGenerator[Any, Any]]:
    """An async generator function that yields what `function` yields, one itself unless `options.stream` is set.

    With `options.stream` it may also return any async iterable, or an awaitable of one.
    """

    @wraps(function)
    async def repeated(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        operation = StreamOperation(options)
        call = _bind(operation, function, args, kwargs)
        while True:
            source = open_async_source(call, options.stream, options.clock)
            try:
                async with operation:
                    try:
                        item = await anext(source)
                        # See `repeat_stream`: the context is the caller's from here on.
                        operation.detach()
                        operation.visible = True
                        while True:
                            try:
                                sent = yield item
                            except (GeneratorExit, KeyboardInterrupt, SystemExit):
                                raise
                            except BaseException as error:  # noqa: BLE001  (it is the caller's, and goes to the source)
                                operation.thrown = error
                                step = source.athrow(error)
                            else:
                                step = source.asend(sent)
                            item = await step
                    except StopAsyncIteration:
                        return
            finally:
                # Otherwise it would be closed some time later, with its connection open until then.
                await source.aclose()
            await operation.wait_async()

    return repeated


def read_stream(operation: Operation, stream: Iterable[_T]) -> Generator[_T]:
    """Yield the chunks of a stream that is read inside an attempt."""
    options = operation.options
    if options.stream is not None:
        from failwell.calls.streams.plain import limit_stream

        stream = limit_stream(stream, options.stream, clock=options.clock)
    for chunk in stream:
        operation.visible = True
        yield chunk


async def read_astream(
    operation: Operation, stream: AsyncIterable[_T] | Awaitable[AsyncIterable[_T]]
) -> AsyncGenerator[_T]:
    """`read_stream` for an async iterable, or for the awaitable that opens one."""
    options = operation.options
    if options.stream is not None:
        from failwell.calls.streams.asynchronous import limit_astream

        stream = limit_astream(stream, options.stream, clock=options.clock)
    source = await stream if isinstance(stream, Awaitable) else stream
    try:
        async for chunk in source:
            operation.visible = True
            yield chunk
    finally:
        if isinstance(source, AsyncGenerator):
            # Otherwise it would be closed some time later, with its connection open until then.
            await source.aclose()


def _bind(operation: Operation, function: Callable[..., Any], args: Any, kwargs: Any) -> Callable[[], Any]:
    shrink = operation.options.shrink
    if shrink is None:
        return partial(function, *args, **kwargs)
    return ShortenedCall(function, args, kwargs, shrink).under(operation)


def open_source(call: Callable[[], Any], timeouts: StreamTimeouts | None, clock: Clock) -> Any:
    """The stream that `call` returns, with deadlines if there are any."""
    if timeouts is None:
        return call()
    from failwell.calls.streams.plain import StreamReader

    return StreamReader(call, timeouts, clock)


def open_async_source(call: Callable[[], Any], timeouts: StreamTimeouts | None, clock: Clock) -> Any:
    """The async stream that `call` returns, or the awaitable of it; with deadlines if there are any."""
    if timeouts is None:
        return call()
    from failwell.calls.streams.asynchronous import AsyncStreamReader

    return AsyncStreamReader(call, timeouts, clock)
