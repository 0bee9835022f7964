"""Runs one command to its end, or ends it with everything that it started.

The end of a process is learnt from its pidfd and its output is read where the loop stands, which is
as fast as starting a process gets; no thread, no pipe between threads, no task for each stream.
A process is waited for last of all: as long as it is not, nobody else can get its number.
"""

import os
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cache
from subprocess import DEVNULL, Popen
from typing import TYPE_CHECKING, Any, TypeVar

from failwell.processes import tree
from failwell.processes.capture import Capture

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

_CHUNK = 65_536
_MOST_AT_ONCE = 32
"""Chunks that are read before control returns to the event loop; no pipe holds more."""
_FIRST_WORDS = 0.01
"""Seconds after which output is read as it comes. Reading it once, at the end of a shorter script, is faster."""
LINGER = 0.2
"""Seconds to wait for the output of a script that has ended while another process holds the pipe open."""
_T = TypeVar("_T")


class ScriptProcess:
    """One running command. It leads its own process group, and its own session if there is a terminal.

    Raises:
        OSError: it could not be started.
        ValueError: its arguments hold something that no system takes, such as a zero byte.
    """

    def __init__(
        self,
        call: Sequence[str],
        *,
        env: Mapping[bytes, bytes],
        mark: str,
        out: Capture,
        err: Capture,
        cwd: str | None = None,
        stdin: str | None = None,
    ) -> None:
        import asyncio

        self._loop: AbstractEventLoop = asyncio.get_running_loop()
        self._mark = mark
        self._waiter: Future[None] | None = None
        self._has_ended = False
        self._is_lingering = False
        self._popen, out_end, err_end = _start(call, env, cwd, stdin)
        self.pid = self._popen.pid
        self._streams = {out_end: out, err_end: err}
        for stream in self._streams:
            os.set_blocking(stream, False)
        self._is_listening = False
        self._listen_soon = self._loop.call_later(_FIRST_WORDS, self._listen)
        self._unwatch = watch_exit(self._loop, self._popen, self._exited)

    @property
    def is_heard(self) -> bool:
        """Whether another process still holds its output open."""
        return bool(self._streams)

    async def ended(self, within: float | None) -> bool:
        """Wait for its end and its output, for `within` seconds at most. Returns whether it ended."""
        import asyncio

        if not self._has_ended:
            await self._wake_up(within, lambda: self._has_ended)
        if not self._has_ended:
            return False
        self._drain()
        if self._streams:
            self._listen()
            self._is_lingering = True
            await self._wake_up(LINGER, lambda: not self._streams)
        # A cancellation that arrived together with the end still counts.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        return True

    async def stop(self, grace: float) -> set[int]:
        """Stop it and everything that it started: SIGTERM, then SIGKILL. Returns the processes that did not end."""
        # Without /proc, a leader that has ended and is not reaped looks like a living group.
        reap = None if tree.has_proc() else self._popen.poll
        survivors = await tree.stop(self._mark, groups=[self.pid], grace=grace, reap=reap)
        if self.pid not in survivors and not self._has_ended:
            await self._wake_up(tree.CONFIRM, lambda: self._has_ended)
        self._drain()
        self.release()
        return survivors

    def reap(self) -> int:
        """Reap it. Returns its exit code, or the negative number of the signal that ended it."""
        self._unwatch()
        code = self._popen.poll()
        return -signal.SIGKILL if code is None else code

    def leave(self) -> None:
        """Read and drop further output, so that what it left running does not block on a full pipe."""
        self._listen()
        for stream in self._streams:
            self._loop.add_reader(stream, self._drop, stream)

    def release(self) -> None:
        """Close its output."""
        for stream in list(self._streams):
            self._close(stream)

    def _listen(self) -> None:
        self._listen_soon.cancel()
        if not self._is_listening:
            self._is_listening = True
            for stream in self._streams:
                self._loop.add_reader(stream, self._read, stream)

    def _exited(self) -> None:
        self._has_ended = True
        self._wake()

    async def _wake_up(self, seconds: float | None, done: Callable[[], bool]) -> None:
        """Return once `done` is true or the time is up."""
        ends = None if seconds is None else self._loop.time() + seconds
        while not done():
            waiter = self._waiter = self._loop.create_future()
            timer = None if ends is None else self._loop.call_at(ends, _set, waiter)
            try:
                await waiter
            finally:
                self._waiter = None
                if timer is not None:
                    timer.cancel()
            if ends is not None and self._loop.time() >= ends:
                return

    def _wake(self) -> None:
        if self._waiter is not None:
            _set(self._waiter)

    def _read(self, stream: int) -> bool:
        """Read once. Returns whether there may be more."""
        try:
            chunk = os.read(stream, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._close(stream)
            if self._is_lingering:
                self._wake()
            return False
        self._streams[stream].take(chunk)
        return True

    def _drain(self) -> None:
        for stream in list(self._streams):
            for _ in range(_MOST_AT_ONCE):
                if not self._read(stream):
                    break

    def _drop(self, stream: int) -> None:
        try:
            if os.read(stream, _CHUNK):
                return
        except BlockingIOError:
            return
        self._close(stream)

    def _close(self, stream: int) -> None:
        if self._streams.pop(stream, None) is not None:
            if self._is_listening:
                self._loop.remove_reader(stream)
            os.close(stream)
        if not self._streams:
            self._listen_soon.cancel()


async def unbroken(work: Coroutine[Any, Any, _T]) -> _T:
    """Run `work`, which stops processes, to its end even if the task is cancelled; the cancellation is raised after it."""
    import asyncio

    task = asyncio.ensure_future(work)
    interrupted: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            interrupted = error
    if interrupted is not None:
        task.exception()
        raise interrupted
    return task.result()


def _start(
    call: Sequence[str], env: Mapping[bytes, bytes], cwd: str | None, stdin: str | None
) -> tuple[Popen[bytes], int, int]:
    """Start a command. Returns the process and the read ends of its stdout and stderr."""
    handles: list[int] = []
    streams: tuple[int, ...] = ()
    try:
        handles += os.pipe()
        handles += os.pipe()
        out_read, out_write, err_read, err_write = handles
        source = DEVNULL
        if stdin:
            source = _file_of(stdin)
            handles.append(source)
        process = Popen(  # noqa: S603  (running what the author wrote is the point; no shell is involved)
            call,
            stdin=source,
            stdout=out_write,
            stderr=err_write,
            cwd=cwd,
            env=env,
            start_new_session=has_terminal(),
            process_group=None if has_terminal() else 0,
        )
        streams = (out_read, err_read)
        return process, out_read, err_read
    finally:
        for end in handles:
            if end not in streams:
                os.close(end)


@cache
def has_terminal() -> bool:
    """Whether this process has a terminal that scripts must not use.

    Without one a group is enough, and on a busy machine much cheaper: some systems schedule each session
    by itself, and a new one waits at the end of the queue while we wait for it.
    """
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _file_of(text: str) -> int:
    """An unnamed file that holds `text`, so that nothing has to be written while the script reads."""
    data = text.encode("utf-8", "replace")
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("stdin")
    else:
        from tempfile import TemporaryFile

        with TemporaryFile(buffering=0) as temporary:
            file = os.dup(temporary.fileno())
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
    os.lseek(file, 0, os.SEEK_SET)
    return file


def watch_exit(
    loop: "AbstractEventLoop", process: Popen[bytes], on_exit: Callable[[], None]
) -> Callable[[], None]:
    """Call `on_exit` once `process` has ended, without reaping it. Returns a function that stops watching."""
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        # Not on this system, or no descriptor left: a thread waits instead.
        _watch_in_thread(process, lambda: loop.call_soon_threadsafe(on_exit))
        return _nothing
    handles = [handle]

    def exited() -> None:
        loop.remove_reader(handle)
        on_exit()

    def close() -> None:
        if handles:
            loop.remove_reader(handle)
            os.close(handles.pop())

    loop.add_reader(handle, exited)
    return close


def _nothing() -> None:
    return


def _watch_in_thread(process: Popen[bytes], on_exit: Callable[[], object]) -> None:
    from threading import Thread

    def wait() -> None:
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        else:
            process.wait()
        try:
            on_exit()
        except RuntimeError:
            # The loop was closed; nothing waits any more.
            return

    Thread(target=wait, daemon=True, name=f"waits for {process.pid}").start()


def _set(waiter: "Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
