"""Routes that can be taken, and failures that have somewhere to go."""

from collections.abc import Iterator

from failwell.fault.registry import OWNED_PREFIXES, is_owned
from failwell.files.mistakes import Mistake
from failwell.workflow.check.check_context import CheckContext
from failwell.workflow.check.raisable_kinds import NEVER_ROUTED, Raisable, leaves, owned_kinds, raisable
from failwell.workflow.compile.step_index import KINDS, NAMES
from failwell.workflow.findings import error, warning
from failwell.workflow.plan import GROUPS, PEOPLE, GateSpec, Node, Route, TerminateSpec


def routes(context: CheckContext) -> Iterator[Mistake]:
    """The routes of every node that may have some."""
    for node in context.plan.nodes.values():
        if node.name in context.flow.owner or not context.is_complete(node):
            continue
        yield from _success(node)
        if node.type in PEOPLE:
            yield from _people(node)
        if node.is_opted_in or node.type in GROUPS:
            yield from _failure(context, node)


def _success(node: Node) -> Iterator[Mistake]:
    ways = [(index, route) for index, route in enumerate(node.routes) if route.on_error is None]
    if not ways:
        return
    if isinstance(node.spec, GateSpec | TerminateSpec):
        what = "its options say where it leads" if isinstance(node.spec, GateSpec) else "it ends the run"
        yield error(
            ways[0][1].place or node.place,
            f"`{node.name}` ({node.type}) cannot have routes out of success: {what}",
            path=f"{node.name}.routes[{ways[0][0]}]",
            hint="take the route out",
        )
        return
    always: Route | None = None
    for index, route in ways:
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
            ways[-1][1].place or node.place,
            f"every route of `{node.name}` has a `when`; if none holds, the run fails",
            path=f"{node.name}.routes",
            hint="end with a route without `when`",
        )


def _people(node: Node) -> Iterator[Mistake]:
    what = f"`{node.name}` is answered by a person and is not repeated by itself"
    hint = "lead back to it with `to` instead"
    if node.retry is not None:
        yield error(node.place, what, path=f"{node.name}.retry", hint="take `retry` out")
    for index, route in enumerate(node.routes):
        if route.retry is not None:
            path = f"{node.name}.routes[{index}].retry"
            yield error(route.place or node.place, what, path=path, hint=hint)


def _failure(context: CheckContext, node: Node) -> Iterator[Mistake]:
    ways = [(index, route) for index, route in enumerate(node.routes) if route.on_error is not None]
    if node.type in GROUPS and not all(map(context.is_complete, leaves(node, context.plan))):
        return
    if not context.knows(KINDS) or (node.type in GROUPS and not context.knows(NAMES)):
        return
    can = raisable(node, context.plan)
    if ways:
        yield from _error_routes(context, node, ways, can)
    if context.as_root:
        yield from _propagated(node, ways)
        yield from _nobody(context, node, ways, can)
    yield from _raises(context, node, can)


def _error_routes(
    context: CheckContext, node: Node, ways: list[tuple[int, Route]], can: Raisable
) -> Iterator[Mistake]:
    named = [kind for _, route in ways if route.on_error is not None for kind in route.on_error.kinds]
    universe = context.universe(can, named)
    left = universe.kinds
    """What still comes to the next route that is no repeat."""
    fresh = universe.kinds
    """What still comes to the next repeat: another repeat before it takes its failures for good."""
    takers: list[tuple[Route, frozenset[str]]] = []
    alternatives = [
        universe.taken(route.on_error).maybe
        for _, route in ways
        if route.retry is None and route.on_error is not None
    ]
    for index, route in ways:
        assert route.on_error is not None
        path = f"{node.name}.routes[{index}].on_error"
        mistakes = list(kinds_of_route(context, node, route, can, path))
        yield from mistakes
        selection = universe.taken(route.on_error)
        if not mistakes and not selection.maybe & (left if route.retry is None else fresh):
            yield _never(node, route, path, selection.maybe, takers)
        elif route.retry is not None and not any(selection.maybe & kinds for kinds in alternatives):
            yield warning(
                route.place or node.place,
                f"when the repeats of `{node.name}` are spent, no other route takes the failure",
                path=path,
                hint="add an error route with `to` or `halt` behind it",
            )
        if route.when is None:
            takers.append((route, selection.surely))
            fresh -= selection.surely
            if route.retry is None:
                left -= selection.surely


