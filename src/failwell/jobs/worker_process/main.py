"""The worker process: reads frames, runs calls on its lanes, and answers each call exactly once.

The main thread is the first lane, because some libraries only work there. The lanes read frames themselves, see
`Inbox`; one thread watches them, and another sends the pulse.
"""

import contextvars
import faulthandler
import inspect
import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

from ...processes.wire import PROTOCOL, Line, encoded
from . import author
from .call import Call
from .captured_output import capture, release, waits_in_pipes
from .failure_report import VARIABLE, attempt, class_names_and_text, describe_failure, failure_text
from .host_package import offer
from .inbox import Inbox
from .peaks import peaks
from .pulse import Pulse
from .subject import WHOLE_MODULE, Subject, find_capabilities
from .values import frame_of

_PIPED = encoded({"type": "piped"})


def work(line: int) -> int:
    """Serve the host at the other end of the socket `line` until it sends `stop` or ends; return the exit code."""
    # Where an installed failwell of any version looks for the calls in flight.
    sys.modules["_failwell_worker.author"] = author
    return _Worker(Line(socket.socket(fileno=line))).serve()


def _run_hook(hook: Callable[[], Any]) -> None:
    result = hook()
    if inspect.iscoroutine(result):
        from asyncio import run

        run(result)


def _print_failure(hook: str, error: Exception) -> None:
    print(f"{hook} failed: {failure_text(error)}", file=sys.stderr)


