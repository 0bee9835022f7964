"""One worker process with its guardian, from its start to its end. Knows nothing of capabilities.

The guardian is our child and the worker its child. The guardian tells how the worker ended, so the
exit code is known for certain before anybody is told of a lost connection.
"""

import asyncio
import logging
import os
import re
import socket
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import IO, Any, Literal, cast
from uuid import uuid4

from failwell.errors.frozen import frozen
from failwell.processes import tree
from failwell.processes.memory_groups import MemoryGroup
from failwell.processes.script import watch_exit
from failwell.processes.wire import BrokenFrame, Decoder, encoded
from failwell.processes.worker_memory import OverLimit, WorkerMemory


@frozen
class Ending:
    """How a process ended."""

    code: int | None
    """The exit code; negative for a signal, `None` where it is unknown."""
    stderr: tuple[str, ...] = ()
    oom_kills: int | None = None
    """How often the kernel killed a process for memory in the worker's control group while it ran. The group may hold
    other processes, so it backs up what a SIGKILL suggests and is no evidence by itself."""
    over: OverLimit | None = None
    """The memory limit that it was ended for, if it was."""


_log = logging.getLogger("failwell.jobs")
_AT_ONCE = 1 << 18
"""The most bytes that are read at once. A part that is never filled takes no memory."""


class Channel(asyncio.BufferedProtocol):
    """Calls `on_frame` for each frame, and `on_lost` once when the connection has ended.

    What arrives is read into one buffer that is kept. One made for each read is large enough that the system
    may be asked for it, and given it back, every time; that can cost a third of a call.
    """

    def __init__(self, on_frame: Callable[[dict[str, Any]], None], on_lost: Callable[[], None]) -> None:
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._feed = Decoder().feed
        self._buffer = memoryview(bytearray(_AT_ONCE))
        self._transport: asyncio.Transport | None = None
        self._pieces: list[bytes] = []
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  (there is one size)
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for frame in self._feed(self._buffer[:nbytes]):
                self._on_frame(frame)
        except (BrokenFrame, KeyError, TypeError, ValueError, AttributeError) as error:
            # Something else wrote on the channel. The worker sees it close, and ends.
            _log.warning(
                "a worker wrote what is no frame of ours (%s: %s); it is ended", type(error).__name__, error
            )
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (how it was lost, the guardian tells)
        if not self.is_lost:
            self.is_lost = True
            self._on_lost()

    def send(self, frame: dict[str, Any]) -> None:
        """Send a frame now; what cannot be written yet is buffered."""
        self.write(encoded(frame))
        self.flush()

    def write(self, piece: bytes) -> None:
        """Add an encoded frame to what `flush` sends. After the end of the connection it is dropped."""
        if self._transport is not None and not self.is_lost:
            self._pieces.append(piece)

    def flush(self) -> None:
        """Send what was written, together: it wakes the other end once."""
        pieces, self._pieces = self._pieces, []
        if pieces and self._transport is not None and not self.is_lost:
            self._transport.write(b"".join(pieces))

    def close(self) -> None:
        """Close this end."""
        if self._transport is not None:
            self._transport.abort()


