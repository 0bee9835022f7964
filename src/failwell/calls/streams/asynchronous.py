"""Deadlines around an async iterator: what it awaits is cancelled when a deadline passes, as `asyncio.timeout` does.

One timer serves the whole stream. It is set again when it runs out and not for every chunk, so a chunk that
arrives on time costs little.
"""

import asyncio  # noqa: TID253  (loaded by those who read async streams alone)
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.calls.streams.timeouts import StreamProgress, StreamTimeouts
from failwell.calls.suppress import call_hook_async

_T = TypeVar("_T")
_CLOSE_FAILED = "closing a stream that had timed out failed"
_CLOSE_LIMIT = 1.0
"""Seconds that closing a stream may take once a deadline has passed."""


async def limit_astream(
    stream: AsyncIterable[_T] | Awaitable[AsyncIterable[_T]],
    timeouts: StreamTimeouts,
    *,
    clock: Clock = SYSTEM_CLOCK,
) -> AsyncGenerator[_T]:
    """`limit_stream` for an async iterable, or for the awaitable that opens one. It needs no thread.

    When a deadline passes, what the stream awaits is cancelled, and the stream is closed.

    Args:
        stream: Any async iterable, or an awaitable of one.
        timeouts: How long it may take.
        clock: Tells the time and waits.

    Raises:
        StreamTimedOut: `provider.timeout` before the first chunk, `provider.stream_interrupted` after it.
    """
    reader = AsyncStreamReader(lambda: stream, timeouts, clock)
    try:
        async for chunk in reader:
            yield chunk
    finally:
        await reader.aclose()


class AsyncStreamReader(AsyncIterator[Any]):
    """Reads the stream that `open_stream` returns, or the awaitable of one; opening it is part of the first chunk.

    It may be used like an async generator: `asend` and `athrow` work if the source is one.
    """

    def __init__(self, open_stream: Callable[[], Any], timeouts: StreamTimeouts, clock: Clock) -> None:
        self._progress = StreamProgress(timeouts, clock)
        self._timer = _Timer(clock)
        self._open = open_stream
        self._opened: Any = None
        self._source: Any = None

    async def __anext__(self) -> Any:
        return await self._request(self._open_source if self._source is None else self._source.__anext__)

    async def asend(self, value: Any) -> Any:
        """Send `value` to the source, an async generator."""
        return await (self.__anext__() if value is None else self._request(self._source.asend, value))

    async def athrow(self, error: BaseException) -> Any:
        """Raise `error` in the source, an async generator."""
        return await self._request(self._source.athrow, error)

    async def aclose(self) -> None:
        """Close the source. Harmless twice."""
        self._timer.stop()
        source, self._source = self._source, _Ended()
        await _close(source)
        if self._opened is not source:
            await _close(self._opened)

    async def _open_source(self) -> Any:
        self._opened = self._open()
        if hasattr(self._opened, "__await__"):
            self._opened = await self._opened
        self._source = aiter(self._opened)
        return await self._source.__anext__()

    async def _request(self, step: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        progress, timer = self._progress, self._timer
        deadline = progress.deadline()
        if deadline is not None and deadline <= progress.clock.monotonic():
            await self._close_in_time()
            raise progress.fault()
        timer.start(deadline)
        try:
            chunk = await step(*args)
        except asyncio.CancelledError:
            if not timer.finish():
                timer.stop()
                raise
            await self._close_in_time()
            raise progress.fault() from None
        except BaseException as error:
            # A source may make another error of the cancel.
            is_late = timer.finish() and isinstance(error, Exception)
            timer.stop()
            if not is_late:
                raise
            await self._close_in_time()
            raise progress.fault() from error
        timer.finish()
        progress.chunks += 1
        return chunk

    async def _close_in_time(self) -> None:
        async def close() -> None:
            async with asyncio.timeout(_CLOSE_LIMIT):
                await self.aclose()

        await call_hook_async(close, reason=_CLOSE_FAILED)


class _Ended:
    """A source that has no further chunk."""

    async def __anext__(self) -> Any:
        raise StopAsyncIteration


class _Timer:
    """Cancels the task that awaits a chunk when its deadline passes."""

    __slots__ = ("_cancels_before", "_clock", "_deadline", "_handle", "_is_due", "_rings", "_task")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._task: asyncio.Task[Any] | None = None
        self._deadline: float | None = None
        self._handle: asyncio.TimerHandle | asyncio.Task[None] | None = None
        self._rings = 0.0
        """When the handle runs out: at the deadline of this wait or of an earlier one."""
        self._is_due = False
        self._cancels_before = 0

    def start(self, deadline: float | None) -> None:
        """Watch the wait that the running task begins."""
        self._deadline = deadline
        self._task = task = asyncio.current_task()
        self._cancels_before = 0 if task is None else task.cancelling()
        if deadline is not None and (self._handle is None or deadline < self._rings):
            self._set(deadline)

    def finish(self) -> bool:
        """End the wait; whether its deadline passed, and nobody else cancelled the task meanwhile."""
        task, self._task = self._task, None
        if not self._is_due or task is None:
            return False
        self._is_due = False
        # Also where the source swallowed the cancel: one that still counted would break the next timeout.
        return task.uncancel() <= self._cancels_before

    def stop(self) -> None:
        """Ring no more. Harmless twice."""
        self._task = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _set(self, deadline: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._rings = deadline
        loop = asyncio.get_running_loop()
        left = max(0.0, deadline - self._clock.monotonic())
        if self._clock is SYSTEM_CLOCK:
            self._handle = loop.call_later(left, self._ring)
        else:
            self._handle = loop.create_task(self._sleep(left))

    async def _sleep(self, seconds: float) -> None:
        await self._clock.asleep(seconds)
        self._ring()

    def _ring(self) -> None:
        self._handle = None
        task, deadline = self._task, self._deadline
        if task is None or deadline is None:
            # Nobody waits; the next wait sets it again.
            return
        if self._clock.monotonic() < deadline:
            self._set(deadline)
        else:
            self._is_due = True
            task.cancel()


async def _close(stream: Any) -> None:
    close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
    if callable(close):
        closing: Any = close()
        if hasattr(closing, "__await__"):
            await closing
