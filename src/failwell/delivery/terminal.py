"""One failure as plain text for a terminal or a log file."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from failwell.adapters.stack import WITHHELD
from failwell.delivery.plain_text import json_text, neutral, one_line
from failwell.errors.redact import TEXT_CAP
from failwell.errors.report import ENVIRONMENT_VARIABLE, Attempt, Cause, ErrorReport, Evidence, Frame
from failwell.errors.text_table import aligned

if TYPE_CHECKING:
    from rich.panel import Panel


Audience = Literal["user", "operator"]

_VIA = {"cause": "from", "context": "while handling", "member": "with"}
_RESOURCES = {"gpu_vram_mb": "GPU memory", "system_ram_mb": "memory", "disk_mb": "disk space"}


class FailureText(TypedDict):
    """The text of one failure: single lines that are safe to show as they are."""

    title: str
    message: str
    rows: tuple[tuple[str, str], ...]
    """Label and value."""
    blocks: tuple[tuple[str, tuple[str, ...]], ...]
    """Label and lines, indented by level where they form a tree."""
    hint: str


def failure_text(report: ErrorReport, audience: Audience = "user") -> FailureText:
    """The text of `report` for `audience`."""
    return _for_user(report) if audience == "user" else _for_operator(report)


def span(seconds: float) -> str:
    """A length of time for a person, never shorter than it is."""
    if not isfinite(seconds):
        return "an unknown time"
    if seconds < 120:
        return f"{_up(seconds, 0.1):g} s"
    if seconds < 7_200:
        return f"{_up(seconds / 60, 1):g} min"
    if seconds < 172_800:
        return f"{_up(seconds / 3_600, 0.1):g} h"
    return f"{_up(seconds / 86_400, 0.1):g} days"


def _for_user(report: ErrorReport) -> FailureText:
    view = report.view("user")
    return FailureText(
        title=one_line(view["title"]),
        message=one_line(view["message"]),
        rows=_rows((*_common(view), ("id", view["id"]))),
        blocks=(),
        hint=one_line(view["user_action"].get("detail", "")),
    )


def _for_operator(report: ErrorReport) -> FailureText:
    view = report.view("operator")
    reply: Mapping[str, Any] = view.get("provider_metadata", {})
    rows = (
        *_common(view),
        ("type", report.error_type),
        ("certainty", report.certainty),
        ("blame", report.blame),
        ("provider", report.provider),
        ("model", report.model),
        ("status", reply.get("status_code")),
        ("code", reply.get("code")),
        ("request", reply.get("request_id")),
        *((f"details.{key}", _plain(value)) for key, value in view.get("details", {}).items()),
        ("id", report.id),
        ("fingerprint", report.fingerprint),
        ("at", view["occurred_at"]),
    )
    blocks = (
        ("causes", [line for cause in report.causes for line in _cause(cause)]),
        ("attempts", _columns(_attempts(report.attempts))),
        ("crossed", [_frame(frame) for frame in report.frames]),
        ("evidence", [_evidence(evidence) for evidence in report.evidence]),
        ("traceback", list(_traceback(report))),
    )
    return FailureText(
        title=one_line(report.title),
        message=one_line(report.message, TEXT_CAP),
        rows=_rows(rows),
        blocks=tuple((label, tuple(lines)) for label, lines in blocks if lines),
        hint=one_line(report.user_action.detail, TEXT_CAP),
    )


def _common(view: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    yield "kind", f"{view['kind']} ({', '.join(_verdict(view))})"
    yield "where", " / ".join(f"{name} {value}" for name, value in view.get("scene", {}).items())
    yield "fields", ", ".join(view.get("fields_invalid", ()))
    if short := view.get("resource_shortfall"):
        resource = _RESOURCES.get(short["resource"], short["resource"])
        yield "short of", f"{resource}: {_mb(short['needed'])} needed, {_mb(short['available'])} free"


def _mb(much: float) -> str:
    return f"{much:,.1f}".removesuffix(".0") + " MB"


def _verdict(view: Mapping[str, Any]) -> Iterable[str]:
    yield view["category"]
    after = view.get("not_before", {}).get("after")
    known = isinstance(after, int | float) and isfinite(after) and after > 0
    if view["retryable"]:
        yield f"retry in {span(after)}" if known else "may be retried"
    elif known:
        yield f"blocked for {span(after)}"


def _rows(rows: Iterable[tuple[str, Any]]) -> tuple[tuple[str, str], ...]:
    content = (
        (one_line(label), one_line(str(value), TEXT_CAP)) for label, value in rows if value is not None
    )
    return tuple((label, value) for label, value in content if value)


def _cause(cause: Cause) -> Iterable[str]:
    indent = "  " * (max(1, min(cause.level, 20)) - 1)
    kind = f" ({cause.kind})" if cause.kind else ""
    message = f": {cause.message}" if cause.message else ""
    yield indent + one_line(f"{_VIA.get(cause.via, cause.via)} {cause.type}{kind}{message}", TEXT_CAP)
    for note in cause.notes:
        yield f"{indent}  note: {one_line(note, TEXT_CAP)}"


def _attempts(attempts: Sequence[Attempt]) -> list[Sequence[str]]:
    with_layers = len({attempt.layer for attempt in attempts}) > 1
    return [_attempt(attempt, attempt.layer if with_layers else None) for attempt in attempts]


def _attempt(attempt: Attempt, layer: str | None) -> Sequence[str]:
    target = "/".join(name for name in (attempt.provider, attempt.model) if name)
    # Prices are kept in micro-cents, and a call may cost a few hundred of them.
    price = "" if attempt.cost is None else f"${attempt.cost / 100_000_000:.6f}"
    tokens = sum(attempt.usage.values())
    return (
        str(attempt.number),
        layer or "",
        target,
        attempt.kind or "done",
        attempt.certainty or "",
        f"{tokens:,} tokens" if tokens else "",
        price,
        "" if attempt.wait is None else f"then waited {span(attempt.wait)}",
        attempt.reason or "",
    )


def _columns(table: Sequence[Sequence[str]]) -> list[str]:
    cells = [[one_line(cell) for cell in row] for row in table]
    return aligned(cells)


def _frame(frame: Frame) -> str:
    parts = [f"{frame.boundary} {frame.name}"]
    parts += [f"item {frame.item}"] if frame.item is not None else []
    parts += [f"iteration {frame.iteration}"] if frame.iteration is not None else []
    parts += [f"of {frame.workflow}"] if frame.workflow is not None else []
    parts += [f"({frame.kind})"] if frame.kind is not None else []
    return one_line(" ".join(parts))


def _evidence(evidence: Evidence) -> str:
    saw = f", saw {evidence.saw}" if evidence.saw else ""
    return one_line(f"{evidence.rule} (by {evidence.basis}{saw})", TEXT_CAP)


def _traceback(report: ErrorReport) -> Iterable[str]:
    trace = None if report.internal is None else report.internal.traceback
    if trace is None:
        return
    for line in neutral(trace).rstrip("\n").split("\n"):
        yield line.rstrip() if len(line) <= TEXT_CAP else one_line(line, TEXT_CAP)
    if WITHHELD in trace:
        yield f"{WITHHELD}: set {ENVIRONMENT_VARIABLE}=full to record the text of foreign exceptions"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json_text(value)


def _up(value: float, step: float) -> float:
    # Rounding first: 1.1 / 0.1 is a little more than 11, and would be called 1.2.
    return round(ceil(round(value / step, 6)) * step, 1)


def render_text(report: ErrorReport, audience: Audience = "user") -> str:
    """What happened, where, and what to do next; no colour, no trailing newline.

    A user gets what the user's view holds. An operator also gets the blame, what the
    provider answered, what was tried, why the failure was classified as it was, and where it was raised.
    """
    content = failure_text(report, audience)
    lines = [f"error: {content['message']}", *(f"  {label}: {value}" for label, value in content["rows"])]
    for label, block in content["blocks"]:
        lines += [f"  {label}:", *(f"    {line}" for line in block)]
    if content["hint"]:
        lines.append(f"hint: {content['hint']}")
    return "\n".join(lines)


def panel(report: ErrorReport, audience: Audience = "user") -> "Panel":
    """A panel for `console.print`; colour carries no meaning that the text does not."""
    from rich.console import Group, RenderableType
    from rich.padding import Padding
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    content = failure_text(report, audience)
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True)
    rows.add_column(overflow="fold")
    for label, value in content["rows"]:
        rows.add_row(Text(label, style="dim"), Text(value, overflow="fold"))

    parts: list[RenderableType] = [Text(content["message"], style="bold", overflow="fold"), Text(""), rows]
    for label, lines in content["blocks"]:
        block = Text("\n".join(lines), overflow="fold")
        parts += [Text(""), Text(label, style="dim"), Padding(block, (0, 0, 0, 2))]
    if content["hint"]:
        hint = Text("hint: ", style="bold green", overflow="fold")
        parts += [Text(""), hint.append(content["hint"], style="not bold green")]

    title = Text.assemble(("✗ ", "bold red"), (content["title"], "bold red"))
    return Panel(Group(*parts), title=title, title_align="left", border_style="red", padding=(1, 2))
