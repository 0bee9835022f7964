"""The events that a driver passes to the machine, and the commands that the machine returns.

Each event has its time and a random number for backoff. A command is issued once; after a resume
the machine issues it again.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from failwell.errors.frozen import frozen
from failwell.workflows.failure import Failure
from failwell.workflows.plan import Node


@frozen
class Begin:
    """The run starts. `inputs` are complete and typed; secret ones are already masked."""

    at: float
    run: str
    file: str
    inputs: Mapping[str, Any]
    jitter: float = 0.5
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    continues: Mapping[str, Any] | None = None
    """The ended run that this one continues: its `run` and `seq`."""
    state: Mapping[str, Any] | None = None
    """The state that it continues with."""


@frozen
class Resume:
    """The run is resumed, in another process or after a failure."""

    at: float
    jitter: float = 0.5
    by: str = ""
    accepted_changes: bool = False
    limits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Limits that a person raised."""


@frozen
class Done:
    """A leaf completed."""

    at: float
    path: str
    output: Any
    usage: Mapping[str, Any] | None = None
    jitter: float = 0.5


@frozen
class Failed:
    """A leaf failed, or the file of a sub-workflow could not be used."""

    at: float
    path: str
    failure: Failure
    jitter: float = 0.5


@frozen
class Stopped:
    """A leaf was stopped by a `Stop` command."""

    at: float
    path: str
    jitter: float = 0.5


@frozen
class Opened:
    """The file of a sub-workflow was loaded and checked, as `file`."""

    at: float
    path: str
    file: str
    jitter: float = 0.5


@frozen
class TimerFired:
    """A timer is due."""

    at: float
    timer: str
    jitter: float = 0.5


@frozen
class Answered:
    """A gate was answered by a person, or expired."""

    at: float
    gate: str
    decision: str
    by: str
    payload: Any = None
    comment: str = ""
    jitter: float = 0.5


@frozen
class Cancel:
    """The run is to be cancelled."""

    at: float
    reason: str = "user"
    by: str = ""
    jitter: float = 0.5


@frozen
class Tick:
    """Continue with pending work."""

    at: float
    jitter: float = 0.5


Event = Begin | Resume | Done | Failed | Stopped | Opened | TimerFired | Answered | Cancel | Tick


RUN_TIMER = "run"
"""The timer of the run's own time limit."""


@frozen
class Request:
    """Run a leaf, with everything in it rendered; answer with `Done`, `Failed` or `Stopped`."""

    path: str
    node: Node
    run: str
    workflow: str
    visit: int
    attempt: int
    """Counts from 1."""
    key: str
    """The idempotency key: the same for a repeat of the same attempt after a crash."""
    item: str | None = None
    file: str = ""
    """The workflow file of the node."""
    approved: bool = False
    """Whether a person let it run beyond the budget."""
    call: Mapping[str, Any] = field(default_factory=dict[str, Any])


@frozen
class Stop:
    """End a leaf that runs; answer with `Stopped` (or with how it ended just before)."""

    path: str


@frozen
class SetTimer:
    """Answer with `TimerFired` at `at`, seconds since 1970. A later command for the same timer replaces it."""

    timer: str
    at: float


@frozen
class CancelTimer:
    """Cancel a timer."""

    timer: str


@frozen
class Open:
    """Read and check the file of a sub-workflow; answer with `Opened` or `Failed`."""

    path: str
    file: str
    """As written, relative to `folder`."""
    folder: str


@frozen
class Ask:
    """Ask a person a question; the answer arrives as `Answered`."""

    gate: str
    question: Mapping[str, Any]


@frozen
class Idle:
    """Nothing runs until a person answers or a distant timer is due."""

    gates: tuple[str, ...]
    blocked_until: float | None = None


class Continue:
    """There is more to do: advance with `Tick`."""

    __slots__ = ()


class End:
    """The run is over; its terminal fact is the last one."""

    __slots__ = ()


Command = Request | Stop | SetTimer | CancelTimer | Open | Ask | Idle | Continue | End
