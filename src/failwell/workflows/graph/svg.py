"""A graph as an SVG picture, drawn without any library."""

from failwell.workflows.graph.boxes import (
    HEAD,
    LABEL_SIZE,
    NAME_SIZE,
    Box,
    Layout,
    Line,
    shortened,
    text_width,
    wrapped,
)
from failwell.workflows.graph.layout import layout
from failwell.workflows.graph.model import Edge, Graph

_MARGIN = 36
_FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
_COLORS = {
    "script": "#2f6f4f", "agent": "#6d4bb4", "job": "#0f6b8a", "tool": "#8a5a0f", "human_gate": "#b0621a",
    "questions": "#b0621a", "set": "#5b6470", "wait": "#5b6470", "notification": "#3c6fb0",
    "terminate": "#a3263a", "workflow": "#1f5fa8", "parallel": "#44505c", "for_each": "#44505c",
}  # fmt: skip
_INK = "#1f2630"
_WAYS: dict[str, tuple[str, str, str]] = {
    "success": ("#4a5561", "", "success"),
    "when": ("#4a5561", "7 3", "success, with a condition"),
    "option": ("#1f5fa8", "", "a person's choice"),
    "error": ("#b3283c", "5 4", "error"),
    "retry": ("#b0621a", "2 3", "retry"),
    "halt": ("#b3283c", "", "halt"),
    "propagate": ("#8a2be2", "5 4", "error, to the caller"),
}
"""Way → colour, dashes, text in the legend."""


