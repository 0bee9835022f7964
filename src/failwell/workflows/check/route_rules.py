"""Rules about targets: every step that a route names exists and can be routed to."""

from collections.abc import Iterator

from failwell.files.item_tree import Place
from failwell.files.mistakes import Mistake
from failwell.files.suggestions import choices
from failwell.workflows.check.check_context import CheckContext
from failwell.workflows.check.findings import error, warning
from failwell.workflows.compile.step_index import FLOW, NAMES
from failwell.workflows.plan import END, GateSpec, Node, QuestionsSpec


def targets(context: CheckContext) -> Iterator[Mistake]:
    """Check the entry point, routes, gate options and abort routes, and find unreachable nodes."""
    plan = context.plan
    if not plan.entry:
        pass  # it could not be read
    elif plan.entry == END:
        yield error(None, "the entry point is `$end`, so nothing would run", path="workflow.entry_point")
    else:
        yield from _target(context, plan.entry, None, "workflow.entry_point", "the entry point")
    for node in plan.nodes.values():
        if node.name in context.flow.owner:
            continue
        yield from _routes(context, node)
        spec = node.spec
        if isinstance(spec, GateSpec):
            yield from _options(context, node, spec)
            if context.is_complete(node):
                yield from _gate(context, node, spec)
        elif isinstance(spec, QuestionsSpec) and spec.abort_route is not None:
            path = f"{node.name}.abort_route"
            yield from _target(
                context, spec.abort_route, node.place, path, f"the abort route of `{node.name}`"
            )
    yield from _unreachable(context)


def _routes(context: CheckContext, node: Node) -> Iterator[Mistake]:
    for index, route in enumerate(node.routes):
        if route.to is not None and (route.to not in context.plan.nodes or route.to in context.flow.owner):
            path = f"{node.name}.routes[{index}].to"
            yield from _target(
                context, route.to, route.place or node.place, path, f"a route of `{node.name}`"
            )


def _options(context: CheckContext, node: Node, spec: GateSpec) -> Iterator[Mistake]:
    for index, option in enumerate(spec.options):
        place = option.label.place or node.place
        source = f"option `{option.value}` of `{node.name}`"
        yield from _target(context, option.route, place, f"{node.name}.options[{index}].route", source)


def _gate(context: CheckContext, node: Node, spec: GateSpec) -> Iterator[Mistake]:
    values: dict[str, int] = {}
    for index, option in enumerate(spec.options):
        path = f"{node.name}.options[{index}]"
        if option.value in values:
            yield error(
                option.label.place or node.place,
                f"two options of `{node.name}` have the value `{option.value}`",
                path=f"{path}.value",
            )
        values.setdefault(option.value, index)
    named_values = (
        [(f"{node.name}.timeout_option", spec.timeout_option)] if spec.timeout_option is not None else []
    )
    named_values += [(f"{node.name}.on_reject", value) for value in spec.reject]
    for path, value in named_values:
        if value not in values:
            hint = choices(
                context.near(value, values, node.name), values, "use the value of one of its options"
            )
            yield error(
                node.place, f"`{node.name}` offers no option with the value `{value}`", path=path, hint=hint
            )
    if spec.timeout_option is not None and spec.timeout is None:
        yield warning(
            node.place,
            f"`{node.name}` has a `timeout_option`, but no timeout",
            path=f"{node.name}.timeout_option",
            hint="add a `timeout`",
        )


def _target(
    context: CheckContext, target: str, place: Place | None, path: str, source: str
) -> Iterator[Mistake]:
    plan = context.plan
    if target == END:
        return
    group = context.flow.owner.get(target)
    if target in plan.nodes and group is None:
        return
    if group is not None:
        inside = "the body" if target in context.bodies and target not in plan.nodes else "a member"
        yield error(
            place,
            f"{source} leads to `{target}`, which is {inside} of `{group}` and runs only there",
            path=path,
            hint=f"lead to `{context.flow.outermost(target)}`",
        )
        return
    if not context.knows(NAMES):
        return
    near = context.near(target, plan.nodes, "nodes")
    hint = choices(near, (*plan.nodes, END), "add a step with that name, or write `$end`")
    yield error(place, f"{source} leads to `{target}`, and no step has that name", path=path, hint=hint)


def _unreachable(context: CheckContext) -> Iterator[Mistake]:
    if context.plan.entry not in context.plan.nodes or not context.knows(FLOW):
        return
    for name in context.flow.unreachable():
        yield warning(
            context.plan.nodes[name].place,
            f"nothing leads to `{name}`",
            path=name,
            hint=f"give a step a route `to: {name}`, or remove it",
        )
