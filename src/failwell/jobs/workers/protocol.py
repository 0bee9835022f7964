"""What a worker tells its host: its state, its memory, its events, its answers; and the frames of calls."""

import os
from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, NamedTuple

from failwell.errors.faults import CapabilityError, CapabilityFatalError, CapabilityInputError
from failwell.errors.frozen import frozen
from failwell.errors.report import ErrorReport, TracebackPolicy, default_policy
from failwell.jobs.job import CancelPhase
from failwell.jobs.manifest import Manifest
from failwell.processes.wire import TooLarge, encoded


def _host_environment() -> Mapping[str, str]:
    return dict(os.environ)


@frozen
class Supervision:
    """How a worker is watched and restarted."""

    pulse: float = 0.25
    """Seconds between two pulses while a call runs."""
    deaths: int = 3
    """Deaths in a row, without an answered call between them, after which the worker is quarantined."""
    cooldown: float = 30.0
    """Seconds of quarantine, after which one start is tried."""
    policy: TracebackPolicy | None = None
    """How much foreign text reports of failures keep. The default is `FAILWELL_TRACEBACK`, else the manifest's
    `traceback`, else `strict`."""
    respawn: bool = True
    """Whether a worker that died is started again before the next call."""
    stopped: float = 20.0
    """Seconds for which a signal (`SIGSTOP`) may keep the process stopped before it is killed."""
    environment: Mapping[str, str] = field(default_factory=_host_environment)
    """The host's environment variables, of which a worker gets a few."""

    def policy_for(self, manifest: Manifest) -> TracebackPolicy:
        """The policy for the failures of one capability. The operator decides over its author."""
        if self.policy is not None:
            return TracebackPolicy(self.policy)
        return default_policy(unset=TracebackPolicy(manifest.traceback or TracebackPolicy.STRICT))


class WorkerState(StrEnum):
    """The state of the process of a worker."""

    COLD = "cold"
    """No process. The next call starts one."""
    STARTING = "starting"
    """The process runs; the capability is being imported and initialised."""
    READY = "ready"
    STOPPING = "stopping"
    QUARANTINED = "quarantined"
    """It died too often in a row; calls are refused until the cooldown is over or `forgive()` is called."""


@frozen
class Memory:
    """What a worker and all its descendants hold, in megabytes."""

    rss_mb: float
    peak_mb: float
    """The highest `rss_mb` seen in this process's life."""
    pids: tuple[int, ...]
    """The worker's process and its descendants. Their GPU memory counts as the worker's."""


class MemoryLimit(NamedTuple):
    """The most main memory that a worker may use, with everything that it starts."""

    megabytes: float
    source: str
    """`manifest`: `memory_limit` of its manifest. `share`: its share of the memory, until it is measured. `total`: what all
    jobs may use together. `together`: the same, where several workers reached it."""


@frozen
class FileHandle:
    """A binary result in a file that only this user can read. The caller deletes it after use."""

    path: str
    size: int
    media_type: str = "application/octet-stream"


# ------------------------------------------------------------------ events


@frozen
class Started:
    """A process was started."""

    instance: str
    generation: int
    """Counts the processes of this worker, from 1."""
    pid: int
    session: str
    """The id of this process, which all its output lines carry."""


@frozen
class Ready:
    """The capability is initialised and accepts calls."""

    instance: str
    generation: int
    pid: int


@frozen
class Progress:
    """A call reported progress. `job` is `None` while the capability is initialised."""

    instance: str
    job: str | None
    fraction: float
    message: str


@frozen
class Used:
    """A call reported what it consumed, in its own units; amounts add up."""

    instance: str
    job: str | None
    amounts: Mapping[str, float]


@frozen
class Measured:
    """The peak memory of the process at the end of a call.

    Published right before the result, if it has changed since the call before or the call had output.
    """

    instance: str
    job: str
    ram_peak_mb: float
    """The highest resident memory of the process so far, by the kernel."""
    gpu_peak_mb: float | None
    """The highest amount that its GPU framework allocated so far, on all devices; `None` without one."""


@frozen
class Pulse:
    """The process is alive. Sent several times a second."""

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
    """Its number in its file, from 1."""
    at: float = 0.0
    """When it was stored, in seconds since 1970."""
    instance: str = ""
    session: str = ""
    job: str | None = None
    """The job that it belongs to, if that is known."""


@frozen
class CancelPhased:
    """The cancelling of a running call reached its next phase."""

    instance: str
    job: str
    phase: CancelPhase


@frozen
class Died:
    """The process ended. Published before the calls in flight fail with the same report."""

    instance: str
    generation: int
    pid: int
    returncode: int | None
    expected: bool
    """Whether the host ended it: a stop, an eviction or a forced cancel."""
    report: ErrorReport | None
    """The report of the death; `None` for an expected end."""
    in_flight: tuple[str, ...]
    """The jobs that ran in it."""


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
"""Called on the event loop; it must return at once. What it raises is logged and ignored."""


# ------------------------------------------------------------------ calls


class Answer(NamedTuple):
    """The value of a call, or its error."""

    value: Any = None
    error: CapabilityError | None = None


def encode(frame: dict[str, Any]) -> bytes:
    """One frame of a worker's call as bytes.

    Raises:
        CapabilityInputError: a value cannot be written as JSON, or it is too large.
    """
    try:
        return encoded(frame)
    except TooLarge as error:
        raise CapabilityInputError(f"the arguments are {error}; pass the path of a file") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise CapabilityInputError(
            f"an argument cannot be sent to the worker: {error}; give JSON values only"
        ) from error


class ProtocolMismatch(CapabilityFatalError, kind="validation.contract_version_mismatch"):
    """The worker uses another version of the protocol."""
