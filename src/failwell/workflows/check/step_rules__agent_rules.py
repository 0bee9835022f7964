"""Rules about what agents are given: skills and plugins are there, and a session has one user at a time."""

from collections.abc import Iterator, Mapping
from typing import Any

from failwell.files.mistakes import Mistake
from failwell.workflows.check.check_context import CheckContext
from failwell.workflows.check.findings import error, warning
from failwell.workflows.plan import AgentSpec, ForEachSpec, Node, ParallelSpec, Template
from failwell.workflows.skills.plugins import find_plugin
from failwell.workflows.skills.skills import SkillInvalid, find_skills

WARN_BYTES = 65_536
"""Bytes of skills in the instructions of an agent that are worth a warning."""


def agents(context: CheckContext) -> Iterator[Mistake]:
    """Check the skills, plugins and sessions of agents."""
    runtime = context.plan.runtime
    yield from _entries(context, runtime, None, "workflow.runtime")
    for node, _, path, _ in context.placed_nodes:
        if isinstance(node.spec, AgentSpec):
            yield from _entries(context, node.spec.settings, node, path)
    yield from _sessions(context)


def _entries(
    context: CheckContext, settings: Mapping[str, Any], node: Node | None, path: str
) -> Iterator[Mistake]:
    folder, place = context.plan.folder, None if node is None else node.place
    sources: Mapping[str, Any] = context.plan.runtime.get("plugin_sources") or {}
    size = 0
    for index, entry in enumerate(settings.get("skills") or ()):
        try:
            size += sum(skill.size for skill in find_skills(_plain(entry), folder))
        except SkillInvalid as invalid:
            yield error(place, str(invalid), path=f"{path}.skills[{index}]")
    for index, entry in enumerate(settings.get("plugins") or ()):
        try:
            size += sum(skill.size for skill in find_plugin(_plain(entry), _plain(sources), folder).skills)
        except SkillInvalid as invalid:
            yield error(place, str(invalid), path=f"{path}.plugins[{index}]")
    limits: Mapping[str, Any] = context.plan.runtime.get("skill_injection") or {}
    most = limits.get("warn_bytes", WARN_BYTES)
    if most is not None and size > most:
        yield warning(
            place,
            f"the skills are {size:,} bytes, and every model call sends them",
            path=f"{path}.skills",
            hint="name fewer, or set `skill_injection.warn_bytes`",
        )


def _plain(value: Any) -> Any:
    """An entry as it was written. Texts in settings of agents are templates."""
    if isinstance(value, Template):
        return value.text
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


def _sessions(context: CheckContext) -> Iterator[Mistake]:
    """Two steps that run at once cannot continue the same conversation."""
    for node, _, path, _ in context.placed_nodes:
        if isinstance(node.spec, ForEachSpec) and _session(node.spec.body) and node.spec.max_concurrent > 1:
            yield error(
                node.place,
                f"the items of `{node.name}` run at once and share the session `{_session(node.spec.body)}`",
                path=f"{path}.agent.session_key",
                hint="set `max_concurrent: 1`, or remove `session_key`",
            )
        if isinstance(node.spec, ParallelSpec):
            keys = [_session(context.plan.nodes.get(member.name)) for member in node.spec.members]
            shared = next((key for key in keys if key and keys.count(key) > 1), None)
            if shared is not None:
                yield error(
                    node.place,
                    f"members of `{node.name}` run at once and share the session `{shared}`",
                    path=path,
                    hint="give each its own `session_key`",
                )


def _session(node: Node | None) -> str:
    if node is None or not isinstance(node.spec, AgentSpec):
        return ""
    return str(_plain(node.spec.settings.get("session_key")) or "")
