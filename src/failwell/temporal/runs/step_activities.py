"""The activities of a worker: run a step, and open the file of a sub-workflow.

A step is run by the same executors as on one machine. It sends heartbeats, so that a dead worker is noticed and a
cancelled step ends. A failure that the executor returns ends the activity for good: the workflow decides about repeats.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from posixpath import join, normpath
from typing import TYPE_CHECKING, Any

from temporalio import activity
from temporalio.worker import UnsandboxedWorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from failwell.calls.budget import Budget
from failwell.calls.clock import SYSTEM_CLOCK
from failwell.calls.shared_budget import SharedBudget
from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.fault import Fault
from failwell.errors.faults import Validation
from failwell.store.folder import make_private, run_folder, state_folder
from failwell.temporal.runs.hidden_variables import hide, reveal, secret_values, secret_variable
from failwell.temporal.runs.payloads import failure_payload, fit, step_error, too_large, unfit
from failwell.temporal.runs.plan_json import pack, plans_to_json, request_from_json
from failwell.temporal.runs.run_workflow import RunWorkflow
from failwell.workflows.failure import Failure
from failwell.workflows.machine.messages import Request
from failwell.workflows.running.executor import Executor, Success, Tools, run_step
from failwell.workflows.running.faults import WorkflowInvalid

if TYPE_CHECKING:
    from temporalio.exceptions import ApplicationError

    from failwell.jobs.runtime import Runtime
    from failwell.workflows.agent_steps.executor import AgentExecutor
    from failwell.workflows.plan import Plan

_LINGER = 10.0
"""Seconds after the last step of a run on this worker, after which what its steps left running is stopped."""
_MOST_LOGGED = 65_536
"""Characters that one execution of a step may log."""
_GRACE = 0.8
_STOP_TIMEOUT = 10.0
_FASTEST_BEAT = 1.0
"""Seconds between heartbeats. A cancelled step learns of it with the next one."""


class StepActivities:
    """Runs the steps of workflow runs on this machine.

    Args:
        store: The state folder, for files of runs and claims of tools.
        jobs: The job queue of this process. Without it, steps use the queue of the state folder.
        linger: Seconds after the last step of a run, after which what its steps left running is stopped.
    """

    def __init__(
        self, store: str | Path | None = None, *, jobs: "Runtime | None" = None, linger: float = _LINGER
    ) -> None:
        from failwell.workflows.job_nodes import JobExecutor
        from failwell.workflows.running.script_executor import ScriptExecutor

        self._folder = state_folder(None if store is None else str(store))
        self._executors: dict[str, Executor] = {
            "script": ScriptExecutor(),
            "job": JobExecutor(self._folder, jobs=jobs),
        }
        self._agents: dict[str | None, AgentExecutor] = {}
        self._running: dict[str, int] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._linger = linger

    @property
    def activities(self) -> list[Callable[..., Any]]:
        """For the `activities` of a Temporal worker."""
        return [self.run_step, self.open_file]

    @activity.defn(name="failwell.node")
    async def run_step(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Run one step to its end."""
        data = unfit(payload)
        try:
            request, plan = request_from_json(reveal(data["request"], data.get("mark")))
        except Fault as fault:
            raise _step_error(Failure.from_exception(fault)) from fault
        request, plan = _localized(request, plan, data.get("cwd"))
        lines = _Lines()
        async with self._in_run(request.run), _heartbeats():
            # What a script prints is in its output.
            tools = self._tools(data, plan, None if request.node.type == "script" else lines.add)
            executor_for = partial(self._executor, data.get("model"))
            result = await _stoppable(run_step(executor_for, request, tools, activity.logger))
        if isinstance(result, Success):
            reply: dict[str, Any] = {"output": result.output, "lines": lines.entries}
            if result.usage is not None:
                reply["usage"] = dict(result.usage)
            fitting = fit(reply)
            if fitting is not None:
                return fitting
            now = SYSTEM_CLOCK.now().timestamp()
            result = too_large("the output", request.path, at=now, run=request.run)
        raise _step_error(result, lines.entries)

    @activity.defn(name="failwell.open")
    async def open_file(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Read and check a sub-workflow whose path was only known at run time."""
        from failwell.workflows.check.workflow_tree import check_file

        data = unfit(payload)
        file = _local_path(normpath(join(str(data["folder"]), str(data["file"]))), data.get("cwd"))
        check = partial(
            check_file,
            file,
            environ=os.environ,
            allow_outside=bool(data.get("allow_outside")),
            available=frozenset((*self._executors, *_agent_types())),
            as_root=False,
        )
        try:
            async with _heartbeats():
                checked = await asyncio.to_thread(check)
            if checked.plan is None or not checked.is_usable:
                raise WorkflowInvalid(file=file, mistakes=list(checked.mistakes))
        except Fault as fault:
            failure = Failure.from_exception(fault)
            raise _step_error(failure) from fault
        texts = [text for _, text in checked.files.values()]
        plans = hide(plans_to_json(checked.plans), secret_values(texts, os.environ), data.get("mark") or "")
        reply = fit({"file": checked.plan.file, "plans": pack(plans)})
        if reply is None:
            now = SYSTEM_CLOCK.now().timestamp()
            failure = too_large("the sub-workflow", data["path"], at=now, run=data["run"])
            raise _step_error(failure)
        return reply

    async def close(self) -> None:
        """Stop everything that the steps of all runs have left running."""
        for run in {*self._running, *self._closing}:
            await self._close(run)

    def _executor(self, model: str | None, node_type: str) -> Executor:
        executor = self._executors.get(node_type)
        if executor is not None:
            return executor
        if node_type not in _agent_types():
            raise Validation(
                kind="validation.config_invalid",
                message=f"this worker cannot run a step of type `{node_type}`",
                user_action=UserAction(
                    ActionKind.FIX_CONFIGURATION, "install failwell[agents] on the workers"
                ),
            )
        from failwell.workflows.agent_steps.executor import AgentExecutor

        agents = self._agents.setdefault(model, AgentExecutor(self._folder, None, model=model))
        if node_type == "stage":
            from failwell.workflows.stages.nodes import StageExecutor

            return StageExecutor(agents)
        return agents

    def _tools(
        self, data: Mapping[str, Any], plan: "Plan", note: "Callable[[str, dict[str, Any]], None] | None"
    ) -> Tools:
        folder = run_folder(self._folder, data["run"])
        make_private(folder)
        limit = data.get("budget")
        budget = None
        if limit is not None:
            budget = SharedBudget(
                Budget(usd=limit["usd"], unpriced=limit["unpriced"]), spent_usd=limit["spent"]
            )
        return Tools(
            plan=plan,
            run_folder=folder,
            secret=partial(_secret, data.get("secrets") or {}),
            budget=budget,
            note=note,
            grace=_GRACE,
        )

    @asynccontextmanager
    async def _in_run(self, run: str) -> AsyncGenerator[None]:
        """Count the steps of a run on this worker, and stop what they left running some time after the last one."""
        self._running[run] = self._running.get(run, 0) + 1
        closing = self._closing.pop(run, None)
        if closing is not None:
            closing.cancel()
        try:
            yield
        finally:
            self._running[run] -= 1
            if not self._running[run]:
                del self._running[run]
                self._closing[run] = asyncio.create_task(self._close_later(run))

    async def _close_later(self, run: str) -> None:
        await asyncio.sleep(self._linger)
        self._closing.pop(run, None)
        await self._close(run)

    async def _close(self, run: str) -> None:
        closing = self._closing.pop(run, None)
        if closing is not None:
            closing.cancel()
        for executor in (*self._executors.values(), *self._agents.values()):
            await executor.close(run, grace=_GRACE)


@asynccontextmanager
async def _heartbeats() -> AsyncGenerator[None]:
    """Send heartbeats while the block lasts."""
    limit = activity.info().heartbeat_timeout
    interval = _FASTEST_BEAT if limit is None else min(_FASTEST_BEAT, limit.total_seconds() / 3)

    async def beat() -> None:
        while True:
            # A short step needs none.
            await asyncio.sleep(interval)
            activity.heartbeat()

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()


async def _stoppable(work: Any) -> Any:
    """Await `work`. If the step is cancelled, `work` has a bounded time to stop what it started."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait((task,), timeout=_GRACE + _STOP_TIMEOUT)
        raise


class _Lines:
    """What a step logs, up to a limit."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self._left = _MOST_LOGGED

    def add(self, kind: str, data: dict[str, Any]) -> None:
        text = str(data.get("text", ""))
        if kind == "node:printed" and len(text) <= self._left:
            self._left -= len(text)
            self.entries.append({"at": round(SYSTEM_CLOCK.now().timestamp(), 3), **data})


def _step_error(failure: Failure, lines: list[dict[str, Any]] | None = None) -> "ApplicationError":
    detail = fit(failure_payload(failure, lines or [])) or fit(
        failure_payload(replace(failure, output=None), [])
    )
    return step_error(failure, detail or {})


def _agent_types() -> tuple[str, ...]:
    return ("agent", "stage", "tool") if find_spec("pydantic_ai") is not None else ()


def _secret(sent: Mapping[str, str], reference: str) -> str:
    """The value of a secret input: sent with the run if payloads are encrypted, else from this worker's environment."""
    if reference in sent:
        return sent[reference]
    name = reference.rpartition(".")[2]
    variable = secret_variable(reference)
    value = os.environ.get(variable)
    if value is None:
        raise Validation(
            kind="validation.input_invalid",
            message=f"this worker does not have the secret input `{name}`",
            user_action=UserAction(
                ActionKind.FIX_CONFIGURATION,
                f"set {variable} in the environment of the workers, or encrypt payloads with a codec",
            ),
        )
    return value


def _localized(request: Request, plan: "Plan", cwd: str | None) -> tuple[Request, "Plan"]:
    """The request with the folders of this machine. A step runs where the run was submitted, if that folder is here."""
    call = dict(request.call)
    if request.node.type == "script":
        folder = call.get("working_dir")
        base = _local_path(cwd, cwd) if cwd else None
        if folder is None:
            call["working_dir"] = base
        elif base is not None:
            call["working_dir"] = _local_path(os.path.join(base, folder), cwd)  # noqa: PTH118
    return replace(request, call=call), replace(plan, file=_local_path(plan.file, cwd))


def _local_path(path: str, cwd: str | None) -> str:
    """`path`, or the same place below this worker's folder if the folder of the submitter is not on this machine."""
    if not cwd or os.path.isdir(cwd):  # noqa: PTH112
        return path
    own = str(Path.cwd())
    if path == cwd:
        return own
    return own + path[len(cwd) :] if path.startswith(f"{cwd.rstrip('/')}/") else path


_BEAT = timedelta(seconds=1)
"""How often heartbeats reach the server at most. A cancelled step learns of it by one."""
PASSED_THROUGH = ("failwell", "jinja2", "jsonschema_rs", "markupsafe", "yaml")
"""Modules that the workflow's sandbox does not load again: ours, which are pure there, and compiled ones."""


def workflow_runner() -> SandboxedWorkflowRunner:
    """Runs workflow code in Temporal's sandbox."""
    return SandboxedWorkflowRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
    )


def run_worker_options(
    steps: StepActivities, *workflows: type[Any], is_sandboxed: bool = True
) -> dict[str, Any]:
    """Options of a `temporalio.worker.Worker` on the task queue of workflow runs. Close `steps` after it has ended.

    The sandbox finds workflow code that is not deterministic. Workers of users do without it: it costs a fifth of the
    processor time of a step, and the code that it would check is the same as in the tests.
    """
    return {
        "workflows": [RunWorkflow, *workflows],
        "activities": steps.activities,
        "workflow_runner": workflow_runner() if is_sandboxed else UnsandboxedWorkflowRunner(),
        "max_heartbeat_throttle_interval": _BEAT,
        "default_heartbeat_throttle_interval": _BEAT,
    }
