"""What happens to a run from outside. Each event brings the time, and jitter where waits need it."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from failwell.fault.frozen import frozen
from failwell.workflow.failure import Failure


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
    """The ended run that this one goes on with: its `run` and `seq`."""


@frozen
class Resume:
    """The run goes on in another process, or after it ended badly."""

    at: float
    jitter: float = 0.5
    by: str = ""
    accepted_changes: bool = False
    limits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Limits that a person raised."""


@frozen
class Done:
    """A leaf ended well."""

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
    output: Any = None
    has_output: bool = False
    usage: Mapping[str, Any] | None = None
    jitter: float = 0.5


@frozen
class Stopped:
    """A leaf was ended because it was asked to be."""

    at: float
    path: str
    jitter: float = 0.5


@frozen
class Opened:
    """The file of a sub-workflow was read and is fit to run, under the name `file`."""

    at: float
    path: str
    file: str
    jitter: float = 0.5


@frozen
class Rang:
    """A timer's time has come."""

    at: float
    timer: str
    jitter: float = 0.5


@frozen
class Answered:
    """A person (or nobody, in time) answered a gate."""

    at: float
    gate: str
    decision: str
    by: str
    payload: Any = None
    comment: str = ""
    jitter: float = 0.5


@frozen
class Cancel:
    """Somebody wants the run to end."""

    at: float
    reason: str = "user"
    by: str = ""
    jitter: float = 0.5


@frozen
class Tick:
    """Go on with what is owed."""

    at: float
    jitter: float = 0.5


Event = Begin | Resume | Done | Failed | Stopped | Opened | Rang | Answered | Cancel | Tick
