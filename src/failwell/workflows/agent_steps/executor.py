"""Runs the `agent` and `tool` nodes of workflows. pydantic-ai is imported when the first one runs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from failwell.errors.fault import Fault
from failwell.workflows.agent_steps.answers import checked, late_answer, scene_of, turn_report
from failwell.workflows.agent_steps.run_resources import AgentRun
from failwell.workflows.agent_steps.step_settings import AgentSettings, tool_context
from failwell.workflows.agent_steps.visit import AgentStep
from failwell.workflows.failure import Failure
from failwell.workflows.machine.messages import Request
from failwell.workflows.running.executor import Success, Tools

if TYPE_CHECKING:
    from failwell.agents.grants import AskGrant, GrantRequest
    from failwell.agents.people.queue import InteractionQueue
    from failwell.agents.tools.tool import ApprovalRequest, Approver
    from failwell.store.audit import AuditLog
    from failwell.workflows.output_schemas import OutputSchemas


class AgentExecutor:
    """An `Executor` for `agent` and `tool` nodes: opens each model once, and the tools of each file once a run.

    Args:
        folder: The state folder, which keeps the claims of tools that must not run twice.
        interactions: Where people are asked. Without it, a step with a tool that needs an approval fails.
        model: A model that every agent uses instead of its own.
        audit: Opens the audit, where it is recorded what agents are about to do and what became of it.
    """

    def __init__(
        self,
        folder: Path,
        interactions: "InteractionQueue | None" = None,
        *,
        model: str | None = None,
        audit: "Callable[[], AuditLog] | None" = None,
    ) -> None:
        self._folder = folder
        self._interactions = interactions
        self._model = model
        self._audit = audit
        self._schemas: OutputSchemas | None = None
        self._runs: dict[str, AgentRun] = {}

    async def run(self, request: Request, tools: Tools) -> Success | Failure:
        """Run one turn and check its answer against the output that the node declares."""
        import asyncio

        if request.node.type == "tool":
            return await self._call_tool(request, tools)
        scene = scene_of(request)
        step: AgentStep | None = None
        timeout: float | None = request.call["timeout"]
        try:
            async with asyncio.timeout(timeout):
                step = AgentStep(
                    self.models_of(request.run, tools.run_folder),
                    request,
                    tools,
                    scene=scene,
                    schemas=self._output_schemas(),
                    approver=self.approver(request),
                    people=self._queue,
                )
                return await step.run()
        except TimeoutError as error:
            failure = late_answer(request, timeout, error, scene)
        except Exception as error:  # noqa: BLE001  (whatever a model, its SDK or a tool raises fails the node)
            failure = Failure(report=turn_report(error, scene), typed=True)
        return failure if step is None else replace(failure, usage=step.usage)

    async def close(self, run: str, *, grace: float = 2.0) -> object:
        """Close the models of an ended run, and stop what its commands left running."""
        agents = self._runs.pop(run, None)
        return None if agents is None else await agents.close(grace)

    def models_of(self, run: str, folder: Path) -> AgentRun:
        """The models and tools of a run."""
        agents = self._runs.get(run)
        if agents is None:
            agents = self._runs[run] = AgentRun(
                folder,
                self._folder,
                self._model,
                None if self._audit is None else self._audit().bind(run),
                self._queue,
            )
        return agents

    def _output_schemas(self) -> "OutputSchemas":
        if self._schemas is None:
            from failwell.workflows.output_schemas import OutputSchemas

            self._schemas = OutputSchemas()
        return self._schemas

    async def _call_tool(self, request: Request, tools: Tools) -> Success | Failure:
        """Run one call of a tool, through the same checks as a model's."""
        call, scene = request.call, scene_of(request)
        try:
            settings = AgentSettings(request, tools.plan)
            settings.own["tools"] = [call["target"]]
            run = self.models_of(request.run, tools.run_folder)
            dispatcher = await run.dispatcher(request, tools, settings, self.approver(request))
            context = tool_context(request, tools, settings)
            outcome = await dispatcher.call(call["target"], call["arguments"], context)
        except Fault as fault:
            return Failure.from_exception(fault, scene=scene, typed=True)
        if outcome.report is not None:
            return Failure(report=replace(outcome.report, scene=scene), typed=True)
        value = outcome.value
        output = cast("dict[str, Any]", value) if isinstance(value, dict) else {"result": value}
        return checked(request, output, self._output_schemas(), scene)

    def approver(self, request: Request) -> "Approver":
        """Asks a person whether a node may call a tool."""
        return tool_approver(self._queue, request)

    def granter(self, request: Request) -> "AskGrant":
        """Asks a person whether a stage may call a tool outside its list, once."""
        return _granter(self._queue, request)

    def _queue(self) -> "InteractionQueue":
        """Where people are asked; a queue without answerers fails every question."""
        if self._interactions is None:
            from failwell.agents.audit import record_event
            from failwell.agents.people.queue import InteractionQueue

            observe = None if self._audit is None else partial(record_event, self._audit)
            self._interactions = InteractionQueue(observe=observe)
        return self._interactions


def _granter(queue: "Callable[[], InteractionQueue]", request: Request) -> "AskGrant":
    async def ask(question: "GrantRequest") -> bool:
        from json import dumps

        from failwell.agents.people.requests import Answer, Grant

        arguments = dumps(question.arguments, ensure_ascii=True, indent=2, default=str)
        reply = await queue().ask(
            Grant(
                text=f"the stage `{question.agent}` may not call the tool `{question.tool}`; may it once, with\n{arguments}",
                tool=question.tool,
                stage=question.agent,
                digest=question.digest,
                scope={
                    "run": request.run,
                    "path": request.path,
                    "node": request.node.name,
                    "tool": question.tool,
                    "attempt": request.attempt,
                },
            )
        )
        return isinstance(reply, Answer) and reply.value is True

    return ask


def tool_approver(
    queue: "Callable[[], InteractionQueue]", request: Request, scope: Mapping[str, Any] | None = None
) -> "Approver":
    """Asks a person whether a tool may be called. Anything but a clear yes is a no; no answer in time is a `TimeoutError`.

    Args:
        queue: Where people are asked.
        request: The agent.
        scope: Where the question belongs, if that is not the run of the request.
    """
    where = {"run": request.run, "path": request.path} if scope is None else dict(scope)

    async def approve(question: "ApprovalRequest") -> bool:
        from json import dumps

        from failwell.agents.people.requests import Answer, Approve, Timeout

        # ASCII, so that no letter that looks like another one hides what is to be approved.
        arguments = dumps(question.arguments, ensure_ascii=True, indent=2, default=str)
        reply = await queue().ask(
            Approve(
                text=f"`{question.agent}` wants to call the tool `{question.tool}` with\n{arguments}",
                scope={**where, "node": request.node.name, "tool": question.tool},
                details={"effect": question.effect},
            )
        )
        if isinstance(reply, Timeout):
            raise TimeoutError
        return isinstance(reply, Answer) and reply.value is True

    return approve