def as_svg(graph: Graph) -> str:
    """`graph` as an SVG document."""
    drawing = layout(graph)
    ways = [way for way in _WAYS if any(edge.way == way for edge in graph.edges)]
    legend_width = max((text_width(_WAYS[way][2]) + 62 for way in ways), default=0.0)
    columns = max(1, min(len(ways), int(max(drawing.width, 420.0) // max(legend_width, 1.0))))
    rows = -(-len(ways) // columns)
    width = max(drawing.width, columns * legend_width, text_width(graph.name, 16)) + 2 * _MARGIN
    left = (width - drawing.width) / 2
    top = _MARGIN + 46
    legend_top = top + drawing.height + 26
    height = legend_top + rows * 20 + _MARGIN / 2
    head = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {head} font-family="{_FONT}" role="img">',
        f"<title>{_safe(graph.name)}</title>",
        _markers(ways),
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        _text(_MARGIN, _MARGIN, graph.name, 16, _INK, weight="bold"),
        f'<g transform="translate({left:.1f} {top:.1f})">',
        *_drawing(drawing),
        "</g>",
        *_legend(ways, columns, legend_width, legend_top),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _drawing(drawing: Layout) -> list[str]:
    parts: list[str] = []
    if drawing.entry is not None:
        x, y = drawing.entry
        parts.append(f'<circle cx="{x:.1f}" cy="{y - 24:.1f}" r="5" fill="{_INK}"/>')
        parts.append(_path(f"M{x:.1f},{y - 24:.1f} L{x:.1f},{y:.1f}", "success"))
    parts += [_curve(line) for line in drawing.lines]
    for box in drawing.boxes:
        parts += _box(box, 0, 0)
    for line in drawing.lines:
        if line.label:
            parts += _label(line.edge, line.label, *line.label_at)
    return parts


def _curve(line: Line) -> str:
    (x, y), *points = line.points
    steps = [f"M{x:.1f},{y:.1f}"]
    for to_x, to_y in points:
        if abs(to_x - x) < 0.5:
            steps.append(f"L{to_x:.1f},{to_y:.1f}")
        else:
            middle = (y + to_y) / 2
            steps.append(f"C{x:.1f},{middle:.1f} {to_x:.1f},{middle:.1f} {to_x:.1f},{to_y:.1f}")
        x, y = to_x, to_y
    return _path(" ".join(steps), line.edge.way)


def _path(d: str, way: str) -> str:
    color, dashes, _ = _WAYS[way]
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<path d="{d}" fill="none" stroke="{color}" stroke-width="1.5"{dashed} marker-end="url(#to-{way})"/>'
    )


def _label(edge: Edge, lines: list[str], x: float, y: float, *, anchor: str = "middle") -> list[str]:
    color = _WAYS[edge.way][0]
    wide = max(text_width(line) for line in lines) + 8
    high = 15.0 * len(lines)
    left = x - wide / 2 if anchor == "middle" else x - 4
    ground = _rect(left, y - high / 2, wide, high, 'fill="#ffffff" fill-opacity="0.92"')
    parts = [f"<g><title>{_safe(edge.label)}</title>", ground]
    for index, line in enumerate(lines):
        at = y - high / 2 + 15 * index + 11
        parts.append(_text(x, at, line, LABEL_SIZE, color, anchor=anchor))
    return [*parts, "</g>"]


def _box(box: Box, left: float, top: float) -> list[str]:
    x, y = left + box.x, top + box.y
    if box.type in ("$end", "$halt", "$caller", "signpost"):
        return _pill(box, x, y)
    if box.inside or box.drawing is not None:
        return _group(box, x, y)
    color = _COLORS.get(box.type, "#7a828c")
    down = f"v{box.height:.1f} h-4 a6,6 0 0 1 -6,-6 v{12 - box.height:.1f}"
    stripe = f"M{x + 6:.1f},{y:.1f} h4 {down} a6,6 0 0 1 6,-6 z"
    parts = [
        f"<g><title>{_safe(f'{box.id} ({box.type}) {box.note}'.strip())}</title>",
        _rect(x, y, box.width, box.height, f'rx="6" fill="#ffffff" stroke="{color}" stroke-width="1.4"'),
        f'<path d="{stripe}" fill="{color}"/>',
        _text(x + 20, y + 20, box.title, NAME_SIZE, _INK, weight="bold"),
        _text(x + 20, y + 36, "" if box.type == "more" else box.type, LABEL_SIZE, color),
        "</g>",
    ]
    return [*parts, *_loops(box, x, y)]


def _group(box: Box, x: float, y: float) -> list[str]:
    color = _COLORS[box.type]
    heading = shortened(f"{box.type} {box.note}".strip(), 48)
    parts = [
        f"<g><title>{_safe(f'{box.id} ({box.type}) {box.note}'.strip())}</title>",
        _rect(x, y, box.width, box.height, f'rx="9" fill="#f4f6f8" stroke="{color}" stroke-width="1.4"'),
        _text(x + 12, y + 19, box.title, NAME_SIZE, _INK, weight="bold"),
        _text(x + 12, y + HEAD + 4, heading, LABEL_SIZE, color),
        "</g>",
    ]
    for member in box.inside:
        parts += _box(member, x, y)
    if box.drawing is not None:
        left, top = box.drawing_at
        parts += [
            f'<g transform="translate({x + left:.1f} {y + top:.1f})">',
            *_drawing(box.drawing),
            "</g>",
        ]
    return [*parts, *_loops(box, x, y)]


def _loops(box: Box, x: float, y: float) -> list[str]:
    parts: list[str] = []
    step = box.height / (len(box.loops) + 1)
    for number, loop in enumerate(box.loops):
        side, middle = x + box.width, y + step * (number + 1)
        out = 26
        d = f"M{side:.1f},{middle - 6:.1f} C{side + out:.1f},{middle - 16:.1f} {side + out:.1f},{middle + 16:.1f} {side:.1f},{middle + 6:.1f}"
        parts.append(_path(d, loop.way))
        parts += _label(loop, wrapped(loop.label), side + out + 2, middle, anchor="start")
    return parts


def _pill(box: Box, x: float, y: float) -> list[str]:
    stops = box.type in ("$halt", "$caller")
    color = "#b3283c" if box.type == "$halt" else "#8a2be2" if box.type == "$caller" else "#4a5561"
    fill = color if box.type == "$end" else "#ffffff"
    ink = "#ffffff" if box.type == "$end" else color
    look = f'rx="{3 if stops else 13}" fill="{fill}" stroke="{color}" stroke-width="1.4"'
    return [
        _rect(x, y, box.width, box.height, look),
        _text(x + box.width / 2, y + 17.5, box.title, NAME_SIZE - 1, ink, anchor="middle", weight="bold"),
    ]


def _legend(ways: list[str], columns: int, width: float, top: float) -> list[str]:
    parts: list[str] = []
    for index, way in enumerate(ways):
        x, y = _MARGIN + (index % columns) * width, top + (index // columns) * 20
        parts.append(_path(f"M{x:.1f},{y:.1f} L{x + 34:.1f},{y:.1f}", way))
        parts.append(_text(x + 44, y + 4, _WAYS[way][2], LABEL_SIZE, _INK))
    return parts


def _markers(ways: list[str]) -> str:
    markers = "".join(
        f'<marker id="to-{way}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7"'
        f' orient="auto-start-reverse"><path d="M0,0.5 L8,4 L0,7.5 z" fill="{_WAYS[way][0]}"/></marker>'
        for way in dict.fromkeys(["success", *ways])
    )
    return f"<defs>{markers}</defs>"


def _rect(x: float, y: float, width: float, height: float, look: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {look}/>'


def _text(
    x: float, y: float, text: str, size: float, color: str, *, anchor: str = "start", weight: str = "normal"
) -> str:
    if not text:
        return ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" text-anchor="{anchor}"'
        f' font-weight="{weight}">{_safe(text)}</text>'
    )


def _safe(text: str) -> str:
    """`text` escaped for XML, without characters that XML does not allow."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    return printable.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
