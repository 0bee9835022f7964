"""One end of a pipe to a worker, on the event loop: frames in, frames out."""

import asyncio
import logging
import os
from collections.abc import Callable
from typing import IO, Any, cast

from failwell.jobs.frames import BrokenFrame, Decoder, encode

_log = logging.getLogger("failwell.jobs")
_AT_ONCE = 1 << 18
"""Bytes that are read at once, at most. What is never filled takes no memory."""


class Channel(asyncio.BufferedProtocol):
    """Hands over each frame as it arrives, and says once when no more will.

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
            # Somebody wrote on the channel who should not have. The other end sees it close, and ends.
            _log.warning(
                "a worker wrote what is no frame of ours (%s: %s); it is ended", type(error).__name__, error
            )
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (how it was lost, the guardian tells)
        if not self.is_lost:
            self.is_lost = True
            self._on_lost()

    def send(self, frame: dict[str, Any]) -> None:
        """Write a frame; what the other end does not take yet is kept."""
        self.write(encode(frame))

    def write(self, piece: bytes) -> None:
        """Write what `encode` made. To an end that is gone it is lost, and `on_lost` has told.

        What is written in one turn of the loop goes in one piece: it wakes the other end once.
        """
        if self._transport is None or self.is_lost:
            return
        if not self._pieces:
            asyncio.get_running_loop().call_soon(self.flush)
        self._pieces.append(piece)

    def flush(self) -> None:
        """Let go what was written in this turn, now rather than at its end."""
        pieces, self._pieces = self._pieces, []
        if pieces and self._transport is not None and not self.is_lost:
            self._transport.write(b"".join(pieces))

    def close(self) -> None:
        """Close this end."""
        if self._transport is not None:
            self._transport.abort()


class Lines(asyncio.Protocol):
    """Cuts what a process writes to a descriptor into lines; of a redrawn line, its last state."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._held = b""

    def data_received(self, data: bytes) -> None:
        *whole, rest = (self._held + data).split(b"\n")
        self._held = rest[-_LONGEST:]
        for one in whole:
            self._tell(one)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (the end is the end)
        self._finish()

    def read_rest(self, pipe: IO[bytes]) -> None:
        """Take what is in the pipe now, to its last unfinished line; its writer is gone.

        Somebody else may hold the pipe open and go on writing, so there is an end to it.
        """
        taken = 0
        while taken < _MOST_AT_THE_END and not pipe.closed:
            try:
                piece = os.read(pipe.fileno(), _MOST_AT_THE_END)
            except OSError:
                break
            if not piece:
                break
            taken += len(piece)
            self.data_received(piece)
        self._finish()

    def _finish(self) -> None:
        held, self._held = self._held, b""
        self._tell(held)

    def _tell(self, line: bytes) -> None:
        shown = line.rstrip(b"\r").rpartition(b"\r")[2]
        if shown:
            self._on_line(shown[:_LONGEST].decode("utf-8", "replace"))


_LONGEST = 8000
_MOST_AT_THE_END = 1 << 20
