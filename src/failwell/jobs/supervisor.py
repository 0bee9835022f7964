"""The parent of a worker: starts its process, watches it, answers its calls, ends it and brings it back."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import field
from typing import Any

from failwell.fault.base import Fault
from failwell.fault.capability import (
    CapabilityCancelledError,
    CapabilityError,
    CapabilityTimeoutError,
)
from failwell.fault.facts import NotBefore
from failwell.fault.frozen import frozen
from failwell.jobs.arrived import raisable
from failwell.jobs.described import report_of
from failwell.jobs.ending import Ending, death
from failwell.jobs.environment import worker_environment
from failwell.jobs.faults import WorkerCrashed
from failwell.jobs.flight import Flight, Wish
from failwell.jobs.frames import encode
from failwell.jobs.job import NO_ARGUMENTS, CancelPhase
from failwell.jobs.manifest import Manifest
from failwell.jobs.process import Process
from failwell.jobs.schema import validate
from failwell.jobs.startup import Startup
from failwell.jobs.telling import Telling
from failwell.jobs.worker import (
    CancelPhased,
    Died,
    FileHandle,
    Listener,
    Memory,
    Quarantined,
    Ready,
    Started,
    WorkerState,
)
from failwell.report.describe import describe
from failwell.report.policy import TracebackPolicy
from failwell.report.record import Scene

_TERM_GRACE = 2.0
_WINDOW = 16


@frozen
class Supervision:
    """How closely a worker is watched, and how patiently."""

    pulse: float = 0.25
    """Seconds between two signs of life while a call runs."""
    deaths: int = 3
    """Deaths in a row, without one finished call between them, after which nothing is started."""
    cooldown: float = 30.0
    """Seconds of quarantine; then one start is tried."""
    policy: TracebackPolicy = TracebackPolicy.FULL
    """What is recorded of a capability's own words. They are redacted, and no user's view shows them."""
    respawn: bool = True
    """Whether a worker that died is started again before anybody calls it."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


