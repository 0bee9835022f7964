"""The live tree of a run on a terminal: what runs, what waits and for how long, what failed."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Any, Self

from failwell.calls.clock import SYSTEM_CLOCK
from failwell.cli.output import terminal
from failwell.cli.runs.progress import Model, Row, exit_text, span
from failwell.store.event import Event

_MARKS = {
    "running": ("▸", "cyan"),
    "done": ("✓", "green"),
    "failed": ("✗", "red"),
    "retrying": ("↻", "yellow"),
    "waiting": ("◷", "yellow"),
    "asks": ("?", "magenta"),
    "skipped": ("–", "dim"),
}
_PER_SECOND = 8


class Live:
    """Draws the tree a few times a second; the last state stays on the screen."""

    def __init__(self, args: Namespace) -> None:
        self._model = Model()
        self._args = args
        self._live: Any = None
        self._console: Any = None

    def __enter__(self) -> Self:
        color = {"always": True, "never": False}.get(self._args.color)
        self._console = terminal(sys.stderr, color=color, force_terminal=True)
        self.resume()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, events: Sequence[Event]) -> None:
        """Apply events; they are drawn with the next frame."""
        for event in events:
            self._model.apply(event)

    def pause(self) -> None:
        """Stop drawing, so that a question can be asked."""
        self._live.stop()

    def resume(self) -> None:
        """Draw below what was written meanwhile."""
        from rich.live import Live as RichLive

        # One that was stopped would draw over as many lines as it had drawn before.
        self._live = RichLive(
            get_renderable=self._tree,
            console=self._console,
            refresh_per_second=_PER_SECOND,
            transient=False,
            redirect_stdout=False,
            redirect_stderr=True,
        )
        self._live.start()

    def _tree(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        now = SYSTEM_CLOCK.now().timestamp()
        model = self._model
        rows = list(model.rows.values())
        room = max(6, self._console.height - 4 - len(model.hooks))
        visible = rows if len(rows) <= room else _most_important(rows, room)
        head = Text()
        head.append(f"{model.workflow or 'workflow'} ", style="bold")
        head.append(f"{model.run}  {model.state}", style="dim")
        if model.started:
            head.append(f"  {span(now - model.started)}", style="dim")
        if model.spent:
            head.append(f"  {model.spent:.4f} USD", style="dim")
        lines = [_line(row, now) for row in visible]
        left_out = len(rows) - len(visible) + model.hidden
        if left_out:
            lines.append(Text(f"  … and {left_out} more that have ended", style="dim"))
        lines += [
            Text(f"  {text}", style="dim", no_wrap=True, overflow="ellipsis") for text in model.hooks.values()
        ]
        return Group(head, *lines)


def _most_important(rows: list[Row], room: int) -> list[Row]:
    """What is at work and what failed comes first; the order stays that of the run."""
    ranks = {"running": 0, "asks": 0, "retrying": 0, "waiting": 0, "failed": 1, "skipped": 3, "done": 2}
    ordered = sorted(range(len(rows)), key=lambda index: (ranks.get(rows[index].state, 3), -index))[:room]
    return [rows[index] for index in sorted(ordered)]


def _line(row: Row, now: float) -> Any:
    from rich.text import Text

    mark, style = _MARKS.get(row.state, ("·", ""))
    line = Text("  " * (row.depth + 1), no_wrap=True, overflow="ellipsis")
    line.append(f"{mark} ", style=style)
    # Data is never read as markup: a name may hold brackets.
    line.append(
        row.node + (f"[{row.item}]" if row.item is not None else ""),
        style="" if row.state != "done" else "dim",
    )
    if row.total is not None:
        failed = f", {row.failed} failed" if row.failed else ""
        line.append(f"  {row.done + row.failed}/{row.total}{failed}", style="dim")
    if row.attempt > 1:
        line.append(f"  attempt {row.attempt}", style="yellow")
    if row.until is not None and row.state in ("retrying", "waiting"):
        line.append(f"  in {span(row.until - now)}", style="yellow")
    if row.text and row.state != "done":
        line.append(f"  {row.text}", style=style)
    if row.exit_code and row.state != "running":
        line.append(f"  {exit_text(row.exit_code)}", style="yellow")
    line.append(f"  {span((row.ended or now) - row.started)}", style="dim")
    return line
