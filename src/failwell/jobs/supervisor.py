"""A worker whose process is real: called, streamed from, cancelled and configured, whichever process it has."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from failwell.fault.capability import CapabilityCancelledError
from failwell.jobs.calls import Calls
from failwell.jobs.job import NO_ARGUMENTS, CancelPhase
from failwell.jobs.lifecycle import Lifecycle
from failwell.jobs.look import look
from failwell.jobs.manifest import Manifest
from failwell.jobs.settings import Settings
from failwell.jobs.startup import Startup
from failwell.jobs.supervision import Supervision
from failwell.jobs.telling import Telling
from failwell.jobs.worker import CancelPhased, Listener, Memory, WorkerState
from failwell.report.record import Scene


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
