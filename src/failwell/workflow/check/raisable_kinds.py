"""What each type of node can raise, and which of those failures an error route takes.

An author's kinds come from `raises`; where that is left out, any kind of the author's may come. The
runtime's kinds follow from the type of the node, in the one table here.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from failwell.decision.match import Match
from failwell.fault.axes import Category
from failwell.fault.catalogue import CATALOGUE
from failwell.fault.registry import find_kind, is_owned
from failwell.workflow.plan import DeclaredKind, ForEachSpec, Node, ParallelSpec, Plan

OTHER = ""
"""Stands for every kind of an author's that nobody named."""

_ANYWHERE = (
    "internal.template_error", "internal.sandbox_error", "internal.sandbox_timeout", "internal.io_error",
    "internal.bug", "internal.unknown", "limit.", "retry.",
)  # fmt: skip
_ANSWERED = ("internal.schema_violation", "internal.undeclared_kind", "validation.")
_BY_TYPE: dict[str, tuple[str, ...]] = {
    "agent": (*_ANSWERED, "provider.", "tool.", "session."),
    "script": (*_ANSWERED, "internal.script_error", "internal.script_timeout", "internal.spawn_failed", "resource."),
    "job": (*_ANSWERED, "worker.", "resource.", "provider.", "tool."),
    "tool": (*_ANSWERED, "tool.", "resource.", "provider."),
    "human_gate": ("session.interaction_required", "validation."),
    "questions": ("session.interaction_required", "internal.schema_violation", "validation."),
    "set": ("internal.schema_violation", "validation."),
    "wait": ("validation.",),
    "notification": ("internal.schema_violation", "validation."),
    "terminate": (),
    "workflow": (
        *_ANSWERED, "internal.", "provider.", "subworkflow.", "tool.", "resource.", "worker.", "session.",
        "extension.",
    ),
    "parallel": (),
    "for_each": ("internal.schema_violation", "validation."),
}  # fmt: skip
"""Type → kinds, or prefixes of kinds, that the runtime raises for it beside those of `_ANYWHERE`."""

_OPEN = frozenset({"agent", "script", "job", "tool", "workflow"})
"""Types whose work may raise kinds of its author's own."""

NEVER_ROUTED = ("cancel.", "halt.")
"""Ends that are states of a run and not failures of a node."""


class Raisable(NamedTuple):
    """What one node can raise."""

    runtime: frozenset[str]
    authored: frozenset[str] | None
    """`None` if it may be any."""


def raisable(node: Node, plan: Plan) -> Raisable:
    """What `node` can raise; a group, what its members can."""
    if not isinstance(node.spec, ParallelSpec | ForEachSpec):
        declared = node.raises if node.type in _OPEN else ()
        return Raisable(runtime_kinds(node.type), None if declared is None else frozenset(declared))
    runtime: set[str] = set(runtime_kinds(node.type))
    authored: set[str] | None = set()
    for leaf in leaves(node, plan):
        runtime |= runtime_kinds(leaf.type)
        if leaf.type in _OPEN and authored is not None:
            authored = None if leaf.raises is None else authored | set(leaf.raises)
    if node.raises is not None:
        authored = set(node.raises)
    return Raisable(frozenset(runtime), None if authored is None else frozenset(authored))


def leaves(node: Node, plan: Plan) -> list[Node]:
    """The nodes inside a group, to any depth, that are not groups themselves. Each once."""
    leaf_nodes: list[Node] = []
    visited: set[int] = set()
    waiting = [node]
    while waiting:
        candidate = waiting.pop()
        if id(candidate) in visited:
            continue
        visited.add(id(candidate))
        if isinstance(candidate.spec, ParallelSpec):
            waiting += (
                plan.nodes[member.name] for member in candidate.spec.members if member.name in plan.nodes
            )
        elif isinstance(candidate.spec, ForEachSpec):
            waiting.append(candidate.spec.body)
        else:
            leaf_nodes.append(candidate)
    return leaf_nodes


@cache
def runtime_kinds(node_type: str) -> frozenset[str]:
    """The runtime's kinds that a node of this type can raise."""
    names = (*_ANYWHERE, *_BY_TYPE[node_type])
    whole = frozenset(name for name in names if not name.endswith("."))
    prefixes = tuple(name for name in names if name.endswith("."))
    return frozenset(kind.name for kind in CATALOGUE if kind.name in whole or kind.name.startswith(prefixes))


def owned_kinds() -> list[str]:
    """Every kind of the runtime's, whoever raises it."""
    return [kind.name for kind in CATALOGUE]


class Taken(NamedTuple):
    """Which kinds a selector takes."""

    maybe: frozenset[str]
    surely: frozenset[str]
    """Those it takes whatever else is true of the failure."""


class Universe:
    """Every kind that can come out of one node."""

    def __init__(self, can: Raisable, named: Iterable[str], declared: Mapping[str, DeclaredKind]) -> None:
        authored = (
            can.authored
            if can.authored is not None
            else {OTHER, *declared, *(kind for kind in named if not is_owned(kind))}
        )
        self.kinds = can.runtime | authored
        self._declared = declared

    def taken(self, selector: Match) -> Taken:
        """What `selector` takes of these kinds."""
        maybe = surely = self.kinds
        if selector.kinds or selector.prefixes:
            named = self.kinds & selector.kinds
            begun = frozenset(kind for kind in self.kinds if self._has_prefix(kind, selector.prefixes))
            maybe, surely = named | begun, named | (begun - {OTHER})
        if selector.categories:
            maybe = frozenset(kind for kind in maybe if self.category(kind) in selector.categories)
            surely &= maybe
        # An instance may know its certainty and its blame better than its kind does.
        narrow = selector.certainties or selector.blames
        return Taken(maybe, frozenset() if narrow else surely)

    def category(self, kind: str) -> Category:
        """The category of `kind`: the registry's, the author's, or `unknown`."""
        registered = find_kind(kind)
        if registered is not None:
            return registered.category
        declared = self._declared.get(kind)
        return Category.UNKNOWN if declared is None else declared.category

    def _has_prefix(self, kind: str, prefixes: tuple[str, ...]) -> bool:
        return (
            any(not is_owned(prefix) for prefix in prefixes) if kind == OTHER else kind.startswith(prefixes)
        )
