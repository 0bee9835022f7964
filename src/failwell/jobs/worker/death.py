"""How a process ended → what that means. By signal, exit code, the kernel's counters and last words."""

import asyncio
from signal import Signals
from typing import TypeVar

from failwell.adapters.vendors.process import read_exit
from failwell.fault.base import Fault
from failwell.fault.capability import CapabilityError, WorkerOOMError
from failwell.fault.facts import NotBefore
from failwell.jobs.faults import WorkerCrashed, WorkerStartFailed
from failwell.processes.worker import Ending
from failwell.report.describe import describe
from failwell.report.record import ErrorReport, Scene

_F = TypeVar("_F", bound=Fault)
_OUT_OF_MEMORY = (
    "memoryerror", "std::bad_alloc", "cannot allocate memory", "out of memory", "oom-kill",
    "failed to allocate memory",
)  # fmt: skip
"""Last words of a process that died for want of memory without being killed for it."""
_COULD_BE_MEMORY = (1, -6, -11)
"""An uncaught error, an abort, a fault: ends that memory brings about, among other things."""
_KILLED_BELOW = 137
"""What a shell exits with when the program it ran was killed."""
_TAIL = 12
_OURS = ("/failwell/jobs/child/", "/failwell/processes/")
"""Frames of the worker's own code, which say nothing about a crash above them."""
_TOO_OLD = 78


def death(capability: str, ending: Ending) -> CapabilityError:
    """The fault of a worker that died by itself."""
    if _is_out_of_memory(ending):
        error = WorkerOOMError(capability, process_returncode=ending.code)
        error.details = {
            key: value
            for key, value in (
                ("signal", signal_of(ending)), ("oom_kills", ending.oom_kills), ("stderr_tail", _tail(ending))
            )
            if value not in (None, "")
        }  # fmt: skip
        return error
    return WorkerCrashed(
        message=f"the worker of capability {capability!r} {how(ending)} during the call",
        capability_name=capability,
        exit_code=ending.code,
        signal=signal_of(ending),
        stderr_tail=_tail(ending),
    )


def failed_start(capability: str, ending: Ending) -> CapabilityError:
    """The fault of a worker that died before it was ready."""
    if ending.code is None or ending.code < 0:
        # Somebody ended it, or its guardian; nothing that was given to it is to blame.
        return death(capability, ending)
    old = ending.code == _TOO_OLD and _tail(ending)
    return WorkerStartFailed(
        message=_tail(ending)
        if old
        else f"the worker of capability {capability!r} {how(ending)} before it was ready",
        capability_name=capability,
        exit_code=ending.code,
        stderr_tail=_tail(ending),
    )


def signal_of(ending: Ending) -> str | None:
    """The signal that ended it, by name."""
    if ending.code is None or ending.code >= 0:
        return None
    try:
        return Signals(-ending.code).name
    except ValueError:
        return f"signal {-ending.code}"


def _tail(ending: Ending) -> str:
    """Its last lines of stderr."""
    return "\n".join([line for line in ending.stderr if not any(folder in line for folder in _OURS)][-_TAIL:])


def how(ending: Ending) -> str:
    """In words: ended by a signal, or with a code."""
    if ending.code is None:
        return "vanished"
    if signal_of(ending) is not None:
        why = read_exit(ending.code).message or ""
        return f"was ended by {signal_of(ending)}" + (" (it crashed)" if "crashed" in why else "")
    return f"exited with code {ending.code}"


def _is_out_of_memory(ending: Ending) -> bool:
    if signal_of(ending) == "SIGKILL" or ending.code == _KILLED_BELOW:
        return True
    if ending.code not in _COULD_BE_MEMORY:
        return False
    # The kernel's counter says nothing here: a neighbour in the same control group may have been killed.
    output = "\n".join(ending.stderr).lower()
    return any(phrase in output for phrase in _OUT_OF_MEMORY)


def described_once(fault: Fault, scene: Scene) -> ErrorReport:
    """The one report of a death or a failed start, however many jobs it fails."""
    report = kept_report(fault)
    if report is None:
        report = describe(fault, scene=scene)
        keep_report(fault, report)
    return report


def keep_report(fault: _F, report: ErrorReport) -> _F:
    """The same fault, which stands for `report` from now on."""
    fault.__dict__["_report"] = report
    return fault


def kept_report(error: BaseException) -> ErrorReport | None:
    """The report that an error stands for, where it was described before."""
    return error.__dict__.get("_report")


class CrashCount:
    """Counts deaths between which no call was answered. Too many, and nothing is started for a while."""

    def __init__(self, capability: str, limit: int, cooldown: float) -> None:
        self._capability = capability
        self._limit = limit
        self._cooldown = cooldown
        self._until = 0.0
        self._last: Fault | None = None
        self._answered = 0
        self.deaths = 0

    def count(self, fault: Fault, answered: int) -> bool:
        """Note a death after `answered` calls in all; whether the worker is quarantined now comes back."""
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
        """Seconds of quarantine that are left."""
        return max(0.0, self._until - asyncio.get_running_loop().time()) if self._until else 0.0

    def forgive(self) -> None:
        """Forget them."""
        self.deaths = 0
        self._until = 0.0

    def refuse(self) -> None:
        """Do nothing, or say why nothing is started.

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
