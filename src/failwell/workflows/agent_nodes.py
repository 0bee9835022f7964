"""Runs the `agent` nodes of workflows: one turn of a model each. pydantic-ai is imported when the first one runs."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from failwell.fault.axes import Category
from failwell.fault.base import Fault
from failwell.report.describe import describe
from failwell.report.record import ErrorReport, Scene
from failwell.workflow.envelope import AGENT_EVIDENCE, MARKERS, Malformed, failure_of, parse, violation
from failwell.workflow.failure import Failure
from failwell.workflow.machine.messages import Request
from failwell.workflow.run.executor import Success, Tools
from failwell.workflows.agent_log import AgentLog

if TYPE_CHECKING:
    from failwell.runtime.cost import Prices
    from failwell.runtime.fallback import Chain
    from failwell.turns.dispatch import Dispatcher
    from failwell.turns.models import ModelSpec
    from failwell.turns.tools.tool import ApprovalRequest, Approver, Tool, ToolContext
    from failwell.turns.turn import Turn
    from failwell.workflow.output_schemas import OutputSchemas
    from failwell.workflow.plan import Plan
    from failwell.workflow.run.run_settings import GateAnswer

    Asker = Callable[[str, Mapping[str, Any]], Awaitable[GateAnswer | None]]

_MICRO_CENTS_PER_DOLLAR = 100_000_000
_FENCE = "```"


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
        scene = _scene(request)
        turn: Turn | None = None
        timeout: float | None = request.call["timeout"]
        try:
            async with asyncio.timeout(timeout):
                if request.call["settings"].get("agent") is not None:
                    return await self._own_agent(request, tools, scene)
                turn = await self._turn(request, tools)
                text = await turn.run(request.call["prompt"] or "", system=_system(request))
        except TimeoutError as error:
            failure = _late(request, timeout, error, scene)
            return replace(failure, usage=_usage(turn))
        except Exception as error:  # noqa: BLE001  (whatever a model, its SDK or a tool raises fails the node)
            failure = Failure(report=_report(error, scene), typed=True)
            return replace(failure, usage=_usage(turn))
        return self._answered(request, tools, text, _usage(turn), scene)

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
        call, scene = request.call, _scene(request)
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
            granted=_granted(
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

        settings, runtime = _settings(request, tools)
        call = AgentCall(
            prompt=request.call["prompt"] or "",
            most_calls=settings.get("max_agent_iterations", MOST_CALLS),
            prices=_prices(runtime.get("cost")),
        )
        answer = await run_own_agent(settings["agent"], Path(tools.plan.folder), call)
        if tools.budget is not None:
            # What its calls may cost is not known before; what they did cost counts for all that follows.
            tools.budget.settle(0, answer.cost or 0)
        usage = _used(answer.tokens, answer.cost)
        return self._answered(request, tools, answer.text, usage, scene)

    async def _turn(self, request: Request, tools: Tools) -> "Turn":
        from failwell.turns.turn import MOST_CALLS, Turn

        settings, runtime = _settings(request, tools)
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
            for spec in _model_specs(request, settings, runtime, self._model)
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
            prices=_prices(runtime.get("cost")),
            budget=None if request.approved else tools.budget,
            watcher=AgentLog(tools.note, request).write_attempt,
            name=request.node.name,
        )

    def _answered(
        self, request: Request, tools: Tools, text: str, usage: Mapping[str, Any] | None, scene: Scene
    ) -> Success | Failure:
        """The answer as the output of the node: the declared fields, or the text under `result`."""
        schema = request.node.output
        value, reason = _object_in(text)
        output = {"result": text} if value is None else {**value}
        if value is not None and any(value.get(marker) is True for marker in MARKERS):
            try:
                raised = failure_of(
                    value, datetime.now(UTC), kinds=tools.plan.kinds, scene=scene, evidence=AGENT_EVIDENCE
                )
            except Malformed as error:
                return _violated(request, str(error), output, usage, scene)
            return replace(raised, output=output, usage=usage)
        if schema is None:
            return Success(output={"result": text}, usage=usage)
        if value is None:
            return _violated(request, reason, output, usage, scene)
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
                return _violated(request, str(error), output, usage, scene, error.field)
        return Success(output=output, usage=usage)


class AgentRun:
    """The models of one run, the claims of its tools, and its tools by workflow file."""

    def __init__(self, folder: Path, state_folder: Path) -> None:
        from failwell.shared.sqlite_claims import SqliteClaims
        from failwell.turns.models import Models
        from failwell.turns.tools.command_tools import CommandRunner
        from failwell.turns.tools.mcp_tools import McpServers

        self._servers = McpServers(folder)
        self.models = Models()
        self.claims = SqliteClaims(state_folder)
        self._runner = CommandRunner(folder)
        self._open: dict[str, dict[str, Tool]] = {}

    def tools_of(self, plan: "Plan") -> "dict[str, Tool]":
        """The tools that a file defines."""
        tools = self._open.get(plan.file)
        if tools is None:
            from failwell.turns.tools.registry import open_tools

            tools = open_tools(plan.tool_definitions, folder=Path(plan.folder), runner=self._runner)
            self._open[plan.file] = tools
        return tools

    async def server_tools(self, plan: "Plan", granted: "list[str] | None") -> "dict[str, Tool]":
        """The tools of the MCP servers that a file names, of those that an agent may call."""
        servers: Mapping[str, Mapping[str, Any]] = plan.runtime.get("mcp_servers") or {}
        tools: dict[str, Tool] = {}
        for name, settings in servers.items():
            if granted is None or any(other == name or other.startswith(f"{name}__") for other in granted):
                tools |= await self._servers.tools(name, settings, Path(plan.folder))
        return tools

    async def close(self, grace: float) -> object:
        """Close the models and the servers, and stop what the commands have left running."""
        try:
            await self.models.close()
            await self._servers.close()
        finally:
            self.claims.close()
            survivors = await self._runner.close(grace)
        return survivors


def _granted(
    names: "list[str] | None", registry: "Mapping[str, Tool]", servers: frozenset[str]
) -> list[str] | None:
    """The tools that an agent may call; the name of an MCP server, and no other, stands for all its tools."""
    if names is None:
        return None
    groups = tuple(f"{name}__" for name in names if name in servers)
    return [*names, *(tool for tool in registry if tool.startswith(groups))]


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


def _settings(request: Request, tools: Tools) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of the node over those of the workflow, and those of the workflow."""
    runtime = dict(tools.plan.runtime)
    inherited = {
        key: runtime[key]
        for key in ("temperature", "max_tokens", "timeout", "max_agent_iterations")
        if key in runtime
    }
    return {**inherited, **request.call["settings"]}, runtime


