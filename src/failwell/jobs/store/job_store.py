"""What the queue needs of a store: one commit for each turn of its loop, and a few queries.

A commit is one transaction: jobs, events, counts and profiles are there together or not at all.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from failwell.fault.frozen import frozen
from failwell.jobs.job import Job
from failwell.journal.event import Event
from failwell.journal.watch import Watch

Values = tuple[Any, ...]
"""A job as the store writes it: the state that it was stored in last, then its columns in the order of `COLUMNS`."""
COLUMNS = (
    "key", "id", "instance", "state", "priority", "submitted", "started", "ended", "attempt", "charged", "losses",
    "due", "reason", "cancelled", "phase", "request", "result", "error", "once",
)  # fmt: skip
"""Times are seconds since 1970; the request, the result and the error are JSON. `key` is the store's own number."""


@frozen
class Profile:
    """What the calls of one instance with one configuration were seen to need. Megabytes and seconds."""

    instance: str
    config: str
    """The hash of the configuration; another one is measured anew."""
    samples: int = 0
    successes: int = 0
    gpu_mb: float = 0.0
    ram_mb: float = 0.0
    disk_mb: float = 0.0
    seconds: float = 0.0
    """The mean time of a call that ended well."""
    updated: float = 0.0


class ControlRequest(NamedTuple):
    """What another process wants done about a job."""

    key: int
    job: str
    action: str
    at: float


class Committed(NamedTuple):
    """What a commit gave."""

    keys: Mapping[str, int]
    """Job → key, for the rows that are new."""
    twins: Mapping[str, str]
    """Job → the job that had its idempotency key before it. Nothing was kept of the former."""
    last: int
    """The number of the last event."""


@frozen
class Forgotten:
    """What `forget` deleted, or would delete."""

    jobs: tuple[str, ...] = ()
    events: int = 0
    files: int = 0
    """Binary parts of their results."""
    files_left: tuple[str, ...] = ()
    """Those that could not be deleted."""
    needed: tuple[str, ...] = ()
    """Jobs that stay because they belong to a run that is not over; resumed again, it asks for them."""


class JobStore(Protocol):
    """Where jobs are kept. One process runs them at a time; any may add and look."""

    folder: Path
    """For what belongs to the jobs and is no row: results, sockets, the lock."""

    def commit(
        self,
        jobs: Sequence[Values] = (),
        events: Sequence[Event] = (),
        profiles: Sequence[Profile] = (),
        granted: Sequence[int] = (),
    ) -> Committed:
        """Keep all of it in one transaction. The requests whose keys are `granted` are dropped with it.

        Raises:
            Fault: nothing of it was kept.
        """
        ...

    def unfinished(self, after: int = 0) -> list[Job]:
        """The jobs that have not ended and were submitted after the one with key `after`, oldest first."""
        ...

    def last_key(self) -> int:
        """The key of the job that was submitted last; 0 before the first."""
        ...

    def find(self, job: str) -> Job | None:
        """One job."""
        ...

    def find_by_key(self, key: str) -> Job | None:
        """The job with an idempotency key."""
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
        """The jobs that match every filter, the newest first.

        Args:
            states: Any of these; every state by default.
            instance: Of this instance.
            prefix: The beginning of an id.
            before: Only jobs older than the one with this id: the last id of the page before.
            limit: How many at most.
            results: Whether to read the results too.
        """
        ...

    def counts(self) -> dict[str, int]:
        """How many of the jobs on record stand in each state, exactly. What was forgotten is not counted."""
        ...

    def events(self, after: int = 0, *, job: str | None = None, limit: int | None = None) -> list[Event]:
        """The events after number `after`, in order; only those of one `job` if it is given."""
        ...

    def follow(
        self, job: str | None = None, after: int = 0, give_up: Callable[[], bool] | None = None
    ) -> Iterator[Event]:
        """Events as they are recorded; for one job, until it is over. `give_up` is called now and then."""
        ...

    def last_event(self) -> int:
        """The number of the latest event; 0 before the first."""
        ...

    def profiles(self) -> list[Profile]:
        """Everything that was learned."""
        ...

    def request_control(self, job: str, action: str, at: float) -> None:
        """Ask the process that runs the jobs for something; it is woken."""
        ...

    def control_requests(self) -> list[ControlRequest]:
        """Requests of other processes (cancel, reorder, …) that the host has not applied yet, oldest first."""
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
        """Delete jobs that are over, with their events and the files of their results.

        It can run while another process runs jobs. It works in small steps so as not to block that process: call it
        from a thread where an event loop runs. The latest job stays, so that no number is given twice. An
        idempotency key is forgotten with its job.

        Args:
            before: Only those that ended before this time.
            keep: Not the newest so many of those that `states` and `instance` let through.
            states: Only those that ended so; any end by default.
            instance: Only those of this instance.
            dry_run: Delete nothing.
        """
        ...

    def hosting(self) -> AbstractContextManager[object]:
        """Be the process that runs the jobs, for as long as the block lasts.

        Raises:
            HostElsewhere: another one is.
        """
        ...

    def short_waits(self) -> AbstractContextManager[None]:
        """Wait for no other process longer than a moment, for as long as the block lasts.

        This is for an event loop, which stands still meanwhile and can try again.
        """
        ...

    def is_hosted(self) -> bool:
        """Whether a living process runs the jobs."""
        ...

    wake_host: Callable[[], object]
    """Wake the process that runs the jobs. Never raises."""

    def host_watch(self) -> Watch:
        """Where that process listens."""
        ...

    def commit_watch(self) -> Watch:
        """Woken by every commit, whoever makes it."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...
