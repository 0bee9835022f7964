"""What the queue sees of a worker: a process that may die and come back, behind one object that stays.

`Worker` is the protocol; `failwell.jobs.worker.supervisor.SupervisedWorker` is the real one. Everything here
is called on the event loop's thread.
"""

import os
from asyncio import Future
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Protocol

from failwell.fault.frozen import frozen
from failwell.jobs.job import NO_ARGUMENTS, CancelPhase
from failwell.report.record import ErrorReport, TracebackPolicy


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
    stopped: float = 20.0
    """Seconds for which a signal (`SIGSTOP`) may keep the process stopped before it is ended."""
    environment: Mapping[str, str] = field(default_factory=_host_environment)
    """The host's variables, of which a worker sees a few."""


class WorkerState(StrEnum):
    """Where the process behind a worker stands."""

    COLD = "cold"
    """No process. The next call starts one."""
    STARTING = "starting"
    """The process runs; the capability is being imported and initialised."""
    READY = "ready"
    STOPPING = "stopping"
    QUARANTINED = "quarantined"
    """It died too often in a row; calls are refused until the cooldown is over or `forgive()`."""


@frozen
class Memory:
    """What a worker and all its descendants hold, in megabytes."""

    rss_mb: float
    peak_mb: float
    """The highest `rss_mb` seen in this process's life."""
    pids: tuple[int, ...]
    """The worker's process and its descendants: whose GPU memory is this worker's."""


@frozen
class FileHandle:
    """A result too heavy for JSON, in a file that only this user may read. Whoever takes it deletes it."""

    path: str
    size: int
    media_type: str = "application/octet-stream"


# ------------------------------------------------------------------ what is told


@frozen
class Started:
    """A process was started."""

    instance: str
    generation: int
    """Counts the processes of this worker, from 1."""
    pid: int
    session: str
    """A fresh id for each process; every log line of it carries the same."""


@frozen
class Ready:
    """The capability is initialised and takes calls."""

    instance: str
    generation: int
    pid: int


@frozen
class Progress:
    """A call said how far it is. `job` is `None` while the capability is being initialised."""

    instance: str
    job: str | None
    fraction: float
    message: str


@frozen
class Used:
    """A call said what it consumed, in units of its own; amounts add up."""

    instance: str
    job: str | None
    amounts: Mapping[str, float]


@frozen
class Measured:
    """What a call had needed at most by the time it ended. Told right before its result."""

    instance: str
    job: str
    ram_peak_mb: float
    """The highest resident memory of the process so far, by the kernel's own mark."""
    gpu_peak_mb: float | None
    """The highest that its framework's allocator held so far, on all devices; `None` without one."""


@frozen
class Pulse:
    """The process is alive. Pushed several times a second while it is."""

    instance: str
    generation: int
    memory: Memory
    cpu_seconds: float


@frozen
class OutputLine:
    """One line that a capability printed or logged."""

    stream: str
    """`stdout`, `stderr` or `log`."""
    text: str
    level: str = ""
    logger: str = ""
    n: int = 0
    """Its number in the file that keeps it, from 1."""
    at: float = 0.0
    """When it was kept, in seconds since 1970."""
    instance: str = ""
    session: str = ""
    job: str | None = None
    """The job that it belongs to, where that is known."""


@frozen
class CancelPhased:
    """The cancelling of a running call went one step further."""

    instance: str
    job: str
    phase: CancelPhase


@frozen
class Died:
    """The process ended. Told at once, before the calls in flight fail with the same report."""

    instance: str
    generation: int
    pid: int
    returncode: int | None
    expected: bool
    """Whether we ended it ourselves: stop, eviction, forced cancel."""
    report: ErrorReport | None
    """The classified death; `None` for an expected end."""
    in_flight: tuple[str, ...]
    """The jobs that were running in it."""


@frozen
class Quarantined:
    """The worker died too often in a row; nothing is started for `seconds`."""

    instance: str
    deaths: int
    seconds: float
    report: ErrorReport


WorkerEvent = (
    Started | Ready | Progress | Used | Measured | Pulse | OutputLine | CancelPhased | Died | Quarantined
)
Listener = Callable[[WorkerEvent], None]
"""Told synchronously on the event loop; must return at once. What it raises is recorded and passed over."""


# ------------------------------------------------------------------ what may be asked