class SupervisedWorker:
    """A `Worker` whose process is real. Making one starts nothing."""

    def __init__(
        self,
        manifest: Manifest,
        *,
        instance: str | None = None,
        config: Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
        folder: str | None = None,
        supervision: Supervision | None = None,
    ) -> None:
        """Prepare one instance.

        Args:
            manifest: What to run and how.
            instance: This instance's id; like its capability by default.
            config: Its configuration; checked when it starts.
            secrets: Values for the manifest's secret variables.
            folder: Where binary results go; without one, a capability cannot return bytes.
            supervision: How closely it is watched.
        """
        self.manifest = manifest
        self._instance = instance or manifest.name
        self._asked_config = dict(config or {})
        self._config: dict[str, Any] = dict(self._asked_config)
        self._secrets = dict(secrets or {})
        self._folder = folder
        self._care = supervision or Supervision()
        self._telling = Telling(self._instance)
        self._tell = self._telling.tell
        self._state = WorkerState.COLD
        self._process: Process | None = None
        self._startup: Startup | None = None
        self._starting: asyncio.Task[None] | None = None
        self._reviving: asyncio.Task[None] | None = None
        self._flights: dict[str, Flight] = {}
        self._generation = 0
        self._about: dict[str, Any] = {}
        self._deaths = 0
        self._quarantined_until = 0.0
        self._last_death: CapabilityError | None = None
        self._sequence = 0

    # -------------------------------------------------------------- what can be seen

    @property
    def capability(self) -> str:
        """The capability's name."""
        return self.manifest.name

    @property
    def instance(self) -> str:
        """This instance's id."""
        return self._instance

    @property
    def state(self) -> WorkerState:
        """Where its process stands."""
        if self._state is WorkerState.COLD and self._quarantine_left() > 0:
            return WorkerState.QUARANTINED
        return self._state

    @property
    def pid(self) -> int | None:
        """The process that does the work."""
        return None if self._process is None else self._process.pid

    @property
    def generation(self) -> int:
        """How many processes there were."""
        return self._generation

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration in force, defaults included once it was started."""
        return self._config

    @property
    def about(self) -> Mapping[str, Any]:
        """What the capability said of itself when it was imported: version, schema, actions, hooks."""
        return self._about

    @property
    def in_flight(self) -> tuple[str, ...]:
        """The jobs running in it."""
        return tuple(job for job in self._flights if not job.startswith("#"))

    def memory(self) -> Memory | None:
        """What its processes hold, as of the last pulse."""
        return None if self._process is None else self._telling.memory

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` of every event from now on."""
        return self._telling.listen(listener)

    def forgive(self) -> None:
        """Leave quarantine."""
        self._deaths = 0
        self._quarantined_until = 0.0

    # -------------------------------------------------------------- starting

    async def start(self) -> None:
        """Make it ready."""
        if self._state is WorkerState.READY:
            return
        if self._starting is None:
            self._refuse_in_quarantine()
            self._starting = asyncio.ensure_future(self._start())
            self._starting.add_done_callback(self._started)
        await asyncio.shield(self._starting)

    def _started(self, task: "asyncio.Task[None]") -> None:
        self._starting = None
        if not task.cancelled():
            # Whoever waited has it; nobody need have.
            task.exception()

    async def _start(self) -> None:
        while self._process is not None:
            # The last one is still being cleared away.
            await self._process.gone()
            await asyncio.sleep(0)
        manifest = self.manifest
        if manifest.config is not None:
            validate(manifest.config, self._asked_config, name=manifest.name)
        env = worker_environment(manifest, self._care.environment, self._secrets)
        process = self._process = Process(self._on_frame, self._telling.printed)
        self._generation += 1
        session = self._telling.renew(self._generation)
        self._state = WorkerState.STARTING
        startup = self._startup = Startup(manifest, process, self._care.policy)
        self._telling.on_sign = startup.sign
        try:
            await startup.spawn(env)
            process.ended.add_done_callback(lambda done: self._ended(process, done.result()))
            self._tell(
                Started(
                    instance=self._instance,
                    generation=self._generation,
                    pid=process.pid or 0,
                    session=session,
                )
            )
            self._about = await startup.load(self._load_frame())
            schema = manifest.config if manifest.config is not None else self._about.get("schema")
            config = validate(
                schema or {}, {**(manifest.defaults or {}), **self._asked_config}, name=manifest.name
            )
            await startup.during("being initialised", self._lifecycle("initialize", config))
        except BaseException as error:
            await self._abort_start(process, error)
            raise
        finally:
            self._startup = None
            startup.close()
        self._config = config
        self._state = WorkerState.READY
        self._tell(Ready(instance=self._instance, generation=self._generation, pid=process.pid or 0))

    def _load_frame(self) -> dict[str, Any]:
        manifest = self.manifest
        return {
            "type": "load",
            "name": manifest.name,
            "object": manifest.object,
            "path": [os.path.normpath(os.path.join(manifest.directory, one)) for one in manifest.path],
            "lanes": manifest.concurrency,
            "pulse": self._care.pulse,
            "policy": self._care.policy.value,
            "folder": self._folder,
        }

    async def _abort_start(self, process: Process, error: BaseException) -> None:
        """Leave no process behind, whatever went wrong, even while being cancelled."""
        if process.is_started:
            process.kill("start")
            await asyncio.shield(process.gone())
        if self._process is process:
            self._process = None
            self._state = WorkerState.COLD
        if isinstance(error, Fault) and error.kind in ("worker.oom", "worker.crashed", "worker.stalled"):
            self._count_death(error)

    # -------------------------------------------------------------- calling

    async def call(
        self,
        job: str,
        arguments: Mapping[str, Any] = NO_ARGUMENTS,
        *,
        action: str = "execute",
        timeout: float | None = None,  # noqa: ASYNC109  (it is told to the worker, and ends more than a wait)
    ) -> Any:
        """Run one call; see `Worker.call`."""
        if self._state is not WorkerState.READY:
            await self.start()
        flight = self._take_off(job, timeout)
        try:
            self._send_call(job, {"action": action, "arguments": arguments})
            return await flight.answer
        except asyncio.CancelledError:
            self._abandon(flight)
            raise
        except CapabilityError:
            self._land(flight)
            raise

    async def stream(
        self,
        job: str,
        arguments: Mapping[str, Any] = NO_ARGUMENTS,
        *,
        action: str = "execute_stream",
        timeout: float | None = None,  # noqa: ASYNC109  (as in `call`)
    ) -> AsyncIterator[Any]:
        """The items of one call; see `Worker.stream`."""
        if self._state is not WorkerState.READY:
            await self.start()
        flight = self._take_off(job, timeout, streams=True)
        items, wake = flight.items, flight.wake
        assert items is not None
        assert wake is not None
        taken = 0
        try:
            self._send_call(
                job, {"action": action, "arguments": arguments, "stream": True, "window": _WINDOW}
            )
            while True:
                while items:
                    yield items.popleft()
                    taken += 1
                    if taken * 2 >= _WINDOW:
                        self._say({"type": "more", "job": job, "count": taken})
                        taken = 0
                if flight.answer.done():
                    flight.answer.result()
                    return
                wake.clear()
                await wake.wait()
        finally:
            if not flight.answer.done():
                self._abandon(flight)

    def _take_off(self, job: str, timeout: float | None, *, streams: bool = False) -> Flight:
        if job in self._flights:
            raise ValueError(f"job {job!r} is already running in {self._instance!r}")
        loop = asyncio.get_running_loop()
        flight = Flight(job, loop.create_future(), streams=streams)
        self._flights[job] = flight
        if timeout is not None:
            flight.seconds = timeout
            flight.timer = loop.call_later(timeout, self._wish, flight, "timeout")
        return flight

    def _land(self, flight: Flight) -> None:
        if self._flights.get(flight.job) is flight:
            del self._flights[flight.job]

    def _send_call(self, job: str, more: dict[str, Any]) -> None:
        process = self._process
        if process is None:
            raise self._gone()
        try:
            process.write(encode({"type": "call", "job": job, **more}))
        except CapabilityError:
            self._flights.pop(job, None)
            raise

    def _say(self, frame: dict[str, Any]) -> None:
        if self._process is not None:
            self._process.send(frame)

    async def _lifecycle(self, phase: str, arguments: Mapping[str, Any] = NO_ARGUMENTS) -> Any:
        """Run a method that belongs to the capability's life rather than to a job."""
        self._sequence += 1
        job = f"#{phase}-{self._sequence}"
        flight = self._take_off(job, None)
        self._send_call(job, {"action": phase, "phase": phase, "arguments": arguments})
        return await flight.answer

    # -------------------------------------------------------------- stopping one call

    def _wish(self, flight: Flight, wish: Wish) -> None:
        """Ask one call to stop, and end the process if it does not in time."""
        if flight.answer.done() or flight.wish is not None:
            return
        flight.wish = wish
        self._say({"type": "cancel", "job": flight.job})
        if flight.timer is not None:
            flight.timer.cancel()
        flight.timer = asyncio.get_running_loop().call_later(
            self.manifest.cancel_grace, self._force, flight, self._process
        )

    def _force(self, flight: Flight, process: Process | None) -> None:
        if not flight.answer.done() and process is not None and process is self._process:
            process.kill("replaced")

    def _abandon(self, flight: Flight) -> None:
        """Nobody waits for this call any more; it is stopped like one that was cancelled."""
        if flight.answer.cancelled():
            # Whoever went away took the future along; the worker still owes an answer.
            flight.answer = asyncio.get_running_loop().create_future()
        self._wish(flight, "cancel")

    async def cancel(self, job: str, *, grace: float | None = None) -> CancelPhase | None:
        """Stop one call; see `Worker.cancel`."""
        flight = self._flights.get(job)
        if flight is None or flight.answer.done():
            return None
        process = self._process
        self._wish(flight, "cancel")
        if flight.timer is not None:
            flight.timer.cancel()
        self._phase(job, CancelPhase.COOPERATIVE)
        patience = self.manifest.cancel_grace if grace is None else grace
        await asyncio.wait([flight.answer], timeout=patience)
        if flight.answer.done():
            self._phase(job, CancelPhase.COMPLETED)
            return CancelPhase.COOPERATIVE
        self._phase(job, CancelPhase.FORCE)
        if process is not None:
            process.kill("replaced")
            await process.gone()
        self._phase(job, CancelPhase.RELOADING)
        if self._reviving is not None:
            await asyncio.shield(self._reviving)
        self._phase(job, CancelPhase.COMPLETED)
        return CancelPhase.FORCE

    def _phase(self, job: str, phase: CancelPhase) -> None:
        self._tell(CancelPhased(instance=self._instance, job=job, phase=phase))

    # -------------------------------------------------------------- the capability's life

    async def prefetch(self) -> None:
        """Let it fetch what it will need."""
        await self.start()
        process = self._process
        if process is None or "prefetch" not in self._about.get("hooks", ()):
            return
        watch = Startup(self.manifest, process, self._care.policy)
        self._telling.on_sign = watch.sign
        try:
            await watch.during("prefetching", self._lifecycle("prefetch"))
        finally:
            watch.close()

    async def release(self) -> bool:
        """Ask it to give up memory in place."""
        if self._state is not WorkerState.READY or "release" not in self._about.get("hooks", ()):
            return False
        return await self._lifecycle("release") is not False

    async def enabled(self, on: bool) -> None:
        """Fire its hook."""
        hook = "on_enable" if on else "on_disable"
        if self._state is WorkerState.READY and hook in self._about.get("hooks", ()):
            await self._lifecycle(hook)

    async def reconfigure(self, config: Mapping[str, Any]) -> None:
        """Apply another configuration."""
        schema = self.manifest.config if self.manifest.config is not None else self._about.get("schema")
        whole = validate(schema or {}, {**(self.manifest.defaults or {}), **config}, name=self.manifest.name)
        if self._state is WorkerState.READY:
            await self._lifecycle("reconfigure", whole)
        self._asked_config, self._config = dict(config), whole

    async def restart(self) -> None:
        """End its process and start another."""
        await self.stop()
        await self.start()

    async def stop(self, grace: float | None = None) -> None:
        """End its process; see `Worker.stop`."""
        for task in (self._reviving, self._starting):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait([task])
        process = self._process
        if process is None:
            return
        self._state = WorkerState.STOPPING
        if process.doomed is None:
            process.doomed = "stopped"
        for flight in list(self._flights.values()):
            self._say({"type": "cancel", "job": flight.job})
        self._say({"type": "stop"})
        patience = self.manifest.stop_grace if grace is None else grace
        if not await _within(process.ended, patience):
            process.signal(signal.SIGTERM)
            if not await _within(process.ended, min(_TERM_GRACE, patience)):
                process.kill("stopped")
        await process.gone()

    # -------------------------------------------------------------- what the worker says

    def _on_frame(self, frame: dict[str, Any]) -> None:
        kind = frame["type"]
        if kind == "result":
            self._answered(frame)
        elif kind == "item":
            flight = self._flights.get(frame["job"])
            if flight is not None:
                flight.arrived(_opened(frame["value"]))
        elif self._startup is not None and kind in ("hello", "loaded"):
            self._startup.heard(frame)
        else:
            self._telling.heard(frame)

    def _answered(self, frame: dict[str, Any]) -> None:
        flight = self._flights.pop(frame["job"], None)
        if flight is None:
            return
        if not flight.job.startswith("#"):
            self._deaths = 0
        stopped = self._stopped(flight)
        if stopped is not None:
            flight.settle(error=stopped)
        elif "error" not in frame:
            flight.settle(_opened(frame["value"]))
        elif frame.get("cancelled"):
            flight.settle(error=CapabilityCancelledError(self.manifest.name))
        else:
            job = None if flight.job.startswith("#") else flight.job
            scene = Scene(job=job, capability=self.manifest.name, instance=self._instance)
            flight.settle(error=raisable(report_of(frame["error"], scene, self._care.policy)))

    def _stopped(self, flight: Flight) -> CapabilityError | None:
        """How a call ends that was asked to stop: cancelled or timed out, whatever it answers."""
        if flight.wish == "cancel":
            return CapabilityCancelledError(self.manifest.name)
        if flight.wish == "timeout":
            return CapabilityTimeoutError(self.manifest.name, flight.seconds)
        return None

    # -------------------------------------------------------------- the end of a process

    def _ended(self, process: Process, ending: Ending) -> None:
        if process is not self._process:
            return
        was = self._state
        self._state = WorkerState.COLD
        expected = process.doomed is not None
        fault = None if expected else death(self.manifest.name, ending)
        jobs = self.in_flight
        self._tell(
            Died(
                instance=self._instance,
                generation=self._generation,
                pid=process.pid or 0,
                returncode=ending.code,
                expected=expected,
                report=None if fault is None else describe(fault, scene=self._scene()),
                in_flight=jobs,
            )
        )
        flights, self._flights = list(self._flights.values()), {}
        for flight in flights:
            flight.settle(error=self._stopped(flight) or self._why(process, ending))
        process.cleared.add_done_callback(lambda _done: self._cleared(process))
        if was is WorkerState.READY:
            if fault is not None:
                self._count_death(fault)
            if (fault is not None or process.doomed == "replaced") and self._care.respawn:
                self._reviving = asyncio.ensure_future(self._revive())

    def _cleared(self, process: Process) -> None:
        if self._process is process:
            self._process = None

    def _why(self, process: Process, ending: Ending) -> CapabilityError:
        if process.doomed is None:
            return death(self.manifest.name, ending)
        words = "was replaced" if process.doomed == "replaced" else "was stopped"
        return WorkerCrashed(
            f"the worker of capability {self.manifest.name!r} {words} while the call ran",
            capability_name=self.manifest.name,
            exit_code=ending.code,
            reason=process.doomed,
        )

    async def _revive(self) -> None:
        try:
            await self.start()
        except (Fault, OSError):
            # The next call starts it again, and is told why it cannot be.
            return

    def _gone(self) -> CapabilityError:
        return self._last_death or WorkerCrashed(
            f"the worker of capability {self.manifest.name!r} is gone", capability_name=self.manifest.name
        )

    def _count_death(self, fault: Fault) -> None:
        self._deaths += 1
        self._last_death = fault if isinstance(fault, CapabilityError) else None
        if self._deaths >= self._care.deaths:
            self._quarantined_until = asyncio.get_running_loop().time() + self._care.cooldown
            self._tell(
                Quarantined(
                    instance=self._instance,
                    deaths=self._deaths,
                    seconds=self._care.cooldown,
                    report=describe(fault, scene=self._scene()),
                )
            )

    def _quarantine_left(self) -> float:
        if not self._quarantined_until:
            return 0.0
        return self._quarantined_until - asyncio.get_running_loop().time()

    def _refuse_in_quarantine(self) -> None:
        left = self._quarantine_left()
        if left <= 0:
            return
        raise WorkerCrashed(
            f"the worker of capability {self.manifest.name!r} died {self._deaths} times in a row;"
            f" nothing is started for another {left:.0f} s",
            capability_name=self.manifest.name,
            reason="quarantined",
            quarantined_for=round(left, 3),
            not_before=NotBefore(after=left, source="quarantine"),
        ) from self._last_death

    def _scene(self) -> Scene:
        return Scene(capability=self.manifest.name, instance=self._instance)


async def _within(future: "asyncio.Future[Any]", seconds: float) -> bool:
    done, _ = await asyncio.wait([future], timeout=seconds)
    return bool(done)


def _opened(value: Any) -> Any:
    """A result with its files as handles."""
    if type(value) is dict:
        if len(value) == 1 and "$file" in value:
            return FileHandle(path=value["$file"]["path"], size=value["$file"]["size"])
        if not any(type(one) in (dict, list) for one in value.values()):
            return value
        return {key: _opened(one) for key, one in value.items()}
    if type(value) is list:
        return [_opened(one) for one in value]
    return value
