"""Runs the `agent` nodes of workflows: one turn of a model each. pydantic-ai is imported when the first one runs."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from failwell.fault.base import Fault
from failwell.report.record import Scene
from failwell.workflow.envelope import AGENT_EVIDENCE, MARKERS, Malformed, failure_of
from failwell.workflow.failure import Failure
from failwell.workflow.machine.messages import Request
from failwell.workflow.run.executor import Success, Tools
from failwell.workflows.agent_answers import (
    late_answer,
    object_in,
    scene_of,
    schema_violation,
    system_text,
    turn_report,
    turn_usage,
    usage_record,
)
from failwell.workflows.agent_log import AgentLog
from failwell.workflows.agent_run import AgentRun, agent_settings, file_prices, granted_names, model_specs

if TYPE_CHECKING:
    from failwell.runtime.fallback import Chain
    from failwell.turns.dispatch import Dispatcher
    from failwell.turns.tools.tool import ApprovalRequest, Approver, ToolContext
    from failwell.turns.turn import Turn
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

    async def run(self, request: Request, tools: Tools) -> Success | Failure:
        """Run one turn and check its answer against the output that the node declares."""
        import asyncio

        if request.node.type == "tool":
            return await self._call_tool(request, tools)
        scene = scene_of(request)
        turn: Turn | None = None
        timeout: float | None = request.call["timeout"]
        try:
            async with asyncio.timeout(timeout):
                if request.call["settings"].get("agent") is not None:
                    return await self._own_agent(request, tools, scene)
                turn = await self._turn(request, tools)
                text = await turn.run(request.call["prompt"] or "", system=system_text(request))
        except TimeoutError as error:
            failure = late_answer(request, timeout, error, scene)
            return replace(failure, usage=turn_usage(turn))
        except Exception as error:  # noqa: BLE001  (whatever a model, its SDK or a tool raises fails the node)
            failure = Failure(report=turn_report(error, scene), typed=True)
            return replace(failure, usage=turn_usage(turn))
        return self._answered(request, tools, text, turn_usage(turn), scene)

    async def close(self, run: str, *, grace: float = 2.0) -> object:
        """Close the models of an ended run, and stop what its commands left running."""
        agents = self._runs.pop(run, None)
        return None if agents is None else await agents.close(grace)

    def _of(self, run: str, folder: Path) -> "AgentRun":
        agents = self._runs.get(run)
        if agents is None:
            agents = self._runs[run] = AgentRun(folder, self._folder)
        return agents

    async def _call_tool(self, request: Request, tools: Tools) -> Success | Failure:
        """Run one call of a tool, through the same checks as a model's."""
        call, scene = request.call, scene_of(request)
        try:
            dispatcher = await self._dispatcher(request, tools, {"tools": [call["target"]]})
            context = _context(request, tools)
        except Fault as fault:
            return Failure.from_exception(fault, scene=scene, typed=True)
        outcome = await dispatcher.call(call["target"], call["arguments"], context)
        if outcome.report is not None:
            return Failure(report=replace(outcome.report, scene=scene), typed=True)
        value = outcome.value
        output = cast("dict[str, Any]", value) if isinstance(value, dict) else {"result": value}
        return self._checked(request, output, None, scene)

    async def _dispatcher(self, request: Request, tools: Tools, settings: Mapping[str, Any]) -> "Dispatcher":
        from failwell.turns.dispatch import Dispatcher
        from failwell.turns.once import OnceCalls

        run = self._of(request.run, tools.run_folder)
        # The tools of the file come last: a server cannot take the place of one.
        registry = {**await run.server_tools(tools.plan, settings.get("tools")), **run.tools_of(tools.plan)}
        approver = None if self._asker is None else _approver(self._asker, request)
        return Dispatcher(
            registry,
            granted=granted_names(
                settings.get("tools"), registry, frozenset(tools.plan.runtime.get("mcp_servers") or ())
            ),
            agent=request.node.name,
            approver=approver,
            shows_text=settings.get("tool_errors") == "full",
            once=OnceCalls(run.claims, f"run-{request.run}/{request.path}/{request.visit}"),
        )

    async def _own_agent(self, request: Request, tools: Tools, scene: Scene) -> Success | Failure:
        """Run somebody's agent, and check its answer as that of a turn."""
        from failwell.turns.own_agents import AgentCall, run_own_agent
        from failwell.turns.turn import MOST_CALLS

        settings, runtime = agent_settings(request, tools)
        call = AgentCall(
            prompt=request.call["prompt"] or "",
            most_calls=settings.get("max_agent_iterations", MOST_CALLS),
            prices=file_prices(runtime.get("cost")),
        )
        answer = await run_own_agent(settings["agent"], Path(tools.plan.folder), call)
        if tools.budget is not None:
            # What its calls may cost is not known before; what they did cost counts for all that follows.
            tools.budget.settle(0, answer.cost or 0)
        usage = usage_record(answer.tokens, answer.cost)
        return self._answered(request, tools, answer.text, usage, scene)

    async def _turn(self, request: Request, tools: Tools) -> "Turn":
        from failwell.turns.turn import MOST_CALLS, Turn

        settings, runtime = agent_settings(request, tools)
        iterations: int | None = settings.get("max_agent_iterations")
        return Turn(
            await self._chain(request, tools, settings, runtime),
            await self._dispatcher(request, tools, settings),
            _context(request, tools),
            most_calls=MOST_CALLS if iterations is None else iterations + 1,
            max_tokens=settings.get("max_tokens"),
            observe=AgentLog(tools.note, request).write_tool,
        )

    async def _chain(
        self, request: Request, tools: Tools, settings: Mapping[str, Any], runtime: Mapping[str, Any]
    ) -> "Chain[Any]":
        from failwell.runtime.fallback import Chain
        from failwell.runtime.fallback_entry import ChainPolicy
        from failwell.turns.models import usage_of

        models = self._of(request.run, tools.run_folder).models
        folder = Path(tools.plan.folder)
        entries = [
            await models.entry(spec, agent=request.node.name, folder=folder, settings=settings)
            for spec in model_specs(request, settings, runtime, self._model)
        ]
        return Chain(
            *entries,
            policy=ChainPolicy(
                # Generating text again changes nothing outside.
                idempotent=True,
                # With a single model there is nobody to turn to while it cools down.
                cooldown=30.0 if len(entries) > 1 else 0.0,
                usage=usage_of,
            ),
            prices=file_prices(runtime.get("cost")),
            budget=None if request.approved else tools.budget,
            watcher=AgentLog(tools.note, request).write_attempt,
            name=request.node.name,
        )

    def _answered(
        self, request: Request, tools: Tools, text: str, usage: Mapping[str, Any] | None, scene: Scene
    ) -> Success | Failure:
        """The answer as the output of the node: the declared fields, or the text under `result`."""
        schema = request.node.output
        value, reason = object_in(text)
        output = {"result": text} if value is None else {**value}
        if value is not None and any(value.get(marker) is True for marker in MARKERS):
            try:
                raised = failure_of(
                    value, datetime.now(UTC), kinds=tools.plan.kinds, scene=scene, evidence=AGENT_EVIDENCE
                )
            except Malformed as error:
                return schema_violation(request, str(error), output, usage, scene)
            return replace(raised, output=output, usage=usage)
        if schema is None:
            return Success(output={"result": text}, usage=usage)
        if value is None:
            return schema_violation(request, reason, output, usage, scene)
        return self._checked(request, value, usage, scene)

    def _checked(
        self, request: Request, output: dict[str, Any], usage: Mapping[str, Any] | None, scene: Scene
    ) -> Success | Failure:
        """The output, if it is as the node declares it."""
        schema = request.node.output
        if schema is not None:
            from failwell.workflow.output_schemas import OutputSchemas, SchemaMismatch

            self._schemas = self._schemas or OutputSchemas()
            try:
                self._schemas.check(schema, output, {})
            except SchemaMismatch as error:
                return schema_violation(request, str(error), output, usage, scene, error.field)
        return Success(output=output, usage=usage)


def _context(request: Request, tools: Tools) -> "ToolContext":
    from failwell.turns.tools.tool import ToolContext

    folder = Path(request.call.get("folder") or tools.plan.folder)
    return ToolContext(key=request.key, folder=folder, scratch=tools.run_folder, grace=tools.grace)


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
