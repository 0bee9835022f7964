"""The kinds that each type of node can raise, and which of them an error route matches.

The author's kinds come from `raises`; without it, the node may raise any of them. The runtime's kinds follow
from the type of the node.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from failwell.calls.policy import Match
from failwell.errors.axes import Category
from failwell.errors.kind_registry import find_kind, is_owned
from failwell.errors.kinds_table import CATALOGUE
from failwell.workflows.plan import DeclaredKind, ForEachSpec, Node, ParallelSpec, Plan

STEP_TIMEOUT = "limit.step_timeout"
"""Raised by groups and sub-workflows that have a time limit."""
OF_STAGES = frozenset({"validation.assertion_failed", "validation.context_read_only"})
"""Kinds that only stages raise, and what runs them."""
OTHER = ""
"""Represents every author's kind that the file does not name."""

_ANYWHERE = (
    "internal.template_error", "internal.sandbox_error", "internal.sandbox_timeout", "internal.io_error",
    "internal.bug", "internal.unknown", "limit.", "retry.",
)  # fmt: skip
_ANSWERED = ("internal.schema_violation", "internal.undeclared_kind", "validation.")
_BY_TYPE: dict[str, tuple[str, ...]] = {
    "agent": (*_ANSWERED, "provider.", "tool.", "session."),
    "script": (*_ANSWERED, "internal.script_error", "internal.script_timeout", "internal.spawn_failed", "resource."),
    "job": (*_ANSWERED, "worker.", "resource.", "provider.", "tool."),
    "tool": (*_ANSWERED, "tool.", "resource.", "provider.", "session."),
    "human_gate": ("session.interaction_required", "validation."),
    "questions": ("session.interaction_required", "internal.schema_violation", "validation."),
    "set": ("internal.schema_violation", "validation."),
    "stage": (*_ANSWERED, STEP_TIMEOUT, "provider.", "tool.", "session."),
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

_OPEN = frozenset({"agent", "script", "job", "stage", "tool", "workflow"})
"""Types whose nodes may raise the author's own kinds."""

NEVER_ROUTED = ("cancel.", "halt.")
"""Prefixes of kinds that end a run and are never failures of a node."""


class Raisable(NamedTuple):
    """The kinds that one node can raise."""

    runtime: frozenset[str]
    authored: frozenset[str] | None
    """`None` if any is possible."""


def raisable(node: Node, plan: Plan) -> Raisable:
    """The kinds that `node` can raise; for a group, those of its members."""
    if not isinstance(node.spec, ParallelSpec | ForEachSpec):
        declared = node.raises if node.type in _OPEN else ()
        return Raisable(runtime_kinds(node.type), None if declared is None else frozenset(declared))
    runtime: set[str] = set(runtime_kinds(node.type))
    if node.spec.timeout is not None:
        runtime.add(STEP_TIMEOUT)
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
    exact = frozenset(name for name in names if not name.endswith("."))
    prefixes = tuple(name for name in names if name.endswith("."))
    kinds = {kind.name for kind in CATALOGUE if kind.name in exact or kind.name.startswith(prefixes)}
    # A failure below a sub-workflow keeps its kind on the way up, also where the step itself has no time limit.
    return frozenset(kinds if node_type in ("workflow", "stage") else kinds - {STEP_TIMEOUT} - OF_STAGES)


def owned_kinds() -> list[str]:
    """Every kind of the runtime."""
    return [kind.name for kind in CATALOGUE]


class MatchedKinds(NamedTuple):
    """The kinds that a selector matches."""

    maybe: frozenset[str]
    surely: frozenset[str]
    """Those that it matches whatever the other fields of the failure are."""


class Universe:
    """Every kind that one node can raise, for matching."""

    def __init__(
        self, raisable_kinds: Raisable, route_kinds: Iterable[str], declared: Mapping[str, DeclaredKind]
    ) -> None:
        authored = (
            raisable_kinds.authored
            if raisable_kinds.authored is not None
            else {OTHER, *declared, *(kind for kind in route_kinds if not is_owned(kind))}
        )
        self.kinds = raisable_kinds.runtime | authored
        self._declared = declared

    def matched_by(self, selector: Match) -> MatchedKinds:
        """The kinds that `selector` matches."""
        maybe = surely = self.kinds
        if selector.kinds or selector.prefixes:
            equal = self.kinds & selector.kinds
            prefixed = frozenset(kind for kind in self.kinds if self._has_prefix(kind, selector.prefixes))
            maybe, surely = equal | prefixed, equal | (prefixed - {OTHER})
        if selector.categories:
            maybe = frozenset(kind for kind in maybe if self.category(kind) in selector.categories)
            surely &= maybe
        # A report may have another certainty or blame than the default of its kind.
        narrow = selector.certainties or selector.blames
        return MatchedKinds(maybe, frozenset() if narrow else surely)

    def category(self, kind: str) -> Category:
        """The category of `kind` in the registry or in `kinds:`, else `unknown`."""
        registered = find_kind(kind)
        if registered is not None:
            return registered.category
        declared = self._declared.get(kind)
        return Category.UNKNOWN if declared is None else declared.category

    def _has_prefix(self, kind: str, prefixes: tuple[str, ...]) -> bool:
        return (
            any(not is_owned(prefix) for prefix in prefixes) if kind == OTHER else kind.startswith(prefixes)
        )
