"""A worker: calls, streams, cancels and reconfigures a capability in its process.

It outlives its process, which may die and be started again. All methods are called on the event loop's thread.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from failwell.errors.axes import Certainty
from failwell.errors.faults import CapabilityCancelledError
from failwell.jobs.job import NO_ARGUMENTS, CancelPhase
from failwell.jobs.workers.lifecycle import Config, WorkerLifecycle
from failwell.jobs.workers.protocol import Answer, CancelPhased, WorkerState, encode
from failwell.jobs.workers.startup import Startup, inspect_capability


class SupervisedWorker(WorkerLifecycle):
    """One instance of one capability. Its process is started when it is needed, and again after it died."""

    # -------------------------------------------------------------- calling

    async def call(
        self,
        job: str,
        arguments: Mapping[str, Any] = NO_ARGUMENTS,
        *,
        action: str = "execute",
        timeout: float | None = None,  # noqa: ASYNC109  (it is sent to the worker, and ends more than a wait)
    ) -> Any:
        """Run one call and return its result. The process is started first if there is none.

        After `timeout` seconds the call is asked to stop. If it does not stop within the cancel grace, the
        process is killed and replaced. Either way `CapabilityTimeoutError` is raised.

        Raises:
            Fault: the error of the call; `WorkerOOMError` or `worker.crashed` if the process died;
                `CapabilityCancelledError` after `cancel`. `describe(fault)` returns the worker's report,
                unchanged.
        """
        if self._state is not WorkerState.READY:
            await self._ready_for(job)
        return await self._calls.call(job, {"action": action, "arguments": arguments}, timeout)

    def begin(
        self,
        job: str,
        arguments: Mapping[str, Any],
        action: str,
        timeout: float | None,
        done: Callable[[Answer], None],
    ) -> bool:
        """Like `call`, but without a task: `done` is called with the answer as soon as it arrives.

        `False` if the worker is not ready: nothing is sent, and `call` would start it. Calls that are begun are
        sent together, by `flush`.
        """
        if self._state is not WorkerState.READY:
            return False
        self._calls.begin(
            job, encode({"type": "call", "job": job, "action": action, "arguments": arguments}), timeout, done
        )
        return True

    def flush(self) -> None:
        """Send the calls that were begun."""
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
        """The items of one call as they arrive. The worker waits while the consumer is slow.

        Leaving the loop early cancels the call. Raises as `call` does.
        """
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
        """Cancel one call: ask it to stop, wait `grace` seconds, then kill and replace the process.

        Returns the last phase that was needed: `COOPERATIVE` (the process stays) or `FORCE`; `None` if no such
        call runs. Other calls in a killed process fail with `worker.crashed` and
        `details["reason"] == "replaced"`, because they did not cause it.
        """
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
        """Let the capability fetch its models and data. Stalls are detected as in `start`."""
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
        """Ask the capability to free memory; `False` if it cannot. Never stops the process."""
        if self._state is not WorkerState.READY or not self._has("release"):
            return False
        return await self._calls.lifecycle("release") is not False

    async def enabled(self, *, on: bool) -> None:
        """Call the capability's `on_enable` or `on_disable` hook, if a process runs and has one."""
        hook = "on_enable" if on else "on_disable"
        if self._state is WorkerState.READY and self._has(hook):
            await self._calls.lifecycle(hook)

    async def reconfigure(self, config: Config) -> Config:
        """Check and apply another configuration, without restarting the process.

        Returns the configuration without dropped keys: with `config_strict = false` in the manifest, unknown keys
        are dropped with a warning.

        Raises:
            CapabilityConfigError: it is not valid. Every invalid field is named, and nothing changed.
        """
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
