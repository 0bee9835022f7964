"""Starts and stops the process of a worker, and starts it again after it died.

Any number of tasks may start or stop a worker at once: they share one start and one stop. A stop ends a start
that is in progress. Tasks that wait for that start fail with a fault that says so; none of them is cancelled.
"""

import asyncio
import signal
from collections.abc import Mapping
from copy import copy
from functools import cache
from typing import Any

from failwell.adapters.describe import describe
from failwell.errors.fault import Fault
from failwell.errors.faults import CapabilityError
from failwell.errors.report import Scene
from failwell.jobs.faults import WorkerStalled, ended_by_us
from failwell.jobs.manifest import Manifest
from failwell.jobs.settings import Settings
from failwell.jobs.workers.calls import Calls
from failwell.jobs.workers.death import CrashCount, death, described_once, keep_report, recorded_output
from failwell.jobs.workers.protocol import (
    Died,
    Memory,
    MemoryLimit,
    Quarantined,
    Ready,
    Started,
    Supervision,
    WorkerState,
)
from failwell.jobs.workers.startup import Startup, load_frame, worker_environment
from failwell.jobs.workers.worker_events import WorkerEvents
from failwell.processes.memory_groups import MemoryGroups
from failwell.processes.tree import memory_shares, resident_mb
from failwell.processes.worker import Ending, WorkerProcess
from failwell.processes.worker_memory import OverLimit

_TERM_GRACE = 2.0
_DEATHS = frozenset({"worker.oom", "worker.crashed", "worker.stalled", "resource.system_memory"})
Config = Mapping[str, Any]


class _StartStopped(Exception):
    """A start was ended by a stop."""


