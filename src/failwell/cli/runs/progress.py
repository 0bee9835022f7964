"""Shows a run on stderr: a live tree on a terminal, one line for each event elsewhere.

Of a loop with ten thousand items only the running ones are kept; the others are counted.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from failwell.calls.clock import SYSTEM_CLOCK
from failwell.cli.output import console_of, error_format, is_terminal, print_stderr_lines
from failwell.cli.times import clock, lasted
from failwell.store.event import Event
from failwell.workflows.run_details import exit_code_of

_LONGEST_HOOK = 200
"""Characters of the text of a hook that are shown."""
_KEPT = 200
"""Nodes that have ended and are still shown."""


@dataclass(slots=True)
class Row:
    """One node, as it is shown."""

    path: str
    node: str
    type: str
    state: str = "running"
    attempt: int = 1
    started: float = 0.0
    ended: float | None = None
    until: float | None = None
    text: str = ""
    """The kind of its failure, why it was skipped, what it asks."""
    item: str | None = None
    """The key of its item, in a `for_each`."""
    exit_code: int | None = None
    total: int | None = None
    """Members of a group."""
    done: int = 0
    failed: int = 0

    @property
    def depth(self) -> int:
        """How deeply it is nested in groups and sub-workflows."""
        return self.path.count("/") + self.path.count("[")


@dataclass(slots=True)
class Model:
    """The whole run, as it is shown."""

    run: str = ""
    workflow: str = ""
    started: float = 0.0
    state: str = "running"
    rows: dict[str, Row] = field(default_factory=dict[str, Row])
    spent: float = 0.0
    hidden: int = 0
    """Nodes that ended and are no longer shown."""
    hooks: dict[str, str] = field(default_factory=dict[str, str])
    """What each hook has said, or why it failed."""

    def apply(self, event: Event) -> Row | None:
        """Apply an event and return the row that changed."""
        data: Any = event.data
        row = self.rows.get(data.get("path", ""))
        match event.type:
            case "run:started":
                self.run, self.workflow, self.started = data["run"], data["workflow"], event.at
            case "node:started":
                row = self._start(event)
            case "node:completed" | "node:failed":
                self._end(event, row)
            case "node:retrying" if row is not None:
                row.state, row.until = "retrying", data["until"]
                row.text = data["failure"]["envelope"]["kind"]
                row.exit_code = exit_code_of(data)
                self._spend(data)
            case "node:waiting" if row is not None:
                row.state, row.until = "waiting", data["until"]
            case "human_gate:paused" if row is not None:
                row.state, row.text = "asks", data.get("prompt", "")
            case "human_gate:resumed" if row is not None:
                row.state, row.text = "running", data["decision"]
            case "group:started" if row is not None:
                row.total = len(data["keys"])
            case "node:skipped":
                row = Row(data["path"], data["node"], "", "skipped", started=event.at, ended=event.at)
                row.text = data["reason"]
                self.rows[row.path] = row
            case "hook":
                self.hooks[data["hook"]] = hook_text(data)
            case "run:completed" | "run:failed" | "run:cancelled" | "run:cancelling":
                self.state = event.type.removeprefix("run:")
            case _:
                pass
        return row

    def _start(self, event: Event) -> Row:
        data: Any = event.data
        row = self.rows.get(data["path"])
        if row is None or row.ended is not None:
            row = Row(data["path"], data["node"], data["type"], started=event.at, item=data.get("item"))
            self.rows.pop(row.path, None)
            self.rows[row.path] = row
        row.state, row.attempt, row.until = "running", data["attempt"], None
        return row

    def _end(self, event: Event, row: Row | None) -> None:
        data: Any = event.data
        self._spend(data)
        if row is None:
            return
        well = event.type == "node:completed"
        row.exit_code = exit_code_of(data)
        row.state, row.ended = "done" if well else "failed", event.at
        row.text = "" if well else data["failure"]["envelope"]["kind"]
        above = self.rows.get(_above(row.path))
        if above is not None and above.total is not None:
            above.done += well
            above.failed += not well
            if well:
                self._drop(row.path)
        self._tidy()

    def _spend(self, data: Any) -> None:
        usage: dict[str, Any] = data.get("usage") or {}
        self.spent += usage.get("cost_usd") or 0.0

    def _drop(self, path: str) -> None:
        for key in [key for key in self.rows if key == path or key.startswith((f"{path}/", f"{path}["))]:
            del self.rows[key]
            self.hidden += 1

    def _tidy(self) -> None:
        if len(self.rows) <= _KEPT * 2:
            return
        over = [path for path, row in self.rows.items() if row.ended is not None][:-_KEPT]
        for path in over:
            del self.rows[path]
        self.hidden += len(over)


def _above(path: str) -> str:
    """The group or sub-workflow that a path lies in."""
    if path.endswith("]"):
        return path[: path.rindex("[")]
    return path.rpartition("/")[0]


class Progress(Protocol):
    """Shows the events of a run."""

    def show(self, events: Sequence[Event]) -> None:
        """Show new events."""
        ...

    def pause(self) -> None:
        """Stop drawing, so that a question can be asked."""
        ...

    def resume(self) -> None:
        """Draw again."""
        ...


@contextmanager
def progress(args: Namespace) -> Generator[Progress | None]:
    """What shows the run on stderr while it runs; `None` where nothing is to be shown."""
    style = "none" if args.quiet or args.silent else args.progress
    if args.detach and style != "none":
        yield PlainProgress(has_times=True)
        return
    if style == "auto":
        # Whoever reads errors as JSON reads stderr as JSON.
        is_read = error_format(args) == "json"
        style = "none" if is_read else "live" if _is_interactive(args) else "plain"
    if style == "live":
        with Live(args) as live:
            yield live
    else:
        yield PlainProgress() if style == "plain" else None


def _is_interactive(args: Namespace) -> bool:
    return is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb" and not args.agent


class PlainProgress:
    """Prints one line for each event that a person may want to read later."""

    def __init__(self, *, has_times: bool = False) -> None:
        self._model = Model()
        self._has_times = has_times

    def show(self, events: Sequence[Event]) -> None:
        """Print the lines of events that have one."""
        lines = [(event, line_of(self._model, event, self._model.apply(event))) for event in events]
        text = [f"{self._time(event)}{line}" for event, line in lines if line]
        if text:
            print_stderr_lines(text)

    def _time(self, event: Event) -> str:
        if not self._has_times:
            return ""
        return f"{clock(event.at)}  "

    def pause(self) -> None:
        """Nothing is drawn between two lines."""

    def resume(self) -> None:
        """Nothing is drawn between two lines."""


def line_of(model: Model, event: Event, row: Row | None) -> str | None:
    """The line for one event, or `None` if it has none."""
    data: Any = event.data
    if event.type == "run:started":
        return f"run {model.run} of {model.workflow}"
    if event.type in ("run:completed", "run:failed", "run:cancelled"):
        # The run's own sum: it includes what was spent before a resume.
        usage: dict[str, Any] = data.get("usage") or {}
        spent = usage.get("cost_usd") or model.spent
        cost = f", {spent:.4f} USD" if spent else ""
        return f"run {model.state} after {lasted(data.get('duration', 0.0))}{cost}"
    if event.type == "budget:warning":
        return f"budget: {data['spent_usd']:.2f} of {data['limit_usd']:.2f} USD are spent"
    if event.type == "hook":
        return hook_text(data)
    if row is None or row.type == "set":
        return None
    phrase = _PHRASES.get(event.type)
    return None if phrase is None else f"{step_label(row.path, row.item)}: {phrase(row, data)}"


def hook_text(data: Any) -> str:
    """The line of a hook: its text, or why it has none."""
    failed = data.get("failed")
    if failed is None:
        return f"hook {data['hook']}: {' '.join(str(data.get('text', '')).split())[:_LONGEST_HOOK]}"
    return f"hook {data['hook']} failed: {failed}; this does not affect the run"


def step_label(path: str, item: str | None) -> str:
    """How a step is named for a person: its path, and the key of its item if the path has only the number."""
    return path if item is None or path.endswith(f"[{item}]") else f"{path} ({item})"


def _retrying(row: Row, data: Any) -> str:
    reason = "blocked until its time" if data.get("by") == "parking" else f"again in {lasted(data['delay'])}"
    return f"{_failed(row, data)} (attempt {row.attempt}); {reason}"


def _started(row: Row, _data: Any) -> str:
    return "started" if row.attempt == 1 else f"started, attempt {row.attempt}"


def _done(row: Row, _data: Any) -> str:
    return f"done in {lasted((row.ended or 0.0) - row.started)}{_exit(row)}"


def _failed(row: Row, _data: Any) -> str:
    return f"failed with {row.text}{_exit(row)}"


def _exit(row: Row) -> str:
    # A script that raised a typed error may well have ended with 0, which says nothing then.
    is_shown = row.exit_code is not None and (row.exit_code != 0 or row.state == "done")
    return f", {exit_text(row.exit_code or 0)}" if is_shown else ""


def exit_text(code: int) -> str:
    """How a script ended, in the words that commands print: its exit code, or the signal that ended it."""
    if code >= 0:
        return f"exit code {code}"
    import signal

    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


def _waits(_row: Row, data: Any) -> str:
    return f"waits {lasted(data['seconds'])}"


def _skipped(row: Row, _data: Any) -> str:
    return f"skipped ({row.text})"


def _asks(row: Row, _data: Any) -> str:
    return f"asks: {row.text}"


_PHRASES: dict[str, Callable[[Row, Any], str]] = {
    "node:started": _started,
    "node:completed": _done,
    "node:failed": _failed,
    "node:retrying": _retrying,
    "node:waiting": _waits,
    "node:skipped": _skipped,
    "human_gate:paused": _asks,
}


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
        self._console = console_of(self._args, sys.stderr)
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
            head.append(f"  {lasted(now - model.started)}", style="dim")
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
        line.append(f"  in {lasted(max(0.0, row.until - now))}", style="yellow")
    if row.text and row.state != "done":
        line.append(f"  {row.text}", style=style)
    if row.exit_code and row.state != "running":
        line.append(f"  {exit_text(row.exit_code)}", style="yellow")
    line.append(f"  {lasted((row.ended or now) - row.started)}", style="dim")
    return line
