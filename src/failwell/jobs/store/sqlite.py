"""Jobs in SQLite, in the same file as the journal.

Connection, event log and lock are the journal's. `failwell.jobs.store.commit` writes what a host or a client commits.
`ChosenJobs` is for a host that runs certain jobs only, such as a command that waits for one job.
"""

import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.calls.suppress import suppress
from failwell.errors.fault import Fault
from failwell.jobs.job import Job, JobState
from failwell.jobs.output import LINES
from failwell.jobs.schedule_spec import JobSchedule, ScheduleSpec
from failwell.jobs.store import hosts
from failwell.jobs.store.commit import PROFILE_COLUMNS, write_commit
from failwell.jobs.store.groups import GroupPart
from failwell.jobs.store.job_log import KEY, NUMBERS, TABLE, counts
from failwell.jobs.store.prune import (
    BATCH,
    RESULTS,
    combined,
    delete_jobs,
    delete_orphan_lines,
    delete_orphan_results,
    delete_worker_events,
    old_jobs,
)
from failwell.jobs.store.records import (
    Booking,
    Committed,
    ControlRequest,
    Forgotten,
    Host,
    HostLook,
    Ownership,
    Profile,
    Reserved,
    Unowned,
    Values,
    Want,
)
from failwell.jobs.store.schedules import Firing
from failwell.jobs.store.side_tables import BRIEF, JOB_COLUMNS, SideTables
from failwell.store.event import Event
from failwell.store.faults import StoreFull
from failwell.store.folder import JOURNAL
from failwell.store.locks import is_held
from failwell.store.sqlite.database import BUSY_SECONDS, Database, Durability, listing_query
from failwell.store.sqlite.event_log import EventLog, follow
from failwell.store.watch import Waker, Watch

JOBS = "jobs"
HOST = "host"
"""The folder of the hosts' sockets. It is separate, so that the commits of hosts do not wake them."""
_STATES = {state.value: state for state in JobState}
_MOST_IDS = 500
"""Ids in one query."""
_OPEN = hosts.OPEN
_REQUEST = f"INSERT INTO job_controls (job, action, at) SELECT id, ?, ? FROM jobs WHERE id = ? AND owner NOT NULL AND {_OPEN}"  # noqa: S608  (constants)
_REQUESTS = "SELECT key, job, action, at FROM job_controls ORDER BY key"
_PROFILES = f"SELECT {', '.join(PROFILE_COLUMNS)} FROM job_profiles"  # noqa: S608  (constants)
_WAS, _KEY, _ID, _ATTEMPT = 0, 1, 2, 9
"""Positions in `Values`."""


def wake_host(state: Path) -> None:
    """Wake the hosts of a state folder, if there are any."""
    waker = Waker(state / JOBS / HOST)
    waker.wake()
    waker.close()


def is_hosted(state: Path) -> bool:
    """Whether a live process runs the jobs of a state folder, whoever submits them."""
    return hosts.is_served(state / JOBS)


