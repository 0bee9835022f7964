"""The progress of a job that a command waits for, drawn on stderr while it is a terminal."""

import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any, Self

from failwell.cli.output import error_format, is_terminal, terminal
from failwell.cli.times import lasted

if TYPE_CHECKING:
    from pathlib import Path

    from failwell.store.event import Event

_PER_SECOND = 8
_BAR = 24
_LOOK_EVERY = 0.5
"""Seconds between two looks at the snapshot, which a host writes about once a second."""
_STATES = {
    "submitted": "waits",
    "blocked": "waits",
    "started": "runs",
    "retrying": "waits for its next attempt",
    "parked": "waits for its next attempt",
    "requeued": "waits",
    "cancelling": "is being cancelled",
}
"""Type of event → what the job does from then on."""


class WaitProgress:
    """One line with a bar. It disappears at the end; without a terminal nothing is drawn."""

    def __init__(self, args: Namespace, job: str) -> None:
        self._job = job
        self._state = "waits"
        self._reason = ""
        self._fraction: float | None = None
        self._message = ""
        self._since: float | None = None
        self._live: Any = None
        self._folder: Path | None = None
        self._looked_at = 0.0
        self._is_drawn = is_terminal(sys.stderr) and error_format(args) == "text"
        self._color = {"always": True, "never": False}.get(args.color)

    def __enter__(self) -> Self:
        if self._is_drawn:
            from rich.live import Live

            console = terminal(sys.stderr, color=self._color, force_terminal=True)
            self._live = Live(
                get_renderable=self._line,
                console=console,
                refresh_per_second=_PER_SECOND,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=True,
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, event: "Event") -> None:
        """Apply an event of the job, which may be its progress."""
        if event.type == "progress":
            self._fraction, self._message = event.data["fraction"], event.data["message"]
            return
        if event.type in _STATES:
            self._state = _STATES[event.type]
            self._reason = str(event.data.get("reason") or "")
        if event.type == "started":
            self._fraction, self._message, self._since = None, "", event.at

    def follow(self, folder: "Path | None") -> None:
        """Read the progress from the snapshots of the hosts of a store; `None` if this process runs the job."""
        self._folder = folder

    def _look(self, now: float) -> None:
        if self._folder is None or now - self._looked_at < _LOOK_EVERY:
            return
        from failwell.jobs.queue.snapshot import read_picture

        self._looked_at = now
        picture: dict[str, Any] = read_picture(self._folder) or {}
        for entry in picture.get("jobs", ()):
            if entry["id"] == self._job and (entry["progress"] or entry["message"]):
                self._fraction, self._message = entry["progress"], entry["message"]

    def _line(self) -> Any:
        from rich.text import Text

        from failwell.calls.clock import SYSTEM_CLOCK
        from failwell.delivery.plain_text import one_line

        now = SYSTEM_CLOCK.now().timestamp()
        self._look(now)
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"{self._job} {self._state}")
        if self._state == "runs" and self._since is not None:
            text.append(f"  {lasted(max(0.0, now - self._since))}", style="dim")
        if self._fraction is not None and self._fraction >= 0:
            done = round(min(1.0, self._fraction) * _BAR)
            text.append("  ")
            text.append("━" * done, style="green")
            text.append("─" * (_BAR - done), style="dim")
            text.append(f" {min(1.0, self._fraction):.0%}")
        rest = self._message or self._reason
        if rest:
            text.append(f"  {one_line(rest)}", style="dim")
        return text
