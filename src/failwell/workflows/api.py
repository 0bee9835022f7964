"""Load, validate, run and resume workflow files from Python."""

import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from failwell.errors.frozen import frozen

if TYPE_CHECKING:
    from failwell.agents.people.queue import InteractionQueue
    from failwell.errors.report import ErrorReport
    from failwell.files.mistakes import Mistake
    from failwell.store.event import Event
    from failwell.workflows.check.workflow_tree import Checked
    from failwell.workflows.running.executor import Executor
    from failwell.workflows.running.settings import (
        DriveResult,
        DriverFactory,
        GateAnswer,
        RunDriver,
        Settings,
        Watcher,
    )

OnEvent = Callable[["Event"], None]
OnGate = Callable[[str, Mapping[str, Any]], Awaitable["GateAnswer | None"]]
Durability = Literal["normal", "full"]


class RunOptions(TypedDict, total=False):
    """What running and resuming a workflow have in common."""

    store: str | Path | None
    """The state folder that records the run (default: `FAILWELL_STORE`, else the user's own)."""
    on_event: OnEvent | None
    """Called with each recorded event."""
    on_gate: OnGate | None
    """Answers gates: called with the gate and its question; returns a `GateAnswer`, or `None` to let the run wait."""
    wait: bool
    """Whether to wait for answers and distant times instead of returning with `waiting`."""
    allow_outside: bool
    """Whether the file may include files outside its project."""
    durability: Durability
    """`full` writes every record to the disk before anything follows from it."""
    model: str | None
    """A model that every agent calls instead of its own, such as `scripted:replies.yaml`."""
    engine: "DriverFactory | None"
    """What runs it instead of this process: a `failwell.temporal.TemporalEngine`."""


@frozen
class Workflow:
    """A workflow file that was read, compiled and checked."""

    path: str
    name: str
    nodes: Mapping[str, str]
    """Node → its type, in the order of the file."""
    inputs: Mapping[str, bool]
    """Input → whether it must be given."""
    allow_outside: bool = False
    mistakes: tuple["Mistake", ...] = field(default=())
    """Warnings; a file with errors is not loaded."""

    def validate(self) -> "list[Mistake]":
        """Check the file as it is now; every error and warning."""
        return validate(self.path, allow_outside=self.allow_outside)


@frozen
class RunResult:
    """How a run ended, or why it stopped."""

    id: str
    """The run. A failed run that is resumed continues under a new id."""
    status: str
    """`completed`, `failed`, `cancelled` or `waiting`."""
    output: Any = None
    """The output of a completed run."""
    report: "ErrorReport | None" = None
    """Why it failed."""
    is_typed: bool = False
    """Whether it failed with a typed error that no route handled."""
    gates: tuple[str, ...] = field(default=())
    """Pending gates, if it waits for answers."""
    blocked_until: float | None = None
    """Seconds since 1970, if it waits for a time."""
    cost_usd: float = 0.0
    usage: Mapping[str, Any] = field(default_factory=dict[str, Any])
    errors_file: str | None = None
    """The JSON lines file with the errors of a failed run."""

    @property
    def ok(self) -> bool:
        """Whether it completed."""
        return self.status == "completed"


def load(path: str | Path, *, allow_outside: bool = False) -> Workflow:
    """Read, compile and check a workflow file.

    Args:
        path: The file.
        allow_outside: Whether it may include files outside its project.

    Raises:
        WorkflowInvalid: it has errors; `mistakes` lists all of them.
        Validation: it cannot be read.
    """
    from failwell.workflows.running.faults import WorkflowInvalid

    checked = _check(path, allow_outside=allow_outside)
    plan = checked.plan
    if plan is None or not checked.is_usable:
        raise WorkflowInvalid(file=str(path), mistakes=list(checked.mistakes))
    return Workflow(
        path=str(path),
        name=plan.name,
        nodes={name: node.type for name, node in plan.nodes.items()},
        inputs={name: spec.required for name, spec in plan.inputs.items()},
        allow_outside=allow_outside,
        mistakes=checked.mistakes,
    )


