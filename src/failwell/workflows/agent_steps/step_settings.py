"""The settings of an agent's step over those of its workflow: models, prices, folders and what its tools get."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from failwell.errors.faults import Validation
from failwell.workflows.agent_steps.protected_files import protected_files
from failwell.workflows.machine.messages import Request
from failwell.workflows.running.executor import Tools

if TYPE_CHECKING:
    from failwell.agents.models import ModelSpec
    from failwell.agents.tools.tool import Tool, ToolContext
    from failwell.calls.cost import Prices
    from failwell.workflows.plan import Plan

_INHERITED = (
    "temperature",
    "max_tokens",
    "timeout",
    "max_agent_iterations",
    "max_session_seconds",
    "idle_timeout_seconds",
    "working_dir",
)
"""Keys of `runtime` that a node may replace by its own."""
_EFFORTS = ("low", "medium", "high", "xhigh", "max")


class AgentSettings:
    """The settings of a node over those of its workflow.

    Raises:
        Validation: a value that a template gave is not one of those that are allowed.
    """

    def __init__(self, request: Request, plan: "Plan") -> None:
        self.runtime: Mapping[str, Any] = plan.runtime
        inherited = {key: plan.runtime[key] for key in _INHERITED if plan.runtime.get(key) is not None}
        self.own: dict[str, Any] = {**inherited, **request.call.get("settings", {})}
        reasoning: Mapping[str, Any] = self.own.get("reasoning") or {}
        effort = reasoning.get("effort") or plan.runtime.get("default_reasoning_effort")
        if effort is not None:
            self.own["thinking"] = _choice("reasoning.effort", effort, _EFFORTS, request)
        self._plan = plan
        self._node = request.node.name

    @property
    def most_calls(self) -> int:
        """Model calls of one turn: one, and one after each round of tools that is allowed."""
        from failwell.agents.turn import MOST_CALLS

        iterations: int | None = self.own.get("max_agent_iterations")
        return MOST_CALLS if iterations is None else iterations + 1

    @property
    def corrections(self) -> int:
        """How often a better answer is asked for where one is not as the node declares it."""
        return self.own.get("max_parse_recovery_attempts") or 0

    def folder(self, default: str) -> Path:
        """Where commands and servers of the node run.

        Raises:
            Validation: the folder that the node names is not there.
        """
        written: str | None = self.own.get("working_dir")
        if not written:
            return Path(default)
        folder = Path(self._plan.folder) / Path(written).expanduser()
        if not folder.is_dir():
            raise Validation(
                kind="validation.config_invalid",
                message=f"the working folder of `{self._node}` is not there: {folder}",
                fields_invalid=["working_dir"],
                caller_facing=True,
            )
        return folder


def _choice(key: str, value: object, choices: tuple[str, ...], request: Request) -> str:
    """A value that a template may have given."""
    if value not in choices:
        raise Validation(
            kind="validation.config_invalid",
            message=f"`{key}` of `{request.node.name}` must be one of {', '.join(choices)}",
            fields_invalid=[key],
            caller_facing=True,
        )
    return str(value)


def tool_context(request: Request, tools: Tools, settings: AgentSettings) -> "ToolContext":
    """What the tools of a node get besides their arguments."""
    from failwell.agents.tools.tool import ToolContext

    folder = settings.folder(request.call.get("folder") or tools.plan.folder)
    limits: Mapping[str, Any] = settings.runtime.get("tool_output") or {}
    scratch = tools.run_folder
    if limits.get("spill_dir"):
        scratch = Path(tools.plan.folder) / Path(limits["spill_dir"]).expanduser()
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    return ToolContext(
        key=request.key,
        folder=folder,
        scratch=scratch if limits.get("spill_to_file", True) else None,
        protected=partial(protected_files, tools.plan, tools.run_folder),
        grace=tools.grace,
    )


def granted_names(
    names: "list[str] | None", registry: "Mapping[str, Tool]", servers: frozenset[str]
) -> list[str] | None:
    """The tools that an agent may call; the name of an MCP server, and no other, stands for all its tools."""
    if names is None:
        return None
    groups = tuple(f"{name}__" for name in names if name in servers)
    return [*names, *(tool for tool in registry if tool.startswith(groups))]


def model_specs(
    request: Request, settings: AgentSettings, override: str | None, own_model: str | None
) -> "list[ModelSpec]":
    """The models of an agent, in the order in which they are called.

    Args:
        request: The node.
        settings: Its settings.
        override: A model that replaces all of them.
        own_model: A model that replaces the first one.
    """
    from failwell.agents.models import ATTEMPTS, MODEL_BACKOFF, ModelSpec, model_name, no_model

    own, runtime = settings.own, settings.runtime
    provider = _provider(own.get("provider")) or _provider(runtime.get("provider"))
    name: str | None = override or own_model or request.call["model"] or runtime.get("default_model")
    if not name:
        raise no_model(request.node.name)
    if override is not None:
        return [ModelSpec(name=model_name(override, None), attempts=own.get("max_attempts", ATTEMPTS))]
    first = ModelSpec(
        name=model_name(name, provider.get("name")),
        attempts=own.get("max_attempts", ATTEMPTS),
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
        for fallback in own.get("fallback", ())
    ]
    return [first, *others]


def file_prices(cost: Any) -> "Prices":
    """The prices of the file, and the public ones."""
    from failwell.calls.cost import Price, Prices

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
