"""Classifies the death of a worker by its signal, its exit code, the kernel's counters and its stderr."""

import asyncio
import re
from collections.abc import Sequence
from signal import Signals
from typing import TypeVar

from failwell.adapters.describe import describe
from failwell.adapters.vendors.process import read_exit
from failwell.errors.facts import NotBefore
from failwell.errors.fault import Fault
from failwell.errors.faults import CapabilityError, WorkerOOMError
from failwell.errors.report import ErrorReport, Scene, TracebackPolicy
from failwell.jobs.faults import WorkerCrashed, WorkerStartFailed, memory_limit_reached
from failwell.jobs.manifest import Manifest
from failwell.processes.worker import Ending

_F = TypeVar("_F", bound=Fault)
_OUT_OF_MEMORY = (
    "memoryerror", "std::bad_alloc", "cannot allocate memory", "out of memory", "oom-kill",
    "failed to allocate memory",
)  # fmt: skip
"""Text on stderr of a process that ran out of memory without being killed for it."""
_COULD_BE_MEMORY = (1, -6, -11)
"""Exit codes that a lack of memory may cause: an uncaught error, an abort, a segmentation fault."""
_KILLED_BELOW = 137
"""The exit code of a shell whose program was killed."""
_TAIL = 12
_OURS = ("/failwell/jobs/worker_process/", "/failwell/processes/")
"""Folders of the worker's own code. Its frames say nothing about a crash in a capability."""
_TOO_OLD = 78
_VERSION = re.compile(r"a worker needs Python 3\.11 or newer, and .{1,500} is (\d\.\d{1,2})")
"""What `boot.py` prints under an old interpreter."""
_C_STACK = re.compile(r"  Binary file |Current thread's C stack trace|  <truncated rest of calls>")
"""Lines that Python prints after a fatal error from 3.14 on. They name no file of the capability."""
_STACK = re.compile(
    r'  File "[^"\n]{1,300}", line \d+,? in [\w.<>]{1,200}|(Current t|T)hread 0x[0-9a-f]+ .{0,40}\(most recent call first\):'
    r"|Fatal Python error: (Segmentation fault|Aborted|Bus error|Floating-point exception|Illegal instruction)"
)
"""Lines of a stack that `faulthandler` or Python printed: types, files, lines and functions."""


def recorded_output(
    stderr: Sequence[str], policy: TracebackPolicy = TracebackPolicy.STRICT, most: int = _TAIL
) -> str:
    """The last lines of stderr that a report keeps: all of them, or those of a stack if the policy withholds text.

    The output itself is stored with its job.
    """
    lines = [
        line for line in stderr if not _C_STACK.match(line) and not any(folder in line for folder in _OURS)
    ]
    if not policy.keeps_message:
        lines = [line for line in lines if _STACK.fullmatch(line.rstrip())]
    return "\n".join(lines[-most:])


def death(
    capability: str, ending: Ending, policy: TracebackPolicy = TracebackPolicy.STRICT, *, jobs: int = 1
) -> CapabilityError:
    """The fault of a worker that died while so many jobs ran in it."""
    tail = recorded_output(ending.stderr, policy)
    if ending.over is not None:
        return memory_limit_reached(capability, ending.over, jobs=jobs, stderr_tail=tail)
    if _is_out_of_memory(ending):
        confirmed = bool(ending.oom_kills) or not _was_killed(ending)
        error = WorkerOOMError(capability, process_returncode=ending.code, confirmed=confirmed)
        error.details = {
            key: value
            for key, value in (
                ("signal", signal_of(ending)), ("oom_kills", ending.oom_kills), ("stderr_tail", tail)
            )
            if value not in (None, "")
        }  # fmt: skip
        return error
    return WorkerCrashed(
        message=f"the worker of capability {capability!r} {how(ending)} during the call",
        capability_name=capability,
        exit_code=ending.code,
        signal=signal_of(ending),
        stderr_tail=tail,
    )