class Lines(asyncio.Protocol):
    """Splits what a process prints into lines. Of a line that was redrawn with carriage returns, the last state counts.

    A line that is too long is told in pieces, as soon as each is there.
    """

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self.unfinished = b""
        """The line that has not ended yet."""

    def data_received(self, data: bytes) -> None:
        *lines, rest = (self.unfinished + data).split(b"\n")
        for line in lines:
            self._tell(line)
        *whole, last = _pieces(_visible(rest))
        self.unfinished = last + rest[-1:] if rest.endswith(b"\r") else last
        for piece in whole:
            self._on_line(piece.decode("utf-8", "replace"))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (the end is the end)
        self.finish()

    def read_rest(self, pipe: IO[bytes] | socket.socket) -> None:
        """Read what is left from a process that has ended, with an unfinished last line."""
        self.read_now(pipe)
        self.finish()

    def read_now(self, pipe: IO[bytes] | socket.socket) -> None:
        """Read what is in the pipe. Somebody may go on writing to it, so there is an end to it."""
        count = 0
        while count < _MOST_AT_THE_END:
            try:
                piece = os.read(pipe.fileno(), _PIPE_SIZE)
            except (OSError, ValueError):
                # It is closed, or empty and held open by somebody else.
                break
            if not piece:
                break
            count += len(piece)
            self.data_received(piece)

    def finish(self) -> None:
        """Tell the unfinished line as it is: what comes next does not belong to it."""
        if self.unfinished:
            rest, self.unfinished = self.unfinished, b""
            self._tell(rest)

    def _tell(self, line: bytes) -> None:
        for piece in _pieces(_visible(line)):
            if piece:
                self._on_line(piece.decode("utf-8", "replace"))


def _visible(line: bytes) -> bytes:
    """What a terminal shows of a line, about: what follows the last carriage return."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]


def _pieces(text: bytes) -> Iterator[bytes]:
    """A text that is too long for one line, cut between words where it has any: half a secret is not recognized."""
    at = 0
    while len(text) - at > _LONGEST:
        end = at + _LONGEST
        gap = _LAST_GAP.match(text, at + 1, end)
        if gap is not None:
            end = gap.end()
        else:
            # Before a character, not within one.
            end = next((start for start in range(end, end - 4, -1) if text[start] & 0xC0 != 0x80), end)
        yield text[at:end]
        at = end
    yield text[at:]


class Leash(Lines):
    """The connection to a guardian: orders go out, reports come in, a line each."""

    def __init__(self, on_report: Callable[[str], None]) -> None:
        super().__init__(on_report)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def send(self, order: str) -> None:
        """Send an order; before the connection and after its end it is dropped."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(f"{order}\n".encode())


_LONGEST = 8000
"""Bytes of one line."""
_LAST_GAP = re.compile(rb".*[\s,;&]", re.DOTALL)
_PIPE_SIZE = 1 << 16
_MOST_AT_THE_END = 1 << 20


_KEPT_LINES = 100
"""Of stderr. After a fatal error Python prints up to 80 lines of stacks, and what led to it stands before them."""
_LAST_DATA = 0.25
"""Seconds to wait for data in the pipe after the worker has ended."""
_GUARDIAN_GRACE = 10.0
"""Seconds after which a guardian that does not carry out an order is killed."""
_LAST_SWEEP = 0.1
"""Seconds within which the processes below a killed guardian have to be gone."""

Output = Callable[[Literal["stdout", "stderr"], str], None]


