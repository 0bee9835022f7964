"""A worker whose process is real: called, streamed from, cancelled and configured, whichever process it has."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache
from typing import Any

from failwell.fault.base import Fault
from failwell.fault.capability import CapabilityCancelledError, CapabilityError
from failwell.jobs.config import Settings
from failwell.jobs.faults import WorkerStalled, ended_by_us
from failwell.jobs.job import NO_ARGUMENTS, CancelPhase
from failwell.jobs.manifest import Manifest
from failwell.jobs.worker.calls import Calls
from failwell.jobs.worker.death import Crashes, Ending, death
from failwell.jobs.worker.environment import worker_environment
from failwell.jobs.worker.events import Telling
from failwell.jobs.worker.process import Process
from failwell.jobs.worker.startup import Startup, load_frame, look
from failwell.jobs.worker.worker import (
    CancelPhased,
    Died,
    Listener,
    Memory,
    Quarantined,
    Ready,
    Started,
    Supervision,
    WorkerState,
)
from failwell.report.describe import describe
from failwell.report.record import Scene

_TERM_GRACE = 2.0
_DEATHS = frozenset({"worker.oom", "worker.crashed", "worker.stalled"})
Config = Mapping[str, Any]


_STALL_TAIL = 5


class Deaths(Crashes):
    """Counts them, as `Crashes` does, and tells of them."""

    def __init__(self, scene: Scene, care: Supervision, calls: Calls, telling: Telling) -> None:
        self._name = scene.capability or ""
        super().__init__(self._name, care.deaths, care.cooldown)
        self._scene = scene
        self._instance = scene.instance or self._name
        self._care = care
        self._calls = calls
        self._telling = telling

    def fault_of(self, doomed: str | None, ending: Ending) -> CapabilityError | None:
        """What is wrong with a process that ended by itself, or had to be ended; `None` where we wanted it so."""
        if doomed == "frozen":
            tail = "\n".join(ending.stderr[-_STALL_TAIL:])
            return WorkerStalled(self._name, self._care.stopped, "stopped by a signal", tail)
        return None if doomed is not None else death(self._name, ending)

    def why(self, doomed: str | None, ending: Ending) -> CapabilityError:
        """The fault of a call that was in flight."""
        return self.fault_of(doomed, ending) or ended_by_us(self._name, doomed, code=ending.code)

    def tell(self, pid: int, generation: int, ending: Ending, fault: CapabilityError | None) -> None:
        """Tell whoever listens."""
        self._telling.tell(
            Died(
                instance=self._instance,
                generation=generation,
                pid=pid,
                returncode=ending.code,
                expected=fault is None,
                report=None if fault is None else describe(fault, scene=self._scene),
                in_flight=self._calls.jobs(),
            )
        )

    def add(self, fault: Fault) -> None:
        """Count one; it may be one too many."""
        if self.count(fault, self._calls.finished):
            self._telling.tell(
                Quarantined(
                    instance=self._instance,
                    deaths=self.deaths,
                    seconds=self._care.cooldown,
                    report=describe(fault, scene=self._scene),
                )
            )


@cache
def rehearse() -> None:
    """Tell nobody of a death that was none, once: what that takes is loaded when a real one has to be told."""
    describe(death("", Ending(code=-signal.SIGKILL)))


class Lifecycle:
    """The processes of one worker, one after the other."""

    def __init__(
        self,
        manifest: Manifest,
        scene: Scene,
        care: Supervision,
        calls: Calls,
        telling: Telling,
        *,
        secrets: Mapping[str, str],
        folder: str | None,
    ) -> None:
        self._manifest = manifest
        self._instance = scene.instance or manifest.name
        self._care = care
        self._calls = calls
        self._telling = telling
        self._tell = telling.tell
        self._secrets = secrets
        self._folder = folder
        self._deaths = Deaths(scene, care, calls, telling)
        self._state = WorkerState.COLD
        self._process: Process | None = None
        self._announced: Process | None = None
        self._startup: Startup | None = None
        self._starting: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._reviving: asyncio.Task[None] | None = None
        self._escalation: list[asyncio.TimerHandle] = []
        self._is_unwanted = False
        self.generation = 0
        """How many processes there were."""
        self.about: dict[str, Any] = {}
        """What the capability said of itself when it was imported."""
        self.settle: Callable[[], Config] = dict
        """The configuration to start with, checked; it raises where that is not valid."""
        self.on_ready: Callable[[Config], None] = _nothing
        """Called with the configuration that a process was made ready with."""

    @property
    def state(self) -> WorkerState:
        """Where the process stands."""
        if self._state is WorkerState.COLD and self._deaths.left() > 0:
            return WorkerState.QUARANTINED
        return self._state

    @property
    def is_ready(self) -> bool:
        """Whether it takes calls."""
        return self._state is WorkerState.READY

    @property
    def current(self) -> Process | None:
        """The process, until nothing is left of it."""
        return self._process

    def forgive(self) -> None:
        """Leave quarantine."""
        self._deaths.forgive()

    # -------------------------------------------------------------- starting

    async def start(self) -> None:
        """Make it ready, or wait until somebody else has."""
        while self._state is not WorkerState.READY:
            if self._stopping is not None:
                await asyncio.wait([self._stopping])
                continue
            if self._starting is None:
                self._deaths.refuse()
                self._is_unwanted = False
                self._starting = asyncio.ensure_future(self._start())
                self._starting.add_done_callback(self._start_over)
            await asyncio.shield(self._starting)
            return

    async def settled(self) -> None:
        """Wait until no start is under way."""
        if self._starting is not None:
            await asyncio.wait([self._starting])

    async def revived(self) -> None:
        """Wait until the process that replaces a dead one is ready, or cannot be made."""
        if self._reviving is not None:
            await asyncio.wait([self._reviving])

    def _start_over(self, task: "asyncio.Task[None]") -> None:
        self._starting = None
        if not task.cancelled():
            # Whoever waited has it; nobody need have.
            task.exception()

    async def _start(self) -> None:
        if self._process is not None:
            # The last one is still being cleared away.
            last = self._process
            await last.gone()
            self._forget(last)
        self._check_wanted()
        if self._manifest.config is not None:
            self.settle()
        env = worker_environment(self._manifest, self._care.environment, self._secrets)
        process = self._process = Process(self._on_frame, self._telling.printed)
        self._state = WorkerState.STARTING
        process.ended.add_done_callback(lambda done: self._ended(process, done.result()))
        startup = self._startup = Startup(self._manifest, process, self._care.policy)
        self._telling.on_sign = startup.sign
        try:
            config = await self._make_ready(process, startup, env)
        except BaseException as error:
            # Also a cancellation: whatever stops the start must not leave its process behind.
            await self._abort(process)
            if self._is_unwanted and isinstance(error, Exception):
                # What it died of was our own doing.
                raise self._stopped_early() from None
            if isinstance(error, Fault) and error.kind in _DEATHS:
                self._deaths.add(error)
            raise
        finally:
            self._startup = None
            startup.close()
        self._state = WorkerState.READY
        process.watch(self._care.stopped)
        self.on_ready(config)
        self._tell(Ready(instance=self._instance, generation=self.generation, pid=process.pid or 0))

    async def _make_ready(self, process: Process, startup: Startup, env: Mapping[str, str]) -> Config:
        self.generation += 1
        session = self._telling.renew(self.generation)
        # While we wait for the interpreter there is time for it.
        asyncio.get_running_loop().call_soon(rehearse)
        await startup.spawn(env)
        self._announced = process
        pid = process.pid or 0
        self._tell(Started(instance=self._instance, generation=self.generation, pid=pid, session=session))
        self.about = await startup.load(
            load_frame(self._manifest, pulse=self._care.pulse, policy=self._care.policy, folder=self._folder)
        )
        config = self.settle()
        self._calls.attach(process)
        await startup.initialize(self._calls.lifecycle("initialize", config))
        self._check_wanted()
        return config

    async def _abort(self, process: Process) -> None:
        """Leave no process behind, whatever went wrong."""
        self._calls.attach(None)
        try:
            if process.is_started:
                process.kill("start")
                await process.gone()
        finally:
            # Even where the wait was broken off: it is being ended, and nobody may wait for it again.
            self._forget(process)

    def _forget(self, process: Process) -> None:
        if self._process is process:
            self._process = None
            self._state = WorkerState.COLD

    def _check_wanted(self) -> None:
        if self._is_unwanted:
            raise self._stopped_early()

    def _stopped_early(self) -> CapabilityError:
        return ended_by_us(self._manifest.name, "stopped", doing="it was being started")

    # -------------------------------------------------------------- stopping

    async def stop(self, grace: float | None = None) -> None:
        """End the process, or wait until somebody else has; the least patient of them decides how long it takes."""
        if self._stopping is None:
            if self._process is None and self._starting is None:
                return
            self._stopping = asyncio.ensure_future(self._stop())
            self._stopping.add_done_callback(self._stop_over)
        patience = self._manifest.stop_grace if grace is None else grace
        loop = asyncio.get_running_loop()
        self._escalation += [
            loop.call_later(patience, self._terminate),
            loop.call_later(patience + min(_TERM_GRACE, patience), self._kill),
        ]
        await asyncio.shield(self._stopping)

    def _stop_over(self, task: "asyncio.Task[None]") -> None:
        self._stopping = None
        for timer in self._escalation:
            timer.cancel()
        self._escalation.clear()
        if not task.cancelled():
            task.exception()

    async def _stop(self) -> None:
        if self._reviving is not None:
            self._reviving.cancel()
        if self._starting is not None:
            self._is_unwanted = True
            if self._process is not None:
                self._process.kill("stopped")
            await asyncio.wait([self._starting])
        process = self._process
        if process is None:
            return
        if not process.ended.done():
            self._state = WorkerState.STOPPING
            if process.doomed is None:
                process.doomed = "stopped"
            self._calls.ask_all_to_stop()
            self._calls.say({"type": "stop"})
        await process.gone()
        self._forget(process)

    def _terminate(self) -> None:
        if self._process is not None and not self._process.ended.done():
            self._process.signal(signal.SIGTERM)

    def _kill(self) -> None:
        if self._process is not None and not self._process.ended.done():
            self._process.kill("stopped")

    # -------------------------------------------------------------- what it says, and its end

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
        fault = self._deaths.fault_of(process.doomed, ending)
        if self._announced is process:
            self._deaths.tell(process.pid or 0, self.generation, ending, fault)
        self._calls.attach(None)
        self._calls.fail_all(lambda: self._deaths.why(process.doomed, ending))
        process.cleared.add_done_callback(lambda _done: self._forget(process))
        if was is not WorkerState.READY or self._stopping is not None:
            return
        if fault is not None:
            self._deaths.add(fault)
        if self._care.respawn and (fault is not None or process.doomed == "replaced"):
            self._reviving = asyncio.ensure_future(self._revive())

    async def _revive(self) -> None:
        try:
            await self.start()
        except (Fault, OSError):
            # The next call starts it again, and is told why it cannot be.
            return


def _nothing(_config: Config) -> None:
    return None


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
        self._care = supervision or Supervision()
        self._secrets = dict(secrets or {})
        self._settings = Settings(manifest)
        self._asked_config: Mapping[str, Any] = dict(config or {})
        self._config: Mapping[str, Any] = self._asked_config
        self._waiting: dict[str, asyncio.Future[None]] = {}
        scene = Scene(capability=manifest.name, instance=self._instance)
        self._telling = Telling(self._instance)
        self._calls = Calls(scene, manifest.cancel_grace, self._care.policy, folder)
        self._life = Lifecycle(
            manifest, scene, self._care, self._calls, self._telling, secrets=self._secrets, folder=folder
        )
        self._life.settle = self.settle
        self._life.on_ready = self._configured

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
        return self._life.state

    @property
    def pid(self) -> int | None:
        """The process that does the work."""
        process = self._life.current
        return None if process is None else process.pid

    @property
    def generation(self) -> int:
        """How many processes there were."""
        return self._life.generation

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration in force, defaults included once it was started."""
        return self._config

    @property
    def about(self) -> Mapping[str, Any]:
        """What the capability said of itself when it was imported: version, schema, actions, hooks."""
        return self._life.about

    @property
    def in_flight(self) -> tuple[str, ...]:
        """The jobs running in it."""
        return self._calls.jobs()

    def memory(self) -> Memory | None:
        """What its processes hold, as of the last pulse."""
        return None if self._life.current is None else self._telling.memory

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` of every event from now on."""
        return self._telling.listen(listener)

    def give_secrets(self, secrets: Mapping[str, str]) -> bool:
        """Let the next process have these secrets; whether they are others than the present one has."""
        if self._secrets == secrets:
            return False
        self._secrets.clear()
        self._secrets.update(secrets)
        return True

    def forgive(self) -> None:
        """Leave quarantine."""
        self._life.forgive()

    async def start(self) -> None:
        """Make it ready; see `Worker.start`."""
        await self._life.start()

    async def restart(self) -> None:
        """End its process and start another."""
        await self._life.stop()
        await self._life.start()

    async def stop(self, grace: float | None = None) -> None:
        """End its process; see `Worker.stop`."""
        await self._life.stop(grace)

    def settle(self) -> Mapping[str, Any]:
        """The configuration that was asked for, checked and with all defaults. Starting does this by itself.

        Raises:
            CapabilityConfigError: it is not valid; every bad field is named.
        """
        made = self._settings.settle(self._asked_config, self.about.get("schema"))
        self._asked_config = made.asked
        return made.whole

    def _configured(self, config: Mapping[str, Any]) -> None:
        self._config = config

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
        if not self._life.is_ready:
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
        if not self._life.is_ready:
            return False
        self._calls.begin(job, {"action": action, "arguments": arguments}, timeout, told)
        return True

    def flush(self) -> None:
        """Let go what was begun; see `Worker.flush`."""
        process = self._life.current
        if process is not None:
            process.flush()

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

        if not self._life.is_ready:
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
        process = self._life.current
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
        await self._life.revived()
        self._phase(job, CancelPhase.COMPLETED)
        return CancelPhase.FORCE

    def _phase(self, job: str, phase: CancelPhase) -> None:
        self._telling.tell(CancelPhased(instance=self._instance, job=job, phase=phase))

    # -------------------------------------------------------------- the capability's life

    async def prefetch(self) -> None:
        """Let it fetch what it will need; see `Worker.prefetch`."""
        await self.start()
        if self._has("prefetch"):
            await self._watched("prefetching", "prefetch")

    async def _watched(self, doing: str, phase: str, arguments: Mapping[str, Any] = NO_ARGUMENTS) -> None:
        """Have something done that may take long, as long as it shows progress. Jobs before it may be silent."""
        process = self._life.current
        if process is None:
            return
        watch = Startup(self.manifest, process, self._care.policy, is_busy=lambda: bool(self._calls.jobs()))
        self._telling.on_sign = watch.sign
        try:
            await watch.later(doing, self._calls.lifecycle(phase, arguments))
        finally:
            watch.close()

    async def release(self) -> bool:
        """Ask it to give up memory in place; see `Worker.release`."""
        if not self._life.is_ready or not self._has("release"):
            return False
        return await self._calls.lifecycle("release") is not False

    async def enabled(self, *, on: bool) -> None:
        """Fire its hook; see `Worker.enabled`."""
        hook = "on_enable" if on else "on_disable"
        if self._life.is_ready and self._has(hook):
            await self._calls.lifecycle(hook)

    async def reconfigure(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Apply another configuration; see `Worker.reconfigure`."""
        # One that is being started is given the configuration that it was started for, and this one after that.
        await self._life.settled()
        if self.manifest.config is None and not self.about:
            # Nobody has told the schema yet, and what is kept unchecked would fail the next start.
            self._life.about = await look(self.manifest, host=self._care.environment, secrets=self._secrets)
        made = self._settings.settle(config, self.about.get("schema"))
        if self._life.is_ready:
            await self._watched("being reconfigured", "reconfigure", made.whole)
        self._asked_config, self._config = made.asked, made.whole
        return made.asked

    def _has(self, hook: str) -> bool:
        return hook in self.about.get("hooks", ())


async def _within(future: "asyncio.Future[Any]", seconds: float) -> bool:
    done, _ = await asyncio.wait([future], timeout=seconds)
    return bool(done)