class JobStore(SideTables):
    """Jobs in the SQLite database of a state folder. Threads may share one object."""

    def __init__(
        self,
        folder: Path | str,
        durability: Durability = "normal",
        *,
        busy: float = BUSY_SECONDS,
        clock: Clock = SYSTEM_CLOCK,
        read_when_full: bool = False,
    ) -> None:
        state = Path(folder)
        self._clock = clock
        self.path = state / JOURNAL
        self.folder = state / JOBS
        database = Database(self.path, durability, busy, read_when_full=read_when_full)
        self._log = EventLog(database, TABLE, KEY, of_job=NUMBERS)
        self._followers = Waker(self.folder)
        self._host = Waker(self.folder / HOST)
        self.wake_host: Callable[[], object] = self._host.wake
        self.wake_followers: Callable[[], object] = self._followers.wake
        super().__init__(database)

    # -------------------------------------------------------------- writing

    def commit(
        self,
        jobs: Sequence[Values] = (),
        events: Sequence[Event] = (),
        profiles: Sequence[Profile] = (),
        applied: Sequence[int] = (),
        *,
        group: GroupPart | None = None,
        host: int | None = None,
        released: Sequence[int] = (),
        firing: Firing | None = None,
    ) -> Committed:
        """Store everything in one transaction. It also deletes the control requests with the keys `applied`.

        New jobs become members of `group`. The last end of a group submits its callback. With a `firing` of a schedule
        that another host was faster with, nothing is stored.

        New jobs belong to `host`; without one, they wait until a host claims them. So do the jobs of the host with
        the keys `released`. The start of a stored job is refused if a request to cancel it is stored:
        `Committed.cancelled`. A host wakes the followers itself, after it has sent to the workers what it starts.

        Raises:
            Fault: nothing was stored.
        """
        committed = self._database.write(
            write_commit, jobs, events, profiles, applied, group, host, released, firing
        )
        if host is None:
            self._followers.wake()
        self._database.written(len(jobs) + len(events))
        if committed.callbacks:
            # They are like jobs that another process submitted.
            self._host.wake()
        return committed

    def commit_unowned(self, jobs: Sequence[tuple[Values, Event]]) -> list[str]:
        """Store jobs that no live host owns, each with an event; return the ids of those that were stored.

        A job is left out if a live host owns it, or if its state has changed since it was read.
        """
        with self._database.transaction() as connection:
            unchanged = [
                (job, event)
                for job, event in jobs
                if hosts.is_unowned(connection, self.folder, job[_KEY], job[_WAS], job[_ATTEMPT])
            ]
            committed = write_commit(
                connection, [job for job, _ in unchanged], [event for _, event in unchanged]
            )
        self._followers.wake()
        self._database.written(2 * len(unchanged))
        if committed.callbacks:
            self._host.wake()
        return [job[_ID] for job, _ in unchanged]

    def request_control(self, job: str, action: str, at: float) -> bool:
        """Ask the host that owns a job to do `action` with it; `False` if the job has ended or no host owns it."""
        with self._database.transaction() as connection:
            is_open = connection.execute(_REQUEST, (action, at, job)).rowcount > 0
        self._host.wake()
        return is_open

    def request_controls(self, jobs: Sequence[str], action: str, at: float) -> list[str]:
        """Ask the host to do `action` with many jobs, in one transaction; returns those that have not ended."""
        with self._database.transaction() as connection:
            requested = [job for job in jobs if connection.execute(_REQUEST, (action, at, job)).rowcount > 0]
        self._host.wake()
        return requested

    def control_requests(self) -> list[ControlRequest]:
        """Control requests that no host has applied yet, oldest first."""
        return [ControlRequest(*row) for row in self._database.rows(_REQUESTS)]

    def forget(
        self,
        *,
        before: float | None = None,
        keep: int = 0,
        states: Sequence[str] = (),
        instance: str | None = None,
        dry_run: bool = False,
    ) -> Forgotten:
        """Delete ended jobs with their events and result files.

        It may run beside the host. It works in small batches and blocks while it does: in a program with an event
        loop, call it from a thread. The latest job stays, so that no number is used twice. An idempotency key is
        deleted with its job.

        Args:
            before: Only jobs that ended before this time.
            keep: Keep this many of the newest jobs that match `states` and `instance`.
            states: Only jobs that ended in one of these states; all by default.
            instance: Only jobs of this instance.
            dry_run: Delete nothing; only return what would be deleted.
        """
        with self._database.reading() as connection:
            old = old_jobs(connection, before=before, keep=keep, states=states, instance=instance)
        parts = [Forgotten(needed=old.needed)]
        turn = self._database.reading if dry_run else self._database.transaction
        start, size = 0, BATCH
        while start < len(old.keys):
            began = self._clock.monotonic()
            batch = old.keys[start : start + size]
            try:
                with turn() as connection:
                    parts.append(delete_jobs(connection, batch, self.folder, dry_run=dry_run))
            except StoreFull:
                # On a full disk the log of a deletion must fit into the space that the one before has left.
                if size == 1:
                    raise
                size = max(1, size // 8)
                self._database.shrink_log()
                continue
            start += size
            if size < BATCH:
                self._database.shrink_log()
            # Leave the database to others for as long as this batch took.
            self._clock.sleep(self._clock.monotonic() - began)
        if before is not None and not states and instance is None:
            with turn() as connection:
                parts.append(Forgotten(events=delete_worker_events(connection, before, dry_run=dry_run)))
        with self._database.reading() as connection:
            parts.append(delete_orphan_results(connection, self.folder / RESULTS, dry_run=dry_run))
            if not dry_run:
                delete_orphan_lines(connection, self.folder / LINES, before)
        whole = combined(parts)
        if whole.jobs and not dry_run:
            self._followers.wake()
            self._compact()
        return whole

    def _compact(self) -> None:
        """Return free space to the disk, unless a host runs: rewriting the file would block it."""
        if not self.is_hosted():
            with suppress(Fault, reason="the jobs are deleted; their space is used again later"):
                self._database.compact()

    # -------------------------------------------------------------- reading

    def find(self, job: str) -> Job | None:
        """The job with this id, if it exists."""
        return self._one("id = ?", job)

    def states(self, jobs: Sequence[str]) -> dict[str, JobState]:
        """The states of these jobs; a job that does not exist is left out."""
        states: dict[str, JobState] = {}
        for start in range(0, len(jobs), _MOST_IDS):
            ids = jobs[start : start + _MOST_IDS]
            rows = self._database.rows(
                f"SELECT id, state FROM jobs WHERE id IN ({','.join('?' * len(ids))})",  # noqa: S608  (placeholders)
                ids,
            )
            # A damaged row is a failed job, as for `find`.
            states |= {job: _STATES.get(state, JobState.FAILED) for job, state in rows}
        return states

    def find_by_key(self, key: str) -> Job | None:
        """The job with this idempotency key, if it exists."""
        return self._one("once = ?", key)

    def _one(self, condition: str, value: str) -> Job | None:
        rows = self._database.rows(f"SELECT {JOB_COLUMNS} FROM jobs WHERE {condition}", (value,))  # noqa: S608  (constants)
        return self._job(rows[0]) if rows else None

    def jobs(
        self,
        *,
        states: Sequence[str] = (),
        instance: str | None = None,
        prefix: str = "",
        before: str | None = None,
        limit: int | None = None,
        results: bool = True,
    ) -> list[Job]:
        """The jobs that match every filter, newest first.

        Args:
            states: In one of these states; in any state by default.
            instance: Of this instance.
            prefix: With an id that begins like this.
            before: Older than the job with this id, which is the last id of the previous page.
            limit: At most this many.
            results: Whether to read the results too.
        """
        statement, values = listing_query(
            "jobs",
            JOB_COLUMNS if results else BRIEF,
            "key",
            filters={"state": tuple(states), "instance": instance},
            prefix=prefix,
            before=before,
            limit=limit,
        )
        rows = self._database.rows(statement, values)
        return [self._job(row) for row in rows]

    def counts(self) -> dict[str, int]:
        """The exact number of stored jobs in each state."""
        return self._database.read(counts)

    def events(self, after: int = 0, *, job: str | None = None, limit: int | None = None) -> list[Event]:
        """Events with a number above `after`, in order; with `job`, only those of that job."""
        return list(self._log.read(after, limit, job=job))

    def follow(
        self, job: str | None = None, after: int = 0, give_up: Callable[[], bool] | None = None
    ) -> Iterator[Event]:
        """Events as they are recorded; for one job, until it ends. Stops early when `give_up` returns true."""

        def read(last: int) -> Iterator[Event]:
            return self._log.read(last, job=job)

        def is_over() -> bool:
            if job is None:
                return False
            rows = self._database.rows(f"SELECT 1 FROM jobs WHERE id = ? AND {_OPEN}", (job,))  # noqa: S608  (constants)
            return not rows

        return follow(self.commit_watch(), read, after, is_over=is_over, give_up=give_up)

    def last_event(self) -> int:
        """The number of the latest event; 0 if there is none."""
        with self._database.reading():
            return self._log.last() or 0

    def profiles(self) -> list[Profile]:
        """All learned profiles."""
        return self._database.read(_profiles)

    # -------------------------------------------------------------- the host

    def hosting(self, lanes: int) -> AbstractContextManager[Host]:
        """Hold a lease within the block: this process runs so many jobs at a time. Those that it leaves wait for another host.

        Within the block this store waits only briefly for a database that another process has locked: an event loop is
        blocked while it waits, and can try again later.
        """
        return hosts.HostLease(self._database, self.folder, lanes, self._clock)

    def look(self, host: int) -> HostLook:
        """What the others have stored, for the host with this key."""
        others, *rest = self._database.read(self._look, host)
        is_live = {other: is_held(other.folder) for other in others}
        live, dead = ([other for other in others if is_live[other] is wanted] for wanted in (True, False))
        return HostLook(live, dead, *rest)

    def _look(self, connection: sqlite3.Connection, host: int) -> Any:
        others = [other for other in hosts.hosts_of(connection, self.folder) if other.key != host]
        requests = [ControlRequest(*row) for row in connection.execute(_REQUESTS)]
        return others, hosts.reserved_elsewhere(connection, host), _profiles(connection), requests

    def take_over(self, host: int, dead: Sequence[Host]) -> list[Job]:
        """Take the jobs of dead hosts over: those that only waited are released, the others are returned.

        A job that is returned belongs to `host`, and is stored as it was when its host died.
        """
        rows = self._database.write(hosts.take_over, host, dead)
        hosts.delete_folders(dead)
        return self._open_jobs(rows)

    def unowned(self) -> Unowned:
        """The jobs that wait for a host to claim them."""
        return self._database.read(hosts.unowned)

    def unowned_jobs(self, most: int | None = None, instance: str | None = None) -> list[Job]:
        """Waiting jobs that no host owns, without results: those that are ready, best first, then those due later."""
        return self._open_jobs(self._database.read(hosts.unowned_jobs, most, instance))

    def overview(self, most: int) -> tuple[list[Job], dict[str, int]]:
        """Waiting jobs that no host owns, as `unowned_jobs` returns them, and the number of jobs in each state."""
        rows, numbers = self._database.read(_overview, most)
        return self._open_jobs(rows), numbers

    def claim(self, host: int, wants: Mapping[str, Want], most: int, now: float) -> list[tuple[Job, float]]:
        """Give the host jobs that it wants and that no host owns, the best first, in one transaction.

        Each comes with the time since which it waits for its turn. Jobs whose deadline has passed are given to it too, so that it fails them.

        Args:
            host: The key of the host.
            wants: Instance → how many of its jobs.
            most: How many in all.
            now: The current time. Jobs that are due by then can be claimed.

        Raises:
            LeaseLost: another host has taken this one to be dead.
        """
        return self._claimed(self._database.write(hosts.claim, host, wants, most, now))

    def _claimed(self, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Job, float]]:
        jobs = [(self._job(values), ready) for ready, *values in rows]
        # A damaged row is a failed job: nobody can run it.
        return [(job, ready) for job, ready in jobs if not job.state.is_final]

    def ownership(self, host: int) -> Ownership:
        """Where the jobs are that have not ended."""
        return self._database.read(hosts.ownership, host)

    def reserve(self, host: int, reserved: Mapping[str, Reserved], budgets: Mapping[str, float]) -> Booking:
        """Set what a host has reserved, in one transaction.

        It is refused, and nothing is stored, if more is reserved than before of a pool, and together with the other hosts
        more than the budget of that pool.
        """
        return self._database.write(hosts.reserve, host, reserved, budgets)

    def _open_jobs(self, rows: Sequence[Any]) -> list[Job]:
        # A damaged row is a failed job: nobody can run it.
        return [job for job in map(self._job, rows) if not job.state.is_final]

    def is_hosted(self) -> bool:
        """Whether a live process runs jobs: all of them, or only those that it was started for."""
        return bool(hosts.live_folders(self.folder))

    def is_served(self, job: str) -> bool:
        """Whether a live process has this job, or runs all jobs."""
        live = hosts.live_folders(self.folder)
        # Without a live host, nobody has it.
        return bool(live) and (
            any(map(hosts.serves_all, live)) or self._database.read(hosts.is_owned, self.folder, job)
        )

    def host_watch(self) -> Watch:
        """The watch that wakes a host."""
        return Watch(self.folder / HOST)

    def commit_watch(self) -> Watch:
        """A watch that is woken by every commit of any process."""
        return Watch(self.folder)

    def close(self) -> None:
        """Close the store of jobs, and release what it holds."""
        self._followers.close()
        self._host.close()
        self._database.close()


