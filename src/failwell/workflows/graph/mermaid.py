"""A graph as a Mermaid flowchart.

https://mermaid.js.org/syntax/flowchart.html
"""

from failwell.workflows.graph.model import ENDS, Edge, Graph, Spot

_SHAPES = {
    "human_gate": ("{{", "}}"), "questions": ("{{", "}}"), "workflow": ("[[", "]]"), "wait": ("([", "])"),
    "terminate": ("[/", "/]"),
}  # fmt: skip


def as_mermaid(graph: Graph) -> str:
    """`graph` as a Mermaid flowchart."""
    ids = {spot.id: f"n{number}" for number, spot in enumerate(graph.spots)}
    ends = dict.fromkeys(edge.target for edge in graph.edges if edge.target in ENDS)
    ids |= {end: f"{ENDS[end]}_" for end in ends}
    inside: dict[str | None, list[Spot]] = {}
    for spot in graph.spots:
        inside.setdefault(spot.group, []).append(spot)
    lines = ["---", f"title: {_quoted(graph.name)}", "---", "flowchart TD"]
    for spot in inside.get(None, ()):
        lines += _spot(spot, ids, inside, "    ")
    lines += (f"    {ids[end]}(({_quoted(ENDS[end])}))" for end in ends)
    if graph.entry in ids:
        lines += ["    start_(( ))", f"    start_ --> {ids[graph.entry]}"]
    groups = {spot.group for spot in graph.spots}
    for number, edge in enumerate(graph.edges):
        target = ids[edge.target]
        if edge.source == edge.target and edge.source in groups:
            # Mermaid cannot draw a loop around a subgraph.
            target = f"again{number}_((↻))"
        lines.append(_edge(edge, ids[edge.source], target))
    failing = [str(number) for number, edge in enumerate(graph.edges, graph.entry in ids) if edge.is_failing]
    if failing:
        lines.append(f"    linkStyle {','.join(failing)} stroke:#b3283c,color:#b3283c")
    return "\n".join(lines) + "\n"


def _spot(spot: Spot, ids: dict[str, str], inside: dict[str | None, list[Spot]], indent: str) -> list[str]:
    members = inside.get(spot.id)
    if not members or len(indent) > 200:
        opens, closes = _SHAPES.get(spot.type, ("[", "]"))
        label = _quoted(f"{spot.name}\n{spot.type}")
        return [f"{indent}{ids[spot.id]}{opens}{label}{closes}"]
    note = f" {spot.note}" if spot.note else ""
    lines = [f"{indent}subgraph {ids[spot.id]} [{_quoted(f'{spot.name}: {spot.type}{note}')}]"]
    for member in members:
        lines += _spot(member, ids, inside, f"{indent}    ")
    return [*lines, f"{indent}end"]


def _edge(edge: Edge, source: str, target: str) -> str:
    arrow = "-.->" if edge.is_failing else "-->"
    label = f"|{_quoted(edge.label)}|" if edge.label else ""
    return f"    {source} {arrow}{label} {target}"


def _quoted(text: str) -> str:
    """A quoted label, escaped with the entities of Mermaid."""
    quoted = "".join(char if char.isprintable() or char == "\n" else " " for char in text)
    for char, code in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("\n", "<br/>")):
        quoted = quoted.replace(char, code)
    return f'"{quoted}"'
