"""Shows on stderr how a run goes: a live tree on a terminal, one line for each fact elsewhere."""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from failwell.apps.cli.output import is_terminal
from failwell.apps.cli.workflows.progress_model import Model, Row
from failwell.journal.event import Event


class Silent:
    """Says nothing."""

    def heard(self, event: Event) -> None:
        """Hear one fact."""

    def noted(self, kind: str, data: dict[str, Any]) -> None:
        """Hear what is not worth a place in the journal."""

    def pause(self) -> None:
        """Make room for a question."""

    def go_on(self) -> None:
        """The question was answered."""


@contextmanager
def progress(args: Namespace) -> Generator[Silent]:
    """Whoever tells people about the run, for as long as it goes on."""
    wanted = "none" if args.quiet or args.silent else args.progress
    if wanted == "auto":
        wanted = "live" if _is_lively(args) else "plain"
    if wanted == "live":
        from failwell.apps.cli.workflows.progress_live import Live

        with Live(args) as live:
            yield live
    else:
        yield Plain() if wanted == "plain" else Silent()


def _is_lively(args: Namespace) -> bool:
    return is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb" and not getattr(args, "agent", False)


class Plain(Silent):
    """One line for each fact that a person would want to read later."""

    def __init__(self) -> None:
        self._model = Model()

    def heard(self, event: Event) -> None:
        """Tell one fact."""
        row = self._model.hear(event)
        line = line_of(self._model, event, row)
        if line:
            print(line, file=sys.stderr, flush=True)


def line_of(model: Model, event: Event, row: Row | None) -> str | None:
    """The words for one fact, or `None` if it is not worth a line."""
    data: Any = event.data
    if event.type == "run:started":
        return f"run {model.run} of {model.workflow}"
    if event.type in ("run:completed", "run:failed", "run:cancelled"):
        # The run's own sum: what was spent before a resume was not heard here.
        usage: dict[str, Any] = data.get("usage") or {}
        spent = usage.get("cost_usd") or model.spent
        cost = f", {spent:.4f} USD" if spent else ""
        return f"run {model.state} after {span(data.get('duration', 0.0))}{cost}"
    if event.type == "budget:warning":
        return f"budget: {data['spent_usd']:.2f} of {data['limit_usd']:.2f} USD are spent"
    if row is None or row.type == "set":
        return None
    words = _WORDS.get(event.type)
    return None if words is None else f"{row.path}: {words(row, data)}"


def _retrying(row: Row, data: Any) -> str:
    reason = "blocked until its time" if data.get("by") == "parking" else f"again in {span(data['delay'])}"
    return f"failed with {row.words} (attempt {row.attempt}); {reason}"


def _started(row: Row, _data: Any) -> str:
    return "started" if row.attempt == 1 else f"started, attempt {row.attempt}"


def _done(row: Row, _data: Any) -> str:
    return f"done in {span((row.ended or 0.0) - row.started)}"


def _failed(row: Row, _data: Any) -> str:
    return f"failed with {row.words}"


def _waits(_row: Row, data: Any) -> str:
    return f"waits {span(data['seconds'])}"


def _skipped(row: Row, _data: Any) -> str:
    return f"skipped ({row.words})"


def _asks(row: Row, _data: Any) -> str:
    return f"asks: {row.words}"


_WORDS: dict[str, Callable[[Row, Any], str]] = {
    "node:started": _started,
    "node:completed": _done,
    "node:failed": _failed,
    "node:retrying": _retrying,
    "node:waiting": _waits,
    "node:skipped": _skipped,
    "human_gate:paused": _asks,
}


def span(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 1:
        return f"{max(seconds, 0.0) * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
