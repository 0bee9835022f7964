"""The protocol of a job store: one commit for each turn of the queue, and queries.

A commit is one transaction: jobs, events, counts and profiles are stored together or not at all.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from failwell.errors.frozen import frozen
from failwell.jobs.job import Job, JobState
from failwell.jobs.rate_limit import Grant, RateLimit
from failwell.jobs.store.job_filter import JobFilter, JobTotal
from failwell.store.event import Event
from failwell.store.watch import Watch

if TYPE_CHECKING:
    from failwell.jobs.schedule_spec import JobSchedule, ScheduleSpec
    from failwell.jobs.store.groups import GroupPart, JobGroup
    from failwell.jobs.store.schedules import Firing

Values = tuple[Any, ...]
"""A job as the store writes it: the state in which it was stored last, then its values in the order of `COLUMNS`."""
COLUMNS = (
    "key", "id", "instance", "state", "priority", "submitted", "started", "ended", "attempt", "charged", "losses",
    "due", "reason", "cancelled", "phase", "request", "result", "error", "once",
    "deadline",
)  # fmt: skip
"""Times are seconds since 1970; the request, the result and the error are JSON. `key` is a number that the store
assigns."""

FREE = ""
"""In place of a key: the key of this job may be used by another one."""


@dataclass(slots=True, kw_only=True)
class Profile:
    """What calls of one instance with one configuration need, as measured; megabytes and seconds.

    Each call changes it, so it is not frozen.
    """

    instance: str
    config: str
    """The hash of the configuration. Another configuration has its own profile."""
    samples: int = 0
    successes: int = 0
    gpu_mb: float = 0.0
    ram_mb: float = 0.0
    disk_mb: float = 0.0
    seconds: float = 0.0
    """The mean duration of calls that succeeded."""
    updated: float = 0.0


class ControlRequest(NamedTuple):
    """What another process asks the host to do with a job."""

    key: int
    job: str
    action: str
    at: float


class Host(NamedTuple):
    """A process that runs jobs of the store, as the store lists it."""

    key: int
    name: str
    pid: int
    folder: Path
    """Its own folder, which it locks as long as it lives."""
    lanes: int
    """How many jobs it runs at a time."""
    serves_all: bool = True
    """Whether it runs all jobs of the store, and not only those that it was started for."""


class Reserved(NamedTuple):
    """What a host has reserved of a pool, in megabytes, and what its workers hold of it already."""

    mb: float
    used: float


HostReserves = Mapping[int, Mapping[str, Reserved]]
"""Host → pool → what it has reserved."""


class HostLook(NamedTuple):
    """What a host looks at once a second: the other hosts, and what they and other processes have stored."""

    live: Sequence[Host]
    """The other hosts that run."""
    dead: Sequence[Host]
    """Those that have ended, and whose jobs were not taken over yet."""
    elsewhere: HostReserves
    """What the other hosts have reserved."""
    profiles: Sequence[Profile]
    requests: Sequence[ControlRequest]
    """Control requests that no host has applied yet, oldest first."""


class Booking(NamedTuple):
    """The answer to a reservation."""

    is_granted: bool
    others: HostReserves
    """What the other hosts have reserved."""


class Want(NamedTuple):
    """How many jobs of an instance a host claims at most."""

    number: int
    before: float = math.inf
    """Only jobs that come before this rank: when they were submitted, less a minute for each step of priority."""


class Ownership(NamedTuple):
    """Where the open jobs of a store are."""

    unowned: Mapping[str, int]
    """Instance → how many of its jobs no host owns."""
    elsewhere: int
    """How many the other hosts own."""


class Unowned(NamedTuple):
    """Jobs that wait for a host to claim them."""

    instances: Sequence[str]
    """The instances for which such jobs are ready."""
    next_time: float
    """When the next one becomes due or reaches its deadline."""


class Committed(NamedTuple):
    """The result of a commit."""

    keys: Mapping[str, int]
    """Job → key, for new rows."""
    twins: Mapping[str, str]
    """Job → the earlier job with the same idempotency key. The new one was not stored."""
    last: int
    """The number of the last event."""
    cancelled: Collection[str] = ()
    """Jobs that were to start and that another process had cancelled. Their start was not stored."""
    callbacks: int = 0
    """How many callbacks of groups were submitted with it."""


@frozen
class Forgotten:
    """What `forget` deleted, or would delete."""

    jobs: tuple[str, ...] = ()
    events: int = 0
    files: int = 0
    """Files of their results."""
    files_left: tuple[str, ...] = ()
    """Files that could not be deleted."""
    needed: tuple[str, ...] = ()
    """Jobs that stay because their run has not ended: it asks for them when it is resumed."""


class JobStore(Protocol):
    """Stores jobs. Any process may submit and read; those that hold a lease run them."""

    folder: Path
    """For everything beside rows: result files, sockets, locks."""

    def commit(
        self,
        jobs: Sequence[Values] = (),
        events: Sequence[Event] = (),
        profiles: Sequence[Profile] = (),
        applied: Sequence[int] = (),
        *,
        group: "GroupPart | None" = None,
        host: int | None = None,
        released: Sequence[int] = (),
        firing: "Firing | None" = None,
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
        ...

    def commit_unowned(self, jobs: Sequence[tuple[Values, Event]]) -> list[str]:
        """Store jobs that no live host owns, each with an event; return the ids of those that were stored.

        A job is left out if a live host owns it, or if its state has changed since it was read.
        """
        ...

    def unowned(self) -> Unowned:
        """The jobs that wait for a host to claim them."""
        ...

    def unowned_jobs(self, most: int | None = None, instance: str | None = None) -> list[Job]:
        """Waiting jobs that no host owns, without results: those that are ready, best first, then those due later."""
        ...

    def overview(self, most: int) -> tuple[list[Job], dict[str, int]]:
        """Waiting jobs that no host owns, as `unowned_jobs` returns them, and the number of jobs in each state."""
        ...

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
        ...

    def ownership(self, host: int) -> Ownership:
        """Where the jobs are that have not ended."""
        ...

    def last_key(self) -> int:
        """The key of the latest job; 0 if there is none."""
        ...

    def find(self, job: str) -> Job | None:
        """The job with this id, if it exists."""
        ...

    def states(self, jobs: Sequence[str]) -> dict[str, JobState]:
        """The states of these jobs; a job that does not exist is left out."""
        ...

    def find_by_key(self, key: str) -> Job | None:
        """The job with this idempotency key, if it exists."""
        ...

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
        ...

    def select(self, chosen: JobFilter, *, limit: int | None = None) -> list[Job]:
        """The jobs that a filter chooses, without their results, newest first."""
        ...

    def keys(self, chosen: JobFilter) -> list[int]:
        """The keys of the jobs that a filter chooses, oldest first."""
        ...

    def select_keys(self, chosen: JobFilter, keys: Sequence[int], *, errors: bool = True) -> list[Job]:
        """Those of the jobs with these keys that a filter still chooses, oldest first; without results.

        Without `errors`, their errors are not read, which takes most of the time.
        """
        ...

    def totals(self, chosen: JobFilter) -> list[JobTotal]:
        """How many jobs a filter chooses, by status, kind of error and instance; the largest number first."""
        ...

    def groups(self, name: str | None = None, *, limit: int | None = None) -> "list[JobGroup]":
        """The group with this id, or all groups, newest first."""
        ...

    def schedules(self) -> "list[JobSchedule]":
        """All schedules, by id."""
        ...

    def put_schedules(
        self, specs: "Mapping[str, ScheduleSpec]", source: str, now: float, *, only: bool = False
    ) -> None:
        """Store schedules under their ids; with `only`, delete the others of the same source."""
        ...

    def pause_schedule(self, schedule: str, now: float, *, on: bool) -> bool:
        """Pause or resume a schedule; whether that changed anything. Times that pass meanwhile are not missed."""
        ...

    def remove_schedule(self, schedule: str) -> bool:
        """Remove a schedule; `False` if it does not exist."""
        ...

    def counts(self) -> dict[str, int]:
        """The exact number of stored jobs in each state."""
        ...

    def events(self, after: int = 0, *, job: str | None = None, limit: int | None = None) -> list[Event]:
        """Events with a number above `after`, in order; with `job`, only those of that job."""
        ...

    def follow(
        self, job: str | None = None, after: int = 0, give_up: Callable[[], bool] | None = None
    ) -> Iterator[Event]:
        """Events as they are recorded; for one job, until it ends. Stops early when `give_up` returns true."""
        ...

    def last_event(self) -> int:
        """The number of the latest event; 0 if there is none."""
        ...

    def profiles(self) -> list[Profile]:
        """All learned profiles."""
        ...

    def request_control(self, job: str, action: str, at: float) -> bool:
        """Ask the host that owns a job to do `action` with it; `False` if the job has ended or no host owns it."""
        ...

    def request_controls(self, jobs: Sequence[str], action: str, at: float) -> list[str]:
        """Ask the host to do `action` with many jobs, in one transaction; returns those that have not ended."""
        ...

    def control_requests(self) -> list[ControlRequest]:
        """Control requests that no host has applied yet, oldest first."""
        ...

    def take_tokens(self, capability: str, limit: RateLimit, count: int, now: float) -> Grant:
        """Take up to `count` starts of a capability from its rate limit, in one transaction."""
        ...

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
        ...

    def hosting(self, lanes: int) -> AbstractContextManager[Host]:
        """Hold a lease within the block: this process runs so many jobs at a time. Those that it leaves wait for another host.

        Within the block this store waits only briefly for a database that another process has locked: an event loop is
        blocked while it waits, and can try again later.
        """
        ...

    def look(self, host: int) -> HostLook:
        """What the others have stored, for the host with this key."""
        ...

    def take_over(self, host: int, dead: Sequence[Host]) -> list[Job]:
        """Take the jobs of dead hosts over: those that only waited are released, the others are returned.

        A job that is returned belongs to `host`, and is stored as it was when its host died.
        """
        ...

    def reserve(self, host: int, reserved: Mapping[str, Reserved], budgets: Mapping[str, float]) -> Booking:
        """Set what a host has reserved, in one transaction.

        It is refused, and nothing is stored, if more is reserved than before of a pool, and together with the other hosts
        more than the budget of that pool.
        """
        ...

    def is_hosted(self) -> bool:
        """Whether a live process runs jobs: all of them, or only those that it was started for."""
        ...

    def is_served(self, job: str) -> bool:
        """Whether a live process has this job, or runs all jobs."""
        ...

    wake_host: Callable[[], object]
    """Wakes all hosts. Never raises."""
    wake_followers: Callable[[], object]
    """Wakes everybody who follows the store, as every commit without a host does. Never raises."""

    def host_watch(self) -> Watch:
        """The watch that wakes a host."""
        ...

    def commit_watch(self) -> Watch:
        """A watch that is woken by every commit of any process."""
        ...

    def close(self) -> None:
        """Close the store of jobs, and release what it holds."""
        ...
