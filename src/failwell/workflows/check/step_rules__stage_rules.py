"""Rules about stages: what their templates read from the context, the tools that they allow, and their names."""

from collections.abc import Iterator

from failwell.files.mistakes import Mistake
from failwell.files.suggestions import choices
from failwell.workflows.check.check_context import CheckContext
from failwell.workflows.check.findings import error, warning
from failwell.workflows.check.template_texts import STAGE_NAMES
from failwell.workflows.compile.step_index import NAMES
from failwell.workflows.plan import Node, StageSpec


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
