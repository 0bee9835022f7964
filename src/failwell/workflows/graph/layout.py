"""The layout of a picture of a graph: boxes in layers, lines between them, and labels.

The layered method of Sugiyama: reverse edges that go back, put every node below its predecessors, give each long
edge a point in every layer that it crosses, order the layers so that few edges cross, then move everything
towards its neighbours. Every second layer contains only labels, so that no label overlaps a box. In a large graph,
a long edge is drawn as a signpost beside its source, which keeps the work linear.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from failwell.workflows.graph.boxes import (
    GAP,
    HEAD,
    MAX_MEMBERS,
    NAME_SIZE,
    PAD,
    Box,
    Layout,
    Line,
    end_box,
    fill,
    shortened,
    text_width,
    wrapped,
)
from failwell.workflows.graph.model import ENDS, Edge, Graph, Spot

_MARK = 30
"""Height of the mark above the step that a sub-workflow begins with."""
_LARGE = 60
_SPINE = 100.0
_FAR = 6
"""Layers that an edge of a large graph may cross."""


@dataclass(slots=True)
class _Place:
    """One place in a layer: a box, or a point of an edge."""

    rank: int
    width: float
    height: float
    anchor: float
    """From its left side to where edges meet it."""
    box: Box | None = None
    weight: float = 1
    """How strongly it is kept at its target position."""
    above: list[tuple["_Place", float]] = field(default_factory=list[tuple["_Place", float]])
    """Neighbours in the layer above, each with the strength of the connection."""
    below: list[tuple["_Place", float]] = field(default_factory=list[tuple["_Place", float]])
    x: float = 0
    """Of the anchor."""
    y: float = 0
    band: tuple[float, float] = (0, 0)
    """The upper and lower end of its layer."""
    order: float = 0


class _Contents:
    """What a graph holds: the spots of each group, in order, and the edges out of each spot."""

    def __init__(self, graph: Graph) -> None:
        self.spots: dict[str | None, list[Spot]] = {}
        self.edges: dict[str, list[Edge]] = {}
        for spot in graph.spots:
            self.spots.setdefault(spot.group, []).append(spot)
        for edge in graph.edges:
            self.edges.setdefault(edge.source, []).append(edge)


def layout(graph: Graph) -> Layout:
    """The layout of `graph`. The steps of an unfolded sub-workflow are a picture in its box."""
    return _layout(_Contents(graph), None, graph.entry)


def _layout(contents: _Contents, group: str | None, entry: str) -> Layout:
    """The layout of the spots of one group: `None` for those outside all groups."""
    spots = contents.spots.get(group, [])
    graph_edges = [edge for spot in spots for edge in contents.edges.get(spot.id, ())]
    boxes = _boxes(spots, graph_edges, contents)
    edges = _straight(graph_edges, boxes)
    ranks, edges = _ranks(boxes, edges, entry)
    places = {
        name: _Place(
            rank=ranks[name],
            width=box.width + box.reach,
            height=box.height,
            anchor=box.width / 2,
            weight=1.0 if box.type in (*ENDS, "signpost") else _SPINE,
            box=box,
        )
        for name, box in boxes.items()
    }
    chains = [_chain(edge, places) for edge in edges]
    layers = _layers([*places.values(), *(place for chain in chains for place in chain[1:-1])])
    _untangle(layers)
    _pull(layers)
    width, height = _settle(layers)
    lines = _lines(edges, chains)
    first = places.get(entry)
    start = None if first is None or first.box is None else (first.x, first.y)
    return Layout(list(boxes.values()), lines, width, height, start)


def _boxes(spots: list[Spot], edges: list[Edge], contents: _Contents) -> dict[str, Box]:
    boxes = {spot.id: _box(spot, contents, set()) for spot in spots}
    ends = [edge.target for edge in edges if edge.target in ENDS]
    for end in ENDS:
        count = ends.count(end)
        if count > 0 and (end == "$end" or count == 1) and len(boxes) < _LARGE:
            boxes[end] = end_box(end, end)
    return boxes


def _box(spot: Spot, contents: _Contents, around: set[str]) -> Box:
    title = shortened(spot.name)
    members = [member for member in contents.spots.get(spot.id, ()) if member.id not in around]
    box = Box(id=spot.id, title=title, type=spot.type, note=spot.note)
    box.width = max(104.0, text_width(title, NAME_SIZE) + 2 * PAD + 8, text_width(spot.type) + 2 * PAD + 8)
    if not members:
        return box
    heading = f"{spot.type} {spot.note}".strip()
    if spot.type == "workflow":
        _embed(box, contents, next((member.id for member in members if member.is_entry), ""), heading)
        return box
    box.inside = [_box(member, contents, around | {spot.id}) for member in members[:MAX_MEMBERS]]
    if len(members) > MAX_MEMBERS:
        title = f"{len(members) - MAX_MEMBERS} more"
        box.inside.append(Box(id=f"{spot.id}…", title=title, type="more", width=104))
    fill(box, heading)
    return box


def _embed(box: Box, contents: _Contents, entry: str, heading: str) -> None:
    """Lay out the steps of a sub-workflow inside its box."""
    drawing = _layout(contents, box.id, entry)
    top = HEAD + 14.0 + (0 if drawing.entry is None else _MARK)
    box.width = max(box.width, text_width(shortened(heading, 48)) + 2 * PAD, drawing.width + 2 * PAD)
    box.height = top + drawing.height + PAD
    box.drawing, box.drawing_at = drawing, ((box.width - drawing.width) / 2, top)


def _straight(graph_edges: list[Edge], boxes: dict[str, Box]) -> list[Edge]:
    """The edges between two boxes. Loops are added to their box, and shared ends are split."""
    edges: list[Edge] = []
    for edge in graph_edges:
        if edge.target == edge.source:
            boxes[edge.source].loops.append(edge)
            continue
        target = edge.target
        if target in ENDS and target not in boxes:
            target = f"{edge.source}{target}"
            boxes.setdefault(target, end_box(target, edge.target))
        if target in boxes:
            edges.append(_with_target(edge, target))
    return edges


def _with_target(edge: Edge, target: str) -> Edge:
    return edge if target == edge.target else Edge(
        source=edge.source, target=target, way=edge.way, label=edge.label, is_failing=edge.is_failing
    )  # fmt: skip


def _ranks(boxes: dict[str, Box], edges: list[Edge], entry: str) -> tuple[dict[str, int], list[Edge]]:
    """The layer of every box (even numbers), and the edges, with signposts as targets of long ones."""
    ranks = _longest(boxes, edges, entry)
    if len(boxes) > _LARGE:
        edges = [_signposted(edge, boxes, ranks) for edge in edges]
    elif "$end" in ranks:
        ranks["$end"] = (
            max(ranks.values()) if max(ranks.values()) == ranks["$end"] else max(ranks.values()) + 2
        )
    return ranks, edges


def _signposted(edge: Edge, boxes: dict[str, Box], ranks: dict[str, int]) -> Edge:
    if abs(ranks[edge.target] - ranks[edge.source]) <= 2 * _FAR:
        return edge
    at = f"{edge.source}→{edge.target}"
    if at not in boxes:
        title = f"→ {boxes[edge.target].title}"
        boxes[at] = Box(
            id=at, title=title, type="signpost", width=text_width(title, NAME_SIZE) + 24, height=26
        )
        ranks[at] = ranks[edge.source] + 2
    return _with_target(edge, at)


def _longest(boxes: dict[str, Box], edges: list[Edge], entry: str) -> dict[str, int]:
    """The layer of every box below its predecessors, without edges that close a cycle."""
    successors: dict[str, list[str]] = {name: [] for name in boxes}
    for edge in edges:
        successors[edge.source].append(edge.target)
    order: list[str] = []
    state: dict[str, int] = {}
    forward: dict[str, list[str]] = {name: [] for name in boxes}
    for root in ([entry] if entry in boxes else []) + list(boxes):
        if root in state:
            continue
        state[root] = 1
        waiting = [(root, iter(successors[root]))]
        while waiting:
            name, targets = waiting[-1]
            for target in targets:
                target_state = state.get(target)
                if target_state != 1:
                    forward[name].append(target)
                if target_state is None:
                    state[target] = 1
                    waiting.append((target, iter(successors[target])))
                    break
            else:
                state[name] = 2
                order.append(name)
                waiting.pop()
    ranks = dict.fromkeys(boxes, 0)
    for name in reversed(order):
        for target in forward[name]:
            ranks[target] = max(ranks[target], ranks[name] + 2)
    return ranks


def _chain(edge: Edge, places: dict[str, _Place]) -> list[_Place]:
    """The places of an edge, from the upper end to the lower one."""
    source, target = places[edge.source], places[edge.target]
    upper, lower = (source, target) if source.rank < target.rank else (target, source)
    labelled = source.rank + 1 if upper is source else source.rank - 1
    lines = wrapped(edge.label)
    # Success edges are straight lines in the middle of the picture; failures lead away from them.
    strength = _SPINE if edge.way == "success" and target.weight > 1 else 1.0
    chain = [upper]
    for rank in range(upper.rank + 1, lower.rank):
        width, height = 8.0, 0.0
        if rank == labelled and lines:
            width, height = max(text_width(line) for line in lines) + 14, 15.0 * len(lines) + 6
        chain.append(_Place(rank=rank, width=width, height=height, anchor=width / 2, weight=strength))
    chain.append(lower)
    for above, below in pairwise(chain):
        # Long edges should be straight, so connections between two points of an edge are the strongest.
        pull = strength * (8.0 if above.box is None and below.box is None else 1.0)
        above.below.append((below, pull))
        below.above.append((above, pull))
    return chain


def _layers(places: list[_Place]) -> list[list[_Place]]:
    layers: list[list[_Place]] = [[] for _ in range(max((place.rank for place in places), default=-1) + 1)]
    for place in places:
        layers[place.rank].append(place)
    for layer in layers:
        for index, place in enumerate(layer):
            place.order = index
    return layers


def _untangle(layers: list[list[_Place]]) -> None:
    """Order each layer by the positions of its neighbours, down and up a few times."""
    rounds = 8 if sum(map(len, layers)) < 3000 else 2
    for turn in range(rounds):
        down = turn % 2 == 0
        for layer in layers[1:] if down else reversed(layers[:-1]):
            for place in layer:
                near = place.above if down else place.below
                if near:
                    place.order = sum(neighbour.order for neighbour, _ in near) / len(near)
            layer.sort(key=lambda place: place.order)
            for index, place in enumerate(layer):
                place.order = index


def _pull(layers: list[list[_Place]]) -> None:
    """Move everything towards its neighbours without changing the order."""
    for layer in layers:
        x = 0.0
        for place in layer:
            place.x = x + place.anchor
            x += place.width + GAP
    rounds = 40 if sum(map(len, layers)) < 3000 else 4
    for turn in range(rounds):
        down = turn % 2 == 0
        # The second half of the rounds considers both neighbours, so that the positions settle.
        use_both = turn >= rounds // 2
        for layer in layers if down else reversed(layers):
            _shift(
                layer, [_target(place, above=down or use_both, below=use_both or not down) for place in layer]
            )


def _target(place: _Place, *, above: bool, below: bool) -> float:
    near = [*(place.above if above else ()), *(place.below if below else ())]
    weight = sum(pull for _, pull in near)
    return sum(pull * neighbour.x for neighbour, pull in near) / weight if weight else place.x


def _shift(layer: Sequence[_Place], targets: list[float]) -> None:
    """Move every place as near to its target as the order allows: least squares, merging what collides."""
    # Blocks of adjacent places: their number, their weight, and the target of their left side.
    blocks: list[tuple[int, float, float]] = []
    offset = 0.0
    for place, target in zip(layer, targets, strict=True):
        count, weight, start = 1, place.weight, target - place.anchor - offset
        while blocks and blocks[-1][2] >= start:
            block_count, block_weight, block_start = blocks.pop()
            start = (start * weight + block_start * block_weight) / (weight + block_weight)
            count, weight = count + block_count, weight + block_weight
        blocks.append((count, weight, start))
        offset += place.width + GAP
    offset = 0.0
    waiting = iter(layer)
    for count, _, start in blocks:
        for _ in range(count):
            place = next(waiting)
            place.x = start + offset + place.anchor
            offset += place.width + GAP


def _settle(layers: list[list[_Place]]) -> tuple[float, float]:
    """Set the heights of the layers, and move everything into the picture; its width and height."""
    leftmost = min((place.x - place.anchor for layer in layers for place in layer), default=0.0)
    widest = 0.0
    top = 0.0
    for rank, layer in enumerate(layers):
        height = max((place.height for place in layer), default=0.0)
        for place in layer:
            place.x -= leftmost
            place.band = (top, top + height)
            place.y = top + (height - place.height) / 2
            widest = max(widest, place.x - place.anchor + place.width)
            if place.box is not None:
                place.box.x, place.box.y = place.x - place.anchor, place.y
        top += height + (20 if rank % 2 == 0 else 22)
    return widest, top - 20 if layers else 0.0


def _lines(edges: list[Edge], chains: list[list[_Place]]) -> list[Line]:
    ports = _ports(chains)
    lines: list[Line] = []
    for number, (edge, chain) in enumerate(zip(edges, chains, strict=True)):
        upper, lower = chain[0], chain[-1]
        out, into = ports[number, False], ports[number, True]
        points = [(out, upper.y + upper.height), (out, upper.band[1])]
        for place in chain[1:-1]:
            points += [(place.x, edge_of_band) for edge_of_band in place.band]
        points += [(into, lower.band[0]), (into, lower.y)]
        labelled = next((place for place in chain[1:-1] if place.height), None)
        at = (0.0, 0.0) if labelled is None else (labelled.x, labelled.y + labelled.height / 2)
        backwards = upper.box is not None and upper.box.id == edge.target
        lines.append(Line(edge, points[::-1] if backwards else points, wrapped(edge.label), at))
    return lines


def _ports(chains: list[list[_Place]]) -> dict[tuple[int, bool], float]:
    """Where each edge meets the side of its box, in the order of the edges' other ends."""
    sides: dict[tuple[int, bool], list[tuple[float, int]]] = {}
    owners: dict[int, _Place] = {}
    for number, chain in enumerate(chains):
        for place, near, is_top in ((chain[0], chain[1], False), (chain[-1], chain[-2], True)):
            owners[id(place)] = place
            sides.setdefault((id(place), is_top), []).append((near.x, number))
    ports: dict[tuple[int, bool], float] = {}
    for (owner, is_top), met in sides.items():
        place = owners[owner]
        span = place.anchor * 2
        for index, (_, number) in enumerate(sorted(met)):
            ports[number, is_top] = place.x - place.anchor + span * (index + 1) / (len(met) + 1)
    return ports
