"""The graph of a plan: nodes, groups and edges with labels.

`failwell show` prints it and draws it. The rules use the plan itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from posixpath import join, normpath
from typing import Any, Literal

from failwell.calls.policy import Match, Policy
from failwell.errors.frozen import frozen
from failwell.workflows.plan import (
    END,
    ForEachSpec,
    GateSpec,
    Node,
    ParallelSpec,
    Plan,
    QuestionsSpec,
    Route,
    TerminateSpec,
    WorkflowSpec,
)

HALT = "$halt"
"""Where a `halt` route leads."""
CALLER = "$caller"
"""Where a `propagate` route leads."""
ENDS = {END: "end", HALT: "halt", CALLER: "caller"}
"""Targets outside the graph → their names in a picture."""

Way = Literal["success", "when", "option", "error", "retry", "halt", "propagate"]


@frozen
class Spot:
    """One node of the graph."""

    id: str
    """The node's name; the body of a `for_each` has its group as a prefix, as in `fan/one`."""
    name: str
    type: str
    group: str | None = None
    """The id of the group around it."""
    note: str = ""
    """A short description."""
    node: Node | None = None
    """The step itself."""
    is_entry: bool = False
    """Whether its workflow begins with it."""


@frozen
class Edge:
    """One route out of a node."""

    source: str
    target: str
    """The id of a node, or one of `ENDS`."""
    way: Way
    label: str = ""
    is_failing: bool = False
    """Whether only a failure takes it."""


@frozen
class Graph:
    """The shape of one workflow."""

    name: str
    entry: str
    spots: tuple[Spot, ...]
    edges: tuple[Edge, ...]

    def to_dict(self) -> dict[str, Any]:
        """The graph as JSON: `nodes` and `edges`, both by id."""
        return {
            "workflow": self.name,
            "entry": self.entry,
            "nodes": [
                {"id": spot.id, "name": spot.name, "type": spot.type, "group": spot.group, "note": spot.note}
                for spot in self.spots
            ],
            "edges": [
                {
                    "id": f"{edge.source}#{number}",
                    "source": edge.source,
                    "target": edge.target,
                    "way": edge.way,
                    "label": edge.label,
                    "on_error": edge.is_failing,
                }
                for number, edge in enumerate(self.edges)
            ],
        }


def graph(plan: Plan, children: Mapping[str, Plan] | None = None) -> Graph:
    """The graph of `plan`. Targets that do not exist are left out; the checks name them.

    Args:
        plan: The workflow.
        children: Sub-workflows by path. Those that are here are unfolded, each as a group around its steps.
    """
    unfolding = _Unfolding({} if children is None else children)
    unfolding.add(plan, "", None, ())
    return Graph(name=plan.name, entry=plan.entry, spots=tuple(unfolding.spots), edges=tuple(unfolding.edges))


class _Unfolding:
    """The spots and edges of a workflow and of the sub-workflows below it."""

    def __init__(self, children: Mapping[str, Plan]) -> None:
        self._children = children
        self.spots: list[Spot] = []
        self.edges: list[Edge] = []

    def add(self, plan: Plan, at: str, group: str | None, trail: tuple[str, ...]) -> None:
        """Add the steps of `plan`; `at` is before their ids, and `group` is around them."""
        owner = _owners(plan)
        for node in plan.nodes.values():
            inside = owner.get(node.name)
            if inside == _LOOPED:
                continue
            around = group if inside is None else f"{at}{inside}"
            self._add_node(plan, node, f"{at}{node.name}", around, trail)
            if inside is not None:
                continue
            for edge in _edges(node):
                if edge.target in ENDS:
                    self.edges.append(replace(edge, source=f"{at}{edge.source}"))
                elif edge.target in plan.nodes and owner.get(edge.target) is None:
                    self.edges.append(replace(edge, source=f"{at}{edge.source}", target=f"{at}{edge.target}"))

    def _add_node(self, plan: Plan, node: Node, at: str, group: str | None, trail: tuple[str, ...]) -> None:
        spec = node.spec
        is_entry = node.name == plan.entry
        self.spots.append(
            Spot(
                id=at,
                name=node.name,
                type=node.type,
                group=group,
                note=_note(node),
                node=node,
                is_entry=is_entry,
            )
        )
        if isinstance(spec, ForEachSpec):
            self._add_node(plan, spec.body, f"{at}/{spec.body.name}", at, trail)
        elif isinstance(spec, WorkflowSpec):
            file = normpath(join(plan.folder, spec.path.text))
            child = self._children.get(file)
            # A file that runs itself is unfolded once.
            if child is not None and file not in trail and len(trail) < _MOST_LEVELS:
                self.add(child, f"{at}/", at, (*trail, file))


