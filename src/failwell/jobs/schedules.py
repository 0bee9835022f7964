"""Schedules: commands for any process that has the store, and the part of a host that submits what is due.

Several hosts of a store may submit; the store decides which of them does.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from time import time

from failwell.calls.suppress import suppress
from failwell.errors.fault import Fault
from failwell.errors.faults import CapabilityInputError
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.faults import UnknownSchedule
from failwell.jobs.job import Job, JobRequest, check_request, new_job, with_timeout
from failwell.jobs.manifest import Manifest
from failwell.jobs.schedule_spec import (
    MISSED,
    JobSchedule,
    ScheduleSpec,
    cron_mistake,
    due_times,
    timezone_mistake,
)
from failwell.jobs.store.rows import job_values
from failwell.jobs.store.schedules import CLIENT, MANIFEST, PROGRAM, Firing
from failwell.jobs.store.sqlite import JobStore
from failwell.store.event import Event

_LONGEST = 30.0
"""Seconds after which the wall clock is read again: it may have been set, or the machine may have slept."""


def sync_schedules(store: JobStore, registry: CapabilityRegistry, now: float) -> list[JobSchedule]:
    """Store the schedules of all registered manifests, and remove those that are in none any more; returns all schedules."""
    specs: dict[str, ScheduleSpec] = {}
    for name in registry.names():
        try:
            manifest = registry.manifest(name)
        except Fault:
            # An invalid manifest is reported by the commands that name it.
            continue
        specs |= {f"{name}/{spec.name}": spec for spec in manifest.schedule}
    stored = store.schedules()
    if not specs and not stored:
        return stored
    store.put_schedules(specs, MANIFEST, now, only=True)
    return store.schedules()


def schedule_request(
    schedule: JobSchedule, registry: CapabilityRegistry, at: float | None, manifest: Manifest | None = None
) -> JobRequest:
    """The job for one time of a schedule; without a time, for a run by hand."""
    spec, instance = schedule.spec, schedule.instance
    key = None
    if at is not None:
        key = f"schedule/{schedule.id}/{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
    request = JobRequest(
        instance=instance,
        arguments=spec.arguments,
        action=spec.action,
        priority=spec.priority,
        key=key,
        actor=f"schedule/{schedule.id}",
    )
    if manifest is None:
        with suppress(Fault, reason="a job of a capability that is gone waits, and says why"):
            manifest = registry.manifest(registry.capability(instance))
    return request if manifest is None else with_timeout(request, manifest)


class Scheduler:
    """The schedules of one store, handled by this host."""

    def __init__(
        self,
        store: JobStore,
        registry: CapabilityRegistry,
        now: Callable[[], float],
        own: Callable[[], Mapping[str, ScheduleSpec]] = dict[str, ScheduleSpec],
    ) -> None:
        """Create it; `own` returns the schedules of manifests that this program registered itself."""
        self._store = store
        self._registry = registry
        self._now = now
        self._own = own
        self._stored_own: Mapping[str, ScheduleSpec] = {}
        self._stamps: Mapping[str, object] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def look(self) -> None:
        """Submit what is due, and wait for the next time. Called at the start and now and then, after changes."""
        self.close()
        now = self._now()
        pause = _LONGEST
        try:
            for schedule in self._schedules(now):
                if not schedule.is_paused:
                    self._fire(schedule, now)
                    next_at = schedule.next_at(now)
                    pause = pause if next_at is None else min(pause, next_at - now)
        except Fault:
            # The store is away; the next look handles the same times.
            pass
        self._timer = asyncio.get_running_loop().call_later(max(0.001, pause), self.look)

    def _schedules(self, now: float) -> list[JobSchedule]:
        """All schedules, after those of manifests were stored if they have changed."""
        own = self._own()
        if own != self._stored_own:
            self._store.put_schedules(own, PROGRAM, now)
            self._stored_own = own
        stamps = self._registry.manifest_stamps()
        if stamps == self._stamps:
            return self._store.schedules()
        schedules = sync_schedules(self._store, self._registry, now)
        self._stamps = stamps
        return schedules

    def _fire(self, schedule: JobSchedule, now: float) -> None:
        if schedule.handled > now:
            # The clock was set back. A time that was handled before is not handled again.
            return
        times, handled = due_times(schedule.spec, schedule.handled, now)
        if handled == schedule.handled:
            return
        jobs = [new_job(schedule_request(schedule, self._registry, at), now) for at in times]
        last = (times[-1], jobs[-1].id) if jobs else (None, None)
        self._store.commit(
            [job_values(job, None) for job in jobs],
            [Event(0, "submitted", now, {}, job.id) for job in jobs],
            firing=Firing(schedule.id, schedule.handled, handled, *last),
        )
        if jobs:
            self._store.wake_host()


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
