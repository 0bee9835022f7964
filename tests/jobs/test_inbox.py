"""How the lanes of a worker share the reading of its calls."""

import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from failwell.jobs.worker_process.inbox import Inbox

LONG = 20.0


class _Ended(Exception):
    """The worker has ended."""


class Channel:
    """The frames that are sent to an inbox, as names of calls; `cancel` and `stop` are frames too."""

    def __init__(self, lanes: int) -> None:
        self._frames: SimpleQueue[str] = SimpleQueue()
        self._lanes = lanes
        self.cancelled = threading.Event()
        self.was_asked = threading.Event()
        self.readers: list[str] = []
        self.inbox = Inbox(self._read, self._is_ready)
        self.watcher = threading.Thread(target=self._watch, name="watcher", daemon=True)

    def send(self, *frames: str) -> None:
        for frame in frames:
            self._frames.put(frame)

    def _watch(self) -> None:
        with suppress(_Ended):
            self.inbox.watch()

    def _is_ready(self) -> bool:
        self.was_asked.set()
        return not self._frames.empty()

    def _read(self) -> None:
        frame = self._frames.get()
        self.readers.append(threading.current_thread().name)
        if frame == "cancel":
            self.cancelled.set()
        elif frame == "end":
            raise _Ended
        elif frame == "stop":
            self.inbox.close(self._lanes)
        else:
            order: Any = ({"job": frame}, None)
            self.inbox.add(order)


class Lane(threading.Thread):
    """A lane whose calls `long` and `longer` last until they are let go."""

    def __init__(self, channel: Channel, began: "SimpleQueue[str]", name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._orders = channel.inbox.orders()
        self._began = began
        self.let_go = threading.Event()

    def run(self) -> None:
        for frame, _ in self._orders:
            self._began.put(frame["job"])
            if frame["job"].startswith("long"):
                assert self.let_go.wait(LONG)


def _started(lanes: int) -> tuple[Channel, "SimpleQueue[str]", list[Lane]]:
    channel, began = Channel(lanes), SimpleQueue[str]()
    threads = [Lane(channel, began, f"lane {number}") for number in range(lanes)]
    for thread in (channel.watcher, *threads):
        thread.start()
    return channel, began, threads


def _stop(channel: Channel, lanes: list[Lane]) -> None:
    for lane in lanes:
        lane.let_go.set()
    channel.send("stop")
    for lane in lanes:
        lane.join(LONG)
        assert not lane.is_alive()
    channel.send("end")
    channel.watcher.join(LONG)


def test_a_cancel_is_read_while_every_lane_is_busy() -> None:
    channel, began, lanes = _started(1)
    channel.send("long")
    assert began.get(timeout=LONG) == "long"

    channel.send("cancel")

    assert channel.cancelled.wait(LONG)
    assert channel.readers[-1] == "watcher"
    _stop(channel, lanes)


def test_a_call_that_waits_is_run_by_the_next_free_lane_although_no_other_frame_comes() -> None:
    channel, began, lanes = _started(1)
    channel.send("long", "short")
    assert began.get(timeout=LONG) == "long"
    # The second call was read, and nothing else is there to be read.
    assert channel.was_asked.wait(LONG)

    lanes[0].let_go.set()

    assert began.get(timeout=LONG) == "short"
    _stop(channel, lanes)


def test_long_calls_run_on_every_lane_at_once() -> None:
    channel, began, lanes = _started(3)
    channel.send("long 1", "long 2", "long 3")

    assert sorted(began.get(timeout=LONG) for _ in lanes) == ["long 1", "long 2", "long 3"]
    _stop(channel, lanes)


def test_calls_that_wait_are_run_before_the_lanes_end() -> None:
    channel, began, lanes = _started(2)
    channel.send("long 1", "long 2", "short 1", "short 2")

    _stop(channel, lanes)

    assert sorted(began.get(timeout=LONG) for _ in range(4)) == ["long 1", "long 2", "short 1", "short 2"]
