"""The protocol of executors, which run leaves, and what the driver passes to them."""

from collections.abc import Callable, Mapping
from logging import Logger, LoggerAdapter
from pathlib import Path
from typing import Any, Protocol

from failwell.calls.shared_budget import SharedBudget
from failwell.errors.frozen import frozen
from failwell.workflows.failure import Failure
from failwell.workflows.machine.messages import Request
from failwell.workflows.plan import Plan
from failwell.workflows.running.faults import defect_failure


@frozen
class Success:
    """The leaf completed."""

    output: Any
    usage: Mapping[str, Any] | None = None


@frozen
class Tools:
    """What the driver passes to an executor."""

    plan: Plan
    run_folder: Path
    """The private folder of the run, for error files and long output."""
    secret: Callable[[str], str]
    """The value of a secret input, by its reference."""
    budget: SharedBudget | None = None
    """The money that the run may still spend, where it is stopped at a limit."""
    note: Callable[[str, dict[str, Any]], None] | None = None
    """Report something to watchers that the journal does not keep."""
    grace: float = 2.0
    """Seconds between SIGTERM and SIGKILL."""


class Executor(Protocol):
    """Runs one type of leaf. A cancelled executor ends everything it started, then re-raises."""

    async def run(self, request: Request, tools: Tools) -> Success | Failure:
        """Run a leaf to its end."""
        ...

    async def close(self, run: str, *, grace: float = 2.0) -> object:
        """Stop everything that the run has left running, after its end."""
        ...


async def run_step(
    executor_for: Callable[[str], Executor],
    request: Request,
    tools: Tools,
    log: Logger | LoggerAdapter[Logger],
) -> Success | Failure:
    """The result of a leaf, whichever driver runs it."""
    try:
        return await executor_for(request.node.type).run(request, tools)
    except Exception as error:
        # An unexpected error of an executor fails its leaf only.
        failure = defect_failure(error, f"{request.node.type} step", run=request.run, node=request.node.name)
        log.exception("%s: unexpected error in `%s`", failure.report.id, request.path)
        return failure
