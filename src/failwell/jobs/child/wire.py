"""Frames over a blocking socket: four bytes of length, then one JSON object."""

import json
import socket
import threading
from typing import Any

PROTOCOL = 1
LARGEST = 64 * 1024 * 1024
HEADER = 4

_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":"), ensure_ascii=False).encode
_decode = json.JSONDecoder().decode


class TooLarge(ValueError):
    """A frame would be larger than the other side takes."""


def encoded(frame: dict[str, Any]) -> bytes:
    """One frame as bytes; raises what the JSON encoder raises, or `TooLarge`."""
    body = _encode(frame).encode()
    if len(body) > LARGEST:
        raise TooLarge(f"{len(body)} bytes, and one frame takes {LARGEST} at most")
    return len(body).to_bytes(HEADER, "little") + body


class Line:
    """One end of the pipe. Any thread may send; one thread receives."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()
        self._held = bytearray()
        self._is_abandoned = False

    def fileno(self) -> int:
        """The descriptor, for `poll`."""
        return self._sock.fileno()

    def send(self, frame: dict[str, Any]) -> None:
        """Write one frame whole."""
        self.write(encoded(frame))

    def write(self, piece: bytes) -> None:
        """Write what `encoded` made, whole and in turn. What a forked process says is not for the host."""
        if self._is_abandoned:
            return
        with self._lock:
            self._sock.sendall(piece)

    def abandon(self) -> None:
        """Let go of the line, in a process that was forked while any thread may have held it."""
        self._is_abandoned = True
        self._sock.close()

    def receive(self) -> dict[str, Any] | None:
        """The next frame; `None` when the other side is gone."""
        held = self._held
        while True:
            if len(held) >= HEADER:
                end = HEADER + int.from_bytes(held[:HEADER], "little")
                if len(held) >= end:
                    frame = _decode(held[HEADER:end].decode())
                    del held[:end]
                    return frame
            try:
                piece = self._sock.recv(65536)
            except (ConnectionError, OSError):
                return None
            if not piece:
                return None
            held += piece