def _model_specs(
    request: Request, settings: Mapping[str, Any], runtime: Mapping[str, Any], override: str | None
) -> "list[ModelSpec]":
    from failwell.turns.models import ATTEMPTS, MODEL_BACKOFF, ModelSpec, model_name, no_model

    provider = _provider(settings.get("provider")) or _provider(runtime.get("provider"))
    name: str | None = override or request.call["model"] or runtime.get("default_model")
    if not name:
        raise no_model(request.node.name)
    if override is not None:
        return [ModelSpec(name=model_name(override, None), attempts=settings.get("max_attempts", ATTEMPTS))]
    first = ModelSpec(
        name=model_name(name, provider.get("name")),
        attempts=settings.get("max_attempts", ATTEMPTS),
        provider=provider,
    )
    others = [
        ModelSpec(
            name=(own_name := model_name(fallback["model"], provider.get("name"))),
            attempts=fallback.get("max_attempts", ATTEMPTS),
            backoff=replace(MODEL_BACKOFF, **(fallback.get("backoff") or {})),
            # An endpoint and a key are those of one provider.
            provider=provider if own_name.partition(":")[0] == first.parts[0] else {},
        )
        for fallback in settings.get("fallback", ())
    ]
    return [first, *others]


def _prices(cost: Any) -> "Prices":
    """The prices of the file, and the public ones."""
    from failwell.runtime.cost import Price, Prices

    pricing: dict[str, dict[str, float]] = {} if cost is None else cost.get("pricing") or {}
    return Prices(
        {
            name: Price.dollars(
                price["input_per_mtok"],
                price["output_per_mtok"],
                cache_read=price.get("cache_read_per_mtok"),
                cache_write=price.get("cache_write_per_mtok", 0),
            )
            for name, price in pricing.items()
        }
    )


