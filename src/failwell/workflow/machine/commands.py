"""What the machine asks of the world. A command is given once; asking again is a driver's resume."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from failwell.fault.frozen import frozen
from failwell.workflow.plan import Node

RUN_TIMER = "run"
"""The timer of the run's own time limit."""


@frozen
class Request:
    """One leaf to be run, with everything in it rendered."""

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
    """The workflow file that the node stands in."""
    call: Mapping[str, Any] = field(default_factory=dict[str, Any])


@frozen
class Start:
    """Run a leaf; answer with `Done`, `Failed` or `Stopped`."""

    request: Request


@frozen
class Stop:
    """End a leaf that runs; answer with `Stopped` (or with how it ended just before)."""

    path: str


@frozen
class Wake:
    """Answer with `Rang` at `at`, seconds since 1970. A later command for the same timer replaces it."""

    timer: str
    at: float


@frozen
class Hush:
    """Forget a timer."""

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
    """Put a question to a person; the answer comes as `Answered`."""

    gate: str
    question: Mapping[str, Any]


@frozen
class Idle:
    """Nothing runs, and nothing will until a person answers or a far time comes."""

    gates: tuple[str, ...]
    blocked_until: float | None = None


class Again:
    """There is more to do: advance with `Tick`."""

    __slots__ = ()


class End:
    """The run is over; its terminal fact is the last one."""

    __slots__ = ()


Command = Start | Stop | Wake | Hush | Open | Ask | Idle | Again | End