def _never(
    node: Node, route: Route, path: str, maybe: frozenset[str], takers: list[tuple[Route, frozenset[str]]]
) -> Mistake:
    what = f"this error route of `{node.name}` is never taken"
    if not maybe:
        return warning(
            route.place or node.place,
            f"{what}: no failure of a {node.type} node fits it",
            path=path,
            hint="run `failwell kinds` to see what can be raised",
        )
    first = next((taker for taker, kinds in takers if kinds & maybe), None)
    catches_all = first is not None and first.on_error is not None and first.on_error.is_any
    return warning(
        route.place or node.place,
        f"{what}: {'the catch-all' if catches_all else 'a route'} before it takes the same failures",
        path=path,
        hint="put the route for every error last"
        if catches_all
        else "give the earlier route a `when`, or take one out",
        also=None if first is None else first.place,
    )


def _propagated(node: Node, ways: list[tuple[int, Route]]) -> Iterator[Mistake]:
    for index, route in ways:
        if route.propagate:
            yield error(
                route.place or node.place,
                f"`{node.name}` propagates a failure, but this workflow has no caller",
                path=f"{node.name}.routes[{index}].propagate",
                hint="use `to` or `halt`, or leave the route out: an unhandled failure ends the run",
            )


def _nobody(
    context: CheckContext, node: Node, ways: list[tuple[int, Route]], can: Raisable
) -> Iterator[Mistake]:
    """Declared kinds that no route takes. In a sub-workflow they go to the caller, and that is fine."""
    if not can.authored:
        return
    universe = context.universe(can, ())
    open_kinds = set(can.authored)
    for _, route in ways:
        if route.on_error is not None:
            open_kinds -= universe.taken(route.on_error).maybe
    if open_kinds:
        kinds = ", ".join(f"`{kind}`" for kind in sorted(open_kinds))
        yield warning(
            node.place,
            f"`{node.name}` raises {kinds}, and no route takes {'it' if len(open_kinds) == 1 else 'them'}",
            path=f"{node.name}.raises",
            hint=f"add a route `on_error: {min(open_kinds)}`, or `on_error: true` for everything",
        )


def _raises(context: CheckContext, node: Node, can: Raisable) -> Iterator[Mistake]:
    if not node.raises:
        return
    path = f"{node.name}.raises"
    if can.authored is not None and not can.authored:
        yield warning(
            node.place,
            f"a {node.type} node raises no kinds of its own, so `raises` of `{node.name}` says nothing",
            path=path,
            hint="take `raises` out",
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
    context: CheckContext, node: Node, route: Route, can: Raisable, path: str
) -> Iterator[Mistake]:
    """What is wrong with the kinds and prefixes that `route` names."""
    selector = route.on_error
    assert selector is not None
    place = route.place or node.place
    for kind in sorted(selector.kinds):
        problem = (_owned if kind.startswith(OWNED_PREFIXES) else _authored)(context, node, kind, can)
        if problem is not None:
            message, hint, is_error = problem
            yield (error if is_error else warning)(place, message, path=path, hint=hint)
    for prefix in selector.prefixes:
        if is_owned(prefix) and not any(kind.startswith(prefix) for kind in _OWNED):
            near = context.near(prefix, {f"{kind.rpartition('.')[0]}." for kind in _OWNED}, "prefixes")
            hint = f"did you mean `{near}`?" if near else "run `failwell kinds` to see them all"
            yield error(place, f"no kind of the runtime begins with `{prefix}`", path=path, hint=hint)


def _owned(context: CheckContext, node: Node, kind: str, can: Raisable) -> tuple[str, str, bool] | None:
    if kind in can.runtime:
        return None
    if kind not in _OWNED:
        near = context.near(kind, _OWNED, "owned")
        hint = f"did you mean `{near}`?" if near else "run `failwell kinds` to see them all"
        return f"there is no kind `{kind}`, and its prefix belongs to the runtime", hint, True
    if kind.startswith(NEVER_ROUTED):
        return (
            f"`{kind}` is how a run ends, and no route of `{node.name}` is asked about it",
            "take the route out",
            node.raises is not None,
        )
    return (
        f"`{node.name}` is a {node.type} node and never raises `{kind}`",
        "take the route out, or put it on the node that raises it",
        node.raises is not None,
    )


def _authored(context: CheckContext, node: Node, kind: str, can: Raisable) -> tuple[str, str, bool] | None:
    if can.authored is not None and kind not in can.authored:
        if not can.authored:
            return (
                f"`{node.name}` is a {node.type} node and raises no kinds of its own, so `{kind}` never comes",
                "take the route out, or put it on the node that raises it",
                False,
            )
        declared = ", ".join(f"`{name}`" for name in sorted(can.authored))
        near = context.near(kind, sorted(can.authored), f"raises of {node.name}")
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