def _provider(value: object) -> dict[str, Any]:
    if isinstance(value, str):
        return {"name": value}
    provider = dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}
    if provider and "name" not in provider and "type" in provider:
        provider["name"] = provider["type"]
    return provider


def _system(request: Request) -> str | None:
    """What the model is told first: the workflow's instructions, the agent's, and the form of its answer."""
    from json import dumps

    parts: list[str] = [text for text in request.call.get("instructions", ()) if text.strip()]
    if request.call["system_prompt"]:
        parts.append(request.call["system_prompt"])
    if request.node.output is not None:
        schema = dumps(request.node.output, ensure_ascii=False)
        parts.append(
            f"Answer with one JSON object and nothing else. It must match this JSON Schema:\n{schema}"
        )
    return "\n\n".join(parts) or None


def _object_in(text: str) -> tuple[dict[str, Any] | None, str]:
    """The JSON object of an answer, with or without a fence around it; else why there is none."""
    stripped = text.strip()
    if stripped.startswith(_FENCE) and stripped.endswith(_FENCE) and "\n" in stripped:
        stripped = stripped[stripped.index("\n") + 1 : -len(_FENCE)].strip()
    try:
        value = parse(stripped.encode("utf-8", "replace"))
    except Malformed:
        # Its message could quote what the model wrote.
        return None, "the answer is not valid JSON"
    if not isinstance(value, dict):
        return None, "the answer is not a JSON object"
    return cast("dict[str, Any]", value), ""


def _violated(
    request: Request,
    reason: str,
    output: Any,
    usage: Mapping[str, Any] | None,
    scene: Scene,
    field: str | None = None,
) -> Failure:
    extra = {} if field is None else {"failed_field": field}
    message, details = violation(request.node.name, "agent", reason, **extra)
    failed = Failure.of("internal.schema_violation", message, details=details, typed=True, scene=scene)
    return replace(failed, output=output, usage=usage)


def _report(error: Exception, scene: Scene) -> ErrorReport:
    """The report of a turn that failed. Attempts that are used up are `provider.exhausted`, with the last failure as the cause."""
    report = describe(error, scene=scene, origin=None if isinstance(error, Fault) else "call")
    last = report.attempts[-1] if report.attempts else None
    if last is None or not last.exhausted or report.category is not Category.TRANSIENT:
        return report
    from failwell.turns.models import Exhausted

    exhausted = Exhausted.wrap(
        error,
        called=f"{last.provider}:{last.model}",
        attempts=len(report.attempts),
        last_error=report.kind,
        details={"provider": last.provider, "model": last.model},
    )
    return describe(exhausted, scene=scene)


def _late(request: Request, timeout: float | None, error: TimeoutError, scene: Scene) -> Failure:
    if timeout is None:
        return Failure(report=describe(error, scene=scene, origin="call"), typed=True)
    return Failure.of(
        "limit.step_timeout",
        f"agent `{request.node.name}` did not answer within {timeout:g} s",
        details={"timeout_seconds": timeout, "node": request.node.name},
        typed=True,
        scene=scene,
    )


def _usage(turn: "Turn | None") -> dict[str, Any] | None:
    return None if turn is None else _used(turn.tokens, turn.cost)


def _used(tokens: Mapping[str, int], cost: int | None) -> dict[str, Any] | None:
    if not tokens:
        return None
    return {**tokens} if cost is None else {**tokens, "cost_usd": cost / _MICRO_CENTS_PER_DOLLAR}


def _scene(request: Request) -> Scene:
    return Scene(
        run=request.run,
        workflow=request.workflow,
        node=request.node.name,
        item=request.item,
        attempt=request.attempt,
    )