def failed_start(manifest: Manifest, ending: Ending, policy: TracebackPolicy) -> CapabilityError:
    """The fault of a worker that died before it was ready."""
    capability = manifest.name
    if ending.code is None or ending.code < 0:
        # A signal ended it or its guardian, so its input is not the cause.
        return death(capability, ending, policy)
    version = _VERSION.search("\n".join(ending.stderr)) if ending.code == _TOO_OLD else None
    return WorkerStartFailed(
        message=f"the worker of capability {capability!r} {how(ending)} before it was ready"
        if version is None
        else f"capability {capability!r} needs Python 3.11 or newer, and {manifest.python} is {version[1]}",
        capability_name=capability,
        exit_code=ending.code,
        stderr_tail=recorded_output(ending.stderr, policy),
    )


def signal_of(ending: Ending) -> str | None:
    """The name of the signal that ended the process."""
    if ending.code is None or ending.code >= 0:
        return None
    try:
        return Signals(-ending.code).name
    except ValueError:
        return f"signal {-ending.code}"


def how(ending: Ending) -> str:
    """How the process ended, for a message."""
    if ending.code is None:
        return "vanished"
    if signal_of(ending) is not None:
        why = read_exit(ending.code).message or ""
        return f"was ended by {signal_of(ending)}" + (" (it crashed)" if "crashed" in why else "")
    return f"exited with code {ending.code}"


def _was_killed(ending: Ending) -> bool:
    return signal_of(ending) == "SIGKILL" or ending.code == _KILLED_BELOW


def _is_out_of_memory(ending: Ending) -> bool:
    if _was_killed(ending):
        return True
    if ending.code not in _COULD_BE_MEMORY:
        return False
    # The kernel's counter is no evidence here: it counts every process of the control group.
    output = "\n".join(ending.stderr).lower()
    return any(phrase in output for phrase in _OUT_OF_MEMORY)


def described_once(fault: Fault, scene: Scene) -> ErrorReport:
    """The report of a death or a failed start, built once for all jobs that it fails."""
    report = kept_report(fault)
    if report is None:
        report = describe(fault, scene=scene)
        keep_report(fault, report)
    return report


def keep_report(fault: _F, report: ErrorReport) -> _F:
    """Attach `report` to a fault, and return the fault."""
    fault.__dict__["_report"] = report
    return fault


def kept_report(error: BaseException) -> ErrorReport | None:
    """The report that is attached to an error, if any."""
    return error.__dict__.get("_report")


class CrashCount:
    """Counts deaths without an answered call between them. Too many put the worker into quarantine."""

    def __init__(self, capability: str, limit: int, cooldown: float) -> None:
        self._capability = capability
        self._limit = limit
        self._cooldown = cooldown
        self._until = 0.0
        self._last: Fault | None = None
        self._answered = 0
        self.deaths = 0

    def count(self, fault: Fault, answered: int) -> bool:
        """Count a death after `answered` calls in all; return whether the worker is quarantined now."""
        if answered > self._answered:
            self.deaths = 0
        self._answered = answered
        self.deaths += 1
        self._last = fault
        if self.deaths < self._limit:
            return False
        self._until = asyncio.get_running_loop().time() + self._cooldown
        return True

    def seconds_left(self) -> float:
        """The remaining seconds of quarantine."""
        return max(0.0, self._until - asyncio.get_running_loop().time()) if self._until else 0.0

    def forgive(self) -> None:
        """Reset the count and end the quarantine."""
        self.deaths = 0
        self._until = 0.0

    def refuse(self) -> None:
        """Refuse a start while the worker is quarantined.

        Raises:
            WorkerCrashed: the worker is quarantined.
        """
        seconds = self.seconds_left()
        if seconds <= 0:
            return
        raise WorkerCrashed(
            message=f"the worker of capability {self._capability!r} died {self.deaths} times in a row;"
            f" nothing is started for another {seconds:.0f} s",
            capability_name=self._capability,
            reason="quarantined",
            quarantined_for=round(seconds, 3),
            not_before=NotBefore(after=seconds, source="quarantine"),
        ) from self._last
