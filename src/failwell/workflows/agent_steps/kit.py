"""What an agent is given besides its own keys: skills, and the skills, servers and agents of plugins."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from failwell.errors.faults import Validation
from failwell.errors.frozen import frozen
from failwell.workflows.skills.plugins import Plugin, PluginAgent, find_plugin
from failwell.workflows.skills.skills import Skill, SkillInvalid, discovered_skills, find_skills

if TYPE_CHECKING:
    from failwell.agents.tools.tool import Tool
    from failwell.workflows.plan import Plan

    CallAgent = Callable[[str, PluginAgent, str], Awaitable[str]]

MOST_BYTES = 163_840
"""Bytes of skills in the instructions of an agent."""


@frozen
class AgentKit:
    """Skills, servers and agents of one agent."""

    skills: tuple[Skill, ...] = ()
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    agents: Mapping[str, PluginAgent] = field(default_factory=dict[str, PluginAgent])
    """By the name of the plugin and their own: `plugin:agent`."""
    notes: tuple[str, ...] = ()

    @property
    def skill_text(self) -> str:
        """The skills, as a model reads them; empty if there are none."""
        return "\n\n".join(
            f'<skill name="{skill.name}">\n{skill.description}\n\n{skill.text}\n</skill>'
            for skill in self.skills
        )

    @property
    def text(self) -> str:
        """What a model is told about all of it; empty if there is nothing."""
        called = [f"The agent `{name}` is called with the tool `{tool_name(name)}`." for name in self.agents]
        return "\n\n".join(part for part in (self.skill_text, *called) if part)

    def tools(self, call: "CallAgent") -> "dict[str, Tool]":
        """The agents as tools. `call` runs one of them with a task."""
        return {tool_name(name): _tool(name, agent, call) for name, agent in self.agents.items()}


EMPTY_KIT = AgentKit()


def agent_kit(own: Mapping[str, Any], plan: "Plan") -> AgentKit:
    """The kit of an agent. A list of its own, also an empty one, replaces that of the workflow.

    Raises:
        Validation: a skill or a plugin is not there or cannot be used, two have the same name, or they are too long.
    """
    runtime, base = plan.runtime, plan.folder
    skill_names, plugin_names = own.get("skills"), own.get("plugins")
    discovery: Mapping[str, Any] = runtime.get("skill_discovery") or {}
    if not any(
        (skill_names, plugin_names, runtime.get("skills"), runtime.get("plugins"), discovery.get("sources"))
    ):
        return EMPTY_KIT
    try:
        declared = [
            skill
            for entry in (runtime.get("skills") or () if skill_names is None else skill_names)
            for skill in find_skills(entry, base)
        ]
        sources: Mapping[str, Any] = runtime.get("plugin_sources") or {}
        plugins = [
            find_plugin(entry, sources, base)
            for entry in (runtime.get("plugins") or () if plugin_names is None else plugin_names)
        ]
        _refuse_twins(declared, plugins, runtime.get("mcp_servers") or {})
    except SkillInvalid as invalid:
        raise _refusal(str(invalid)) from invalid
    notes: list[str] = []
    found: list[Skill] = []
    if skill_names is None and discovery.get("sources"):
        found, notes = discovered_skills(discovery["sources"], discovery.get("exclude") or (), base)
    skills: dict[str, Skill] = {}
    for skill in [*declared, *(skill for plugin in plugins for skill in plugin.skills), *found]:
        # One that the file names wins over one that happens to be installed.
        skills.setdefault(skill.name, skill)
    limits: Mapping[str, Any] = runtime.get("skill_injection") or {}
    _refuse_long(list(skills.values()), limits.get("max_bytes", MOST_BYTES))
    return AgentKit(
        skills=tuple(skills.values()),
        servers={name: settings for plugin in plugins for name, settings in (plugin.servers or {}).items()},
        agents={f"{plugin.name}:{agent.name}": agent for plugin in plugins for agent in plugin.agents},
        notes=tuple(notes),
    )


def tool_name(name: str) -> str:
    """The name of a tool that calls an agent: models take letters, digits, `_` and `-`."""
    return "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "_-") else "_" for letter in name
    )[:64]


def _refuse_twins(declared: list[Skill], plugins: list[Plugin], servers: Mapping[str, Any]) -> None:
    """Two parts of one name would hide one of them."""
    names = [skill.name for skill in declared]
    taken = dict.fromkeys(servers, "`mcp_servers`")
    skills: dict[str, str] = {}
    for name in names:
        if names.count(name) > 1:
            raise SkillInvalid(f"two skills are called `{name}`")
    for plugin in plugins:
        for skill in plugin.skills:
            if skill.name in skills:
                raise SkillInvalid(
                    f"the plugins {skills[skill.name]} and `{plugin.name}` both have a skill `{skill.name}`"
                )
            skills[skill.name] = f"`{plugin.name}`"
        for server in plugin.servers or ():
            if server in taken:
                raise SkillInvalid(
                    f"{taken[server]} and the plugin `{plugin.name}` both have an MCP server `{server}`"
                )
            taken[server] = f"the plugin `{plugin.name}`"


def _refuse_long(skills: list[Skill], most: int | None) -> None:
    size = sum(skill.size for skill in skills)
    if most is not None and size > most:
        parts = ", ".join(f"`{skill.name}` {skill.size:,}" for skill in skills)
        raise _refusal(
            f"the skills are {size:,} bytes ({parts}), and {most:,} are allowed; name fewer, or raise"
            " `runtime.skill_injection.max_bytes`"
        )


def _refusal(message: str) -> Validation:
    return Validation(
        kind="validation.config_invalid", message=message, fields_invalid=["skills"], caller_facing=True
    )


def _tool(name: str, agent: PluginAgent, call: "CallAgent") -> "Tool":
    from failwell.agents.tools.tool import Tool, ToolContext

    async def run(arguments: Mapping[str, Any], _context: ToolContext) -> str:
        return await call(name, agent, str(arguments["task"]))

    return Tool(
        name=tool_name(name),
        description=agent.description[:4_000] or f"Ask the agent {name}.",
        parameters={
            "type": "object",
            "properties": {
                "task": {"type": "string", "description": "what the agent does, with all it needs"}
            },
            "required": ["task"],
            "additionalProperties": False,
        },
        run=run,
        # It only generates text.
        effect="read",
    )
