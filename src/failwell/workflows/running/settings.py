"""The settings of runs in this process, the answers to gates, and the result of driving a run."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from failwell.calls.clock import SYSTEM_CLOCK, Clock, random_jitter
from failwell.calls.suppress import catch, record_suppressed, suppressed
from failwell.errors.frozen import frozen
from failwell.store.event import Event as Entry
from failwell.store.run_store import Store
from failwell.workflows.failure import Failure
from failwell.workflows.machine.messages import Event
from failwell.workflows.machine.run_state import State, failure_in
from failwell.workflows.plan import Plan
from failwell.workflows.running.executor import Executor

if TYPE_CHECKING:
    from failwell.agents.people.queue import InteractionQueue

_LOG = logging.getLogger("failwell.workflows")

Watcher = Callable[[Sequence[Entry]], None]
"""Receives the events of one write, in order, after they are in the journal."""
Notes = Callable[[str, dict[str, Any]], None]
"""Receives what the journal does not keep, such as a script's output as it is printed."""
Opener = Callable[[str, str], Awaitable[Plan]]
"""Reads and checks the file of a sub-workflow: (file, folder) → plan."""


@frozen
class GateAnswer:
    """A person's answer to a gate."""

    decision: str
    by: str
    payload: Any = None
    comment: str = ""


@frozen
class DriveResult:
    """How a run ended, or why it stopped being driven."""

    status: str
    """completed, failed, cancelled, or waiting."""
    state: State
    outputs: Any = None
    failure: Failure | None = None
    error_type: str | None = None
    gates: tuple[str, ...] = ()
    blocked_until: float | None = None

    @classmethod
    def of(cls, state: State) -> "DriveResult":
        """The result of a run that is over."""
        ending = state.ending or {}
        return cls(
            status=state.status,
            state=state,
            outputs=state.outputs,
            failure=failure_in(ending),
            error_type=ending.get("error_type"),
        )


class RunDriver(Protocol):
    """Takes one run to its end, in this process or by way of a server."""

    settings: "Settings"
    plans: dict[str, Plan]
    state: State

    def submit(self, event: Event) -> None:
        """Submit an event, from this thread or another."""
        ...

    def now(self) -> float:
        """The time that events carry."""
        ...

    async def drive(self, event: Event) -> DriveResult:
        """Drive the run from its first `event` until it ends, or waits for a person or a distant timer."""
        ...


class DriverFactory(Protocol):
    """Makes the driver of a run."""

    def __call__(
        self,
        plans: dict[str, Plan],
        settings: "Settings",
        run_folder: Path,
        *,
        opener: Opener,
        secrets: Mapping[str, str] | None = None,
        state: State | None = None,
    ) -> RunDriver:
        """The driver of a run that has these plans, from `state` on."""
        ...


def _ignore_start(_driver: RunDriver, _run: str) -> None:
    """The default of `Settings.started`."""


@frozen
class Settings:
    """The store, executors, clock and callbacks that runs use."""

    store: Store
    folder: Path
    """The state folder of the store."""
    executors: Mapping[str, Executor]
    """The executors by type of node."""
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    """The variables that workflow files may name."""
    allow_outside: bool = False
    """Whether files outside the project may be included."""
    clock: Clock = SYSTEM_CLOCK
    jitter: Callable[[], float] = random_jitter
    watchers: tuple[Watcher, ...] = ()
    notes: Notes | None = None
    interactions: "InteractionQueue | None" = None
    """Where people are asked."""
    asks_limits: bool = False
    """Whether people are also asked for more steps at an iteration limit."""
    stays: bool = False
    """Whether to keep waiting for answers and distant times instead of returning."""
    listens: bool = False
    """Whether other processes may answer gates and stop the run through its control socket."""
    started: Callable[[RunDriver, str], None] = _ignore_start
    """Called with the driver and the run's id before the run begins."""
    engine: DriverFactory | None = None
    """Makes the driver of each run; by default the run is driven in this process."""
    grace: float = 0.8
    """Seconds between SIGTERM and SIGKILL; a time limit is kept to within a second."""
    stop_timeout: float = 10.0
    """Seconds after which a leaf that does not end when it is cancelled is abandoned."""

    @property
    def available(self) -> frozenset[str]:
        """The types of node that can run with these settings."""
        return frozenset(self.executors)

    def notify(self, run: str, events: Sequence[Entry]) -> None:
        """Pass recorded events to the watchers of a run."""
        for watcher in self.watchers:
            try:
                watcher(events)
            except Exception as error:  # noqa: BLE001  (a watcher's failure must not affect the run or other watchers)
                record_suppressed(suppressed(error, "a watcher of the run failed and was passed over"))
                # Neither may a log that fails.
                catch(partial(_LOG.error, "a watcher of run %s failed", run, exc_info=error))