def validate(path: str | Path, *, allow_outside: bool = False) -> "list[Mistake]":
    """Every error and warning of a workflow file and its sub-workflows; an empty list if there is none.

    Raises:
        Validation: it cannot be read.
    """
    return list(_check(path, allow_outside=allow_outside).mistakes)


def _check(path: str | Path, *, allow_outside: bool) -> "Checked":
    from failwell.workflows.check.workflow_tree import check_file

    return check_file(str(path), environ=os.environ, allow_outside=allow_outside)


async def arun(
    workflow: Workflow | str | Path,
    inputs: Mapping[str, Any] | None = None,
    *,
    run_id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    **options: Unpack[RunOptions],
) -> RunResult:
    """Run a workflow file to its end, or until it waits. Cancelling the task cancels the run.

    Args:
        workflow: A loaded workflow, or the path of a file.
        inputs: The inputs by name.
        run_id: An id for the run (default: a new one).
        metadata: Notes recorded with the run.
        **options: See `RunOptions`.

    Raises:
        WorkflowInvalid: the file or the inputs have errors.
        RunExists: `run_id` is recorded already.
    """
    path = workflow
    if isinstance(workflow, Workflow):
        path = workflow.path
        options["allow_outside"] = workflow.allow_outside or options.get("allow_outside", False)

    async def work(settings: "Settings") -> "DriveResult":
        from failwell.workflows.running.launch import start

        return await start(str(path), dict(inputs or {}), settings, run=run_id, metadata=metadata)

    return await _drive(work, options)


async def aresume(
    run_id: str,
    *,
    inputs: Mapping[str, Any] | None = None,
    accept_changes: bool = False,
    limits: Mapping[str, float] | None = None,
    **options: Unpack[RunOptions],
) -> RunResult:
    """Resume a run: nodes that have completed are not run again. A failed run continues under a new id.

    Args:
        run_id: The run.
        inputs: Secret inputs again; they are not recorded.
        accept_changes: Whether to resume although the files have changed.
        limits: Higher limits: `max_iterations`, `timeout_seconds`, `budget_usd`.
        **options: See `RunOptions`.

    Raises:
        UnknownRun: it is not recorded.
        NothingToResume: it has completed.
        FileChanged: its files have changed and `accept_changes` is not set.
        Locked: another process drives it.
    """

    async def work(settings: "Settings") -> "DriveResult":
        from failwell.workflows.running.launch import resume as resume_run

        return await resume_run(run_id, settings, inputs=inputs, accept_changes=accept_changes, limits=limits)

    return await _drive(work, options)


def run(
    workflow: Workflow | str | Path,
    inputs: Mapping[str, Any] | None = None,
    *,
    run_id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    **options: Unpack[RunOptions],
) -> RunResult:
    """`arun` for code without an event loop."""
    return _blocking("arun", arun(workflow, inputs, run_id=run_id, metadata=metadata, **options))


def resume(
    run_id: str,
    *,
    inputs: Mapping[str, Any] | None = None,
    accept_changes: bool = False,
    limits: Mapping[str, float] | None = None,
    **options: Unpack[RunOptions],
) -> RunResult:
    """`aresume` for code without an event loop."""
    return _blocking(
        "aresume", aresume(run_id, inputs=inputs, accept_changes=accept_changes, limits=limits, **options)
    )


