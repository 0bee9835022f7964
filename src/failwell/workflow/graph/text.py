"""A graph as a text tree for a terminal: each node with its members and its edges."""

from failwell.workflow.graph.model import ENDS, Edge, Graph, Spot

_SIGNS = {
    "success": "→", "when": "→", "option": "→", "error": "✗", "retry": "↻", "halt": "■", "propagate": "↑",
}  # fmt: skip


def as_text(graph: Graph) -> str:
    """`graph` as text: `→` success, `✗` error, `↻` retry, `■` halt, `↑` propagated to the caller."""
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
        mark = " (entry)" if spot.id == graph.entry else ""
        lines.append(f"{'└' if is_last else '├'}── {_title(spot)}{mark}")
        lines += _below(spot, edges, inside, "    " if is_last else "│   ")
    return "\n".join(lines) + "\n"


def _below(spot: Spot, edges: dict[str, list[Edge]], inside: dict[str, list[Spot]], indent: str) -> list[str]:
    lines: list[str] = []
    members = inside.get(spot.id, [])
    outgoing = edges.get(spot.id, [])
    for index, member in enumerate(members):
        is_last = index == len(members) - 1 and not outgoing
        lines.append(f"{indent}{'└' if is_last else '├'}── {_title(member)}")
        # A cycle of groups is a mistake that the rules report. Here it must not recurse without end.
        if len(indent) < 200:
            lines += _below(member, edges, inside, f"{indent}{'    ' if is_last else '│   '}")
    for index, edge in enumerate(outgoing):
        lines.append(f"{indent}{'└' if index == len(outgoing) - 1 else '├'}─{_edge(edge)}")
    return lines


def _title(spot: Spot) -> str:
    note = f", {' '.join(spot.note.split())}" if spot.note else ""
    return f"{spot.name} [{spot.type}{note}]"


def _edge(edge: Edge) -> str:
    sign = _SIGNS[edge.way]
    if edge.way in ("retry", "halt", "propagate"):
        return f"{sign} {edge.label}"
    target = edge.target if edge.target not in ENDS else f"({ENDS[edge.target]})"
    label = f"{edge.label}: " if edge.label else ""
    return f"{sign} {label}{target}"
