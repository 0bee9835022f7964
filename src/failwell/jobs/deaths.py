"""What is made of the deaths of a worker's processes: a fault, an event, and after too many a quarantine."""

import signal
from functools import cache

from failwell.fault.base import Fault
from failwell.fault.capability import CapabilityError
from failwell.jobs.calls import Calls
from failwell.jobs.crashes import Crashes
from failwell.jobs.ending import Ending, death
from failwell.jobs.faults import WorkerStalled, ended_by_us
from failwell.jobs.supervision import Supervision
from failwell.jobs.telling import Telling
from failwell.jobs.worker import Died, Quarantined
from failwell.report.describe import describe
from failwell.report.record import Scene

_TAIL = 5


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
            tail = "\n".join(ending.stderr[-_TAIL:])
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
