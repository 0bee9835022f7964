"""The models, the tools and the budget that the agents of one run share."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from failwell.calls.shared_budget import SharedBudget
from failwell.errors.frozen import frozen
from failwell.workflows.agent_steps.conversations import Conversations
from failwell.workflows.agent_steps.step_log import AgentLog
from failwell.workflows.agent_steps.step_settings import (
    AgentSettings,
    file_prices,
    granted_names,
    model_specs,
)
from failwell.workflows.machine.messages import Request
from failwell.workflows.running.executor import Tools

if TYPE_CHECKING:
    from failwell.agents.audit import TurnAudit
    from failwell.agents.grants import AskGrant, StageGrants
    from failwell.agents.models import ModelSpec
    from failwell.agents.people.queue import InteractionQueue
    from failwell.agents.recovery import Recovery
    from failwell.agents.tool_calls import Dispatcher, OnceCalls
    from failwell.agents.tools.tool import Approver, Tool
    from failwell.calls.attempt_loop import AttemptEvent
    from failwell.calls.budget import Budget
    from failwell.calls.chain.chain import Chain
    from failwell.store.audit import Audit
    from failwell.workflows.plan import Plan

_UNBOUNDED = 2**31


@frozen
class Asker:
    """Who calls a model for a node, where that is not the node's own turn: a validator or a dialog."""

    name: str
    """As scripts of a scripted model name it."""
    model: str | None = None
    """Another model than the node's."""
    output: Mapping[str, Any] | None = None
    """The JSON Schema of the answer."""


