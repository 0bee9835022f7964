"""What host and worker say to each other: one JSON object a frame, four bytes of length before it.

The worker side says the same words from `failwell.jobs.child.wire`, which cannot import this file
because it runs where failwell may not be installed; a test holds the two together.

    host → worker
        load        module, object, path, lanes, pulse     import the capability
        call        job, action, arguments, stream, window, phase
        cancel      job                                     ask one call to stop
        more        job, count                              room for further items of a stream
        stop                                                finish, clean up and exit

    worker → host
        hello       pid, python, protocol                   the interpreter runs
        loaded      name, version, schema, actions, ...     the capability is imported
        result      job, value | error                      a call ended
        item        job, value                              one item of a stream
        progress    job, fraction, message
        usage       job, amounts
        log         job, stream, level, logger, text
        pulse       at, signs, memory, calls                pushed, several times a second
        bye         reason                                  a clean end follows

    host → guardian
        watch       stopped                                 tell when a signal has stopped the worker for so long
        signal      number                                  send it to the worker's process group
        kill                                                end the worker and everything below it

    guardian → host
        forked      pid                                     the worker's process exists
        still                                               it has been stopped for too long
        exit        code                                    how it ended
"""

import re
from json import JSONDecoder, JSONEncoder
from typing import Any, cast

from failwell.fault.capability import CapabilityFatalError, CapabilityInputError

PROTOCOL = 1
"""Both sides must speak the same; the host refuses another number when it is greeted."""
LARGEST = 64 * 1024 * 1024
"""Bytes in one frame. Larger results belong in a file."""
HEADER = 4

TO_WORKER = ("load", "call", "cancel", "more", "stop")
TO_HOST = (
    "hello", "loaded", "result", "item", "progress", "usage", "log", "pulse", "bye", "exit",
)  # fmt: skip


# Made once: `json.dumps` makes a new encoder for every call that wants anything but its defaults.
_encode = JSONEncoder(allow_nan=False, separators=(",", ":"), ensure_ascii=False).encode
_decode = JSONDecoder().decode
_HEAD = re.compile(rb'\{"type":"(result|item)","job":("(?:[^"\\]|\\.)*"),')
"""How an answer begins; the worker writes these two first."""


class BrokenFrame(ValueError):
    """The other side wrote something that is no frame; nothing after it can be trusted."""


def encode(frame: dict[str, Any]) -> bytes:
    """One frame as bytes.

    Raises:
        CapabilityInputError: a value cannot be written as JSON, or it is too large.
    """
    try:
        body = _encode(frame).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise CapabilityInputError(
            f"an argument cannot be handed to the worker: {error}; give JSON values only"
        ) from error
    if len(body) > LARGEST:
        raise CapabilityInputError(
            f"the arguments are {len(body)} bytes, and one call takes {LARGEST} at most; hand over a file's path"
        )
    return len(body).to_bytes(HEADER, "little") + body


class Decoder:
    """Cuts what arrives into frames, however it was split on the way."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, piece: bytes | memoryview) -> list[dict[str, Any]]:
        """The frames that are complete now.

        Raises:
            BrokenFrame: a length is impossible or a body is no JSON object.
        """
        held = self._held
        held += piece
        frames: list[dict[str, Any]] = []
        at = 0
        while len(held) - at >= HEADER:
            end = at + HEADER + int.from_bytes(held[at : at + HEADER], "little")
            if end - at - HEADER > LARGEST:
                raise BrokenFrame(f"a frame of {end - at - HEADER} bytes was announced")
            if len(held) < end:
                break
            frames.append(_parsed(held[at + HEADER : end]))
            at = end
        if at:
            del held[:at]
        return frames


def _parsed(body: bytearray) -> dict[str, Any]:
    try:
        made = _decode(body.decode())
    except ValueError as error:
        raise BrokenFrame("a frame is not JSON") from error
    except RecursionError:
        return _too_deep(body)
    if not isinstance(made, dict):
        raise BrokenFrame("a frame is not an object")
    return cast("dict[str, Any]", made)


def _too_deep(body: bytearray) -> dict[str, Any]:
    """What is known of a frame that is nested too deep to be read: which call it is about, and why it has no value.

    Raises:
        BrokenFrame: it is about no call.
    """
    head = _HEAD.match(body)
    if head is None:
        raise BrokenFrame("a frame is nested too deep to be read")
    return {"type": head[1].decode(), "job": _decode(head[2].decode()), "unreadable": "it is nested too deep"}


class ProtocolMismatch(CapabilityFatalError, kind="validation.contract_version_mismatch"):
    """The worker speaks another version of the protocol."""
