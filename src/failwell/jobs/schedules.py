"""Adds, finds, pauses, runs and removes schedules, from any process that has the store."""

from time import time

from failwell.errors.faults__capability import CapabilityInputError
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.faults import UnknownSchedule
from failwell.jobs.job import Job, JobRequest
from failwell.jobs.job__request import check_request
from failwell.jobs.schedules__schedule import (
    MISSED,
    JobSchedule,
    ScheduleSpec,
    cron_mistake,
    timezone_mistake,
)
from failwell.jobs.schedules__scheduler import schedule_request, sync_schedules
from failwell.jobs.store.schedules import CLIENT, MANIFEST


class Schedules:
    """The schedules of one store."""

    def __init__(self, queue: QueueClient) -> None:
        self._queue = queue
        self._store = queue.store

    def all(self) -> list[JobSchedule]:
        """All schedules, those of manifests included, by id."""
        return sync_schedules(self._store, self._queue.registry, time())

    def find(self, schedule: str) -> JobSchedule:
        """The schedule with this id.

        Raises:
            UnknownSchedule: it does not exist.
        """
        known = {entry.id: entry for entry in self.all()}
        if schedule not in known:
            raise UnknownSchedule(schedule=schedule)
        return known[schedule]

    def add(self, instance: str, spec: ScheduleSpec) -> JobSchedule:
        """Add a schedule, or change the one with the same instance and name.

        Raises:
            CapabilityInputError: it is not valid; every invalid field is named.
            CapabilityNotLoadedError: no capability or instance has that name.
        """
        mistakes = {
            "name": None if spec.name and "/" not in spec.name else "must be a text without `/`",
            "cron": cron_mistake(spec.cron),
            "timezone": timezone_mistake(spec.timezone),
            "missed": None if spec.missed in MISSED else f"must be one of {', '.join(MISSED)}",
            "most_missed": None if spec.most_missed >= 1 else "must be at least 1",
        }
        wrong = {name: mistake for name, mistake in mistakes.items() if mistake is not None}
        if wrong:
            problems = "; ".join(f"`{name}`: {mistake}" for name, mistake in wrong.items())
            raise CapabilityInputError(f"the schedule is not valid: {problems}", fields_invalid=sorted(wrong))
        check_request(
            JobRequest(
                instance=instance, arguments=spec.arguments, action=spec.action, priority=spec.priority
            )
        )
        self._queue.check_instance(instance)
        name = f"{instance}/{spec.name}"
        if any(entry.id == name and entry.source == MANIFEST for entry in self.all()):
            raise CapabilityInputError(
                f"schedule `{name}` is in a manifest; change it there, or give this one another name",
                fields_invalid=["name"],
            )
        self._store.put_schedules({name: spec}, CLIENT, time())
        self._store.wake_host()
        return self.find(name)

    def pause(self, schedule: str, *, on: bool) -> bool:
        """Pause or resume a schedule; whether that changed anything. Times that pass meanwhile are not missed."""
        self.find(schedule)
        is_changed = self._store.pause_schedule(schedule, time(), on=on)
        self._store.wake_host()
        return is_changed

    def run(self, schedule: str) -> Job:
        """Submit a job of a schedule now, also if it is paused. Its times stay as they are."""
        return self._queue.submit(schedule_request(self.find(schedule), self._queue.registry, None))

    def remove(self, schedule: str) -> None:
        """Remove a schedule that a client added.

        Raises:
            UnknownSchedule: it does not exist.
            CapabilityInputError: it is in a manifest.
        """
        if self.find(schedule).source == MANIFEST:
            raise CapabilityInputError(
                f"schedule `{schedule}` is in a manifest; remove it there, or pause it",
                fields_invalid=["schedule"],
            )
        self._store.remove_schedule(schedule)
        self._store.wake_host()
