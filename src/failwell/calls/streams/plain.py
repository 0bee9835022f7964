"""Deadlines around a plain iterator: a thread reads it, one chunk at a time.

A thread that waits in `next()` cannot be interrupted. So the stream is read in a thread of its own, and the
caller waits for that thread only as long as the deadlines allow. The thread reads a chunk when the caller
requests one and never ahead, so the source sees the same requests as without deadlines.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextvars import copy_context
from queue import Empty, SimpleQueue
from socket import SHUT_RDWR, socket
from threading import TIMEOUT_MAX, Thread
from types import GeneratorType
from typing import Any, TypeVar, cast

from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.calls.streams.timeouts import StreamProgress, StreamTimeouts
from failwell.calls.suppress import call_hook
from failwell.errors.foreign_objects import safe_call, safe_getattr

_T = TypeVar("_T")
_CHUNK, _END, _ERROR = "chunk", "end", "error"
_CLOSE_FAILED = "closing a stream that had timed out or was no longer read failed"


def limit_stream(
    stream: Iterable[_T], timeouts: StreamTimeouts, *, clock: Clock = SYSTEM_CLOCK
) -> Generator[_T]:
    """Yield the chunks of `stream`, or raise once it takes longer than `timeouts` allow.

    A thread reads the stream, because a read that blocks cannot be interrupted. When a deadline passes, the
    connection of an SDK's stream (openai, anthropic, httpx, requests) is shut down and the thread ends. A
    generator that waits in code of its own cannot be closed from outside: its thread ends, and closes it, when
    its read returns. Set the client's own read timeout for such a source.

    Args:
        stream: Any iterable.
        timeouts: How long it may take.
        clock: Tells the time.

    Raises:
        StreamTimedOut: `provider.timeout` before the first chunk, `provider.stream_interrupted` after it.
    """
    reader = StreamReader(lambda: stream, timeouts, clock)
    try:
        yield from reader
    finally:
        reader.close()


class StreamReader(Iterator[Any]):
    """Reads the stream that `open_stream` returns in a thread; opening it is part of the first chunk.

    It may be used like a generator: `send`, `throw` and the return value work if the source is one.
    """

    def __init__(self, open_stream: Callable[[], Any], timeouts: StreamTimeouts, clock: Clock) -> None:
        self._progress = StreamProgress(timeouts, clock)
        self._worker = _Worker(open_stream, clock)
        self._is_over = False

    def __next__(self) -> Any:
        return self._request("__next__")

    def send(self, value: Any) -> Any:
        """Send `value` to the source, a generator."""
        return self._request("__next__") if value is None else self._request("send", value)

    def throw(self, error: BaseException) -> Any:
        """Raise `error` in the source, a generator."""
        return self._request("throw", error)

    def close(self) -> None:
        """Close the source and end its thread. Harmless twice."""
        if not self._is_over:
            self._is_over = True
            self._worker.stop()

    def _request(self, method: str, *args: Any) -> Any:
        if self._is_over:
            raise StopIteration
        progress = self._progress
        deadline = progress.deadline()
        left = None if deadline is None else deadline - progress.clock.monotonic()
        reply = None if left is not None and left <= 0 else self._worker.request(method, args, left)
        if reply is None or (deadline is not None and reply[2] > deadline):
            self.close()
            raise progress.fault()
        outcome, value, _ = reply
        if outcome is _CHUNK:
            progress.chunks += 1
            return value
        self._is_over = True
        if outcome is _END:
            raise StopIteration(value)
        try:
            raise value
        finally:
            del reply, value  # kept here it would form a cycle with its traceback


_Reply = tuple[str, Any, float]


class _Worker:
    """The thread that reads, which starts with the first request, and its two queues."""

    def __init__(self, open_stream: Callable[[], Any], clock: Clock) -> None:
        self._open = open_stream
        self._clock = clock
        self._requests: SimpleQueue[tuple[str, tuple[Any, ...]] | None] = SimpleQueue()
        self._replies: SimpleQueue[_Reply] = SimpleQueue()
        self._thread: Thread | None = None
        self._opened: Any = None
        self._is_reading = False
        self._is_stopped = False

    def request(self, method: str, args: tuple[Any, ...], seconds: float | None) -> _Reply | None:
        """What the source does next; `None` if nothing comes within `seconds`."""
        if self._thread is None:
            # A daemon, so that a read that never returns does not keep the process from ending.
            context = copy_context()
            self._thread = Thread(target=context.run, args=(self._read,), name="failwell-stream", daemon=True)
            self._thread.start()
        self._is_reading = True
        self._requests.put((method, args))
        try:
            return self._replies.get(timeout=None if seconds is None else min(seconds, TIMEOUT_MAX))
        except Empty:
            return None

    def stop(self) -> None:
        """End the thread: it closes the source. A read that goes on is interrupted where the source allows it."""
        if self._thread is None:
            return
        self._is_stopped = True
        self._requests.put(None)
        opened = self._opened
        if not self._is_reading:
            self._thread.join()
        elif not _shut_down(opened) and not isinstance(opened, GeneratorType):
            # A generator that runs in another thread refuses to be closed.
            _close(opened)

    def _read(self) -> None:
        source: Any = None
        while (request := self._requests.get()) is not None:
            try:
                if source is None:
                    self._opened = self._open()
                    source = iter(self._opened)
                    if self._is_stopped:
                        break
                chunk = getattr(source, request[0])(*request[1])
            except StopIteration as end:
                self._reply(_END, end.value)
                return
            except BaseException as error:  # noqa: BLE001  (raised in the caller's thread, an interrupt too)
                self._reply(_ERROR, error)
                return
            self._reply(_CHUNK, chunk)
            del chunk
        _close(source)
        _close(self._opened)

    def _reply(self, outcome: str, value: Any) -> None:
        self._is_reading = False
        self._replies.put((outcome, value, self._clock.monotonic()))


def _close(stream: Any) -> None:
    if callable(getattr(stream, "close", None)):
        call_hook(stream.close, reason=_CLOSE_FAILED)


def _shut_down(stream: Any) -> bool:
    """Shut the connection of an SDK's stream down, so that a read of another thread returns; whether it has one.

    Closing a socket does not end a read that waits on it; only a shutdown does.
    """
    response = safe_getattr(stream, "response") or stream
    extensions = safe_getattr(response, "extensions")
    if isinstance(extensions, dict):
        # httpx. A connection of HTTP/2 is shared with other streams.
        known = cast("dict[str, Any]", extensions)
        network = None if known.get("http_version") == b"HTTP/2" else known.get("network_stream")
        connection = None if network is None else safe_call(network.get_extra_info, None, "socket")
        if isinstance(connection, socket):
            # Not that of `SSLSocket`, which would take the encryption off a connection that is being read.
            call_hook(socket.shutdown, connection, SHUT_RDWR, reason=_CLOSE_FAILED)
            return True
        return False
    # urllib3, and requests, whose `raw` it is.
    shutdown = safe_getattr(safe_getattr(stream, "raw") or stream, "shutdown")
    if not callable(shutdown):
        return False
    call_hook(shutdown, reason=_CLOSE_FAILED)
    return True
