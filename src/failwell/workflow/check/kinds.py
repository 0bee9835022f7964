"""The kinds that error routes name: that they exist, and that the node can raise them."""

from collections.abc import Iterator

from failwell.fault.registry import is_owned
from failwell.files.mistakes import Mistake
from failwell.workflow.check.context import Look, error, warning
from failwell.workflow.check.raisable_kinds import NEVER_ROUTED, Raisable, owned_kinds
from failwell.workflow.plan import Node, Route

_OWNED = frozenset(owned_kinds())


def kinds_of_route(look: Look, node: Node, route: Route, can: Raisable, path: str) -> Iterator[Mistake]:
    """What is wrong with the kinds and prefixes that `route` names."""
    selector = route.on_error
    assert selector is not None
    place = route.place or node.place
    for kind in selector.kinds:
        found = (_owned if is_owned(kind) else _authored)(look, node, kind, can)
        if found is not None:
            message, hint, is_error = found
            yield (error if is_error else warning)(place, message, path=path, hint=hint)
    for prefix in selector.prefixes:
        if is_owned(prefix) and not any(kind.startswith(prefix) for kind in _OWNED):
            near = look.near(prefix, {f"{kind.rpartition('.')[0]}." for kind in _OWNED}, "prefixes")
            hint = f"did you mean `{near}`?" if near else "run `failwell kinds` to see them all"
            yield error(place, f"no kind of the runtime begins with `{prefix}`", path=path, hint=hint)


def _owned(look: Look, node: Node, kind: str, can: Raisable) -> tuple[str, str, bool] | None:
    if kind in can.runtime:
        return None
    if kind not in _OWNED:
        near = look.near(kind, _OWNED, "owned")
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


def _authored(look: Look, node: Node, kind: str, can: Raisable) -> tuple[str, str, bool] | None:
    if can.authored is not None and kind not in can.authored:
        if not can.authored:
            return (
                f"`{node.name}` is a {node.type} node and raises no kinds of its own, so `{kind}` never comes",
                "take the route out, or put it on the node that raises it",
                False,
            )
        declared = ", ".join(f"`{one}`" for one in sorted(can.authored))
        near = look.near(kind, sorted(can.authored), f"raises of {node.name}")
        return (
            f"`{node.name}` has a route for `{kind}`, but raises {declared}",
            f"did you mean `{near}`?" if near else f"add `{kind}` to its `raises`",
            True,
        )
    declared_kinds = look.plan.kinds
    if declared_kinds and kind not in declared_kinds:
        near = look.near(kind, declared_kinds, "kinds")
        if near is not None:
            return f"`{kind}` is not in `kinds:`, but `{near}` is", f"did you mean `{near}`?", False
    return None
