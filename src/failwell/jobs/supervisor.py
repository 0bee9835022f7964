"""The parent of a worker: starts its process, watches it, ends it and brings it back."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import field
from typing import Any

from failwell.fault.base import Fault
from failwell.fault.capability import CapabilityCancelledError, CapabilityError
from failwell.fault.frozen import frozen
from failwell.jobs.calls import Calls
from failwell.jobs.crashes import Crashes
from failwell.jobs.ending import Ending, death
from failwell.jobs.environment import worker_environment
from failwell.jobs.faults import ended_by_us
from failwell.jobs.job import NO_ARGUMENTS, CancelPhase
from failwell.jobs.look import load_frame, look
from failwell.jobs.manifest import Manifest
from failwell.jobs.process import Process
from failwell.jobs.settings import Settings
from failwell.jobs.startup import Startup
from failwell.jobs.telling import Telling
from failwell.jobs.worker import (
    CancelPhased,
    Died,
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
_DEATHS = frozenset({"worker.oom", "worker.crashed", "worker.stalled"})


def _host_environment() -> Mapping[str, str]:
    return dict(os.environ)


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
    environment: Mapping[str, str] = field(default_factory=_host_environment)
    """The host's variables, of which a worker sees a few."""


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
        self._scene = Scene(capability=manifest.name, instance=self._instance)
        self._settings = Settings(manifest)
        self._asked_config: Mapping[str, Any] = dict(config or {})
        self._config: Mapping[str, Any] = self._asked_config
        self._secrets = dict(secrets or {})
        self._folder = folder
        self._care = supervision or Supervision()
        self._telling = Telling(self._instance)
        self._tell = self._telling.tell
        self._calls = Calls(self._scene, manifest.cancel_grace, self._care.policy, folder)
        self._crashes = Crashes(manifest.name, self._care.deaths, self._care.cooldown)
        self._state = WorkerState.COLD
        self._process: Process | None = None
        self._startup: Startup | None = None
        self._starting: asyncio.Task[None] | None = None
        self._reviving: asyncio.Task[None] | None = None
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._generation = 0
        self._about: dict[str, Any] = {}

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
        if self._state is WorkerState.COLD and self._crashes.left() > 0:
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
        return self._calls.jobs()

    def memory(self) -> Memory | None:
        """What its processes hold, as of the last pulse."""
        return None if self._process is None else self._telling.memory

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` of every event from now on."""
        return self._telling.listen(listener)

    def forgive(self) -> None:
        """Leave quarantine."""
        self._crashes.forgive()

    # -------------------------------------------------------------- starting

    async def start(self) -> None:
        """Make it ready; see `Worker.start`."""
        if self._state is WorkerState.READY:
            return
        if self._starting is None:
            self._crashes.refuse()
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
        if self.manifest.config is not None:
            self.settle()
        env = worker_environment(self.manifest, self._care.environment, self._secrets)
        process = self._process = Process(self._on_frame, self._telling.printed)
        self._generation += 1
        session = self._telling.renew(self._generation)
        self._state = WorkerState.STARTING
        startup = self._startup = Startup(self.manifest, process, self._care.policy)
        self._telling.on_sign = startup.sign
        try:
            await startup.spawn(env)
            process.ended.add_done_callback(lambda done: self._ended(process, done.result()))
            pid = process.pid or 0
            self._tell(
                Started(instance=self._instance, generation=self._generation, pid=pid, session=session)
            )
            self._about = await startup.load(
                load_frame(
                    self.manifest, pulse=self._care.pulse, policy=self._care.policy, folder=self._folder
                )
            )
            config = self.settle()
            self._calls.attach(process)
            await startup.initialize(self._calls.lifecycle("initialize", config))
        except BaseException as error:
            # Also a cancellation: whatever stops the start must not leave its process behind.
            await self._abort_start(process, error)
            raise
        finally:
            self._startup = None
            startup.close()
        self._config = config
        self._state = WorkerState.READY
        self._tell(Ready(instance=self._instance, generation=self._generation, pid=pid))

    async def _abort_start(self, process: Process, error: BaseException) -> None:
        """Leave no process behind, whatever went wrong, even while being cancelled."""
        self._calls.attach(None)
        if process.is_started:
            process.kill("start")
            await asyncio.shield(process.gone())
        if self._process is process:
            self._process = None
            self._state = WorkerState.COLD
        if isinstance(error, Fault) and error.kind in _DEATHS:
            self._count_death(error)

    def settle(self) -> Mapping[str, Any]:
        """The configuration that was asked for, checked and with all defaults. Starting does this by itself.

        Raises:
            CapabilityConfigError: it is not valid; every bad field is named.
        """
        made = self._settings.settle(self._asked_config, self._about.get("schema"))
        self._asked_config = made.asked
        return made.whole

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
            await self._ready_for(job)
        return await self._calls.call(job, {"action": action, "arguments": arguments}, timeout)

    def begin(
        self,
        job: str,
        arguments: Mapping[str, Any],
        action: str,
        timeout: float | None,
        told: "Callable[[asyncio.Future[Any]], None]",
    ) -> bool:
        """Send one call and do not wait; see `Worker.begin`."""
        if self._state is not WorkerState.READY:
            return False
        self._calls.begin(job, {"action": action, "arguments": arguments}, timeout, told)
        return True

    def flush(self) -> None:
        """Let go what was begun; see `Worker.flush`."""
        if self._process is not None:
            self._process.flush()

    async def stream(
        self,
        job: str,
        arguments: Mapping[str, Any] = NO_ARGUMENTS,
        *,
        action: str = "execute_stream",
        timeout: float | None = None,  # noqa: ASYNC109  (as in `call`)
    ) -> AsyncIterator[Any]:
        """The items of one call; see `Worker.stream`."""
        from contextlib import aclosing

        if self._state is not WorkerState.READY:
            await self._ready_for(job)
        order = {"action": action, "arguments": arguments}
        async with aclosing(self._calls.stream(job, order, timeout)) as items:
            async for item in items:
                yield item

    async def _ready_for(self, job: str) -> None:
        """Start it for `job`, which may be cancelled while it waits; the start goes on for the next one."""
        if job in self._waiting:
            raise ValueError(f"job {job!r} is already waiting for {self._instance!r}")
        gate = self._waiting[job] = asyncio.get_running_loop().create_future()
        starting = asyncio.ensure_future(self.start())
        try:
            await asyncio.wait([starting, gate], return_when=asyncio.FIRST_COMPLETED)
            if gate.done():
                raise CapabilityCancelledError(self.manifest.name)
            starting.result()
        finally:
            del self._waiting[job]
            if not starting.done():
                starting.cancel()
            elif not starting.cancelled():
                starting.exception()

    async def cancel(self, job: str, *, grace: float | None = None) -> CancelPhase | None:
        """Stop one call; see `Worker.cancel`."""
        gate = self._waiting.get(job)
        if gate is not None and not gate.done():
            gate.set_result(None)
            self._phase(job, CancelPhase.COOPERATIVE)
            self._phase(job, CancelPhase.COMPLETED)
            return CancelPhase.COOPERATIVE
        flight = self._calls.running(job)
        if flight is None:
            return None
        process = self._process
        self._calls.ask_to_stop(flight, "cancel")
        flight.set_timer(None)
        self._phase(job, CancelPhase.COOPERATIVE)
        patience = self.manifest.cancel_grace if grace is None else grace
        if await _within(flight.answer, patience):
            self._phase(job, CancelPhase.COMPLETED)
            return CancelPhase.COOPERATIVE
        self._phase(job, CancelPhase.FORCE)
        if process is not None:
            process.kill("replaced")
            await process.gone()
        self._phase(job, CancelPhase.RELOADING)
        if self._reviving is not None:
            await asyncio.wait([self._reviving])
        self._phase(job, CancelPhase.COMPLETED)
        return CancelPhase.FORCE

    def _phase(self, job: str, phase: CancelPhase) -> None:
        self._tell(CancelPhased(instance=self._instance, job=job, phase=phase))

    # -------------------------------------------------------------- the capability's life

    async def prefetch(self) -> None:
        """Let it fetch what it will need; see `Worker.prefetch`."""
        await self.start()
        process = self._process
        if process is None or not self._has("prefetch"):
            return
        watch = Startup(self.manifest, process, self._care.policy)
        self._telling.on_sign = watch.sign
        try:
            await watch.during("prefetching", self._calls.lifecycle("prefetch"))
        finally:
            watch.close()

    async def release(self) -> bool:
        """Ask it to give up memory in place; see `Worker.release`."""
        if self._state is not WorkerState.READY or not self._has("release"):
            return False
        return await self._calls.lifecycle("release") is not False

    async def enabled(self, *, on: bool) -> None:
        """Fire its hook; see `Worker.enabled`."""
        hook = "on_enable" if on else "on_disable"
        if self._state is WorkerState.READY and self._has(hook):
            await self._calls.lifecycle(hook)

    async def reconfigure(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Apply another configuration; see `Worker.reconfigure`."""
        if self._starting is not None:
            # It is given the configuration that it was started for, and this one after that.
            await asyncio.wait([self._starting])
        if self.manifest.config is None and not self._about:
            # Nobody has told the schema yet, and what is kept unchecked would fail the next start.
            self._about = await look(self.manifest, host=self._care.environment, secrets=self._secrets)
        made = self._settings.settle(config, self._about.get("schema"))
        if self._state is WorkerState.READY:
            await self._calls.lifecycle("reconfigure", made.whole)
        self._asked_config, self._config = made.asked, made.whole
        return made.asked

    def _has(self, hook: str) -> bool:
        return hook in self._about.get("hooks", ())

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
        self._calls.ask_all_to_stop()
        self._calls.say({"type": "stop"})
        patience = self.manifest.stop_grace if grace is None else grace
        if not await _within(process.ended, patience):
            process.signal(signal.SIGTERM)
            if not await _within(process.ended, min(_TERM_GRACE, patience)):
                process.kill("stopped")
        await process.gone()

    # -------------------------------------------------------------- what the worker says, and its end

    def _on_frame(self, frame: dict[str, Any]) -> None:
        kind = frame["type"]
        if kind == "result":
            self._telling.measured(frame)
            self._calls.answered(frame)
        elif kind == "item":
            self._calls.item(frame)
        elif self._startup is not None and kind in ("hello", "loaded"):
            self._startup.heard(frame)
        else:
            self._telling.heard(frame)

    def _ended(self, process: Process, ending: Ending) -> None:
        if process is not self._process:
            return
        was, self._state = self._state, WorkerState.COLD
        fault = None if process.doomed is not None else death(self.manifest.name, ending)
        self._tell(
            Died(
                instance=self._instance,
                generation=self._generation,
                pid=process.pid or 0,
                returncode=ending.code,
                expected=fault is None,
                report=None if fault is None else describe(fault, scene=self._scene),
                in_flight=self._calls.jobs(),
            )
        )
        self._calls.attach(None)
        self._calls.fail_all(lambda: self._why(process, ending))
        process.cleared.add_done_callback(lambda _done: self._cleared(process))
        if was is not WorkerState.READY:
            return
        if fault is not None:
            self._count_death(fault)
        if self._care.respawn and (fault is not None or process.doomed == "replaced"):
            self._reviving = asyncio.ensure_future(self._revive())

    def _cleared(self, process: Process) -> None:
        if self._process is process:
            self._process = None

    def _why(self, process: Process, ending: Ending) -> CapabilityError:
        if process.doomed is None:
            return death(self.manifest.name, ending)
        return ended_by_us(self.manifest.name, process.doomed, code=ending.code)

    async def _revive(self) -> None:
        try:
            await self.start()
        except (Fault, OSError):
            # The next call starts it again, and is told why it cannot be.
            return

    def _count_death(self, fault: Fault) -> None:
        if self._crashes.count(fault, self._calls.finished):
            self._tell(
                Quarantined(
                    instance=self._instance,
                    deaths=self._crashes.deaths,
                    seconds=self._care.cooldown,
                    report=describe(fault, scene=self._scene),
                )
            )


async def _within(future: "asyncio.Future[Any]", seconds: float) -> bool:
    done, _ = await asyncio.wait([future], timeout=seconds)
    return bool(done)
