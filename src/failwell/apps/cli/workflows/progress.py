"""Shows a run on stderr: a live tree on a terminal, one line for each event elsewhere."""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from failwell.apps.cli.output import is_terminal
from failwell.apps.cli.workflows.progress_model import Model, Row
from failwell.journal.event import Event


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
    """What shows the run on stderr while it goes on; `None` where nothing is to be shown."""
    style = "none" if args.quiet or args.silent else args.progress
    if style == "auto":
        style = "live" if _is_interactive(args) else "plain"
    if style == "live":
        from failwell.apps.cli.workflows.progress_live import Live

        with Live(args) as live:
            yield live
    else:
        yield PlainProgress() if style == "plain" else None


def _is_interactive(args: Namespace) -> bool:
    return is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb" and not getattr(args, "agent", False)


class PlainProgress:
    """Prints one line for each event that a person may want to read later."""

    def __init__(self) -> None:
        self._model = Model()

    def show(self, events: Sequence[Event]) -> None:
        """Print the lines of events that have one."""
        for event in events:
            row = self._model.apply(event)
            line = line_of(self._model, event, row)
            if line:
                print(line, file=sys.stderr, flush=True)

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
        return f"run {model.state} after {span(data.get('duration', 0.0))}{cost}"
    if event.type == "budget:warning":
        return f"budget: {data['spent_usd']:.2f} of {data['limit_usd']:.2f} USD are spent"
    if row is None or row.type == "set":
        return None
    phrase = _PHRASES.get(event.type)
    return None if phrase is None else f"{row.path}: {phrase(row, data)}"


def _retrying(row: Row, data: Any) -> str:
    reason = "blocked until its time" if data.get("by") == "parking" else f"again in {span(data['delay'])}"
    return f"failed with {row.text} (attempt {row.attempt}); {reason}"


def _started(row: Row, _data: Any) -> str:
    return "started" if row.attempt == 1 else f"started, attempt {row.attempt}"


def _done(row: Row, _data: Any) -> str:
    return f"done in {span((row.ended or 0.0) - row.started)}"


def _failed(row: Row, _data: Any) -> str:
    return f"failed with {row.text}"


def _waits(_row: Row, data: Any) -> str:
    return f"waits {span(data['seconds'])}"


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


def span(seconds: float) -> str:
    """A duration in one or two units."""
    if seconds < 1:
        return f"{max(seconds, 0.0) * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
