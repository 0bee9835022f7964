"""What a journal is to those who use it: the protocol of every store, and the records it answers with.

An append is one transaction: all of its events are there for every reader, or none is. Whoever appends
holds the run's lock; a store keeps the numbers right even if somebody does not.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from typing import Any, Literal, NamedTuple, Protocol

from failwell.fault.frozen import frozen
from failwell.journal.event import Draft, Event, Fact
from failwell.journal.status import Status

Subject = Literal["run", "session"]


@frozen
class Run:
    """What a listing says about one run."""

    id: str
    subject: Subject = "run"
    workflow: str = ""
    file: str = ""
    digest: str = ""
    status: str = Status.RUNNING
    started: float = 0.0
    ended: float | None = None
    updated: float = 0.0
    """When its last event happened."""
    events: int = 0
    blocked_until: float | None = None
    gates: int = 0
    """Questions to people that were open when it last paused, less those answered since."""
    kind: str | None = None
    """Of the failure that ended it."""
    message: str | None = None
    node: str | None = None
    pid: int | None = None
    """Of the process that created it."""
    host: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Snapshot(NamedTuple):
    """A folded state, and the number of the last event in it."""

    seq: int
    state: str
    """JSON text, as it was given."""


@frozen
class Pruned:
    """What `prune` removed, or would remove."""

    runs: tuple[str, ...] = ()
    events: int = 0
    kept_live: tuple[str, ...] = ()
    """Runs that were old enough but are being written to."""


class Store(Protocol):
    """Where events are kept."""

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
            RunExists: there is one of that name.
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
        """The events above `after`, and those to come, up to the terminal one.

        `give_up` is asked whenever nothing came for about a second; `True` ends the tail.
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
        limit: int | None = None,
        subject: Subject = "run",
    ) -> list[Run]:
        """The runs that fit every filter, the newest first. `prefix` is the beginning of an id."""
        ...

    def sources(self, run: str) -> dict[str, str]:
        """The texts of the files that the run was made from, by path."""
        ...

    def lock(self, run: str) -> AbstractContextManager[None]:
        """The right to write to `run`, for as long as the block lasts. It ends with the process.

        Raises:
            Locked: somebody has it.
        """
        ...

    def is_locked(self, run: str) -> bool:
        """Whether somebody is writing to `run` now."""
        ...

    def prune(
        self,
        *,
        before: float | None = None,
        keep: int = 0,
        statuses: Sequence[str] = (),
        dry_run: bool = False,
    ) -> Pruned:
        """Delete runs that ended before `before`, except the newest `keep`; never one that is locked.

        Without `statuses` only runs that ended are deleted.
        """
        ...

    def close(self) -> None:
        """Give back what the store holds open."""
        ...


def emit(store: Store, draft: Draft) -> Event:
    """Record one draft under the run or session that it names."""
    return store.append(draft.stream, (draft.fact,))[0]