class WorkerLifecycle:
    """The process of one worker. Creating the object starts nothing."""

    def __init__(
        self,
        manifest: Manifest,
        *,
        instance: str | None = None,
        config: Config | None = None,
        secrets: Mapping[str, str] | None = None,
        folder: str | None = None,
        supervision: Supervision | None = None,
        groups: MemoryGroups | None = None,
    ) -> None:
        """Create the worker of one instance; no process is started.

        Args:
            manifest: The capability to run.
            instance: The id of the instance. The default is the name of the capability.
            config: Its configuration, which is checked at the start.
            secrets: Values of the manifest's secret variables.
            folder: The folder for binary results; without one, a capability cannot return bytes.
            supervision: How the worker is watched and restarted.
            groups: Control groups with memory limits, where the kernel can enforce them.
        """
        self.manifest = manifest
        self.capability = manifest.name
        self.instance = instance or manifest.name
        self.config: Config = dict(config or {})
        """The current configuration; it includes defaults once the worker was started."""
        self.generation = 0
        """How many processes this worker has had."""
        self.about: dict[str, Any] = {}
        """What the capability reported when it was imported: version, schema, actions, hooks."""
        self._supervision = supervision or Supervision()
        self._groups = groups
        self._limit = (
            None if manifest.memory_limit is None else MemoryLimit(manifest.memory_limit, "manifest")
        )
        self._secrets = dict(secrets or {})
        self._folder = folder
        self._settings = Settings(manifest)
        self._requested_config: Config = self.config
        self._scene = Scene(capability=manifest.name, instance=self.instance)
        self._events = WorkerEvents(self.instance)
        self._policy = self._supervision.policy_for(manifest)
        self._calls = Calls(self._scene, manifest.cancel_grace, self._policy, folder)
        self._crashes = CrashCount(manifest.name, self._supervision.deaths, self._supervision.cooldown)
        self._waiting: dict[str, asyncio.Future[None]] = {}
        """Job → a future that is done if the job is cancelled while it waits for the process."""
        self._state = WorkerState.COLD
        self._process: WorkerProcess | None = None
        self._announced: WorkerProcess | None = None
        self._startup: Startup | None = None
        self._starting: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._reviving: asyncio.Task[None] | None = None
        self._escalation: list[asyncio.TimerHandle] = []
        self._is_unwanted = False
        self.listen = self._events.listen
        self.forgive = self._crashes.forgive

    # -------------------------------------------------------------- state

    @property
    def state(self) -> WorkerState:
        """The state of the process."""
        if self._state is WorkerState.COLD and self._crashes.seconds_left() > 0:
            return WorkerState.QUARANTINED
        return self._state

    @property
    def pid(self) -> int | None:
        """The id of the worker process, if there is one."""
        return None if self._process is None else self._process.pid

    @property
    def in_flight(self) -> tuple[str, ...]:
        """The jobs that run in it."""
        return self._calls.jobs()

    def memory(self) -> Memory | None:
        """What its processes hold, by the last pulse."""
        return None if self._process is None else self._events.memory

    def limit_memory(self, limit: MemoryLimit | None) -> None:
        """Set the most memory that its process may use, now and after a restart. One that uses more is ended."""
        if limit is None and self._limit is None:
            return
        self._limit = limit
        if self._process is not None:
            self._process.memory.limit(
                None if limit is None else limit.megabytes, "" if limit is None else limit.source
            )

    def used_mb(self, *, exact: bool = True) -> float:
        """The main memory that its processes use now. Shared pages count in part if `exact`, which takes longer."""
        pids = [] if self._process is None else self._process.processes()
        if len(pids) < 2 or not exact:
            return sum(map(resident_mb, pids))
        return sum(memory_shares(pid)[1] for pid in pids)

    def end_over_limit(self, over: OverLimit) -> None:
        """Kill the process because all workers together use more memory than they may."""
        if self._process is not None:
            self._process.end_over_limit(over)

    def give_secrets(self, secrets: Mapping[str, str]) -> bool:
        """Set the secrets of the next process; return whether they differ from the current ones."""
        if self._secrets == secrets:
            return False
        self._secrets = dict(secrets)
        return True

    def settle(self) -> Config:
        """The requested configuration, checked and with all defaults. Every start does this.

        Raises:
            CapabilityConfigError: it is not valid; every invalid field is named.
        """
        settled = self._settings.settle(self._requested_config, self.about.get("schema"))
        self._requested_config = settled.requested
        return settled.effective

    # -------------------------------------------------------------- starting

    async def start(self) -> None:
        """Start the process, import and initialise the capability; does nothing if the worker is ready.

        Raises:
            Fault: `worker.start_failed`, `worker.stalled`, `validation.config_invalid`, or the error of
                `initialize` if it names its cause, such as `resource.*`. No process is left.
        """
        try:
            await self._started()
        except _StartStopped:
            raise ended_by_us(self.capability, "stopped", doing="it was being started") from None

    async def _started(self) -> None:
        while self._state is not WorkerState.READY:
            if self._stopping is not None:
                await asyncio.wait([self._stopping])
                continue
            if self._starting is None:
                self._crashes.refuse()
                self._is_unwanted = False
                self._starting = asyncio.ensure_future(self._start())
                self._starting.add_done_callback(self._start_over)
            await asyncio.shield(self._starting)
            return

    def _start_over(self, task: "asyncio.Task[None]") -> None:
        self._starting = None
        if not task.cancelled():
            # Tasks that wait get the exception; without one, the loop would report it as never retrieved.
            task.exception()

    async def _start(self) -> None:
        if self._process is not None:
            # The previous process is still being removed.
            last = self._process
            await last.gone()
            self._forget(last)
        self._check_wanted()
        if self.manifest.config is not None:
            self.settle()
        env = worker_environment(self.manifest, self._supervision.environment, self._secrets)
        group = None if self._groups is None or self._limit is None else self._groups.group()
        process = self._process = WorkerProcess(self._on_frame, self._events.printed, group)
        if self._limit is not None:
            process.memory.limit(self._limit.megabytes, self._limit.source)
        self._state = WorkerState.STARTING
        process.ended.add_done_callback(lambda done: self._ended(process, done.result()))
        startup = self._startup = Startup(self.manifest, process, self._policy)
        self._events.on_sign = startup.sign
        try:
            config = await self._make_ready(process, startup, env)
        except BaseException as error:
            # Also after a cancellation: a start that does not finish must not leave its process behind.
            await self._abort(process)
            if self._is_unwanted and isinstance(error, Exception):
                # The process died because the worker was stopped.
                raise _StartStopped from None
            if isinstance(error, Fault) and error.kind in _DEATHS:
                self._count_death(error)
            raise
        finally:
            self._startup = None
            startup.close()
        self._state = WorkerState.READY
        process.watch(self._supervision.stopped)
        self.config = config
        self._events.publish(Ready(instance=self.instance, generation=self.generation, pid=process.pid or 0))

    async def _make_ready(self, process: WorkerProcess, startup: Startup, env: Mapping[str, str]) -> Config:
        self.generation += 1
        session = self._events.renew(self.generation)
        # The host is idle while the interpreter starts.
        asyncio.get_running_loop().call_soon(preload_description)
        await startup.spawn(env)
        self._announced = process
        self._events.publish(
            Started(instance=self.instance, generation=self.generation, pid=process.pid or 0, session=session)
        )
        self.about = await startup.load(
            load_frame(
                self.manifest,
                pulse=self._supervision.pulse,
                policy=self._policy,
                folder=self._folder,
                instance=self.instance,
            )
        )
        config = self.settle()
        self._calls.attach(process)
        await startup.initialize(self._calls.lifecycle("initialize", config))
        self._check_wanted()
        return config

    async def _abort(self, process: WorkerProcess) -> None:
        """Kill the process of a start that failed."""
        self._calls.attach(None)
        try:
            if process.is_started:
                process.kill("start")
                await process.gone()
        finally:
            # Even if the wait was cancelled: the process is being killed, and no task may wait for it again.
            self._forget(process)

    def _forget(self, process: WorkerProcess) -> None:
        if self._process is process:
            self._process = None
            self._state = WorkerState.COLD

    def _check_wanted(self) -> None:
        if self._is_unwanted:
            raise _StartStopped

    # -------------------------------------------------------------- stopping

    async def restart(self) -> None:
        """Stop the process and start another."""
        await self.stop()
        await self.start()

    async def stop(self, grace: float | None = None) -> None:
        """Stop the process, or wait for a stop in progress; the shortest grace counts. See `Worker.stop`."""
        if self._stopping is None:
            if self._process is None and self._starting is None:
                return
            self._stopping = asyncio.ensure_future(self._stop())
            self._stopping.add_done_callback(self._stop_over)
        seconds = self.manifest.stop_grace if grace is None else grace
        loop = asyncio.get_running_loop()
        self._escalation += [
            loop.call_later(seconds, self._terminate),
            loop.call_later(seconds + min(_TERM_GRACE, seconds), self._kill),
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
            self._calls.send({"type": "stop"})
        await process.gone()
        self._forget(process)

    def _terminate(self) -> None:
        if self._process is not None and not self._process.ended.done():
            self._process.signal(signal.SIGTERM)

    def _kill(self) -> None:
        if self._process is not None and not self._process.ended.done():
            self._process.kill("stopped")

    # -------------------------------------------------------------- frames, and the end of a process

    def _on_frame(self, frame: dict[str, Any]) -> None:
        kind = frame["type"]
        if kind == "result":
            # While its job is still known: what is printed from here on belongs to another one.
            self._calls.end_output(frame["job"])
            self._events.measured(frame)
            self._calls.answered(frame)
        elif kind == "item":
            self._calls.item(frame)
        elif kind == "piped":
            if self._process is not None:
                self._process.read_output()
        elif self._startup is not None and kind in ("hello", "loaded"):
            self._startup.on_frame(frame)
        else:
            self._events.on_frame(frame)

    def _ended(self, process: WorkerProcess, ending: Ending) -> None:
        if process is not self._process:
            return
        was, self._state = self._state, WorkerState.COLD
        fault = self._death(process.doomed, ending)
        self._events.end_unfinished()
        if self._announced is process:
            self._events.publish(
                Died(
                    instance=self.instance,
                    generation=self.generation,
                    pid=process.pid or 0,
                    returncode=ending.code,
                    expected=fault is None,
                    report=None if fault is None else described_once(fault, self._scene),
                    in_flight=self._calls.jobs(),
                )
            )
        self._calls.attach(None)
        self._calls.fail_all(lambda: self._error_of_call(fault, process.doomed, ending))
        process.cleared.add_done_callback(lambda _done: self._forget(process))
        if was is not WorkerState.READY or self._stopping is not None:
            return
        if fault is not None:
            self._count_death(fault)
        if self._supervision.respawn and (fault is not None or process.doomed == "replaced"):
            self._reviving = asyncio.ensure_future(self._revive())

    def _death(self, doomed: str | None, ending: Ending) -> CapabilityError | None:
        """The fault of a process that died or was frozen; `None` if the host stopped it."""
        if doomed == "frozen":
            tail = recorded_output(ending.stderr, self._policy)
            return WorkerStalled(self.capability, self._supervision.stopped, "stopped by a signal", tail)
        jobs = max(1, len(self._calls.jobs()))
        return None if doomed is not None else death(self.capability, ending, self._policy, jobs=jobs)

    def _error_of_call(
        self, fault: CapabilityError | None, doomed: str | None, ending: Ending
    ) -> CapabilityError:
        """The error of one call that was in flight. Each call raises its own, and all share one report."""
        if fault is None:
            return ended_by_us(self.capability, doomed, code=ending.code)
        return keep_report(copy(fault), described_once(fault, self._scene))

    def _count_death(self, fault: Fault) -> None:
        """Count a death; too many in a row put the worker into quarantine."""
        if self._crashes.count(fault, self._calls.finished):
            self._events.publish(
                Quarantined(
                    instance=self.instance,
                    deaths=self._crashes.deaths,
                    seconds=self._supervision.cooldown,
                    report=described_once(fault, self._scene),
                )
            )

    async def _revive(self) -> None:
        try:
            await self._started()
        except (Fault, OSError, _StartStopped):
            # The next call tries to start it again, and fails with the reason.
            return


@cache
def preload_description() -> None:
    """Describe a made-up death once, so that the modules are loaded before a real one is described."""
    describe(death("", Ending(code=-signal.SIGKILL)))
