"""What a run works with, and what it comes to: the driver's surroundings and its answer."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from failwell.fault.classes import Validation
from failwell.fault.frozen import frozen
from failwell.journal.event import Event as Entry
from failwell.journal.store import Store
from failwell.runtime.clock import SYSTEM_CLOCK, Clock
from failwell.workflow.failure import Failure
from failwell.workflow.machine.state import State
from failwell.workflow.plan import Plan
from failwell.workflow.run.executor import Executor

Watcher = Callable[[Entry], None]
Notes = Callable[[str, dict[str, Any]], None]
Asker = Callable[[str, Mapping[str, Any]], Awaitable["Said | None"]]
"""Puts a question (gate, and what was asked) to whoever is there; `None` if nobody answers here."""
Opener = Callable[[str, str], Awaitable[Plan]]


@frozen
class Said:
    """What somebody answered."""

    decision: str
    by: str
    payload: Any = None
    comment: str = ""


@frozen
class Ended:
    """How `drive` came to its end."""

    status: str
    """completed, failed, cancelled, or waiting."""
    state: State
    outputs: Any = None
    failure: Failure | None = None
    error_type: str | None = None
    gates: tuple[str, ...] = ()
    blocked_until: float | None = None


def _no_jitter() -> float:
    return 0.5


def _no_secret(ref: str) -> str:
    raise Validation(kind="validation.input_invalid", message=f"the secret `{ref}` was not given")


def _unheard(_kind: str, _data: dict[str, Any]) -> None:
    """Nobody listens."""


@frozen
class World:
    """What a run works with."""

    store: Store
    run_folder: Path
    executors: Mapping[str, Executor]
    opener: Opener
    """Reads and checks the file of a sub-workflow: (file, folder) → plan."""
    clock: Clock = SYSTEM_CLOCK
    jitter: Callable[[], float] = _no_jitter
    secret: Callable[[str], str] = _no_secret
    watchers: tuple[Watcher, ...] = ()
    notes: Notes = _unheard
    asker: Asker | None = None
    stays: bool = False
    """Whether to go on waiting for answers and far times, instead of leaving."""
    grace: float = 2.0
    patience: float = 10.0
    """Seconds after which a leaf that does not end when told to is left behind."""
