"""The real `Worker`: calls, streams, cancels and reconfigures a capability in its process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from failwell.errors.axes import Certainty
from failwell.errors.faults import CapabilityCancelledError
from failwell.jobs.job import NO_ARGUMENTS, CancelPhase
from failwell.jobs.workers.lifecycle import Config, WorkerLifecycle
from failwell.jobs.workers.protocol import Answer, CancelPhased, WorkerState, encode_call
from failwell.jobs.workers.startup import Startup, inspect_capability


class SupervisedWorker(WorkerLifecycle):
    """A `Worker` with a process that is started when it is needed, and again after it died."""

    # -------------------------------------------------------------- calling

    async def call(
        self,
        job: str,
        arguments: Mapping[str, Any] = NO_ARGUMENTS,
        *,
        action: str = "execute",
        timeout: float | None = None,  # noqa: ASYNC109  (it is sent to the worker, and ends more than a wait)
    ) -> Any:
        """Run one call; see `Worker.call`."""
        if self._state is not WorkerState.READY:
            await self._ready_for(job)
        return await self._calls.call(job, {"action": action, "arguments": arguments}, timeout)

    def begin(
        self,
        job: str,
        arguments: str,
        action: str,
        timeout: float | None,
        done: Callable[[Answer], None],
    ) -> bool:
        """Send one call and do not wait; see `Worker.begin`."""
        if self._state is not WorkerState.READY:
            return False
        self._calls.begin(job, encode_call(job, action, arguments), timeout, done)
        return True

    def flush(self) -> None:
        """Send calls that were begun; see `Worker.flush`."""
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
        """Wait for the start on behalf of `job`, which may be cancelled meanwhile; the start itself continues."""
        if job in self._waiting:
            raise ValueError(f"job {job!r} is already waiting for {self.instance!r}")
        cancelled = self._waiting[job] = asyncio.get_running_loop().create_future()
        starting = asyncio.ensure_future(self.start())
        try:
            await asyncio.wait([starting, cancelled], return_when=asyncio.FIRST_COMPLETED)
            if cancelled.done():
                raise CapabilityCancelledError(self.capability, certainty=Certainty.NOT_SENT)
            starting.result()
        finally:
            del self._waiting[job]
            if not starting.done():
                starting.cancel()
            elif not starting.cancelled():
                starting.exception()

    async def cancel(self, job: str, *, grace: float | None = None) -> CancelPhase | None:
        """Stop one call; see `Worker.cancel`."""
        waiting = self._waiting.get(job)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
            self._phase(job, CancelPhase.COOPERATIVE)
            self._phase(job, CancelPhase.COMPLETED)
            return CancelPhase.COOPERATIVE
        call = self._calls.running(job)
        if call is None:
            return None
        process = self._process
        self._calls.ask_to_stop(call, "cancel")
        call.set_timer(None)
        self._phase(job, CancelPhase.COOPERATIVE)
        seconds = self.manifest.cancel_grace if grace is None else grace
        done, _ = await asyncio.wait([call.future()], timeout=seconds)
        if done:
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
        self._events.publish(CancelPhased(instance=self.instance, job=job, phase=phase))

    # -------------------------------------------------------------- the capability's hooks

    async def prefetch(self) -> None:
        """Call the `prefetch` hook; see `Worker.prefetch`."""
        await self.start()
        if self._has("prefetch"):
            await self._watched("prefetching", "prefetch")

    async def _watched(self, doing: str, phase: str, arguments: Mapping[str, Any] = NO_ARGUMENTS) -> None:
        """Run a hook that may take long, as long as it shows progress. While jobs run, silence is allowed."""
        if self._process is None:
            return
        watch = Startup(
            self.manifest,
            self._process,
            self._policy,
            is_busy=lambda: bool(self._calls.jobs()),
        )
        self._events.on_sign = watch.sign
        try:
            await watch.later(doing, self._calls.lifecycle(phase, arguments))
        finally:
            watch.close()

    async def release(self) -> bool:
        """Call the `release` hook; see `Worker.release`."""
        if self._state is not WorkerState.READY or not self._has("release"):
            return False
        return await self._calls.lifecycle("release") is not False

    async def enabled(self, *, on: bool) -> None:
        """Call its hook; see `Worker.enabled`."""
        hook = "on_enable" if on else "on_disable"
        if self._state is WorkerState.READY and self._has(hook):
            await self._calls.lifecycle(hook)

    async def reconfigure(self, config: Config) -> Config:
        """Apply another configuration; see `Worker.reconfigure`."""
        if self._starting is not None:
            # The start in progress uses the old configuration; this one is applied after it.
            await asyncio.wait([self._starting])
        if self.manifest.config is None and not self.about:
            # The schema is not known yet, and an unchecked configuration would fail the next start.
            self.about = await inspect_capability(
                self.manifest,
                host=self._supervision.environment,
                secrets=self._secrets,
                policy=self._policy,
            )
        settled = self._settings.settle(config, self.about.get("schema"))
        if self._state is WorkerState.READY:
            await self._watched("being reconfigured", "reconfigure", settled.effective)
        self._requested_config, self.config = settled.requested, settled.effective
        return settled.requested

    def _has(self, hook: str) -> bool:
        return hook in self.about.get("hooks", ())
