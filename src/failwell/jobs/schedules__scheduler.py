"""Submits the jobs of schedules when their time comes. Several hosts of a store may do so; the store decides which."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from failwell.calls.suppress import suppress
from failwell.errors.fault import Fault
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.job import JobRequest, new_job
from failwell.jobs.job__request import with_timeout
from failwell.jobs.manifest import Manifest
from failwell.jobs.schedules__schedule import JobSchedule, ScheduleSpec, due_times
from failwell.jobs.store.records import JobStore
from failwell.jobs.store.rows import job_values
from failwell.jobs.store.schedules import MANIFEST, PROGRAM, Firing
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