def local_settings(
    store: str | Path | None = None,
    *,
    on_event: OnEvent | None = None,
    on_gate: OnGate | None = None,
    wait: bool = False,
    allow_outside: bool = False,
    durability: Durability = "normal",
    asks_limits: bool = False,
    watchers: "tuple[Watcher, ...]" = (),
    started: "Callable[[RunDriver, str], None] | None" = None,
    while_hosting: "Callable[[], AbstractContextManager[None]] | None" = None,
    model: str | None = None,
    engine: "DriverFactory | None" = None,
    interactions: "InteractionQueue | None" = None,
) -> "Settings":
    """The settings of a run on this machine. The caller closes `settings.store`."""
    from failwell.store.folder import state_folder
    from failwell.store.sqlite.run_store import SqliteStore
    from failwell.workflows.agent_steps.executor import AgentExecutor
    from failwell.workflows.job_nodes import JobExecutor
    from failwell.workflows.running.script_executor import ScriptExecutor
    from failwell.workflows.running.settings import Settings

    folder = state_folder(None if store is None else str(store))
    run_store = SqliteStore(folder, durability=durability)
    executors: dict[str, Executor] = {
        "script": ScriptExecutor(),
        "job": JobExecutor(folder, while_hosting),
    }
    if interactions is None and on_gate is not None:
        interactions = _callback_queue(on_gate)
    if interactions is not None and interactions.observe is None:
        from failwell.agents.audit import record_event

        interactions.observe = partial(record_event, lambda: run_store.audit)
    if find_spec("pydantic_ai") is not None:
        from failwell.workflows.stages.nodes import StageExecutor

        agents = AgentExecutor(folder, interactions, model=model, audit=lambda: run_store.audit)
        executors["agent"] = executors["tool"] = agents
        executors["stage"] = StageExecutor(agents)
    return Settings(
        store=run_store,
        folder=folder,
        executors=executors,
        environ=os.environ,
        allow_outside=allow_outside,
        watchers=watchers if on_event is None else (*watchers, _each(on_event)),
        stays=wait,
        interactions=interactions,
        asks_limits=asks_limits,
        listens=True,
        started=started or _ignore_start,
        engine=engine,
    )


def _callback_queue(on_gate: OnGate) -> "InteractionQueue":
    from failwell.agents.people.queue import InteractionQueue
    from failwell.workflows.gates import CallbackAnswerer

    return InteractionQueue(CallbackAnswerer(on_gate))


def _each(on_event: OnEvent) -> "Watcher":
    def watch(events: "Sequence[Event]") -> None:
        for event in events:
            on_event(event)

    return watch


def _ignore_start(_driver: "RunDriver", _run: str) -> None:
    """The default of `started`."""


async def _drive(work: "Callable[[Settings], Awaitable[DriveResult]]", options: RunOptions) -> RunResult:
    settings = local_settings(**options)
    try:
        return result_of(await work(settings))
    finally:
        settings.store.close()


def result_of(result: "DriveResult") -> RunResult:
    """The result for callers."""
    state, failure = result.state, result.failure
    return RunResult(
        id=state.run,
        status=result.status,
        output=result.outputs,
        report=None if failure is None else failure.report,
        is_typed=failure is not None and failure.typed,
        gates=tuple(result.gates),
        blocked_until=result.blocked_until,
        cost_usd=round(state.spent, 9),
        usage=dict(state.usage),
        errors_file=state.metadata.get("errors_file") if failure is not None else None,
    )


def dry_run(
    path: str, inputs: Mapping[str, Any], *, allow_outside: bool = False
) -> "tuple[Checked | None, Mapping[str, Any], list[Mistake]]":
    """The checks before a run: the files, the inputs with defaults, and every mistake. `None` if it cannot run."""
    from failwell.workflows.check.workflow_tree import check_file
    from failwell.workflows.run_inputs import check_inputs

    checked = check_file(path, environ=os.environ, allow_outside=allow_outside)
    mistakes = list(checked.mistakes)
    values: Mapping[str, Any] = {}
    if checked.plan is not None:
        values, input_mistakes = check_inputs(checked.plan, inputs)
        mistakes += input_mistakes
    usable = checked.plan is not None and not any(mistake.is_error for mistake in mistakes)
    return (checked if usable else None), values, mistakes


def _blocking(name: str, work: Coroutine[Any, Any, RunResult]) -> RunResult:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise RuntimeError(f"an event loop is running in this thread; use `await workflows.{name}(...)`")
