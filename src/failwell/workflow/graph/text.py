"""A graph as a tree of text for a terminal: each node once, what is inside it, and its ways out."""

from failwell.workflow.graph.model import ENDS, Edge, Graph, Spot

_SIGNS = {
    "success": "→", "when": "→", "option": "→", "error": "✗", "retry": "↻", "halt": "■", "propagate": "↑",
}  # fmt: skip


def as_text(graph: Graph) -> str:
    """`graph` as text. A way out on success is `→`, on an error `✗`, again `↻`, a halt `■`, to the caller `↑`."""
    ways: dict[str, list[Edge]] = {}
    inside: dict[str, list[Spot]] = {}
    tops: list[Spot] = []
    for edge in graph.edges:
        ways.setdefault(edge.source, []).append(edge)
    for spot in graph.spots:
        (tops if spot.group is None else inside.setdefault(spot.group, [])).append(spot)
    lines = [graph.name]
    for index, spot in enumerate(tops):
        is_last = index == len(tops) - 1
        mark = " (entry)" if spot.id == graph.entry else ""
        lines.append(f"{'└' if is_last else '├'}── {_title(spot)}{mark}")
        lines += _below(spot, ways, inside, "    " if is_last else "│   ")
    return "\n".join(lines) + "\n"


def _below(spot: Spot, ways: dict[str, list[Edge]], inside: dict[str, list[Spot]], indent: str) -> list[str]:
    lines: list[str] = []
    members = inside.get(spot.id, [])
    outs = ways.get(spot.id, [])
    for index, member in enumerate(members):
        is_last = index == len(members) - 1 and not outs
        lines.append(f"{indent}{'└' if is_last else '├'}── {_title(member)}")
        # A circle of groups is a mistake that the checks name; here it only must not hang.
        if len(indent) < 200:
            lines += _below(member, ways, inside, f"{indent}{'    ' if is_last else '│   '}")
    for index, edge in enumerate(outs):
        lines.append(f"{indent}{'└' if index == len(outs) - 1 else '├'}─{_way(edge)}")
    return lines


def _title(spot: Spot) -> str:
    note = f", {' '.join(spot.note.split())}" if spot.note else ""
    return f"{spot.name} [{spot.type}{note}]"


def _way(edge: Edge) -> str:
    sign = _SIGNS[edge.way]
    if edge.way in ("retry", "halt", "propagate"):
        return f"{sign} {edge.label}"
    target = edge.target if edge.target not in ENDS else f"({ENDS[edge.target]})"
    label = f"{edge.label}: " if edge.label else ""
    return f"{sign} {label}{target}"
