"""Rules about groups: which nodes may be members, and what members may not have."""

from collections.abc import Iterator

from failwell.files.mistakes import Mistake
from failwell.files.suggestions import choices
from failwell.workflows.check.check_context import CheckContext
from failwell.workflows.check.findings import error, warning
from failwell.workflows.compile.step_index import NAMES
from failwell.workflows.graph.model import is_same_step
from failwell.workflows.plan import GROUPS, PEOPLE, ForEachSpec, Node, ParallelSpec

_BARRED = {
    **dict.fromkeys(PEOPLE, "a person answers one thing at a time"),
    "terminate": "it would end the run while other members are running",
}
RESERVED = frozenset(
    {"workflow", "context", "output", "error", "failwell", "conductor", "self", "_index", "_key"}
)
"""Names with a meaning in templates. No step and no loop variable may have one."""


def groups(context: CheckContext) -> Iterator[Mistake]:
    """Check every group, at any depth."""
    home: dict[str, str] = {}
    for node, _, path, _ in context.placed_nodes:
        spec = node.spec
        if node.name in RESERVED:
            yield error(
                node.place,
                f"the name `{node.name}` is reserved in templates",
                path=path,
                hint="give the step another name",
            )
        if isinstance(spec, ParallelSpec):
            yield from _parallel(context, node, spec, home)
        elif isinstance(spec, ForEachSpec):
            yield from _for_each(context, node, spec, path)
    yield from _cycles(context)


def _parallel(
    context: CheckContext, node: Node, spec: ParallelSpec, home: dict[str, str]
) -> Iterator[Mistake]:
    path = f"{node.name}.agents"
    if len(spec.members) < 2 and context.is_complete(node):
        yield error(
            node.place,
            f"the group `{node.name}` has {len(spec.members)} member{'' if spec.members else 's'}",
            path=path,
            hint="name at least two, or use the step without a group",
        )
    names: set[str] = set()
    for index, member in enumerate(spec.members):
        field = f"{path}[{index}]"
        step = context.plan.nodes.get(member.name)
        if step is None:
            if not context.knows(NAMES):
                continue
            hint = choices(
                context.near(member.name, context.plan.nodes, "nodes"),
                context.plan.nodes,
                "add a step with that name",
            )
            yield error(
                node.place, f"`{node.name}` has no step `{member.name}` to run", path=field, hint=hint
            )
            continue
        group = home.setdefault(member.name, node.name)
        if group != node.name or member.name in names:
            message = (
                f"`{member.name}` is in `{node.name}` twice"
                if group == node.name
                else f"`{member.name}` is a member of both `{group}` and `{node.name}`"
            )
            yield error(node.place, message, path=field, hint="give each group its own step")
        names.add(member.name)
        yield from _member(context, step, node)


def _for_each(context: CheckContext, node: Node, spec: ForEachSpec, path: str) -> Iterator[Mistake]:
    body = spec.body
    if spec.variable in RESERVED or not spec.variable.isidentifier():
        yield error(
            node.place,
            f"`{spec.variable}` cannot be the name of an item",
            path=f"{path}.as",
            hint="use another word, such as `item`",
        )
    elif spec.variable in context.plan.nodes:
        yield warning(
            node.place,
            f"in `{node.name}` the item `{spec.variable}` hides the step of that name",
            path=f"{path}.as",
            hint="call the item something else",
        )
    clash = context.plan.nodes.get(body.name)
    if clash is not None and not is_same_step(clash, body):
        yield error(
            body.place or node.place,
            f"two steps are called `{body.name}`",
            path=f"{path}.agent.name",
            hint="give each its own name",
            also=clash.place,
        )
    yield from _member(context, body, node)


def _member(context: CheckContext, member: Node, group: Node) -> Iterator[Mistake]:
    if member.name in context.unreadable:
        return
    reason = _BARRED.get(member.type)
    if reason is not None:
        yield error(
            member.place or group.place,
            f"`{member.name}` ({member.type}) cannot be in the group `{group.name}`: {reason}",
            path=member.name,
            hint="put it before or after the group",
        )
    if member.routes:
        yield error(
            member.routes[0].place or member.place,
            f"`{member.name}` is in the group `{group.name}`, so it cannot have routes",
            path=f"{member.name}.routes",
            hint=f"move them to `{context.flow.outermost(group.name)}`; failures of members are routed there",
        )


def _cycles(context: CheckContext) -> Iterator[Mistake]:
    """Groups that contain themselves."""
    owner = context.flow.owner
    clear: set[str] = set()
    for name, node in context.plan.nodes.items():
        if node.type not in GROUPS or name in clear:
            continue
        trail: dict[str, None] = {}
        inner: str | None = name
        while inner is not None and inner not in trail and inner not in clear:
            trail[inner] = None
            inner = owner.get(inner)
        if inner is not None and inner in trail:
            cycle = list(trail)[list(trail).index(inner) :]
            yield error(
                context.plan.nodes[cycle[0]].place if cycle[0] in context.plan.nodes else node.place,
                f"the group `{cycle[0]}` contains itself: {' in '.join(f'`{member}`' for member in [*cycle, cycle[0]])}",
                path=cycle[0],
                hint="remove one of them from the other",
            )
        clear.update(trail)