class WorkerProcess:
    """A worker process, with everything that it started."""

    def __init__(
        self,
        on_frame: Callable[[dict[str, Any]], None],
        on_output: Output,
        group: MemoryGroup | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._on_frame = on_frame
        self._on_output = on_output
        self.pid: int | None = None
        self.doomed: str | None = None
        """Why the host ended it, if it did."""
        self.ended: asyncio.Future[Ending] = loop.create_future()
        """Done when the worker has ended and all of its frames and output were delivered."""
        self.cleared: asyncio.Future[None] = loop.create_future()
        """Done when its guardian has ended as well and was reaped."""
        self.stderr: deque[str] = deque(maxlen=_KEPT_LINES)
        self._code: int | None = None
        self._is_code_known = False
        self._transports: list[asyncio.BaseTransport] = []
        self.out, self.err = Lines(self._on_stdout), Lines(self._on_stderr)
        self._outputs: list[tuple[IO[bytes], Lines]] = []
        self._mark = uuid4().hex
        self._line = Channel(on_frame, self._check)
        self._leash = Leash(self._on_report)
        self.memory = WorkerMemory(self._leash.send, group)
        """Its memory limit."""
        self._leash_end: socket.socket | None = None
        self._guardian: subprocess.Popen[bytes] | None = None
        self._last_resort: asyncio.TimerHandle | None = None

    async def start(self, command: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
        """Start the interpreter with a script that ends in `failwell.processes.guardian.guard_worker`.

        Raises:
            OSError: it cannot be run.
        """
        with ExitStack() as far_ends, ExitStack() as near_ends:
            ends: list[Any] = []
            fds: list[int] = []
            for _ in range(2):
                near, far = socket.socketpair()
                ends.append(near_ends.enter_context(near))
                fds.append(far_ends.enter_context(far).fileno())
            for _ in range(2):
                read, write = os.pipe()
                far_ends.callback(os.close, write)
                ends.append(near_ends.enter_context(os.fdopen(read, "rb", 0)))
                fds.append(write)
            # On the event loop's own thread: a process is tied to the thread that started it.
            self._guardian = _spawn(
                [*command, str(fds[0]), str(fds[1])],
                fds[:2],
                (fds[2], fds[3]),
                {**env, tree.MARKER: ":".join(filter(None, (os.environ.get(tree.MARKER), self._mark)))},
                cwd,
            )
            self._unwatch = watch_exit(self._loop, self._guardian, self._reaped)
            near_ends.callback(self._give_up)
            await self._connect(*ends)
            # From here on they belong to the transports.
            near_ends.pop_all()
        if self.doomed is not None:
            # `kill` was called before there was a connection.
            self._leash.send("kill")

    async def _connect(
        self, line: socket.socket, leash: socket.socket, out: IO[bytes], err: IO[bytes]
    ) -> None:
        outputs = ((out, self.out), (err, self.err))
        for end in (line, leash):
            end.setblocking(False)  # noqa: FBT003  (the socket's own way)
        connections = await asyncio.gather(
            *(
                self._loop.create_unix_connection(lambda channel=channel: channel, sock=end)
                for end, channel in ((line, self._line), (leash, self._leash))
            ),
            *(self._loop.connect_read_pipe(lambda lines=lines: lines, pipe) for pipe, lines in outputs),
        )
        self._transports += [transport for transport, _protocol in connections]
        self._outputs += outputs
        self._leash_end = leash

    def _on_stdout(self, line: str) -> None:
        self._on_output("stdout", line)

    def _on_stderr(self, line: str) -> None:
        self.stderr.append(line)
        self._on_output("stderr", line)

    def read_output(self) -> None:
        """Take in what the pipes hold now, before the loop comes to it."""
        for pipe, lines in self._outputs:
            lines.read_now(pipe)

    def end_lines(self) -> None:
        """Tell unfinished lines as they are: what is printed next does not belong to them."""
        self.out.finish()
        self.err.finish()

    def processes(self) -> list[int]:
        """The worker and everything that it started."""
        return [] if self._guardian is None else tree.members_below(self._guardian.pid)

    @property
    def is_started(self) -> bool:
        """Whether a process was started."""
        return self._guardian is not None

    # -------------------------------------------------------------- sending

    def send(self, frame: dict[str, Any]) -> None:
        """Send a frame to the worker."""
        self._line.send(frame)

    def write(self, piece: bytes) -> None:
        """Add an encoded frame to what `flush` sends."""
        self._line.write(piece)

    def flush(self) -> None:
        """Send what was written, together."""
        self._line.flush()

    def watch(self, stopped: float) -> None:
        """Kill it as `frozen` once a signal has stopped it for this many seconds."""
        self._leash.send(f"stopped {stopped}")

    def end_over_limit(self, over: OverLimit) -> None:
        """Kill it because a limit that it shares with others was reached."""
        self.memory.over = over
        self._leash.send("kill")

    def signal(self, number: int) -> None:
        """Send a signal to the worker's process group."""
        self._leash.send(f"signal {int(number)}")

    def kill(self, why: str) -> None:
        """Kill the worker and all its descendants. `ended` and `cleared` are done afterwards."""
        if self.doomed is None:
            self.doomed = why
        self._leash.send("kill")
        if self._last_resort is None and not self.cleared.done():
            self._last_resort = self._loop.call_later(_GUARDIAN_GRACE, self._kill_guardian)

    def _kill_guardian(self) -> None:
        """Kill a guardian that is stopped or stuck; `_reaped` then ends the worker."""
        if self._guardian is not None and not self.cleared.done():
            self._guardian.kill()

    # -------------------------------------------------------------- watching

    def _on_report(self, report: str) -> None:
        match report.split():
            case ["forked", pid]:
                self.pid = int(pid)
                self.memory.began(self.pid)
            case ["stopped"]:
                self.kill("frozen")
            case ["over", used]:
                self.memory.exceeded(float(used))
            case ["exit", code]:
                self._on_exit(int(code))
            case _:
                _log.warning("the guardian of a worker sent an unknown report: %r", report)

    def _on_exit(self, code: int) -> None:
        self._code, self._is_code_known = code, True
        # A descendant that shares the pipe could keep it open for a moment longer.
        self._loop.call_later(_LAST_DATA, self._line.close)
        self._check()

    def _reaped(self) -> None:
        guardian = self._guardian
        assert guardian is not None
        self._unwatch()
        code = guardian.wait()
        if not self._is_code_known and self._leash_end is not None:
            # Its last report may be there already, and not be read yet.
            self._leash.read_rest(self._leash_end)
        if not self._is_code_known:
            # It ended before it had forked the worker, or was killed; the worker then dies with it.
            self._code = code if self.pid is None else None
            self._is_code_known = True
            if self.pid is not None:
                self._end_by_hand(self.pid)
        self._loop.call_later(_LAST_DATA, self._line.close)
        if self._last_resort is not None:
            self._last_resort.cancel()
        if not self.cleared.done():
            self.cleared.set_result(None)
        self._check()
        self.memory.leave_group()

    def _end_by_hand(self, pid: int) -> None:
        """End the worker and everything that it started in place of its guardian."""
        tree.sweep(self._mark, groups=[pid], roots=[(pid, None)], patience=_LAST_SWEEP)

    def _check(self) -> None:
        """Set `ended` once the exit code is known and the connection has ended."""
        if self.ended.done() or not self._is_code_known or not self._line.is_lost:
            return
        for pipe, lines in self._outputs:
            # Its last output is in the pipe by now, and may say why it ended.
            lines.read_rest(pipe)
        kills, over = self.memory.ended()
        self.ended.set_result(Ending(code=self._code, stderr=tuple(self.stderr), oom_kills=kills, over=over))
        if not self.cleared.done():
            self.cleared.add_done_callback(lambda _done: self._close())
        else:
            self._close()

    def _give_up(self) -> None:
        """Leave a guardian that could not be connected: without its leash it ends by itself."""
        self._line.is_lost = True
        self._close()

    def _close(self) -> None:
        for transport in self._transports:
            transport.close()
        self._transports.clear()

    async def gone(self) -> Ending:
        """Wait until nothing is left. Returns how it ended."""
        ending = await asyncio.shield(self.ended)
        done, _ = await asyncio.wait([self.cleared], timeout=_GUARDIAN_GRACE)
        if not done:
            self._kill_guardian()
            await asyncio.shield(self.cleared)
        return ending


def _spawn(
    command: Sequence[str],
    inherited: Sequence[int],
    output: tuple[int, int],
    env: Mapping[str, str],
    cwd: str,
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603  (the interpreter is the one that the manifest names)
        command,
        stdin=subprocess.DEVNULL,
        stdout=output[0],
        stderr=output[1],
        env=dict(env),
        cwd=cwd,
        pass_fds=tuple(inherited),
        start_new_session=True,
    )
