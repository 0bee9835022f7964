"""The models and the tools of one run, and the settings of its agents."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from failwell.workflow.machine.messages import Request
from failwell.workflow.run.executor import Tools

if TYPE_CHECKING:
    from failwell.runtime.cost import Prices
    from failwell.turns.models import ModelSpec
    from failwell.turns.tools.tool import Tool
    from failwell.workflow.plan import Plan


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


def granted_names(
    names: "list[str] | None", registry: "Mapping[str, Tool]", servers: frozenset[str]
) -> list[str] | None:
    """The tools that an agent may call; the name of an MCP server, and no other, stands for all its tools."""
    if names is None:
        return None
    groups = tuple(f"{name}__" for name in names if name in servers)
    return [*names, *(tool for tool in registry if tool.startswith(groups))]


def agent_settings(request: Request, tools: Tools) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of the node over those of the workflow, and those of the workflow."""
    runtime = dict(tools.plan.runtime)
    inherited = {
        key: runtime[key]
        for key in ("temperature", "max_tokens", "timeout", "max_agent_iterations")
        if key in runtime
    }
    return {**inherited, **request.call["settings"]}, runtime


def model_specs(
    request: Request, settings: Mapping[str, Any], runtime: Mapping[str, Any], override: str | None
) -> "list[ModelSpec]":
    """The models of an agent, in the order in which they are called."""
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


def file_prices(cost: Any) -> "Prices":
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
