"""Frames: the same on both sides, however they are cut on the way, and nothing else gets through."""

import json
import select
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell.capability import CapabilityInputError
from failwell.jobs.workers.protocol import encode
from failwell.processes import wire
from failwell.processes.wire import BrokenFrame, Decoder

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(), values, max_size=3), max_size=5), st.data())
def test_frames_arrive_whole_however_they_are_cut(sent: list[dict[str, Any]], data: st.DataObject) -> None:
    sent = [json.loads(json.dumps(one)) for one in sent if _is_sendable(one)]
    written = b"".join(encode(one) for one in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=6)))
    pieces = [written[a:b] for a, b in zip([0, *cuts], [*cuts, len(written)], strict=True)]

    decoder = Decoder()
    arrived = [frame for piece in pieces for frame in decoder.feed(piece)]

    assert arrived == sent


def _is_sendable(one: dict[str, Any]) -> bool:
    try:
        encode(one)
    except CapabilityInputError:
        return False
    return True


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers(), max_size=4))
def test_both_sides_write_the_same(frame: dict[str, Any]) -> None:
    assert encode(frame) == wire.encoded(frame)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}, "\ud800", b"x"])
def test_arguments_that_cannot_be_written_are_the_callers(value: object) -> None:
    with pytest.raises(CapabilityInputError):
        encode({"arguments": {"x": value}})


def test_arguments_that_are_too_large_are_the_callers_and_say_what_to_do() -> None:
    with pytest.raises(CapabilityInputError, match="the path of a file"):
        encode({"x": "y" * (wire.LARGEST + 1)})


@pytest.mark.parametrize(
    "written",
    [
        b"\x05\x00\x00\x00hello",
        b"\x02\x00\x00\x00[]",
        b"\xff\xff\xff\xff",
        b"\x04\x00\x00\x00\xff\xfe\xfd\xfc",
    ],
    ids=["not json", "not an object", "too long", "not text"],
)
def test_what_is_no_frame_breaks_the_channel(written: bytes) -> None:
    with pytest.raises(BrokenFrame):
        Decoder().feed(written)


class Rung(Exception):
    """Raised by a signal handler."""


def _written_while_a_handler(does: Callable[[wire.Line], None]) -> list[dict[str, Any]]:
    """What arrives when a signal interrupts a frame that is half written, and another is written after it."""
    ours, theirs = socket.socketpair()
    line, decoder, arrived = wire.Line(ours), Decoder(), list[dict[str, Any]]()
    writer = threading.get_ident()

    def read() -> None:
        # Something is there, and far more does not fit: the writer waits in the middle of its frame.
        select.select([theirs], [], [])
        signal.pthread_kill(writer, signal.SIGUSR1)
        while piece := theirs.recv(1 << 20):
            arrived.extend(decoder.feed(piece))

    before = signal.signal(signal.SIGUSR1, lambda _number, _frame: does(line))
    reader = threading.Thread(target=read)
    reader.start()
    try:
        line.send({"first": "x" * 8_000_000})
    except Rung:
        pass
    finally:
        line.send({"last": 1})
        ours.close()
        reader.join()
        theirs.close()
        signal.signal(signal.SIGUSR1, before)
    return arrived


def _raise(_line: wire.Line) -> None:
    raise Rung


@pytest.mark.timeout(20, method="thread")
def test_a_signal_handler_that_raises_leaves_no_half_a_frame() -> None:
    arrived = _written_while_a_handler(_raise)

    assert [list(one) for one in arrived] == [["first"], ["last"]]


@pytest.mark.timeout(20, method="thread")
def test_what_a_signal_handler_writes_waits_for_the_frame_that_it_interrupted() -> None:
    arrived = _written_while_a_handler(lambda line: line.send({"between": 1}))

    assert [list(one) for one in arrived] == [["first"], ["between"], ["last"]]
