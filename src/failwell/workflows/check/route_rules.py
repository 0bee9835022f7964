"""Rules about routes: their targets exist, each can be taken, and every declared failure has one."""

from collections.abc import Iterator

from failwell.errors.kind_registry import OWNED_PREFIXES, is_owned
from failwell.files.item_tree import Place
from failwell.files.mistakes import Mistake
from failwell.files.suggestions import choices
from failwell.workflows.check.check_context import CheckContext
from failwell.workflows.check.findings import error, warning
from failwell.workflows.check.raisable_kinds import NEVER_ROUTED, Raisable, leaves, owned_kinds, raisable
from failwell.workflows.compile.step_index import FLOW, KINDS, NAMES
from failwell.workflows.plan import END, GROUPS, PEOPLE, GateSpec, Node, QuestionsSpec, Route, TerminateSpec


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


def routes(context: CheckContext) -> Iterator[Mistake]:
    """Check the routes of every node."""
    for node in context.plan.nodes.values():
        if node.name in context.flow.owner or not context.is_complete(node):
            continue
        yield from _success_routes(node)
        if node.type in PEOPLE:
            yield from _repeated_gates(node)
        if node.is_opted_in or node.type in GROUPS:
            yield from _failures(context, node)


def _success_routes(node: Node) -> Iterator[Mistake]:
    success = [(index, route) for index, route in enumerate(node.routes) if route.on_error is None]
    if not success:
        return
    if isinstance(node.spec, GateSpec | TerminateSpec):
        reason = "its options have the routes" if isinstance(node.spec, GateSpec) else "it ends the run"
        index, route = success[0]
        yield error(
            route.place or node.place,
            f"`{node.name}` ({node.type}) cannot have success routes: {reason}",
            path=f"{node.name}.routes[{index}]",
            hint="remove the route",
        )
        return
    always: Route | None = None
    for index, route in success:
        if always is not None:
            yield warning(
                route.place or node.place,
                f"this route of `{node.name}` is never taken: one before it has no `when`",
                path=f"{node.name}.routes[{index}]",
                hint="put the route without `when` last",
                also=always.place,
            )
        elif route.when is None:
            always = route
    if always is None:
        yield warning(
            success[-1][1].place or node.place,
            f"every route of `{node.name}` has a `when`; if none holds, the run fails",
            path=f"{node.name}.routes",
            hint="end with a route without `when`",
        )


def _repeated_gates(node: Node) -> Iterator[Mistake]:
    message = f"`{node.name}` is answered by a person and cannot be retried"
    hint = "route to it again with `to` instead"
    if node.retry is not None:
        yield error(node.place, message, path=f"{node.name}.retry", hint="remove `retry`")
    for index, route in enumerate(node.routes):
        if route.retry is not None:
            path = f"{node.name}.routes[{index}].retry"
            yield error(route.place or node.place, message, path=path, hint=hint)


def _failures(context: CheckContext, node: Node) -> Iterator[Mistake]:
    on_error = [(index, route) for index, route in enumerate(node.routes) if route.on_error is not None]
    if node.type in GROUPS and not all(map(context.is_complete, leaves(node, context.plan))):
        return
    if not context.knows(KINDS) or (node.type in GROUPS and not context.knows(NAMES)):
        return
    raisable_kinds = raisable(node, context.plan)
    if on_error:
        yield from _error_routes(context, node, on_error, raisable_kinds)
    if context.as_root:
        yield from _propagated(node, on_error)
        yield from _unhandled_kinds(context, node, on_error, raisable_kinds)
    yield from _raises(context, node, raisable_kinds)


def _error_routes(
    context: CheckContext, node: Node, on_error: list[tuple[int, Route]], raisable_kinds: Raisable
) -> Iterator[Mistake]:
    route_kinds = [
        kind for _, route in on_error if route.on_error is not None for kind in route.on_error.kinds
    ]
    universe = context.universe(raisable_kinds, route_kinds)
    unhandled = universe.kinds
    """Kinds that reach the next route without `retry`."""
    unretried = universe.kinds
    """Kinds that reach the next route with `retry`: the first one that matches handles all retries."""
    matched: list[tuple[Route, frozenset[str]]] = []
    alternatives = [
        universe.matched_by(route.on_error).maybe
        for _, route in on_error
        if route.retry is None and route.on_error is not None
    ]
    for index, route in on_error:
        assert route.on_error is not None
        path = f"{node.name}.routes[{index}].on_error"
        mistakes = list(kinds_of_route(context, node, route, raisable_kinds, path))
        yield from mistakes
        selection = universe.matched_by(route.on_error)
        if not mistakes and not selection.maybe & (unhandled if route.retry is None else unretried):
            yield _never_taken(node, route, path, selection.maybe, matched)
        elif route.retry is not None and not any(selection.maybe & kinds for kinds in alternatives):
            yield warning(
                route.place or node.place,
                f"when the retries of `{node.name}` are used up, no other route handles the failure",
                path=path,
                hint="add an error route with `to` or `halt` after it",
            )
        if route.when is None:
            matched.append((route, selection.surely))
            unretried -= selection.surely
            if route.retry is None:
                unhandled -= selection.surely


def _never_taken(
    node: Node, route: Route, path: str, maybe: frozenset[str], matched: list[tuple[Route, frozenset[str]]]
) -> Mistake:
    message = f"this error route of `{node.name}` is never taken"
    if not maybe:
        return warning(
            route.place or node.place,
            f"{message}: no failure of a {node.type} node matches it",
            path=path,
            hint="run `failwell kinds` to see what can be raised",
        )
    earlier = next((candidate for candidate, kinds in matched if kinds & maybe), None)
    catches_all = earlier is not None and earlier.on_error is not None and earlier.on_error.is_any
    return warning(
        route.place or node.place,
        f"{message}: {'the catch-all' if catches_all else 'a route'} before it takes the same failures",
        path=path,
        hint="put the route for every error last"
        if catches_all
        else "give the earlier route a `when`, or remove one of them",
        also=None if earlier is None else earlier.place,
    )


