"""Frames between processes: four bytes of length, then one JSON object. Standard library alone, for both sides."""

import json
import re
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from json import encoder
from typing import Any, cast

PROTOCOL = 1
"""The version of the protocol; the host refuses a worker that greets it with another one."""
LARGEST = 64 * 1024 * 1024
"""Bytes in one frame. Larger results belong in a file."""
HEADER = 4
_AT_ONCE = 1 << 16

_HEAD = re.compile(rb'\{"type":"(result|item)","job":("(?:[^"\\]|\\.)*"),')
"""The beginning of an answer; the worker writes these two fields first."""


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is not JSON")


def json_encoder(*, ascii_only: bool) -> Callable[[object], str]:
    """A function that writes compact JSON, and raises `TypeError`, `ValueError` or `RecursionError`."""
    make_encoder = getattr(encoder, "c_make_encoder", None)
    if make_encoder is None:
        return json.JSONEncoder(
            separators=(",", ":"), ensure_ascii=ascii_only, allow_nan=False, check_circular=False
        ).encode
    # `JSONEncoder.encode` creates this object for every call, which costs more than encoding small data.
    sort_keys = skip_keys = allow_nan = False
    text = encoder.encode_basestring_ascii if ascii_only else encoder.encode_basestring
    chunks = make_encoder(None, _refuse, text, None, ":", ",", sort_keys, skip_keys, allow_nan)
    join = "".join
    return lambda value: join(chunks(value, 0))


encode_text = json_encoder(ascii_only=False)
_scan: Callable[[str, int], tuple[Any, int]] = cast("Any", json.JSONDecoder()).scan_once


def decode_text(text: str) -> Any:
    """The value of a JSON text. It costs a third of `json.loads` where the text has no white space around it.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        return json.loads(text)
    return value if end == len(text) else json.loads(text)


class TooLarge(ValueError):
    """A frame would be larger than the limit."""


def encoded(frame: dict[str, Any]) -> bytes:
    """One frame as bytes; raises what the JSON encoder raises, or `TooLarge`."""
    body = encode_text(frame).encode()
    if len(body) > LARGEST:
        raise TooLarge(f"{len(body)} bytes, and one frame takes {LARGEST} at most")
    return len(body).to_bytes(HEADER, "little") + body


class BrokenFrame(ValueError):
    """The other side wrote something that is not a frame; nothing after it can be trusted."""


class Decoder:
    """Splits a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffered = bytearray()

    def feed(self, piece: bytes | memoryview) -> list[dict[str, Any]]:
        """The frames that are complete now.

        Raises:
            BrokenFrame: a length is impossible or a body is no JSON object.
        """
        buffer = self._buffered
        buffer += piece
        frames: list[dict[str, Any]] = []
        at = 0
        while len(buffer) - at >= HEADER:
            end = at + HEADER + int.from_bytes(buffer[at : at + HEADER], "little")
            if end - at - HEADER > LARGEST:
                raise BrokenFrame(f"a frame of {end - at - HEADER} bytes was announced")
            if len(buffer) < end:
                break
            frames.append(_parsed(buffer[at + HEADER : end]))
            at = end
        if at:
            del buffer[:at]
        return frames


def _parsed(body: bytearray) -> dict[str, Any]:
    try:
        frame = decode_text(body.decode())
    except ValueError as error:
        raise BrokenFrame("a frame is not JSON") from error
    except RecursionError:
        return _too_deep(body)
    if not isinstance(frame, dict):
        raise BrokenFrame("a frame is not an object")
    return cast("dict[str, Any]", frame)


def _too_deep(body: bytearray) -> dict[str, Any]:
    """What is known of a frame that is nested too deep to decode: its call, and why it has no value.

    Raises:
        BrokenFrame: it is about no call.
    """
    head = _HEAD.match(body)
    if head is None:
        raise BrokenFrame("a frame is nested too deep to be read")
    return {
        "type": head[1].decode(),
        "job": decode_text(head[2].decode()),
        "unreadable": "it is nested too deep",
    }


def _poller(sock: socket.socket) -> Callable[..., list[tuple[int, int]]] | None:
    """Waits until a socket can be read.

    A thread that waits inside `recv` is also woken when the other side reads what was sent to it, for nothing. That costs the
    other side more than the second system call costs here.
    """
    make_poll = getattr(select, "poll", None)
    if make_poll is None:
        return None
    poll = make_poll()
    poll.register(sock, select.POLLIN)
    return poll.poll


class Line:
    """One end of a process's pipe. Any thread may send, a signal handler as well; one thread receives."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.RLock()
        self._waiting: deque[tuple[memoryview, list[int]]] = deque()
        """Frames that are not completely written, each with the sizes of its parts that were."""
        self._is_writing = False
        self._buffered = bytearray()
        # Reused, because a new buffer for each read may be allocated from the system every time.
        self._buffer = memoryview(bytearray(_AT_ONCE))
        self._is_abandoned = False
        self._poll = _poller(sock)

    def send(self, frame: dict[str, Any]) -> None:
        """Write one frame whole."""
        self.write(encoded(frame))

    def write(self, piece: bytes) -> None:
        """Write an encoded frame whole and in order. In a forked process it is dropped.

        A signal handler runs in the middle of anything, also in the middle of this, on the thread that holds
        the lock. Its frame is then written by the write that it interrupted; and where it raises, the rest of
        the frame that it broke off is written before the next.
        """
        if self._is_abandoned:
            return
        sizes: list[int] = []
        size, entry = len(piece), (memoryview(piece), sizes)
        with self._lock:
            if self._is_writing or self._waiting:
                self._waiting.append(entry)
            else:
                self._is_writing = True
                try:
                    # Sent and counted in one call of C code: no handler can raise between the two.
                    sizes.extend(map(self._sock.send, (piece,)))
                finally:
                    if not sizes or sizes[0] != size:
                        self._waiting.appendleft(entry)
                    self._is_writing = False
            # Checked again after writing: a handler may have added a frame at the very end.
            while self._waiting and not self._is_writing:
                self._is_writing = True
                try:
                    self._write_waiting()
                finally:
                    self._is_writing = False

    def _write_waiting(self) -> None:
        waiting, send = self._waiting, self._sock.send
        while waiting:
            piece, sizes = waiting[0]
            done = sum(sizes)
            if done == len(piece):
                waiting.popleft()
            else:
                sizes.extend(map(send, (piece[done:],)))

    def abandon(self) -> None:
        """Close the connection, in a process that was forked while any thread may have used it."""
        self._is_abandoned = True
        self._sock.close()

    def is_ready(self) -> bool:
        """Whether there is something to receive now: a frame, a part of one, or the end."""
        if self._buffered:
            return True
        try:
            self._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def receive(self) -> dict[str, Any] | None:
        """The next frame; `None` when the other side is gone."""
        buffer = self._buffered
        while True:
            if len(buffer) >= HEADER:
                end = HEADER + int.from_bytes(buffer[:HEADER], "little")
                if len(buffer) >= end:
                    frame = decode_text(buffer[HEADER:end].decode())
                    del buffer[:end]
                    return frame
            try:
                if self._poll is not None:
                    self._poll()
                count = self._sock.recv_into(self._buffer)
            except (ConnectionError, OSError):
                return None
            if not count:
                return None
            buffer += self._buffer[:count]