def _overview(connection: sqlite3.Connection, most: int) -> tuple[list[Any], dict[str, int]]:
    return hosts.unowned_jobs(connection, most, None), counts(connection)


def _profiles(connection: sqlite3.Connection) -> list[Profile]:
    return [Profile(**dict(zip(PROFILE_COLUMNS, row, strict=True))) for row in connection.execute(_PROFILES)]


def open_jobs(folder: str | os.PathLike[str] | None = None, durability: Durability = "normal") -> JobStore:
    """The jobs of a state folder; by default, the user's state folder."""
    from failwell.store.folder import state_folder

    path = None if folder is None else os.fspath(folder)
    return JobStore(state_folder(path), durability)


class ChosenJobs(JobStore):
    """Jobs of a state folder. Their host claims the chosen ones alone, and leaves schedules to hosts that run all jobs.

    Other processes see from the name of the host that they cannot rely on it for other jobs.
    """

    def __init__(self, store: JobStore, chosen: Collection[str]) -> None:
        """Use an open store, which its owner closes; `chosen` are the ids of the jobs that may be claimed."""
        # The connection and its lock are those of `store`: opening another one takes longer than a claim.
        vars(self).update(vars(store))
        self._chosen = tuple(chosen)

    def hosting(self, lanes: int) -> AbstractContextManager[Host]:
        return hosts.HostLease(self._database, self.folder, lanes, self._clock, serves_all=False)

    def unowned(self) -> Unowned:
        return self._database.read(hosts.chosen_unowned, self._chosen)

    def unowned_jobs(self, most: int | None = None, instance: str | None = None) -> list[Job]:
        jobs = self._open_jobs(self._database.read(hosts.chosen_jobs, self._chosen))
        return [job for job in jobs if instance in (None, job.request.instance)][:most]

    def claim(self, host: int, wants: Mapping[str, Want], most: int, now: float) -> list[tuple[Job, float]]:  # noqa: ARG002  (few are chosen, and all of them are wanted)
        return self._claimed(self._database.write(hosts.claim_chosen, host, self._chosen, wants, now))

    def schedules(self) -> list[JobSchedule]:
        return []

    def put_schedules(
        self, specs: Mapping[str, ScheduleSpec], source: str, now: float, *, only: bool = False
    ) -> None:
        """Store nothing: the next host that runs all jobs does."""
