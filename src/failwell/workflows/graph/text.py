"""A graph as a text tree for a terminal: each node with its members and its edges."""

from failwell.workflows.graph.model import ENDS, Edge, Graph, Spot
from failwell.workflows.graph.text__step_facts import limits_of, limits_text, work_of

_SIGNS = {
    "success": "→", "when": "→", "option": "→", "error": "✗", "retry": "↻", "halt": "■", "propagate": "↑",
}  # fmt: skip


def as_text(graph: Graph, *, has_details: bool = False) -> str:
    """`graph` as text: `→` success, `✗` error, `↻` retry, `■` halt, `↑` propagated to the caller.

    Args:
        graph: The graph.
        has_details: Whether to add what each step runs, and its limits.
    """
    edges: dict[str, list[Edge]] = {}
    inside: dict[str, list[Spot]] = {}
    tops: list[Spot] = []
    for edge in graph.edges:
        edges.setdefault(edge.source, []).append(edge)
    for spot in graph.spots:
        (tops if spot.group is None else inside.setdefault(spot.group, [])).append(spot)
    lines = [graph.name]
    for index, spot in enumerate(tops):
        is_last = index == len(tops) - 1
        lines.append(f"{'└' if is_last else '├'}── {_title(spot)}")
        lines += _below(spot, edges, inside, "    " if is_last else "│   ", has_details=has_details)
    return "\n".join(lines) + "\n"


def _below(
    spot: Spot,
    edges: dict[str, list[Edge]],
    inside: dict[str, list[Spot]],
    indent: str,
    *,
    has_details: bool,
) -> list[str]:
    members = inside.get(spot.id, [])
    outgoing = edges.get(spot.id, [])
    lines = _details(spot, f"{indent}{'│' if members or outgoing else ' '}   ") if has_details else []
    for index, member in enumerate(members):
        is_last = index == len(members) - 1 and not outgoing
        lines.append(f"{indent}{'└' if is_last else '├'}── {_title(member)}")
        # A cycle of groups is a mistake that the rules report. Here it must not recurse without end.
        if len(indent) < 200:
            deeper = f"{indent}{'    ' if is_last else '│   '}"
            lines += _below(member, edges, inside, deeper, has_details=has_details)
    # Inside a sub-workflow the ids begin with its step.
    prefix = spot.id[: len(spot.id) - len(spot.name)]
    for index, edge in enumerate(outgoing):
        lines.append(f"{indent}{'└' if index == len(outgoing) - 1 else '├'}─{_edge(edge, prefix)}")
    return lines


def _details(spot: Spot, indent: str) -> list[str]:
    if spot.node is None:
        return []
    work = work_of(spot.node)
    limits = limits_text(limits_of(spot.node))
    return [f"{indent}{label}: {text}" for label, text in (("runs", work), ("limits", limits)) if text]


def _title(spot: Spot) -> str:
    note = f", {' '.join(spot.note.split())}" if spot.note else ""
    mark = " (entry)" if spot.is_entry else ""
    return f"{spot.name} [{spot.type}{note}]{mark}"


def _edge(edge: Edge, prefix: str) -> str:
    sign = _SIGNS[edge.way]
    if edge.way in ("retry", "halt", "propagate"):
        return f"{sign} {edge.label}"
    target = edge.target.removeprefix(prefix) if edge.target not in ENDS else f"({ENDS[edge.target]})"
    label = f"{edge.label}: " if edge.label else ""
    return f"{sign} {label}{target}"
