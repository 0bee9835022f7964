"""Schedules in the store. A time is handled in one transaction with its job, so that one of several hosts submits it."""

import sqlite3
from collections.abc import Mapping, Sequence
from json import loads
from typing import Any, NamedTuple

from failwell.jobs.schedule_spec import JobSchedule, ScheduleSpec, spec_of, spec_to_dict
from failwell.store.event import to_json

MANIFEST, PROGRAM, CLIENT = "manifest", "program", "client"
"""Where a schedule comes from: a registered manifest, one that a program registered with its runtime, or a client."""
SCHEDULES = "SELECT id, spec, source, paused, handled, last_at, last_job FROM job_schedules ORDER BY id"


class Firing(NamedTuple):
    """That jobs of a schedule are submitted for the times up to `handled`."""

    schedule: str
    before: float
    """What `handled` was when the times were computed. If it has changed, another host was faster."""
    handled: float
    last_at: float | None = None
    last_job: str | None = None


def claim_firing(connection: sqlite3.Connection, firing: Firing) -> bool:
    """Record the firing; `False` if another host has done so, or the schedule was paused or removed."""
    cursor = connection.execute(
        """UPDATE job_schedules SET handled = ?, last_at = coalesce(?, last_at), last_job = coalesce(?, last_job)
            WHERE id = ? AND handled = ? AND NOT paused""",
        (firing.handled, firing.last_at, firing.last_job, firing.schedule, firing.before),
    )
    return cursor.rowcount > 0


def put_schedules(
    connection: sqlite3.Connection, specs: Mapping[str, ScheduleSpec], source: str, now: float, *, only: bool
) -> None:
    """Store schedules; with `only`, delete the others of the same source. A changed time starts from `now`."""
    stored = {row[0]: row[1:] for row in connection.execute("SELECT id, spec, source FROM job_schedules")}
    for name, spec in specs.items():
        text = to_json(spec_to_dict(spec))
        before = stored.get(name)
        if before is None:
            connection.execute(
                "INSERT INTO job_schedules VALUES (?, ?, ?, 0, ?, NULL, NULL)", (name, source, text, now)
            )
        elif before != (text, source):
            old = spec_of(loads(before[0]))
            is_moved = (old.cron, old.timezone) != (spec.cron, spec.timezone)
            connection.execute(
                "UPDATE job_schedules SET spec = ?, source = ?, handled = CASE WHEN ? THEN ? ELSE handled END"
                " WHERE id = ?",
                (text, source, is_moved, now, name),
            )
    if only:
        gone = [(name,) for name, (_, origin) in stored.items() if origin == source and name not in specs]
        connection.executemany("DELETE FROM job_schedules WHERE id = ?", gone)


def pause_schedule(connection: sqlite3.Connection, schedule: str, now: float, *, on: bool) -> bool:
    """Pause or resume a schedule; whether that changed anything."""
    cursor = connection.execute(
        "UPDATE job_schedules SET paused = ?, handled = max(handled, ?) WHERE id = ? AND paused <> ?",
        (on, now, schedule, on),
    )
    return cursor.rowcount > 0


def remove_schedule(connection: sqlite3.Connection, schedule: str) -> bool:
    """Remove a schedule; `False` if it does not exist."""
    return connection.execute("DELETE FROM job_schedules WHERE id = ?", (schedule,)).rowcount > 0


def read_schedule(row: Sequence[Any]) -> JobSchedule:
    """The schedule of a row of `SCHEDULES`."""
    name, spec, source, paused, handled, last_at, last_job = row
    return JobSchedule(
        id=name,
        spec=spec_of(loads(spec)),
        source=source,
        is_paused=bool(paused),
        handled=handled,
        last_at=last_at,
        last_job=last_job,
    )
