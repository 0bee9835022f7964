"""Runs the phases of stages that need the outside: `act` is a turn of a model, and other phases may be Python code."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from failwell.adapters.describe import describe
from failwell.errors.fault import Fault
from failwell.workflows.agent_steps.answers import late_answer, object_in, scene_of, system_text, usage_record
from failwell.workflows.agent_steps.executor import AgentExecutor
from failwell.workflows.agent_steps.step_log import AgentLog
from failwell.workflows.agent_steps.step_settings import AgentSettings, tool_context
from failwell.workflows.failure import Failure
from failwell.workflows.machine.messages import Request
from failwell.workflows.plan import StageSpec
from failwell.workflows.running.executor import Success, Tools

if TYPE_CHECKING:
    from failwell.agents.tools.tool import Tool, ToolContext
    from failwell.agents.turn import Turn


class StageLimits:
    """The limits of one attempt of `act`, and whether its completion tool was called."""

    def __init__(self, spec: StageSpec) -> None:
        self.allowed_tools = spec.allowed_tools
        self.turn_cap = spec.turn_cap
        self.grants = spec.grants
        self.completion = None if spec.completion_tool is None else self._completion_tool(spec)
        self.result: dict[str, Any] | None = None
        """The arguments of the completion tool, once it was called."""

    def is_complete(self) -> bool:
        """Whether the completion tool was called."""
        return self.result is not None

    def _completion_tool(self, spec: StageSpec) -> "Tool":
        from failwell.agents.tools.tool import Tool

        assert spec.completion_tool is not None

        async def complete(arguments: Mapping[str, Any], _context: "ToolContext") -> Any:
            self.result = dict(arguments)
            return {"complete": True}

        schema = spec.completion_schema or {"type": "object"}
        return Tool(
            name=spec.completion_tool,
            run=complete,
            description="Call this tool when the work is done. It ends the stage.",
            parameters=schema,
            effect="idempotent",
        )


class StageExecutor:
    """An `Executor` for stages. Models and tools are those of `agents`, which closes them."""

    def __init__(self, agents: AgentExecutor) -> None:
        self._agents = agents

    async def run(self, request: Request, tools: Tools) -> Success | Failure:
        """Run one phase."""
        import asyncio

        scene = scene_of(request)
        turn: Turn | None = None
        timeout: float | None = request.call["timeout"]
        assert isinstance(request.node.spec, StageSpec)
        limits = StageLimits(request.node.spec)
        try:
            if request.call["phase"] != "act":
                from failwell.workflows.stages.code import run_code

                return Success(output=await run_code(request, tools))
            async with asyncio.timeout(timeout):
                turn = await self._turn(request, tools, limits)
                text = await turn.run(request.call["prompt"], system=system_text(request))
        except TimeoutError as error:
            failure = late_answer(request, timeout, error, scene)
        except Exception as error:  # noqa: BLE001  (whatever a model, its SDK, a tool or code raises fails the phase)
            # Its kind stays that of the provider: the stage decides about another attempt, and the file routes by it.
            origin = "call" if request.call["phase"] == "act" else "tool"
            report = describe(error, scene=scene, origin=None if isinstance(error, Fault) else origin)
            failure = Failure(report=report, typed=True)
        else:
            result: dict[str, Any] = {
                "output": limits.result or _answer(text),
                "capHit": turn.cap_hit,
                "calls": turn.calls,
            }
            if limits.completion is not None:
                result["completed"] = limits.is_complete()
            return Success(output=result, usage=usage_record(turn.tokens, turn.cost))
        return failure if turn is None else replace(failure, usage=usage_record(turn.tokens, turn.cost))

    async def close(self, run: str, *, grace: float = 2.0) -> object:
        """Nothing to close here: the executor of agents closes what a run opened."""
        del run, grace
        return None

    async def _turn(self, request: Request, tools: Tools, limits: StageLimits) -> "Turn":
        from failwell.agents.turn import Turn

        settings = AgentSettings(request, tools.plan)
        settings.own["tools"] = list(limits.allowed_tools)
        models = self._agents.models_of(request.run, tools.run_folder)
        asks = limits.grants == "ask"
        dispatcher = await models.dispatcher(
            request,
            tools,
            settings,
            self._agents.approver(request),
            limits.completion,
            grants=models.grants(request, self._agents.granter(request)) if asks else None,
        )
        return Turn(
            await models.chain(request, tools, settings),
            dispatcher,
            tool_context(request, tools, settings),
            most_calls=limits.turn_cap,
            max_tokens=settings.own.get("max_tokens"),
            stops_at_limit=True,
            is_complete=limits.is_complete,
            observe=AgentLog(tools.note, request).write_event,
        )


def _answer(text: str) -> dict[str, Any]:
    """The answer of the model: the object that it is, or its text under `result`."""
    value, _ = object_in(text)
    return {"result": text} if value is None else dict(value)
