"""Runs the `agent` and `tool` nodes of workflows. pydantic-ai is imported when the first one runs."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from failwell.fault.base import Fault
from failwell.workflow.failure import Failure
from failwell.workflow.machine.messages import Request
from failwell.workflow.run.executor import Success, Tools
from failwell.workflows.agent_steps.answers import checked, late_answer, scene_of, turn_report
from failwell.workflows.agent_steps.run_resources import AgentRun, AgentSettings, tool_context
from failwell.workflows.agent_steps.visit import AgentStep

if TYPE_CHECKING:
    from failwell.interaction import InteractionQueue
    from failwell.turns.tools.tool import ApprovalRequest, Approver
    from failwell.workflow.output_schemas import OutputSchemas
    from failwell.workflow.run.run_settings import GateAnswer

    Asker = Callable[[str, Mapping[str, Any]], Awaitable[GateAnswer | None]]


class AgentExecutor:
    """An `Executor` for `agent` and `tool` nodes: opens each model once, and the tools of each file once a run.

    Args:
        folder: The state folder, which keeps the claims of tools that must not run twice.
        asker: Asks a person whether a tool may be called. Without one, tools that need an approval are denied.
        model: A model that every agent uses instead of its own.
    """

    def __init__(self, folder: Path, asker: "Asker | None" = None, *, model: str | None = None) -> None:
        self._folder = folder
        self._asker = asker
        self._model = model
        self._schemas: OutputSchemas | None = None
        self._runs: dict[str, AgentRun] = {}
        self._people: InteractionQueue | None = None

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
            agents = self._runs[run] = AgentRun(folder, self._folder, self._model)
        return agents

    def _queue(self) -> "InteractionQueue":
        if self._people is None:
            from failwell.workflows.agent_steps.dialog import people

            self._people = people(self._asker)
        return self._people

    def _output_schemas(self) -> "OutputSchemas":
        if self._schemas is None:
            from failwell.workflow.output_schemas import OutputSchemas

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
        except Fault as fault:
            return Failure.from_exception(fault, scene=scene, typed=True)
        outcome = await dispatcher.call(call["target"], call["arguments"], context)
        if outcome.report is not None:
            return Failure(report=replace(outcome.report, scene=scene), typed=True)
        value = outcome.value
        output = cast("dict[str, Any]", value) if isinstance(value, dict) else {"result": value}
        return checked(request, output, self._output_schemas(), scene)

    def approver(self, request: Request) -> "Approver | None":
        """Asks a person whether a node may call a tool; `None` if nobody can be asked."""
        return None if self._asker is None else _approver(self._asker, request)


def _approver(asker: "Asker", request: Request) -> "Approver":
    """Asks a person as a gate does. Anything but a clear yes is a no."""

    async def approve(question: "ApprovalRequest") -> bool:
        from json import dumps

        arguments = dumps(question.arguments, ensure_ascii=True, indent=2, default=str)
        answer = await asker(
            f"approval:{request.path}:{question.tool}",
            {
                "type": "approval",
                "path": request.path,
                "node": request.node.name,
                "prompt": f"`{question.agent}` wants to call the tool `{question.tool}` with\n{arguments}",
                # Whatever answers without reading takes the first one.
                "options": [{"label": "deny", "value": "deny"}, {"label": "allow", "value": "allow"}],
            },
        )
        return answer is not None and answer.decision == "allow"

    return approve
