"""Turns the frames of a worker into events for listeners, and keeps its last pulse.

All text of a capability passes through here before it is stored or shown, so its secrets are masked here.
"""

import logging
from collections.abc import Callable
from typing import Any, Literal, TypeVar
from uuid import uuid4

from failwell.errors.redact import redact_text
from failwell.jobs.workers.protocol import (
    Listener,
    Measured,
    Memory,
    OutputLine,
    Progress,
    Pulse,
    Used,
    WorkerEvent,
)

_log = logging.getLogger("failwell.jobs")
_E = TypeVar("_E")
BUSY_SHARE = 0.02
"""Share of one processor below which its use is not a sign of progress."""
_LONGEST = 8000
"""Characters of one line; longer lines arrive in pieces."""
_MOST_UNFINISHED = 256
"""Lines without an end that are kept of one worker: two streams of each call that runs."""


def notify(callback: Callable[[_E], object], event: _E, failure: str, name: str) -> None:
    """Call `callback`; what it raises is logged and does not reach the caller."""
    try:
        callback(event)
    except Exception:  # noqa: BLE001  (one callback's trouble must not keep the others from theirs)
        _log.exception(failure, name)


class WorkerEvents:
    """Turns frames into events, and events into calls of the listeners."""

    def __init__(self, instance: str) -> None:
        self._instance = instance
        self._listeners: list[Listener] = []
        self._generation = 0
        self._session = ""
        self._signs: tuple[Any, ...] = ()
        self._cpu = 0.0
        self._peaks: list[float | None] | None = None
        self._jobs_with_output: set[str | None] = set()
        """Those whose lines may not be stored yet; `None` for lines that name no job."""
        self._unfinished: dict[tuple[str | None, Literal["stdout", "stderr"]], str] = {}
        """The line that a job has flushed and not ended, by job and stream."""
        self.memory: Memory | None = None
        self.on_sign: Callable[[], None] = _nothing
        """Called at every sign of progress."""

    def renew(self, generation: int) -> str:
        """Begin a new process, and return its session id."""
        self._generation = generation
        self._session = uuid4().hex
        self._signs, self._cpu, self.memory, self._peaks = (), 0.0, None, None
        self._jobs_with_output.clear()
        self._unfinished.clear()
        return self._session

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Add a listener. The returned function removes it."""
        self._listeners.append(listener)

        def leave() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return leave

    def publish(self, event: WorkerEvent) -> None:
        """Call every listener; what one raises is logged."""
        for listener in list(self._listeners):
            notify(listener, event, "a listener of worker %s failed", self._instance)

    def printed(self, stream: Literal["stdout", "stderr"], text: str) -> None:
        """Take in a line that was written to a descriptor of the process, not through Python's streams."""
        self.on_sign()
        self._publish_line(None, stream, "", "", text)

    def on_frame(self, frame: dict[str, Any]) -> None:
        """Take in a frame that is not an answer."""
        kind = frame["type"]
        if kind == "pulse":
            self._pulse(frame)
        elif kind == "progress":
            self.on_sign()
            self.publish(
                Progress(
                    instance=self._instance,
                    job=_job(frame),
                    fraction=frame["fraction"],
                    message=redact_text(frame["message"]),
                )
            )
        elif kind == "log":
            self.on_sign()
            self._unfinished.pop((_job(frame), frame["stream"]), None)
            self._publish_line(_job(frame), frame["stream"], frame["level"], frame["logger"], frame["text"])
        elif kind == "unfinished":
            self.on_sign()
            if len(self._unfinished) < _MOST_UNFINISHED:
                self._unfinished[_job(frame), frame["stream"]] = frame["text"][:_LONGEST]
        elif kind == "usage":
            self.publish(Used(instance=self._instance, job=_job(frame), amounts=frame["amounts"]))

    def end_unfinished(self) -> None:
        """Publish what a process had flushed of lines that it did not end before it ended itself."""
        for (job, stream), text in self._unfinished.items():
            self._publish_line(job, stream, "", "", text)
        self._unfinished.clear()

    def measured(self, frame: dict[str, Any]) -> None:
        """Publish the peak memory that comes with the answer of a call, if it has changed or the call had output."""
        peaks = frame.get("peaks")
        # Output that names no job may be the job's; see `printed`.
        if peaks == self._peaks and self._jobs_with_output.isdisjoint((frame["job"], None)):
            return
        job = _job(frame)
        self._jobs_with_output -= {job, None}
        if job is not None and peaks is not None and self._listeners:
            self._peaks = peaks
            self.publish(
                Measured(instance=self._instance, job=job, ram_peak_mb=peaks[0], gpu_peak_mb=peaks[1])
            )

    def _publish_line(
        self,
        job: str | None,
        stream: Literal["stdout", "stderr", "log"],
        level: str,
        logger: str,
        text: str,
    ) -> None:
        if not self._listeners:
            return
        self._jobs_with_output.add(job)
        self.publish(
            OutputLine(
                instance=self._instance,
                session=self._session,
                job=job,
                stream=stream,
                level=level,
                logger=logger,
                text=redact_text(text, _LONGEST),
            )
        )

    def _pulse(self, frame: dict[str, Any]) -> None:
        signs = (frame["signs"], frame["work"])
        used = frame["cpu"] - self._cpu
        if signs != self._signs or used > BUSY_SHARE * frame["every"]:
            self.on_sign()
        self._signs, self._cpu = signs, frame["cpu"]
        self.memory = Memory(rss_mb=frame["rss"], peak_mb=frame["peak"], pids=tuple(frame["pids"]))
        self.publish(
            Pulse(
                instance=self._instance,
                generation=self._generation,
                memory=self.memory,
                cpu_seconds=frame["cpu"],
            )
        )


def _job(frame: dict[str, Any]) -> str | None:
    job = frame.get("job")
    return None if job is None or job.startswith("#") else job


def _nothing() -> None:
    return None
