"""Rules about single steps: template syntax, executors, limits, inputs of sub-workflows, skills of agents, stages."""

import os.path
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from failwell.files.mistakes import Mistake
from failwell.files.suggestions import choices
from failwell.workflows.check.check_context import CheckContext, PlacedNode
from failwell.workflows.check.findings import error, softened, warning
from failwell.workflows.check.template_texts import STAGE_NAMES
from failwell.workflows.compile.step_index import FLOW, INPUTS, NAMES
from failwell.workflows.plan import (
    AgentSpec,
    ForEachSpec,
    Node,
    ParallelSpec,
    Plan,
    StageSpec,
    Template,
    WaitSpec,
    WorkflowSpec,
)
from failwell.workflows.skills.plugins import find_plugin
from failwell.workflows.skills.skills import SkillInvalid, find_skills
from failwell.workflows.template.mistakes import MistakeType

_HINT = "look for a missing brace, quote or `end…`"
_HINTS: dict[str, str] = {
    MistakeType.UNKNOWN_FILTER: "the word after `|` is not a filter",
    MistakeType.UNKNOWN_TEST: "the word after `is` is not a test",
    MistakeType.UNKNOWN_FUNCTION: "the guide on workflows lists the functions and methods of templates",
    MistakeType.LENGTH: "put the text into a file, and let a script read it",
}


def syntax(context: CheckContext) -> Iterator[Mistake]:
    """Templates that cannot be parsed, each with the line in it."""
    for text in context.texts:
        broken = context.syntax_mistake(text)
        if broken is not None:
            template = text.template
            yield softened(
                error(
                    template.unfolded().place_of(broken.line),
                    f"`{text.field}` cannot be read: {broken.without_line if template.first_line else broken}",
                    path=text.field,
                    hint=_HINTS.get(broken.type, _HINT),
                )
            )


EXECUTORS: dict[str, str] = {"agent": "agents", "job": "jobs", "stage": "agents", "tool": "agents"}
"""Type of node → the extra that installs its executor. Other types need none."""

BUILT_IN: frozenset[str] = frozenset(
    {"job", "agent", "stage", "tool"} if find_spec("pydantic_ai") else {"job"}
)
"""Types of `EXECUTORS` that this installation can run."""


def executors(context: CheckContext) -> Iterator[Mistake]:
    """Nodes of types that have no executor here."""
    for node, _, path, _ in context.placed_nodes:
        extra = EXECUTORS.get(node.type)
        # A step without a readable type counts as an agent.
        if extra is not None and node.type not in context.available and context.is_complete(node):
            yield error(
                node.place,
                f"`{node.name}` is of type `{node.type}`, and this type of node needs the extra `{extra}`,"
                " which is not installed here",
                path=f"{path}.type",
                hint=f"install `failwell[{extra}]`",
            )


def limits(context: CheckContext) -> Iterator[Mistake]:
    """Limits on iterations, time and cost that cannot be enough."""
    plan = context.plan
    max_iterations = plan.limits.max_iterations
    if max_iterations is not None and context.knows(FLOW):
        fewest = context.flow.fewest_steps()
        if fewest is not None and fewest > max_iterations:
            yield warning(
                None,
                f"the shortest run takes {fewest} steps, but `max_iterations` is {max_iterations}",
                path="workflow.limits.max_iterations",
                hint=f"allow {fewest} or more",
            )
    for placed in context.placed_nodes:
        node, spec = placed.node, placed.node.spec
        seconds = spec.duration if isinstance(spec, WaitSpec) else getattr(spec, "timeout", None)
        run_seconds = plan.limits.timeout_seconds
        if run_seconds is not None and isinstance(seconds, int | float) and seconds > run_seconds:
            verb = "waits" if isinstance(spec, WaitSpec) else "may take"
            yield warning(
                node.place,
                f"`{node.name}` {verb} {seconds:g} s, but the whole run has {run_seconds:g} s",
                path=f"{placed.path}.{'duration' if isinstance(spec, WaitSpec) else 'timeout'}",
                hint="give the run more time with `workflow.limits.timeout_seconds`",
            )
        budget = plan.limits.budget_usd
        if budget is not None and node.estimate_usd is not None and node.estimate_usd > budget:
            yield warning(
                node.place,
                f"`{node.name}` is expected to cost ${node.estimate_usd:g}, but the whole run has ${budget:g}",
                path=f"{placed.path}.estimate_usd",
                hint="raise `workflow.limits.budget_usd`",
            )