def _propagated(node: Node, on_error: list[tuple[int, Route]]) -> Iterator[Mistake]:
    for index, route in on_error:
        if route.propagate:
            yield error(
                route.place or node.place,
                f"`{node.name}` propagates a failure, but this workflow has no caller",
                path=f"{node.name}.routes[{index}].propagate",
                hint="use `to` or `halt`, or leave the route out: an unhandled failure ends the run",
            )


def _unhandled_kinds(
    context: CheckContext, node: Node, on_error: list[tuple[int, Route]], raisable_kinds: Raisable
) -> Iterator[Mistake]:
    """Declared kinds without a route. In a sub-workflow they are passed to the caller."""
    if not raisable_kinds.authored:
        return
    universe = context.universe(raisable_kinds, ())
    open_kinds = set(raisable_kinds.authored)
    for _, route in on_error:
        if route.on_error is not None:
            open_kinds -= universe.matched_by(route.on_error).maybe
    if open_kinds:
        kinds = ", ".join(f"`{kind}`" for kind in sorted(open_kinds))
        yield warning(
            node.place,
            f"`{node.name}` raises {kinds}, and no route handles {'it' if len(open_kinds) == 1 else 'them'}",
            path=f"{node.name}.raises",
            hint=f"add a route `on_error: {min(open_kinds)}`, or `on_error: true` for everything",
        )


def _raises(context: CheckContext, node: Node, raisable_kinds: Raisable) -> Iterator[Mistake]:
    if not node.raises:
        return
    path = f"{node.name}.raises"
    if raisable_kinds.authored is not None and not raisable_kinds.authored:
        yield warning(
            node.place,
            f"a {node.type} node raises no kinds of its own, so `raises` of `{node.name}` has no effect",
            path=path,
            hint="remove `raises`",
        )
        return
    for index, kind in enumerate(node.raises):
        if context.plan.kinds and kind not in context.plan.kinds and not is_owned(kind):
            near = context.near(kind, context.plan.kinds, "kinds")
            if near is not None:
                yield warning(
                    node.place,
                    f"`{kind}` is not in `kinds:`, but `{near}` is",
                    path=f"{path}[{index}]",
                    hint=f"did you mean `{near}`?",
                )


_OWNED = frozenset(owned_kinds())


def kinds_of_route(
    context: CheckContext, node: Node, route: Route, raisable_kinds: Raisable, path: str
) -> Iterator[Mistake]:
    """Mistakes in the kinds and prefixes that `route` names."""
    selector = route.on_error
    assert selector is not None
    place = route.place or node.place
    for kind in sorted(selector.kinds):
        problem = (_owned if kind.startswith(OWNED_PREFIXES) else _authored)(
            context, node, kind, raisable_kinds
        )
        if problem is not None:
            message, hint, is_error = problem
            yield (error if is_error else warning)(place, message, path=path, hint=hint)
    for prefix in selector.prefixes:
        if is_owned(prefix) and not any(kind.startswith(prefix) for kind in _OWNED):
            near = context.near(prefix, {f"{kind.rpartition('.')[0]}." for kind in _OWNED}, "prefixes")
            hint = f"did you mean `{near}`?" if near else "run `failwell kinds` to see them all"
            yield error(place, f"no kind of the runtime begins with `{prefix}`", path=path, hint=hint)


def _owned(
    context: CheckContext, node: Node, kind: str, raisable_kinds: Raisable
) -> tuple[str, str, bool] | None:
    if kind in raisable_kinds.runtime:
        return None
    if kind not in _OWNED:
        near = context.near(kind, _OWNED, "owned")
        hint = f"did you mean `{near}`?" if near else "run `failwell kinds` to see them all"
        return f"there is no kind `{kind}`, and its prefix belongs to the runtime", hint, True
    if kind.startswith(NEVER_ROUTED):
        return (
            f"`{kind}` ends a run and is never routed, so this route of `{node.name}` is never taken",
            "remove the route",
            node.raises is not None,
        )
    return (
        f"`{node.name}` is a {node.type} node and never raises `{kind}`",
        "remove the route, or move it to the node that raises it",
        node.raises is not None,
    )


def _authored(
    context: CheckContext, node: Node, kind: str, raisable_kinds: Raisable
) -> tuple[str, str, bool] | None:
    if raisable_kinds.authored is not None and kind not in raisable_kinds.authored:
        if not raisable_kinds.authored:
            return (
                f"`{node.name}` is a {node.type} node and raises no kinds of its own, so it never raises `{kind}`",
                "remove the route, or move it to the node that raises it",
                False,
            )
        declared = ", ".join(f"`{name}`" for name in sorted(raisable_kinds.authored))
        near = context.near(kind, sorted(raisable_kinds.authored), f"raises of {node.name}")
        return (
            f"`{node.name}` has a route for `{kind}`, but raises {declared}",
            f"did you mean `{near}`?" if near else f"add `{kind}` to its `raises`",
            True,
        )
    declared_kinds = context.plan.kinds
    if declared_kinds and kind not in declared_kinds:
        near = context.near(kind, declared_kinds, "kinds")
        if near is not None:
            return f"`{kind}` is not in `kinds:`, but `{near}` is", f"did you mean `{near}`?", False
    return None
