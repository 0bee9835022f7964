"""`failwell jobs tail`: the events of jobs as they are recorded, their output and their progress."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.jobs.jobs import find_job, job_queue
from failwell.apps.cli.jobs.jobs_show import OutputFollower, event_json, event_text, line_json, line_text
from failwell.apps.cli.output import print_aside, print_json_text, print_text
from failwell.apps.cli.records import add_after, add_name, add_store

if TYPE_CHECKING:
    from failwell.jobs.client import QueueClient
    from failwell.journal.event import Event

_PAGE = 256
_LOOK_EVERY = 0.5
"""Seconds between two checks for progress and output, which do not wake this process."""


def add_tail_options(parser: ArgumentParser) -> None:
    """Declare the job and the first event."""
    add_name(parser, "job", optional=True)
    add_after(parser)
    add_store(parser)


def run_tail(args: Namespace) -> int:
    """Print events as they are recorded: of one job until it ends, or of all jobs."""
    with job_queue(args, create=True) as queue:
        assert queue is not None
        job = None if args.job is None else find_job(queue, args.job).id
        after = args.after if args.after is not None else 0 if job is not None else queue.store.last_event()
        printer = _Printer(args, queue, job)
        with queue.store.commit_watch() as watch:
            while True:
                # Read before the events: an event that is added later is read in the next round.
                is_over = job is not None and queue.find(job).state.is_final
                page = queue.store.events(after, job=job, limit=_PAGE)
                for event in page:
                    after = event.seq
                    printer.event(event)
                printer.look()
                if len(page) == _PAGE:
                    continue
                if is_over:
                    return Exit.DONE
                watch.wait(_LOOK_EVERY)


class _Printer:
    """Prints events, and between them what is not recorded: progress, output, and that no process runs jobs."""

    def __init__(self, args: Namespace, queue: "QueueClient", job: str | None) -> None:
        self._args = args
        self._queue = queue
        self._job = job
        self._lines = OutputFollower(queue.store.folder)
        self._progress: dict[str, tuple[float, str]] = {}
        self._is_alone = False

    def event(self, event: "Event") -> None:
        """Print one event; before the end of a job, print its remaining output."""
        if event.job and event.is_final:
            self._print(event.job)
        self._show(event)

    def look(self) -> None:
        """Print new progress and output."""
        is_alone = not self._queue.store.is_hosted()
        if is_alone and not self._is_alone:
            subject = "jobs wait" if self._job is None else f"job {self._job} waits"
            if self._job is None or not self._queue.find(self._job).state.is_final:
                print_aside(self._args, f"{subject}: no process runs jobs now; `failwell workers run` does")
        self._is_alone = is_alone
        if not is_alone:
            self._running()

    def _running(self) -> None:
        from failwell.jobs.queue.snapshot import read_picture
        from failwell.journal.event import Event

        picture: dict[str, Any] = read_picture(self._queue.store.folder) or {}
        for entry in picture.get("jobs", ()):
            job: str = entry["id"]
            if self._job not in (None, job):
                continue
            self._print(job)
            reached = (entry["progress"], entry["message"])
            if reached != self._progress.get(job, (0.0, "")):
                self._progress[job] = reached
                data = {"fraction": entry["progress"], "message": entry["message"]}
                self._show(Event(0, "progress", picture["at"], data, job))

    def _print(self, job: str) -> None:
        from failwell.journal.event import Event

        for line in self._lines.new(job):
            if self._args.format == "json":
                self._show(Event(0, "line", line.at, line_json(line), job))
            else:
                prefix = "" if self._job is not None else f"{job} "
                mark = "- " if self._args.format == "markdown" else ""
                print_text(f"{mark}{prefix}{line_text(line)}")

    def _show(self, event: "Event") -> None:
        if self._args.format == "json":
            from failwell.journal.event import to_json

            print_json_text(to_json(event_json(event)))
        else:
            print_text(event_text(event, self._args.format))
