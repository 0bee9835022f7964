"""`failwell job tail`: what happens to jobs as it is recorded, what they print, and how far they have got."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.jobs.jobs_find import find_job, jobs_of
from failwell.apps.cli.jobs.jobs_show import as_json, words
from failwell.apps.cli.jobs.lines import Following, line_json
from failwell.apps.cli.jobs.lines import words as line_words
from failwell.apps.cli.jobs.submit import aside
from failwell.apps.cli.output import say

if TYPE_CHECKING:
    from failwell.jobs.client import Desk
    from failwell.journal.event import Event

_PAGE = 256
_LOOK_EVERY = 0.5
"""Seconds after which progress and printed lines are looked for; nobody is woken by them."""


def tail(args: Namespace) -> int:
    """Events as they are recorded: of one job until it is over, else of all."""
    with jobs_of(args, make=True) as desk:
        assert desk is not None
        job = None if args.job is None else find_job(desk, args.job).id
        after = args.after if args.after is not None else 0 if job is not None else desk.store.last_event()
        telling = _Telling(args, desk, job)
        with desk.store.window() as watch:
            while True:
                # Asked first: what is added after the question is read by the next round.
                is_over = job is not None and desk.find(job).state.is_final
                page = desk.store.events(after, job=job, limit=_PAGE)
                for event in page:
                    after = event.seq
                    telling.event(event)
                telling.look()
                if len(page) == _PAGE:
                    continue
                if is_over:
                    return Exit.DONE
                watch.wait(_LOOK_EVERY)


class _Telling:
    """Prints events, and among them what is on no record: progress, lines, and that nobody runs jobs."""

    def __init__(self, args: Namespace, desk: "Desk", job: str | None) -> None:
        self._args = args
        self._desk = desk
        self._job = job
        self._lines = Following(desk.store.folder)
        self._seen: dict[str, tuple[float, str]] = {}
        self._is_alone = False

    def event(self, event: "Event") -> None:
        """Print one event; before the end of a job, whatever it printed."""
        if event.job and event.is_final:
            self._print(event.job)
        self._show(event)

    def look(self) -> None:
        """Say what is new and on no record."""
        is_alone = not self._desk.store.is_hosted()
        if is_alone and not self._is_alone:
            whose = "jobs wait" if self._job is None else f"job {self._job} waits"
            if self._job is None or not self._desk.find(self._job).state.is_final:
                aside(self._args, f"{whose}: nobody runs jobs here now; `failwell workers run` does")
        self._is_alone = is_alone
        if not is_alone:
            self._running()

    def _running(self) -> None:
        from failwell.jobs.snapshot import read_picture
        from failwell.journal.event import Event

        picture: dict[str, Any] = read_picture(self._desk.store.folder) or {}
        for one in picture.get("jobs", ()):
            job: str = one["id"]
            if self._job not in (None, job):
                continue
            self._print(job)
            reached = (one["progress"], one["message"])
            if reached != self._seen.get(job, (0.0, "")):
                self._seen[job] = reached
                told = {"fraction": one["progress"], "message": one["message"]}
                self._show(Event(0, "progress", picture["at"], told, job))

    def _print(self, job: str) -> None:
        from failwell.journal.event import Event

        for line in self._lines.new(job):
            if self._args.format == "json":
                self._show(Event(0, "line", line.at, line_json(line), job))
            else:
                whose = "" if self._job is not None else f"{job} "
                mark = "- " if self._args.format == "markdown" else ""
                say(f"{mark}{whose}{line_words(line)}")

    def _show(self, event: "Event") -> None:
        if self._args.format == "json":
            from failwell.journal.event import to_json

            say(to_json(as_json(event)))
        else:
            say(words(event, self._args.format))
