"""What runs a leaf: the protocol, and what it is given."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from failwell.fault.frozen import frozen
from failwell.workflow.failure import Failure
from failwell.workflow.machine.protocol import Request
from failwell.workflow.plan import Plan


@frozen
class Worked:
    """The leaf ended well."""

    output: Any
    usage: Mapping[str, Any] | None = None


@frozen
class Broke:
    """The leaf failed; what it had put out by then is kept beside the failure."""

    failure: Failure
    output: Any = None
    has_output: bool = False
    usage: Mapping[str, Any] | None = None


@frozen
class Tools:
    """What the driver lends to an executor."""

    plan: Plan
    run_folder: Path
    """Private to the run; error files and spilled output go there."""
    secret: Callable[[str], str]
    """The value of a secret input, by its reference."""
    note: Callable[[str, dict[str, Any]], None]
    """Tell watchers something that is not worth a place in the journal."""
    grace: float = 2.0
    """Seconds between asking a process to end and ending it."""


class Executor(Protocol):
    """Runs one type of leaf. Being cancelled means: end everything, make sure, then raise."""

    async def run(self, request: Request, tools: Tools) -> Worked | Broke:
        """Run it to its end."""
        ...

    async def close(self, run: str, *, grace: float = 2.0) -> object:
        """The run is over: end whatever is left of it."""
        ...
