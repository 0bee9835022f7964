"""The calls in flight to one worker: sends them, matches answers, cancels them, fails them if the worker dies."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Literal

from failwell.errors.axes import Certainty
from failwell.errors.faults import (
    CapabilityCancelledError,
    CapabilityError,
    CapabilityTimeoutError,
)
from failwell.errors.report import Scene, TracebackPolicy
from failwell.jobs.faults import ended_by_us
from failwell.jobs.job import NO_ARGUMENTS
from failwell.jobs.store.rows import delete_files
from failwell.jobs.workers.answer import Reader
from failwell.jobs.workers.protocol import Answer, encode
from failwell.jobs.workers.worker_events import notify
from failwell.processes.worker import WorkerProcess

StopReason = Literal["cancel", "timeout", "stop"]


class PendingCall:
    """One call of a worker in flight."""

    __slots__ = (
        "_future",
        "answer",
        "ends_at",
        "failed",
        "items",
        "job",
        "on_answer",
        "seconds",
        "stop_reason",
        "timer",
        "wake",
    )

    def __init__(self, job: str, *, streams: bool = False) -> None:
        self.job = job
        self.answer: Answer | None = None
        """How it ended."""
        self._future: asyncio.Future[Any] | None = None
        self.stop_reason: StopReason | None = None
        """Why the call was asked to stop. It decides how the call ends, whatever the worker answers. Only a call that
        is stopped together with its process may still succeed."""
        self.failed: CapabilityError | None = None
        """An error on the host's side. The call ends with it, whatever `stop_reason` is."""
        self.seconds = 0.0
        """The timeout of the call, if it has one."""
        self.ends_at: float | None = None
        """When it times out, by the clock of the loop."""
        self.timer: asyncio.TimerHandle | None = None
        """Kills the process of a call that does not stop."""
        self.on_answer: Callable[[Answer], None] | None = None
        """Called with the answer as soon as it arrives, for callers that do not await it."""
        self.items: deque[Any] | None = deque() if streams else None
        self.wake: asyncio.Event | None = asyncio.Event() if streams else None

    def arrived(self, item: Any) -> None:
        """Add one item of a stream."""
        if self.items is not None and self.wake is not None:
            self.items.append(item)
            self.wake.set()

    def set_timer(self, timer: "asyncio.TimerHandle | None") -> None:
        """Replace the timer."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = timer

    def settle(self, answer: Answer) -> None:
        """Answer the call, once."""
        if self.timer is not None:
            self.set_timer(None)
        if self.answer is not None:
            return
        self.answer = answer
        if self._future is not None:
            _resolve(self._future, answer)
        if self.wake is not None:
            self.wake.set()
        if self.on_answer is not None:
            notify(self.on_answer, answer, "the callback for the answer to job %s failed", self.job)

    def future(self) -> "asyncio.Future[Any]":
        """A future of the answer. Most calls have a callback and need none."""
        future = self._future
        if future is None or future.cancelled():
            # A caller's cancellation cancels the future, but the answer is still to come.
            future = self._future = asyncio.get_running_loop().create_future()
            if self.answer is not None:
                _resolve(future, self.answer)
        return future


def _resolve(future: "asyncio.Future[Any]", answer: Answer) -> None:
    if future.done():
        return
    if answer.error is None:
        future.set_result(answer.value)
    else:
        future.set_exception(answer.error)
        # Without this, the loop would report an exception that was never retrieved if the caller has left.
        future.exception()


_EARLY = 0.001
_WINDOW = 16
"""How many items of a stream the worker may send ahead."""


class Calls:
    """All calls of one worker, over all its processes."""

    def __init__(
        self, scene: Scene, cancel_grace: float, policy: TracebackPolicy, folder: str | None
    ) -> None:
        self._name = scene.capability or ""
        self._scene = scene
        self._grace = cancel_grace
        self._reader = Reader(scene, policy, folder)
        self._pending: dict[str, PendingCall] = {}
        self._process: WorkerProcess | None = None
        self._sequence = 0
        self._timer: asyncio.TimerHandle | None = None
        self.finished = 0
        """How many calls of jobs were answered. An answer, even an error, shows that the process works."""

    def attach(self, process: WorkerProcess | None) -> None:
        """Send to `process` from now on."""
        self._process = process

    def jobs(self) -> tuple[str, ...]:
        """The jobs that are running, without calls of hooks."""
        return tuple(job for job in self._pending if not job.startswith("#"))

    def running(self, job: str) -> PendingCall | None:
        """The call of `job`, unless it was answered."""
        call = self._pending.get(job)
        return None if call is None or call.answer is not None else call

    # -------------------------------------------------------------- sending

    async def call(self, job: str, order: Mapping[str, Any], timeout: float | None) -> Any:  # noqa: ASYNC109  (it ends more than a wait)
        """Send one call and wait for its answer."""
        call = self._send_call(job, _frame(job, order), timeout, flush_soon=True)
        try:
            return await call.future()
        except asyncio.CancelledError:
            # Stopped as if it was cancelled: its caller has left.
            self.ask_to_stop(call, "cancel")
            raise

    def begin(
        self,
        job: str,
        frame: bytes,
        timeout: float | None,
        on_answer: Callable[[Answer], None],
    ) -> None:
        """Add one call to what `WorkerProcess.flush` sends; `on_answer` is called as soon as its answer arrives."""
        self._send_call(job, frame, timeout).on_answer = on_answer

    async def stream(
        self,
        job: str,
        order: Mapping[str, Any],
        timeout: float | None,  # noqa: ASYNC109  (as in `call`)
    ) -> AsyncGenerator[Any]:
        """Send one call and yield its items as they arrive; the worker sends no more than `_WINDOW` ahead."""
        frame = _frame(job, {**order, "stream": True, "window": _WINDOW})
        call = self._send_call(job, frame, timeout, streams=True, flush_soon=True)
        items, wake = call.items, call.wake
        assert items is not None
        assert wake is not None
        count = 0
        try:
            while True:
                while items:
                    yield items.popleft()
                    count += 1
                    if count * 2 >= _WINDOW:
                        self.send({"type": "more", "job": job, "count": count})
                        count = 0
                if call.answer is not None:
                    if call.answer.error is not None:
                        raise call.answer.error
                    return
                wake.clear()
                await wake.wait()
        finally:
            # Items that were produced and not yet read are dropped.
            call.items = None
            delete_files(list(items))
            if call.answer is None:
                self.ask_to_stop(call, "cancel")

    async def lifecycle(self, phase: str, arguments: Mapping[str, Any] = NO_ARGUMENTS) -> Any:
        """Call a lifecycle hook of the capability."""
        self._sequence += 1
        job = f"#{phase}-{self._sequence}"
        frame = _frame(job, {"action": phase, "phase": phase, "arguments": arguments})
        call = self._send_call(job, frame, None)
        if self._process is not None:
            self._process.flush()
        return await call.future()

    def send(self, frame: dict[str, Any]) -> None:
        """Send a frame to the worker, if it has a process."""
        if self._process is not None:
            self._process.send(frame)

    def _send_call(
        self,
        job: str,
        frame: bytes,
        timeout: float | None,
        *,
        streams: bool = False,
        flush_soon: bool = False,
    ) -> PendingCall:
        if job in self._pending:
            raise ValueError(f"job {job!r} is already running in {self._scene.instance!r}")
        loop = asyncio.get_running_loop()
        call = PendingCall(job, streams=streams)
        process = self._process
        if process is None:
            # The process ended after it was ready and before this call was sent.
            raise ended_by_us(self._name, "stopped", doing="the call was being sent")
        if timeout is not None:
            call.seconds = timeout
            call.ends_at = loop.time() + timeout
            if self._timer is None or call.ends_at < self._timer.when():
                self._set_timer(call.ends_at)
        if not self._pending:
            # What was printed between two calls is not the beginning of a line of this one.
            _end_lines(process)
        self._pending[job] = call
        process.write(frame)
        if flush_soon:
            # At the end of this turn of the loop, with the other calls of this turn.
            loop.call_soon(process.flush)
        return call

    # -------------------------------------------------------------- time-outs

    def _set_timer(self, when: float | None) -> None:
        """Set the timer of all time-outs. It stays when its call is answered: most calls end long before they time out."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if when is None else asyncio.get_running_loop().call_at(when, self._rang)

    def _rang(self) -> None:
        self._timer = None
        # A timer may fire a little early.
        now = asyncio.get_running_loop().time() + _EARLY
        for call in list(self._pending.values()):
            if call.ends_at is not None and call.ends_at <= now:
                call.ends_at = None
                self.ask_to_stop(call, "timeout")
        times = [call.ends_at for call in self._pending.values() if call.ends_at is not None]
        if times:
            self._set_timer(min(times))

    # -------------------------------------------------------------- stopping

    def ask_to_stop(self, call: PendingCall, stop_reason: StopReason) -> None:
        """Ask one call to stop, and kill the process if it does not stop within the grace."""
        if call.answer is not None or call.stop_reason in ("cancel", "timeout"):
            return
        if call.stop_reason is None:
            self.send({"type": "cancel", "job": call.job})
        call.stop_reason = stop_reason
        call.set_timer(asyncio.get_running_loop().call_later(self._grace, self._force, call, self._process))

    def ask_all_to_stop(self) -> None:
        """Ask every call to stop, because the process is being stopped."""
        for call in self._pending.values():
            if call.stop_reason is None:
                call.stop_reason = "stop"
                self.send({"type": "cancel", "job": call.job})

    def _force(self, call: PendingCall, process: WorkerProcess | None) -> None:
        if call.answer is None and process is not None and process is self._process:
            process.kill("replaced")

    # -------------------------------------------------------------- answers

    def item(self, frame: Mapping[str, Any]) -> None:
        """Take in one item of a stream."""
        call = self._pending.get(frame["job"])
        item, error = self._reader.item(frame)
        if call is None or call.items is None:
            delete_files(item)
        elif error is None:
            call.arrived(item)
        elif call.failed is None:
            # The item cannot be read: end the stream, and ask the worker to stop.
            call.failed = error
            self.ask_to_stop(call, "cancel")

    def end_output(self, job: str) -> None:
        """End the lines of `job`, which is about to be answered, unless other calls run, whose lines they may be."""
        if len(self._pending) == 1 and job in self._pending and self._process is not None:
            _end_lines(self._process)

    def answered(self, frame: Mapping[str, Any]) -> None:
        """Take in the answer of a call. Nothing here may raise before the call is settled, whatever the frame holds."""
        call = self._pending.pop(frame["job"], None)
        if call is None:
            delete_files(self._reader.item(frame).value)
            return
        if not call.job.startswith("#"):
            self.finished += 1
        stopped = None
        if call.failed is not None or call.stop_reason is not None:
            stopped = self._stop_error(call, _work_done(frame))
        if stopped is not None:
            delete_files(self._reader.item(frame).value)
            call.settle(Answer(error=stopped))
        else:
            answer = self._reader.read(call.job, frame)
            if answer.error is not None and call.stop_reason == "stop":
                # It failed because it was asked to stop with its process; the job itself was not cancelled.
                answer = Answer(error=self._process_ended(self._process))
            call.settle(answer)

    def fail_all(self, why: Callable[[], CapabilityError]) -> None:
        """End every call after the process ended: by its stop reason, or else with `why`."""
        self._set_timer(None)
        calls, self._pending = list(self._pending.values()), {}
        for call in calls:
            call.settle(Answer(error=self._stop_error(call, Certainty.UNKNOWN) or why()))

    def _process_ended(self, process: WorkerProcess | None) -> CapabilityError:
        return ended_by_us(self._name, None if process is None else process.doomed)

    def _stop_error(self, call: PendingCall, certainty: Certainty) -> CapabilityError | None:
        """The error of a call that was cancelled or timed out, whatever it answers; else `None`.

        `certainty` says whether the work of a cancelled call was done.
        """
        if call.failed is not None:
            return call.failed
        if call.stop_reason == "cancel":
            return CapabilityCancelledError(self._name, certainty=certainty)
        if call.stop_reason == "timeout":
            return CapabilityTimeoutError(self._name, call.seconds)
        return None


def _end_lines(process: WorkerProcess) -> None:
    if process.out.unfinished or process.err.unfinished:
        process.end_lines()


def _frame(job: str, order: Mapping[str, Any]) -> bytes:
    return encode({"type": "call", "job": job, **order})


_STAGES = {"queued": Certainty.NOT_SENT, "began": Certainty.PARTIAL, "returned": Certainty.DONE_BUT_LOST}


def _work_done(frame: Mapping[str, Any]) -> Certainty:
    """Whether the work of an answered call was done, as its worker says. The worker may be of an older version."""
    if "error" not in frame:
        return Certainty.DONE_BUT_LOST
    return _STAGES.get(str(frame.get("stage")), Certainty.UNKNOWN)