class AgentRun:
    """The models of one run, the claims of its tools, and its tools by workflow file.

    Args:
        folder: The private folder of the run.
        state_folder: Keeps the claims of tools that must not run twice.
        model: A model that every agent uses instead of its own.
        audit: Where it is recorded what agents do.
        people: Where people are asked after failures.
    """

    def __init__(
        self,
        folder: Path,
        state_folder: Path,
        model: str | None = None,
        audit: "Audit | None" = None,
        people: "Callable[[], InteractionQueue] | None" = None,
    ) -> None:
        from failwell.agents.models import Models
        from failwell.agents.tools.commands import CommandRunner
        from failwell.agents.tools.mcp import McpServers
        from failwell.store.effects.sqlite import SqliteClaims

        self._servers = McpServers(folder)
        self.models = Models()
        self.model = model
        self._audit = audit
        self._people = people
        self._claims = SqliteClaims(state_folder)
        self._runner = CommandRunner(folder)
        self._open: dict[str, dict[str, Tool]] = {}
        self._approved: dict[str, SharedBudget] = {}
        self.conversations = Conversations(folder)

    async def chain(
        self, request: Request, tools: Tools, settings: "AgentSettings", asker: Asker | None = None
    ) -> "Chain[Any]":
        """The models of a node, in the order in which they are called.

        Raises:
            Validation: a model cannot be used as it is written.
        """
        from failwell.agents.models import usage_of
        from failwell.calls.chain.chain import Chain
        from failwell.calls.chain.entry import ChainPolicy

        name = request.node.name if asker is None else asker.name
        # A script may have other replies for a later attempt.
        execution = f"{name}@{request.visit}#{request.attempt}"
        specs = model_specs(request, settings, self.model, None if asker is None else asker.model)
        entries = [
            await self.models.entry(
                spec,
                agent=execution,
                folder=Path(tools.plan.folder),
                settings=settings.own,
                output=request.node.output if asker is None else asker.output,
            )
            for spec in specs
        ]
        log = AgentLog(tools.note, request)
        audit = self._audit_of(request)
        if audit is not None:
            entries = [audit.entry(entry) for entry in entries]

        def watch(event: "AttemptEvent") -> None:
            log.write_attempt(event)
            if audit is not None:
                audit.model_failed(event)

        return Chain(
            *entries,
            policy=ChainPolicy(
                # Generating text again changes nothing outside.
                idempotent=True,
                # With a single model there is nobody to turn to while it cools down.
                cooldown=30.0 if len(entries) > 1 else 0.0,
                usage=usage_of,
                refresh=self._sign_in(request, specs),
            ),
            prices=file_prices(settings.runtime.get("cost")),
            budget=self.budget(request, tools),
            watcher=watch,
            name=name,
        )

    def once_calls(self, scope: str) -> "OnceCalls":
        """What keeps the calls in `scope` from happening twice."""
        from failwell.agents.tool_calls import OnceCalls

        return OnceCalls(self._claims, scope)

    def grants(self, request: Request, ask: "AskGrant") -> "StageGrants":
        """The grants of one attempt of a stage."""
        from failwell.agents.grants import StageGrants

        execution = f"run-{request.run}/{request.path}/{request.visit}"
        return StageGrants(self._claims, execution, request.attempt, ask)

    async def dispatcher(
        self,
        request: Request,
        tools: Tools,
        settings: "AgentSettings",
        approver: "Approver | None",
        completion: "Tool | None" = None,
        once: "OnceCalls | None" = None,
        *,
        servers: "Mapping[str, Mapping[str, Any]] | None" = None,
        agents: "Mapping[str, Tool] | None" = None,
        grants: "StageGrants | None" = None,
    ) -> "Dispatcher":
        """Runs the tool calls of a node.

        Args:
            request: The node.
            tools: What belongs to its run.
            settings: Its settings.
            approver: Asks a person whether a tool may be called.
            completion: The tool that ends a stage.
            once: Keeps calls from happening twice; by default within one visit of the node.
            servers: MCP servers besides those of the file.
            agents: Agents that are called as tools, granted to this node.
            grants: Asks a person about calls of tools that the node may not call.

        Raises:
            ToolTerminal: an MCP server does not start.
            Validation: a tool is defined by a module or a function that is not there.
        """
        from failwell.agents.tool_calls import Dispatcher

        names: list[str] | None = settings.own.get("tools")
        folder = settings.folder(tools.plan.folder)
        of_file: Mapping[str, Mapping[str, Any]] = tools.plan.runtime.get("mcp_servers") or {}
        all_servers = {**of_file, **(servers or {})}
        registry = {
            # The tools of the file come last: a server cannot take the place of one.
            **await self._server_tools(all_servers, names, folder),
            **(agents or {}),
            **self._tools_of(tools.plan),
        }
        granted = granted_names(names, registry, frozenset(all_servers))
        if granted is not None:
            granted += agents or ()
        if completion is not None:
            registry[completion.name] = completion
            granted = [*(granted or ()), completion.name]
        limits: Mapping[str, Any] = settings.runtime.get("tool_output") or {}
        longest = limits.get("max_chars", 50 * 1024) if limits.get("enabled", True) else _UNBOUNDED
        return Dispatcher(
            registry,
            granted=granted,
            agent=request.node.name,
            approver=approver,
            longest=longest,
            shows_text=settings.own.get("tool_errors") == "full",
            once=once or self.once_calls(f"run-{request.run}/{request.path}/{request.visit}"),
            grants=grants,
            audit=self._audit_of(request),
            recovery=self._recovery(request),
        )

    def _recovery(self, request: Request) -> "Recovery | None":
        if self._people is None:
            return None
        from failwell.agents.recovery import Recovery

        scope = {"run": request.run, "path": request.path, "node": request.node.name}
        return Recovery(self._people, scope)

    def _sign_in(self, request: Request, specs: "Sequence[ModelSpec]") -> "Callable[[str], Awaitable[bool]]":
        """Reads the key again when a provider refuses it, and asks a person for another if it is the same."""
        recovery = self._recovery(request)

        async def sign_in(provider: str) -> bool:
            if await self.models.reread(provider):
                return True
            for spec in specs:
                if recovery is not None and spec.parts[0] == provider:
                    return await recovery.sign_in(self.models, provider, spec.provider)
            return False

        return sign_in

    def _audit_of(self, request: Request) -> "TurnAudit | None":
        """The audit of one attempt of a node."""
        if self._audit is None:
            return None
        from failwell.agents.audit import TurnAudit

        scope = {"node": request.node.name, "item": request.item, "step_attempt": request.attempt}
        return TurnAudit(self._audit.bind(**scope))

    def budget(self, request: Request, tools: Tools) -> SharedBudget | None:
        """What a node may spend: the budget of the run, or what a person has approved beyond it."""
        if tools.budget is None or not request.approved:
            return tools.budget
        key = f"{request.path}/{request.visit}"
        approved = self._approved.get(key)
        if approved is None:
            approved = self._approved[key] = ApprovedBudget(tools.budget.budget, tools.budget)
        return approved

    def _tools_of(self, plan: "Plan") -> "dict[str, Tool]":
        """The tools that a file defines."""
        tools = self._open.get(plan.file)
        if tools is None:
            from failwell.agents.tools.registry import open_tools

            tools = open_tools(plan.tool_definitions, folder=Path(plan.folder), runner=self._runner)
            self._open[plan.file] = tools
        return tools

    async def _server_tools(
        self, servers: Mapping[str, Mapping[str, Any]], granted: "list[str] | None", folder: Path
    ) -> "dict[str, Tool]":
        """The tools of MCP servers, of those that an agent may call."""
        tools: dict[str, Tool] = {}
        for name, settings in servers.items():
            if granted is None or any(other == name or other.startswith(f"{name}__") for other in granted):
                tools |= await self._servers.tools(name, settings, folder)
        return tools

    async def close(self, grace: float) -> object:
        """Close the models and the servers, and stop what the commands have left running."""
        try:
            await self.models.close()
            await self._servers.close()
        finally:
            self._claims.close()
            survivors = await self._runner.close(grace)
        return survivors


class ApprovedBudget(SharedBudget):
    """What a person let one step spend beyond the budget of the run: its next call, and as much again as that budget.

    Args:
        budget: The limit, counted from the approval.
        run: The budget of the run, which counts what is spent here.
    """

    def __init__(self, budget: "Budget", run: SharedBudget) -> None:
        super().__init__(budget)
        self._run = run

    def _set_aside(self, cost: int) -> str | None:
        if self.spent.cost:
            return super()._set_aside(cost)
        # The call that the question was about, however much it may cost.
        self._change(lambda: setattr(self, "_reserved", self._reserved + cost))
        return None

    def settle(self, reserved: int, cost: int) -> None:
        """Give back what was reserved, and spend what it really cost, in the run as well."""
        super().settle(reserved, cost)
        self._run.settle(0, cost)