class Worker(Protocol):
    """One instance of one capability: its process, now or later."""

    @property
    def capability(self) -> str:
        """The capability's name."""
        ...

    @property
    def instance(self) -> str:
        """This instance's id; the default one is named like its capability."""
        ...

    @property
    def state(self) -> WorkerState: ...

    @property
    def pid(self) -> int | None:
        """The process that does the work, if there is one."""
        ...

    @property
    def generation(self) -> int:
        """How many processes this worker has had; a new number means a new pid."""
        ...

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration in force. It survives the process: a respawn gets the same."""
        ...

    @property
    def in_flight(self) -> tuple[str, ...]:
        """The jobs running in it now."""
        ...

    def memory(self) -> Memory | None:
        """What the process subtree holds, as last measured; `None` without a process."""
        ...

    async def start(self) -> None:
        """Start the process, import and initialise the capability; does nothing where it is ready.

        Raises:
            Fault: `worker.start_failed`, `worker.stalled`, `validation.config_invalid`, or what
                `initialize` raised where that says what is wrong (so memory that ran out there is
                `resource.*`). No process is left.
        """
        ...

    async def call(
        self,
        job: str,
        arguments: Mapping[str, Any] = NO_ARGUMENTS,
        *,
        action: str = "execute",
        timeout: float | None = None,  # noqa: ASYNC109  (it is told to the worker, and ends more than a wait)
    ) -> Any:
        """Run one call and return its result, starting the process first where there is none.

        After `timeout` seconds the call is asked to stop; if it does not within the worker's cancel
        grace, the process is ended and replaced. Either way `CapabilityTimeoutError` is raised.

        Raises:
            Fault: a report from the worker, revived; `WorkerOOMError`, `worker.crashed` where the
                process died; `CapabilityCancelledError` after `cancel`. `describe(fault)` gives the
                worker's own report, unchanged.
        """
        ...

    def begin(
        self,
        job: str,
        arguments: Mapping[str, Any],
        action: str,
        timeout: float | None,
        done: "Callable[[Future[Any]], None]",
    ) -> bool:
        """`call` without a task of its own: `done` gets the answer in the moment it comes.

        `False` where the worker is not ready; nothing was sent then, and `call` starts it. What is begun
        in one turn of the loop goes out together, at its end or with `flush`.
        """
        ...

    def flush(self) -> None:
        """Let go what was begun in this turn of the loop."""
        ...

    def stream(
        self,
        job: str,
        arguments: Mapping[str, Any] = NO_ARGUMENTS,
        *,
        action: str = "execute_stream",
        timeout: float | None = None,
    ) -> AsyncIterator[Any]:
        """The items of one call as they are made. The worker waits when nobody takes them.

        Leaving the loop early cancels the call. Raises as `call` does.
        """
        ...

    async def cancel(self, job: str, *, grace: float | None = None) -> CancelPhase | None:
        """Stop one call: ask it, wait `grace` seconds, then end and replace the process.

        Returns the last phase before completion that was needed: `COOPERATIVE` (same process as before) or
        `FORCE`; `None` where no such call is running. Its neighbours in a forced process fail with
        `worker.crashed` and `details["reason"] == "replaced"`: nothing of theirs is to blame.
        """
        ...

    async def prefetch(self) -> None:
        """Let the capability fetch what it will need (models, data). Stalls are detected as in `start`."""
        ...

    async def release(self) -> bool:
        """Ask the capability to give up memory in place; `False` where it cannot. Never ends the process."""
        ...

    async def reconfigure(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Validate and apply another configuration, in place where the process lives.

        What was taken of it comes back: a manifest may ask that unknown keys be left out, with a warning.

        Raises:
            CapabilityConfigError: it is not valid; every bad field is named and nothing was changed.
        """
        ...

    async def enabled(self, *, on: bool) -> None:
        """Fire the capability's `on_enable` or `on_disable` hook, if a process runs and has one."""
        ...

    async def restart(self) -> None:
        """End the process and start a fresh one with the same configuration."""
        ...

    async def stop(self, grace: float | None = None) -> None:
        """End the process: `cleanup`, then SIGTERM, then SIGKILL for the whole subtree; confirmed and reaped.

        Calls in flight fail with `worker.crashed` and `details["reason"] == "stopped"`, also those that gave up
        because they were asked to: nobody cancelled them. One that ends well meanwhile has ended well. The
        worker is cold afterwards and may be started again: this is also how an idle one is evicted. Several
        stops at once are one, and the least patient decides how long it takes.
        """
        ...

    def forgive(self) -> None:
        """Leave quarantine and forget past deaths."""
        ...

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` of every event; call what comes back to stop."""
        ...
