"""HTTP/1.1 on a raw socket, stopping halfway if the scenario says so, and the binary frames of AWS event streams."""

import json
import re
import socket
import struct
import sys
from binascii import crc32
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from threading import Event
from time import monotonic

from failwell.testing.laboratory.lab_reply import Reply

_LARGEST_HEAD = 64 * 1024
_LARGEST_STORED = 16 * 1024 * 1024
_LARGEST_BODY = 64 * 1024 * 1024
_BLOCK = 64 * 1024
_SHORTLY = 0.2
_TICK = Event()
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d{1,9})", re.IGNORECASE)
_HEX = re.compile(rb"[0-9a-fA-F]{1,7}")
_ABORT = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
"""SO_LINGER without a timeout: closing the socket sends a reset."""


class Gone(Exception):
    """The client disconnected, or sent something that is not HTTP."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first lines of a request."""

    method: str
    target: str
    version: str
    headers: dict[str, str]

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection may serve another request."""
        connection = self.headers.get("connection", "").lower()
        return "close" not in connection if self.version == "HTTP/1.1" else "keep-alive" in connection


class Connection:
    """The connection of one client of the lab, with the bytes that were received in advance."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._early = b""

    def hurry(self) -> None:
        """Send every piece of a stream when it is written, not when there is more."""
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def peek_target(self) -> str | None:
        """The target of the next request, without consuming it, if its first line has arrived."""
        seen = self._early or self._sock.recv(_BLOCK, socket.MSG_PEEK)
        if not seen:
            raise Gone
        line, newline, _ = seen.partition(b"\r\n")
        words = line.split(b" ")
        return words[1].decode("latin-1") if newline and len(words) == 3 else None

    def await_unread(self) -> None:
        """Wait until the whole request has arrived, without reading it, or until a time limit.

        A client that is cut off while it still sends may see a broken pipe, or nothing at all; one
        that has sent everything sees the reset.
        """
        until = monotonic() + _SHORTLY
        while monotonic() < until:
            seen = self._early or self._sock.recv(_LARGEST_HEAD, socket.MSG_PEEK)
            head, ended, body = seen.partition(b"\r\n\r\n")
            length = _LENGTH.search(head)
            if ended and len(body) >= (min(int(length.group(1)), _BLOCK // 2) if length else 0):
                return
            _TICK.wait(_SHORTLY / 100)

    def read_head(self) -> Head:
        """The head of the next request."""
        while b"\r\n\r\n" not in self._early:
            if len(self._early) > _LARGEST_HEAD:
                raise Gone
            self._more()
        raw, _, self._early = self._early.partition(b"\r\n\r\n")
        first, *lines = raw.decode("latin-1").split("\r\n")
        words = first.split(" ")
        if len(words) != 3:
            raise Gone
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        return Head(words[0], words[1], words[2], headers)

    def read_body(self, head: Head) -> bytes:
        """The body that belongs to `head`, read in full; only the first part is returned."""
        if "100-continue" in head.headers.get("expect", "").lower():
            self._sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in head.headers.get("transfer-encoding", "").lower():
            return self._chunks()
        length = head.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > _LARGEST_BODY:
            raise Gone
        return self._exactly(int(length))

    def write(self, reply: Reply, head: Head, stall: float) -> bool:
        """Send `reply`. Returns whether the connection can serve another request."""
        if reply.stall == "head":
            self.stall(stall)
        if reply.status is None:
            self.reset()
            return False
        keep = head.keeps_alive and reply.ending == "whole"
        self._sock.sendall(_first_lines(reply, keep))
        if head.method == "HEAD":
            return keep
        if reply.pieces is None:
            self._write_body(reply, stall)
        else:
            self._write_pieces(reply, stall)
        if reply.ending == "reset":
            self.reset()
        return keep

    def stall(self, seconds: float) -> None:
        """Wait for this long, or until the client disconnects."""
        until = monotonic() + seconds
        while (remaining := until - monotonic()) > 0:
            self._sock.settimeout(remaining)
            try:
                early = self._sock.recv(_BLOCK)
            except TimeoutError:
                break
            finally:
                self._sock.settimeout(None)
            if not early:
                raise Gone
            self._early += early

    def reset(self) -> None:
        """Reset the connection, so that the client gets ECONNRESET."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
        self._sock.close()

    def close(self) -> None:
        """Close the connection. It may be called from another thread, and more than once."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            # The other side was faster, or it was reset on purpose; closing is all that is left.
            self._sock.close()
        else:
            self._sock.close()

    def _write_body(self, reply: Reply, stall: float) -> None:
        half = len(reply.body) // 2 if reply.stall == "body" or reply.ending != "whole" else len(reply.body)
        self._sock.sendall(reply.body[:half])
        if reply.stall == "body":
            self.stall(stall)
        if reply.ending == "whole":
            self._sock.sendall(reply.body[half:])

    def _write_pieces(self, reply: Reply, stall: float) -> None:
        for place, piece in enumerate(reply.pieces or ()):
            self._sock.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
            if place == 0 and reply.stall == "body":
                self.stall(stall)
        if reply.ending == "whole":
            self._sock.sendall(b"0\r\n\r\n")

    def _more(self) -> None:
        block = self._sock.recv(_BLOCK)
        if not block:
            raise Gone
        self._early += block

    def _exactly(self, length: int) -> bytes:
        stored = bytearray()
        while length:
            if not self._early:
                self._more()
            chunk, self._early = self._early[:length], self._early[length:]
            length -= len(chunk)
            if len(stored) < _LARGEST_STORED:
                stored += chunk
        return bytes(stored)

    def _line(self) -> bytes:
        while b"\r\n" not in self._early:
            if len(self._early) > _LARGEST_HEAD:
                raise Gone
            self._more()
        line, _, self._early = self._early.partition(b"\r\n")
        return line

    def _chunks(self) -> bytes:
        stored = bytearray()
        while size := self._chunk_size():
            chunk = self._exactly(size)
            if len(stored) < _LARGEST_STORED:
                stored += chunk
            self._line()
        while self._line():
            # Trailers say nothing that is needed here.
            continue
        return bytes(stored)

    def _chunk_size(self) -> int:
        size = self._line().partition(b";")[0].strip()
        if not _HEX.fullmatch(size):
            raise Gone
        return int(size, 16)


def _first_lines(reply: Reply, keep: bool) -> bytes:
    status = reply.status or 200
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unassigned"
    framing = (
        ("transfer-encoding", "chunked")
        if reply.pieces is not None
        else ("content-length", str(len(reply.body)))
    )
    own = {name.lower() for name, _ in reply.headers}
    usual = (("date", formatdate(usegmt=True)), framing, ("connection", "keep-alive" if keep else "close"))
    lines = [f"HTTP/1.1 {status} {phrase}"]
    lines += [
        f"{name}: {value}"
        for name, value in (*usual, *reply.headers)
        if (name, value) in reply.headers or name not in own
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


_STRING = 7
"""The type number of a header whose value is a text."""


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """One message, framed."""
    fields = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack("!II", len(fields) + len(payload) + 16, len(fields))
    checked = prelude + struct.pack("!I", crc32(prelude)) + fields + payload
    return checked + struct.pack("!I", crc32(checked))


def aws_event(kind: str, body: object) -> bytes:
    """An event of a stream."""
    return _message({":event-type": kind, ":message-type": "event"}, body)


def aws_exception(kind: str, message: str) -> bytes:
    """A modelled exception in the middle of a stream."""
    return _message({":exception-type": kind, ":message-type": "exception"}, {"message": message})


def _message(headers: dict[str, str], body: object) -> bytes:
    return frame({**headers, ":content-type": "application/json"}, json.dumps(body).encode())


def _header(name: str, value: str) -> bytes:
    header, content = name.encode(), value.encode()
    return struct.pack("!B", len(header)) + header + struct.pack("!BH", _STRING, len(content)) + content