class _Worker:
    def __init__(self, line: Line) -> None:
        self._line = line
        self._inbox = Inbox(self._read, line.is_ready)
        self._calls = author.calls
        self._subject: Subject | None = None
        self._name = ""
        self._instance: str | None = None
        self._policy = "strict"
        self._folder: str | None = None
        self._lanes = 1

    def serve(self) -> int:
        line = self._line
        faulthandler.enable(2)
        self._streams = capture(line)
        os.register_at_fork(after_in_child=self._forked)
        line.send(
            {
                "type": "hello",
                "pid": os.getpid(),
                "python": ".".join(map(str, sys.version_info[:3])),
                "protocol": PROTOCOL,
            }
        )
        order = line.receive()
        if order is None or order["type"] != "load":
            return 1
        self._name, self._policy, self._folder = order["name"], order["policy"], order["folder"]
        # The capability's own use of failwell, and what it logs, follow the same policy.
        os.environ[VARIABLE] = self._policy
        self._instance = order["instance"]
        self._lanes = order["lanes"]
        Pulse(line, order["pulse"], self._count).start()
        threading.Thread(target=self._inbox.watch, name="failwell-watcher", daemon=True).start()
        if not self._load(order):
            return 1
        lanes = [
            threading.Thread(target=self._lane, name=f"failwell-lane-{number}", daemon=True)
            for number in range(1, self._lanes)
        ]
        for lane in lanes:
            lane.start()
        self._lane()
        for lane in lanes:
            # `cleanup` must not run while a call runs. The host kills a worker whose call never ends.
            lane.join()
        return self._end()

    def _forked(self) -> None:
        """In a process that the capability forked: close the channel to the host, and release its locks."""
        self._line.abandon()
        release()
        author.calls.clear()

    def _count(self) -> int:
        return len(self._calls)

    def _load(self, order: dict[str, Any]) -> bool:
        try:
            offer()
            if order["object"].endswith(WHOLE_MODULE):
                reports = find_capabilities(order["object"], order["path"])
                self._line.send({"type": "loaded", "capabilities": reports})
                return False
            self._subject = Subject(order["object"], order["path"])
            self._line.send({"type": "loaded", **self._subject.about()})
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001  (the error is sent to the host)
            # A module that exits during its import is reported too: the error says more than the exit code.
            self._line.send({"type": "loaded", "error": self._described(error, None)})
            return False
        return True

    # -------------------------------------------------------------- reading

    def _read(self) -> None:
        """Read one frame and act on it."""
        frame = self._line.receive()
        if frame is None:
            # The host has ended. The guardian kills the remaining processes.
            os._exit(1)
        kind = frame["type"]
        if kind == "call":
            job = frame["job"]
            call = self._calls[job] = Call(self._line, job, self._name, frame.get("window", 0))
            self._inbox.add((frame, call))
        elif kind == "more":
            call = self._calls.get(frame["job"])
            if call is not None:
                call.more(frame["count"])
        elif kind == "cancel":
            call = self._calls.get(frame["job"])
            if call is not None:
                # A callback may take long, and the next frame must not wait for it.
                threading.Thread(target=self._cancel, args=(call,), daemon=True).start()
        elif kind == "stop":
            self._inbox.close(self._lanes)

    def _cancel(self, call: Call) -> None:
        author.current.set(call)
        call.cancel()
        hook = self._subject.hook("on_cancel") if self._subject else None
        if hook is not None:
            attempt(hook, None, lambda error: _print_failure("on_cancel", error))

    # -------------------------------------------------------------- the lanes

    def _lane(self) -> None:
        runner: Any = None
        for frame, call in self._inbox.orders():
            token = author.current.set(call)
            try:
                result = self._perform(frame, call)
                if inspect.iscoroutine(result) or hasattr(result, "__aiter__"):
                    # The import takes longer than the start of the interpreter, and few capabilities need it.
                    import asyncio

                    runner = runner or asyncio.Runner()
                    result = runner.run(
                        self._awaited(result, frame, call), context=contextvars.copy_context()
                    )
                elif frame.get("stream"):
                    result = self._items(result, frame, call)
                call.stage = "returned"
                answer = {"type": "result", "job": frame["job"], "value": result, "peaks": peaks()}
                piece = frame_of(answer, self._folder)
            except (SystemExit, KeyboardInterrupt) as ended:
                # A capability that exits ends its call, not the worker, in which other calls may run.
                piece = self._failed(call, ended)
            except BaseException as error:  # noqa: BLE001  (a cancellation and any class of an author's are answers too)
                piece = self._failed(call, error)
            finally:
                author.current.reset(token)
                self._calls.pop(frame["job"], None)
            for stream in self._streams:
                stream.finish(frame["job"])
            if not self._calls and waits_in_pipes():
                # No other call may have written it, and the host reads it while it still knows this one.
                piece = _PIPED + piece
            self._line.write(piece)
        if runner is not None:
            runner.close()

    def _perform(self, frame: dict[str, Any], call: Call) -> Any:
        subject = self._subject
        assert subject is not None
        arguments = frame["arguments"]
        phase = frame.get("phase")
        if phase is not None:
            return self._phase(subject, phase, arguments)
        if call.is_cancelled:
            raise call.cancellation()
        method = subject.method(frame["action"])
        values = subject.values(frame["action"], method, arguments)
        call.stage = "began"
        return method(**values)

    def _phase(self, subject: Subject, phase: str, arguments: dict[str, Any]) -> Any:
        if phase == "initialize":
            return subject.initialize(arguments)
        if phase == "reconfigure":
            return subject.reconfigure(arguments)
        hook = subject.hook(phase)
        if hook is None:
            return {"missing": phase}
        return hook()

    async def _awaited(self, awaitable: Any, frame: dict[str, Any], call: Call) -> Any:
        import asyncio

        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        remove = call.on_cancel(lambda: loop.call_soon_threadsafe(task.cancel))
        try:
            if hasattr(awaitable, "__aiter__"):
                count = 0
                async for item in awaitable:
                    await asyncio.to_thread(call.wait_for_room)
                    self._line.write(
                        frame_of({"type": "item", "job": frame["job"], "value": item}, self._folder)
                    )
                    count += 1
                return count
            result = await awaitable
        finally:
            remove()
        return self._items(result, frame, call) if frame.get("stream") else result

    def _items(self, result: Any, frame: dict[str, Any], call: Call) -> int:
        # A generator is a stream of items; any other result is a stream of one item.
        items: Any = result if hasattr(result, "__next__") else [result]
        count = 0
        for item in items:
            call.wait_for_room()
            self._line.write(frame_of({"type": "item", "job": frame["job"], "value": item}, self._folder))
            count += 1
        return count

    def _failed(self, call: Call, error: BaseException) -> bytes:
        frame: dict[str, Any] = {"type": "result", "job": call.job, "peaks": peaks(), "stage": call.stage}
        frame["error"] = self._described(error, call.job)
        try:
            return encoded(frame)
        except (TypeError, ValueError):
            # The text of the error may not be valid JSON, for example with a lone surrogate, or may be too long.
            frame["error"] = {"exception": class_names_and_text(error)}
            return encoded(frame)

    def _described(self, error: BaseException, job: str | None) -> dict[str, Any]:
        # Calls of hooks are not jobs.
        job_id = None if job is None or job.startswith("#") else job
        scene = {"capability": self._name, "instance": self._instance, "job": job_id}
        return describe_failure(error, policy=self._policy, scene=scene)

    def _end(self) -> int:
        hook = self._subject.hook("cleanup") if self._subject else None
        if hook is not None:
            attempt(lambda: _run_hook(hook), None, lambda error: _print_failure("cleanup", error))
        for stream in self._streams:
            stream.finish(None)
        self._line.send({"type": "bye"})
        return 0
