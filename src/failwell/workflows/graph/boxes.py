"""The parts of a picture of a graph: boxes, lines, labels, and how wide they are."""

from dataclasses import dataclass, field

from failwell.workflows.graph.model import ENDS, Edge

CHAR = 0.602
"""Width of a letter of a fixed-width font, as a share of its size."""
NAME_SIZE = 13
LABEL_SIZE = 11
NODE_HEIGHT = 46
PAD = 12
HEAD = 30
"""Height of the heading of a group."""
GAP = 26
"""Space between two places of a layer."""
MAX_MEMBERS = 12
"""Members of a group that are drawn; the others are counted."""
LONGEST_NAME = 30
LABEL_COLUMNS = 30


@dataclass(slots=True)
class Box:
    """A rectangle: a node, a group with boxes inside, an end, or a signpost to a distant node."""

    id: str
    title: str
    type: str
    note: str = ""
    width: float = 0
    height: float = NODE_HEIGHT
    x: float = 0
    y: float = 0
    inside: list["Box"] = field(default_factory=list["Box"])
    loops: list[Edge] = field(default_factory=list[Edge])
    """Edges to itself, drawn beside it."""
    drawing: "Layout | None" = None
    """The picture inside it: the steps of a sub-workflow."""
    drawing_at: tuple[float, float] = (0, 0)
    """Where the picture begins, from its upper left corner."""

    @property
    def reach(self) -> float:
        """The width of its loops and their labels on the right."""
        widest = max((text_width(line) for loop in self.loops for line in wrapped(loop.label)), default=-40.0)
        return widest + 40 if self.loops else 0.0


@dataclass(slots=True)
class Line:
    """One edge, as points from its source to its target."""

    edge: Edge
    points: list[tuple[float, float]]
    label: list[str]
    label_at: tuple[float, float]


@dataclass(slots=True)
class Layout:
    """The positions of everything in a picture."""

    boxes: list[Box]
    lines: list[Line]
    width: float
    height: float
    entry: tuple[float, float] | None
    """The middle of the upper side of the entry node."""


def text_width(text: str, size: float = LABEL_SIZE) -> float:
    """How wide `text` is drawn."""
    return len(text) * size * CHAR


def shortened(text: str, limit: int = LONGEST_NAME) -> str:
    """`text`, cut with a visible mark if it is too long to draw."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def wrapped(label: str) -> list[str]:
    """A label in at most three short lines."""
    from textwrap import wrap

    lines = wrap(label, LABEL_COLUMNS, break_long_words=True, break_on_hyphens=False)
    return lines if len(lines) <= 3 else [*lines[:2], shortened(f"{lines[2]} …", LABEL_COLUMNS)]


def end_box(at: str, end: str) -> Box:
    """The box of one of `ENDS`, with the id `at`."""
    title = ENDS[end]
    return Box(id=at, title=title, type=end, width=text_width(title, NAME_SIZE) + 30, height=26)


def fill(box: Box, heading: str) -> None:
    """Put the boxes inside a group into rows of three."""
    top: float = HEAD + 14
    widest: float = max(
        text_width(shortened(heading, 48)) + 24, text_width(box.title, NAME_SIZE) + 24, box.width
    )
    for start in range(0, len(box.inside), 3):
        x: float = PAD
        row = box.inside[start : start + 3]
        for member in row:
            member.x, member.y = x, top
            x += member.width + PAD
        widest = max(widest, x)
        top += max(member.height for member in row) + PAD
    box.width, box.height = widest, top
