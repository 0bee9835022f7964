"""Routes that can be taken, and failures that have somewhere to go."""

from collections.abc import Iterator

from failwell.fault.registry import is_owned
from failwell.files.mistakes import Mistake
from failwell.workflow.check.context import Look, error, warning
from failwell.workflow.check.kinds import kinds_of_route
from failwell.workflow.check.raisable_kinds import Raisable, raisable
from failwell.workflow.plan import GROUPS, PEOPLE, GateSpec, Node, Route, TerminateSpec


def routes(look: Look) -> Iterator[Mistake]:
    """The routes of every node that may have some."""
    for node in look.plan.nodes.values():
        if node.name in look.flow.owner:
            continue
        yield from _success(node)
        if node.type in PEOPLE:
            yield from _people(node)
        if node.is_opted_in or node.type in GROUPS:
            yield from _failure(look, node)


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
        if route.again is not None:
            path = f"{node.name}.routes[{index}].retry"
            yield error(route.place or node.place, what, path=path, hint=hint)


def _failure(look: Look, node: Node) -> Iterator[Mistake]:
    ways = [(index, route) for index, route in enumerate(node.routes) if route.on_error is not None]
    can = raisable(node, look.plan)
    if ways:
        yield from _error_routes(look, node, ways, can)
    if look.as_root:
        yield from _propagated(node, ways)
        yield from _nobody(look, node, ways, can)
    yield from _raises(look, node, can)


def _error_routes(look: Look, node: Node, ways: list[tuple[int, Route]], can: Raisable) -> Iterator[Mistake]:
    named = [kind for _, route in ways if route.on_error is not None for kind in route.on_error.kinds]
    universe = look.universe(can, named)
    left = universe.kinds
    """What still comes to the next route that is no repeat."""
    fresh = universe.kinds
    """What still comes to the next repeat: another repeat before it takes its failures for good."""
    takers: list[tuple[Route, frozenset[str]]] = []
    others = [
        universe.taken(route.on_error).maybe
        for _, route in ways
        if route.again is None and route.on_error is not None
    ]
    for index, route in ways:
        assert route.on_error is not None
        path = f"{node.name}.routes[{index}].on_error"
        told = list(kinds_of_route(look, node, route, can, path))
        yield from told
        taken = universe.taken(route.on_error)
        if not told and not taken.maybe & (left if route.again is None else fresh):
            yield _never(node, route, path, taken.maybe, takers)
        elif route.again is not None and not any(taken.maybe & other for other in others):
            yield warning(
                route.place or node.place,
                f"when the repeats of `{node.name}` are spent, no other route takes the failure",
                path=path,
                hint="add an error route with `to` or `halt` behind it",
            )
        if route.when is None:
            takers.append((route, taken.surely))
            fresh -= taken.surely
            if route.again is None:
                left -= taken.surely


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
    catches_all = first is not None and first.on_error is not None and first.on_error.any
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


def _nobody(look: Look, node: Node, ways: list[tuple[int, Route]], can: Raisable) -> Iterator[Mistake]:
    """Declared kinds that no route takes. In a sub-workflow they go to the caller, and that is fine."""
    if not can.authored:
        return
    universe = look.universe(can, ())
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


def _raises(look: Look, node: Node, can: Raisable) -> Iterator[Mistake]:
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
        if look.plan.kinds and kind not in look.plan.kinds and not is_owned(kind):
            near = look.near(kind, look.plan.kinds, "kinds")
            if near is not None:
                yield warning(
                    node.place,
                    f"`{kind}` is not in `kinds:`, but `{near}` is",
                    path=f"{path}[{index}]",
                    hint=f"did you mean `{near}`?",
                )
