"""What workers tell of themselves and of the jobs that they have, as the queue takes it."""

from failwell.jobs.queue_admission import Admission
from failwell.jobs.queue_events import Hub
from failwell.jobs.queue_record import Record
from failwell.jobs.queue_state import State
from failwell.jobs.station import Station
from failwell.jobs.store import JobEvent
from failwell.jobs.worker import (
    CancelPhased,
    Died,
    Measured,
    Progress,
    Pulse,
    Quarantined,
    Started,
    WorkerEvent,
)


class Hearing:
    """Listens to all workers of a queue."""

    def __init__(self, state: State, record: Record, hub: Hub, admission: Admission) -> None:
        self._state = state
        self._record = record
        self._hub = hub
        self._admission = admission

    def heard(self, station: Station, event: WorkerEvent) -> None:
        """A worker told something."""
        if isinstance(event, Pulse):
            self._beat(station)
        elif isinstance(event, Measured):
            self._state.book.measured(station, event.ram_peak_mb, event.gpu_peak_mb)
        elif isinstance(event, Progress):
            entry = None if event.job is None else station.entries.get(event.job)
            if entry is not None:
                entry.progress, entry.message = event.fraction, event.message
                if self._hub.is_heard:
                    told = {"fraction": event.fraction, "message": event.message}
                    self._hub.publish([JobEvent(0, entry.id, "progress", self._state.now(), told)])
        elif isinstance(event, CancelPhased):
            entry = station.entries.get(event.job)
            if entry is not None:
                entry.phase = event.phase
                self._record.say(entry, "cancel_phase", {"phase": event.phase.value})
                self._state.wake()
        elif isinstance(event, Started):
            self._record.tell_of_worker(
                "worker:started",
                {"instance": event.instance, "pid": event.pid, "generation": event.generation},
            )
        elif isinstance(event, Died):
            kind = None if event.report is None else event.report.kind
            self._record.tell_of_worker(
                "worker:died",
                {
                    "instance": event.instance,
                    "pid": event.pid,
                    "returncode": event.returncode,
                    "expected": event.expected,
                    "kind": kind,
                    "jobs": list(event.in_flight),
                },
            )
        elif isinstance(event, Quarantined):
            self._record.tell_of_worker(
                "worker:quarantined",
                {"instance": event.instance, "deaths": event.deaths, "seconds": event.seconds},
            )

    def _beat(self, station: Station) -> None:
        self._state.book.pulse(station)
        if station.entries and (station.uses_gpu or self._state.alone is not None):
            self._admission.look()
