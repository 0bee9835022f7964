"""The binary frames of AWS event streams: lengths, headers, a payload, and a checksum over each part."""

import json
import struct
from binascii import crc32

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