_MOST_LEVELS = 10


def is_same_step(listed: Node | None, body: Node) -> bool:
    """Whether the body of a loop is the step that is `listed` under its name, or no step has that name."""
    return listed is None or listed is body or (body.place is not None and listed.place == body.place)


_LOOPED = "$looped"
"""The group of a step that a loop runs by name: it is drawn as the body of the loop."""


def _owners(plan: Plan) -> dict[str, str]:
    """Member → group, without cycles, which are mistakes."""
    owner: dict[str, str] = {}
    for node in plan.nodes.values():
        spec = node.spec
        while isinstance(spec, ForEachSpec):
            if spec.body.name in plan.nodes and is_same_step(plan.nodes[spec.body.name], spec.body):
                owner[spec.body.name] = _LOOPED
            spec = spec.body.spec
    for node in plan.nodes.values():
        if isinstance(node.spec, ParallelSpec):
            for member in node.spec.members:
                owner.setdefault(member.name, node.name)
    clear: set[str] = set()
    for name in list(owner):
        trail: set[str] = set()
        current = name
        while current in owner and current not in clear and current not in trail:
            trail.add(current)
            current = owner[current]
        if current in trail:
            del owner[current]
        clear |= trail
    return owner


def match_words(match: Match) -> str:
    """A short description of the failures that an error route matches."""
    if match.is_any:
        return "any error"
    parts = (
        (*sorted(match.kinds), *(f"{prefix}*" for prefix in match.prefixes)),
        sorted(match.categories),
        sorted(match.certainties),
        sorted(match.blames),
    )
    return " + ".join(" | ".join(part) for part in parts if part)


def _note(node: Node) -> str:
    spec = node.spec
    if isinstance(spec, ForEachSpec):
        return f"{spec.variable} in {spec.source}"
    if isinstance(spec, WorkflowSpec):
        return spec.path.text
    if isinstance(spec, TerminateSpec):
        return spec.status
    return node.description


def _edges(node: Node) -> Iterator[Edge]:
    for route in node.routes:
        yield _edge(node, route)
    spec = node.spec
    if isinstance(spec, GateSpec):
        for option in spec.options:
            yield Edge(source=node.name, target=option.route, way="option", label=option.value)
    elif isinstance(spec, TerminateSpec):
        yield Edge(
            source=node.name,
            target=END if spec.status == "success" else HALT,
            way="success",
            label=spec.status,
        )
    elif all(route.on_error is not None for route in node.routes):
        yield Edge(source=node.name, target=END, way="success")
    if isinstance(spec, QuestionsSpec) and spec.abort_route is not None:
        yield Edge(source=node.name, target=spec.abort_route, way="option", label="abort")


def _edge(node: Node, route: Route) -> Edge:
    failing = route.on_error is not None
    words = [] if route.on_error is None else [match_words(route.on_error)]
    if route.when is not None:
        words.append(f"when {_condition(route.when.text)}")
    target, way = route.to or END, "error" if failing else "success" if route.when is None else "when"
    if route.retry is not None:
        target, way = node.name, "retry"
        words.append(_repeats(route.retry))
    elif route.halt is not None:
        target, way = HALT, "halt"
        words.append("halt")
    elif route.propagate:
        target, way = CALLER, "propagate"
        words.append("propagate")
    return Edge(source=node.name, target=target, way=way, label=", ".join(words), is_failing=failing)


def _repeats(policy: Policy) -> str:
    schedule = policy.rules[0].schedule
    assert schedule is not None
    delay = schedule.backoff.first
    pause = f" after {delay:g} s" if delay else ""
    return f"retry ×{schedule.max_attempts - 1}{pause}"


def _condition(text: str) -> str:
    """A condition without the braces around it."""
    plain = " ".join(text.split())
    inner = plain.removeprefix("{{").removesuffix("}}")
    is_one_tag = len(inner) == len(plain) - 4 and "{{" not in inner and "}}" not in inner
    return inner.strip("-").strip() if is_one_tag else plain
