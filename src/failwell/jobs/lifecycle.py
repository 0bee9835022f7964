"""The life of a worker's process: cold, starting, ready, stopping, and cold again.

This alone decides when there is a process. Whoever wants it started or stopped asks here, any number of
them at once: they share one start, and one stop. A stop ends a start that is under way, and whoever waits
for that is told so by a fault; nobody is cancelled who did not ask for it.
"""

import asyncio
import signal
from collections.abc import Callable, Mapping
from typing import Any

from failwell.fault.base import Fault
from failwell.fault.capability import CapabilityError
from failwell.jobs.calls import Calls
from failwell.jobs.deaths import Deaths, rehearse
from failwell.jobs.ending import Ending
from failwell.jobs.environment import worker_environment
from failwell.jobs.faults import ended_by_us
from failwell.jobs.look import load_frame
from failwell.jobs.manifest import Manifest
from failwell.jobs.process import Process
from failwell.jobs.startup import Startup
from failwell.jobs.supervision import Supervision
from failwell.jobs.telling import Telling
from failwell.jobs.worker import Ready, Started, WorkerState
from failwell.report.record import Scene

_TERM_GRACE = 2.0
_DEATHS = frozenset({"worker.oom", "worker.crashed", "worker.stalled"})
Config = Mapping[str, Any]


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
