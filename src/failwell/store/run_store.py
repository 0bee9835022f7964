"""The protocol of a store of runs, and the records it returns.

An append is one transaction: every reader sees all of its events or none. The writer holds the run's
lock; a store keeps the numbers right even for one that does not.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.errors.frozen import frozen
from failwell.store.event import Event, Fact
from failwell.store.faults import StoreUnavailable
from failwell.store.status import Status

Subject = Literal["run", "session"]
_T = TypeVar("_T")


@frozen
class Run:
    """One run in a listing."""

    id: str
    subject: Subject = "run"
    workflow: str = ""
    file: str = ""
    digest: str = ""
    status: str = Status.RUNNING
    """One of `Status`. `interrupted` if the process of the run died."""
    started: float = 0.0
    ended: float | None = None
    updated: float = 0.0
    """When its last event happened."""
    events: int = 0
    blocked_until: float | None = None
    gates: int = 0
    """Gates that were open when it last paused, less those answered since."""
    kind: str | None = None
    """Of the failure that ended it."""
    message: str | None = None
    node: str | None = None
    pid: int | None = None
    """The process that is running it, or else the one that created it."""
    host: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Snapshot(NamedTuple):
    """A folded state, and the number of the last event in it."""

    seq: int
    state: str
    """JSON text."""


@frozen
class PruneResult:
    """What `prune` deleted, or would delete."""

    runs: tuple[str, ...] = ()
    events: int = 0
    kept_live: tuple[str, ...] = ()
    """Runs that are old enough but are being written to."""


class Store(Protocol):
    """Where the events of runs and sessions are kept."""

    def create(
        self,
        run: str,
        *,
        at: float,
        workflow: str = "",
        file: str = "",
        digest: str = "",
        sources: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        subject: Subject = "run",
        facts: Sequence[Fact] = (),
    ) -> list[Event]:
        """Record a new run, its sources (path → text) and its first facts, in one transaction.

        Raises:
            RunExists: the id is taken.
        """
        ...

    def append(self, run: str, facts: Sequence[Fact]) -> list[Event]:
        """Add facts in one transaction and return them with their numbers.

        Raises:
            UnknownRun: the run was never created.
            StreamEnded: a fact would follow the terminal event.
        """
        ...

    def read(self, run: str, after: int = -1, limit: int | None = None) -> Iterator[Event]:
        """The events numbered above `after`, in order.

        Raises:
            UnknownRun: the run was never created.
        """
        ...

    def tail(self, run: str, after: int = -1, give_up: Callable[[], bool] | None = None) -> Iterator[Event]:
        """The events above `after` and those to come, up to the terminal one.

        `give_up` is called whenever nothing came for about a second; `True` ends the iteration.
        """
        ...

    def snapshot(self, run: str, seq: int, state: str) -> None:
        """Keep a folded state (JSON text) that includes event `seq`. The latest two are kept."""
        ...

    def latest_snapshot(self, run: str) -> Snapshot | None:
        """The newest folded state, if there is one."""
        ...

    def run(self, run: str) -> Run:
        """One run.

        Raises:
            UnknownRun: the run was never created.
        """
        ...

    def runs(
        self,
        *,
        statuses: Sequence[str] = (),
        workflow: str | None = None,
        since: float | None = None,
        prefix: str = "",
        before: str | None = None,
        limit: int | None = None,
        subject: Subject = "run",
    ) -> list[Run]:
        """The runs that match every filter, the newest first.

        Args:
            statuses: Any of these; every status by default.
            workflow: The name of the workflow.
            since: Started at this time or later, in seconds since 1970.
            prefix: The beginning of an id.
            before: Only runs older than the one with this id: the last id of the page before.
            limit: How many at most.
            subject: Runs or sessions.
        """
        ...

    def continuations(self, run: str) -> list[str]:
        """The runs that continue `run`, the oldest first."""
        ...

    def sources(self, run: str) -> dict[str, str]:
        """The texts of the files that the run is driven by, by path."""
        ...

    def replace_sources(self, run: str, sources: Mapping[str, str]) -> None:
        """Record the files that the run is driven by from now on, because changes were accepted."""
        ...

    def lock(self, run: str) -> AbstractContextManager[object]:
        """The exclusive right to write to `run`, for the duration of the block. It ends with the process.

        Raises:
            Locked: another process, or this one, has it.
        """
        ...

    def is_locked(self, run: str) -> bool:
        """Whether a living process is writing to `run`."""
        ...

    def prune(
        self,
        *,
        before: float | None = None,
        keep: int = 0,
        statuses: Sequence[str] = (),
        dry_run: bool = False,
    ) -> PruneResult:
        """Delete runs that ended before `before`, except the newest `keep`; never one that is locked.

        Without `statuses` only runs that ended are deleted.
        """
        ...

    def close(self) -> None:
        """Release what the store holds open."""
        ...


async def append_with_retry(
    store: Store, run: str, facts: Sequence[Fact], *, clock: Clock = SYSTEM_CLOCK
) -> list[Event]:
    """`store.append`, repeated by the schedule `store` while the store is temporarily unavailable.

    For a run under way, which would rather wait six seconds than lose an hour of work. A refused append
    has recorded nothing, so a repeat records nothing twice.

    Raises:
        Fault: the store still refuses, or refuses for a reason that waiting does not fix.
    """
    return await write_with_retry(lambda: store.append(run, facts), clock)


async def write_with_retry(write: Callable[[], _T], clock: Clock = SYSTEM_CLOCK) -> _T:
    """What `write` returns, repeated by the schedule `store` while the store is temporarily unavailable.

    Raises:
        Fault: the store still refuses, or refuses for a reason that waiting does not fix.
    """
    try:
        return write()
    except StoreUnavailable as refusal:
        refusals = [refusal]
    # The loop is entered only now, so that a write that succeeds costs nothing more.
    from failwell.calls.retry import retry

    @retry(clock=clock, name="store")
    async def again() -> _T:
        if refusals:
            raise refusals.pop()
        return write()

    return await again()
