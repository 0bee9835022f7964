"""What the store has beside the queue itself: choices of jobs, groups, schedules and rate limits."""

from collections.abc import Mapping, Sequence
from typing import Any

from failwell.adapters.describe import describe
from failwell.errors.fault import Fault
from failwell.jobs.job import Job
from failwell.jobs.rate_limit import Grant, RateLimit, take
from failwell.jobs.schedule_spec import JobSchedule, ScheduleSpec
from failwell.jobs.store.groups import JobGroup, groups_query, read_group
from failwell.jobs.store.job_filter import JobFilter, JobTotal, condition
from failwell.jobs.store.records import COLUMNS
from failwell.jobs.store.rows import damaged_job, read_job
from failwell.jobs.store.schedules import (
    SCHEDULES,
    pause_schedule,
    put_schedules,
    read_schedule,
    remove_schedule,
)
from failwell.store.faults import damaged_record_fault
from failwell.store.sqlite.database import Database

JOB_COLUMNS = ", ".join(COLUMNS)
BRIEF = JOB_COLUMNS.replace(" result,", " NULL,")
"""All columns but the result."""


class SideTables:
    """The part of `JobStore` that hosts use rarely and commands use often."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def take_tokens(self, capability: str, limit: RateLimit, count: int, now: float) -> Grant:
        """Take up to `count` starts of a capability from its rate limit, in one transaction."""
        with self._database.transaction() as connection:
            row = connection.execute(
                "SELECT due FROM job_rates WHERE capability = ?", (capability,)
            ).fetchone()
            due = None if row is None else row[0]
            grant = take(limit, due, count, now)
            # Also without a grant: a number that was too far ahead has been corrected.
            if grant.due != due:
                connection.execute("INSERT OR REPLACE INTO job_rates VALUES (?, ?)", (capability, grant.due))
        return grant

    def select(self, chosen: JobFilter, *, limit: int | None = None) -> list[Job]:
        """The jobs that a filter chooses, without their results, newest first."""
        where, values = condition(chosen)
        # The keys first: only the rows of the result are read and sorted as a whole.
        rows = self._database.rows(
            f"""SELECT {BRIEF} FROM jobs WHERE key IN (
                    SELECT key FROM jobs WHERE {where} ORDER BY key DESC LIMIT ?
                ) ORDER BY key DESC""",  # noqa: S608  (constants)
            (*values, -1 if limit is None else limit),
        )
        return [self._job(row) for row in rows]

    def keys(self, chosen: JobFilter) -> list[int]:
        """The keys of the jobs that a filter chooses, oldest first."""
        where, values = condition(chosen)
        rows = self._database.rows(f"SELECT key FROM jobs WHERE {where} ORDER BY key", values)  # noqa: S608  (constants)
        return [row[0] for row in rows]

    def select_keys(self, chosen: JobFilter, keys: Sequence[int], *, errors: bool = True) -> list[Job]:
        """Those of the jobs with these keys that a filter still chooses, oldest first; without results.

        Without `errors`, their errors are not read, which takes most of the time.
        """
        where, values = condition(chosen)
        columns = BRIEF if errors else BRIEF.replace(" error,", " NULL,")
        marks = ",".join("?" * len(keys))
        rows = self._database.rows(
            f"SELECT {columns} FROM jobs WHERE key IN ({marks}) AND ({where}) ORDER BY key",  # noqa: S608  (constants)
            (*keys, *values),
        )
        return [self._job(row) for row in rows]

    def totals(self, chosen: JobFilter) -> list[JobTotal]:
        """How many jobs a filter chooses, by status, kind of error and instance; the largest number first."""
        where, values = condition(chosen)
        rows = self._database.rows(
            f"""SELECT state, kind, instance, count(*), max(coalesce(ended, submitted)) FROM jobs WHERE {where}
                GROUP BY state, kind, instance ORDER BY count(*) DESC, state, kind, instance""",  # noqa: S608  (constants)
            values,
        )
        return [JobTotal(*row) for row in rows]

    def groups(self, name: str | None = None, *, limit: int | None = None) -> list[JobGroup]:
        """The group with this id, or all groups, newest first."""
        return [read_group(row) for row in self._database.rows(*groups_query(name, limit))]

    def schedules(self) -> list[JobSchedule]:
        """All schedules, by id."""
        return [read_schedule(row) for row in self._database.rows(SCHEDULES)]

    def put_schedules(
        self, specs: Mapping[str, ScheduleSpec], source: str, now: float, *, only: bool = False
    ) -> None:
        """Store schedules under their ids; with `only`, delete the others of the same source."""
        with self._database.transaction() as connection:
            put_schedules(connection, specs, source, now, only=only)

    def pause_schedule(self, schedule: str, now: float, *, on: bool) -> bool:
        """Pause or resume a schedule; whether that changed anything. Times that pass meanwhile are not missed."""
        with self._database.transaction() as connection:
            return pause_schedule(connection, schedule, now, on=on)

    def remove_schedule(self, schedule: str) -> bool:
        """Remove a schedule; `False` if it does not exist."""
        with self._database.transaction() as connection:
            return remove_schedule(connection, schedule)

    def _job(self, values: Sequence[Any]) -> Job:
        try:
            return read_job(values)
        except (ArithmeticError, Fault, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
            return damaged_job(values, describe(damaged_record_fault(f"job `{values[1]}`", error)))