def child_path(plan: Plan, spec: WorkflowSpec) -> str | None:
    """The file of a sub-workflow, resolved against the one that names it; `None` if a template chooses it."""
    if not spec.path.is_plain or not spec.path.text:
        return None
    return os.path.normpath(os.path.join(plan.folder, spec.path.text))  # noqa: PTH118


def child_of(context: CheckContext, spec: WorkflowSpec) -> Plan | None:
    """The plan of a sub-workflow, if it was compiled."""
    path = child_path(context.plan, spec)
    return None if path is None else context.children.get(path)


def children(context: CheckContext) -> Iterator[Mistake]:
    """Check the inputs that steps pass to sub-workflows."""
    for placed in context.placed_nodes:
        spec = placed.node.spec
        if not isinstance(spec, WorkflowSpec) or not context.is_complete(placed.node):
            continue
        if (child := child_of(context, spec)) is not None:
            yield from _inputs(context, placed, spec, child)


def _inputs(context: CheckContext, placed: PlacedNode, spec: WorkflowSpec, child: Plan) -> Iterator[Mistake]:
    name = placed.node.name
    path = f"{placed.path}.input_mapping"
    # Without a mapping all inputs are passed on, and a workflow that declares none may be given any.
    if spec.input_mapping is None and not (context.knows(INPUTS) and context.plan.inputs):
        return
    inputs = context.plan.inputs if spec.input_mapping is None else spec.input_mapping
    if spec.input_mapping is not None:
        for key in spec.input_mapping:
            if key not in child.inputs:
                near = context.near(key, child.inputs, spec.path.text)
                hint = choices(near, child.inputs, f"`{spec.path.text}` declares no inputs")
                message = f"`{spec.path.text}` declares no input `{key}`"
                yield warning(placed.node.place, message, path=f"{path}.{key}", hint=hint)
    for key, declared in child.inputs.items():
        if declared.required and not declared.has_default and key not in inputs:
            message = f"`{spec.path.text}` needs the input `{key}`, and `{name}` does not pass it"
            hint = f"add `{key}` to its `input_mapping`"
            yield error(placed.node.place, message, path=path, hint=hint)


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


def stages(context: CheckContext) -> Iterator[Mistake]:
    """Check every stage."""
    specs = {node.name: node.spec for node in context.plan.nodes.values() if isinstance(node.spec, StageSpec)}
    if not specs:
        return
    for node in context.plan.nodes.values():
        if node.name in STAGE_NAMES or node.name == "act":
            yield error(
                node.place,
                f"the name `{node.name}` has another meaning in the templates of stages",
                path=node.name,
                hint="choose another name",
            )
        if isinstance(node.spec, StageSpec) and context.is_complete(node):
            yield from _tools(context, node, node.spec)
            group = context.flow.owner.get(node.name)
            if group is not None and node.spec.resolution != "abort-workflow":
                yield warning(
                    node.place,
                    f"`{node.name}` runs in `{group}`, which fails with it; its `resolutionPolicy` has no effect",
                    path=f"{node.name}.resolutionPolicy",
                    hint="remove it",
                )
    if not context.knows(NAMES) or any("setup" in spec.code for spec in specs.values()):
        # What code writes into the context is known when it runs.
        return
    written = sorted({key for spec in specs.values() for key in spec.setup})
    for use in context.uses:
        for reference in use.references:
            root, *steps = reference.path
            if root != "ctx" or root not in use.text.names or not steps or steps[0] in written:
                continue
            if reference.guarded:
                continue
            near = context.near(steps[0], written, "context")
            yield error(
                use.text.template.place,
                f"no stage writes `{steps[0]}` into the context",
                path=use.text.field,
                hint=choices(near, written, "write it in the `setup` of a stage"),
            )


def _tools(context: CheckContext, node: Node, spec: StageSpec) -> Iterator[Mistake]:
    """Tools that a stage allows and the file does not define."""
    plan = context.plan
    servers: tuple[str, ...] = tuple(plan.runtime.get("mcp_servers") or ())
    known = {*plan.tools, *servers}
    for name in spec.allowed_tools:
        if name in known or name.startswith(tuple(f"{server}__" for server in servers)):
            continue
        hint = choices(context.near(name, known, "tools"), sorted(known), "define it under `tools`")
        yield error(
            node.place,
            f"`{node.name}` allows the tool `{name}`, which the file does not define",
            path=f"{node.name}.allowedTools",
            hint=hint,
        )
    if spec.completion_tool in spec.allowed_tools or spec.completion_tool in plan.tools:
        yield error(
            node.place,
            f"`{spec.completion_tool}` is a tool of the file, and `{node.name}` is complete when it is called",
            path=f"{node.name}.completionTool",
            hint="give the completion tool another name",
        )
