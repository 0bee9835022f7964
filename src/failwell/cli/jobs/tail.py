"""`failwell jobs tail`: the events of jobs as they are recorded, their output and their progress."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any, NamedTuple

from failwell.cli.exit_codes import Exit
from failwell.cli.jobs.jobs import find_job, job_queue
from failwell.cli.jobs.jobs_show import OutputFollower, event_json, event_text, line_json, line_text
from failwell.cli.output import print_aside, print_json_text, print_text
from failwell.cli.parser import Parser
from failwell.cli.records import add_after, add_name, add_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from failwell.jobs.client.queue_client import QueueClient
    from failwell.jobs.output import OutputLine
    from failwell.store.event import Event

_PAGE = 256
_LOOK_EVERY = 0.5
"""Seconds between two checks for progress and output, which do not wake this process."""


def add_tail_options(parser: Parser) -> None:
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
                printer.collect_running()
                page = queue.store.events(after, job=job, limit=_PAGE)
                if page:
                    after = page[-1].seq
                    printer.events(page)
                    continue
                printer.rest()
                if is_over:
                    return Exit.DONE
                watch.wait(_LOOK_EVERY)


class _Printer:
    """Prints events, and in order of time what is not recorded: progress, output, and that no process runs jobs."""

    def __init__(self, args: Namespace, queue: "QueueClient", job: str | None) -> None:
        self._args = args
        self._queue = queue
        self._job = job
        self._lines = OutputFollower(queue.store.folder)
        self._progress: dict[str, tuple[float, str]] = {}
        self._pending: list[_Pending] = []
        """Output and progress that was read and not printed, because an earlier event may follow."""
        self._is_alone = False

    def collect_running(self) -> None:
        """Read the new progress and output of running jobs. The events that are read next may be earlier."""
        is_alone = not self._queue.store.is_hosted()
        if is_alone and not self._is_alone:
            subject = "jobs wait" if self._job is None else f"job {self._job} waits"
            if self._job is None or not self._queue.find(self._job).state.is_final:
                print_aside(self._args, f"{subject}: no process runs jobs now; `failwell workers run` does")
        self._is_alone = is_alone
        if is_alone:
            return
        from failwell.jobs.queue.snapshot import read_picture

        picture: dict[str, Any] = read_picture(self._queue.store.folder) or {}
        for entry in picture.get("jobs", ()):
            job: str = entry["id"]
            if self._job not in (None, job):
                continue
            self._collect_lines(job)
            reached = (entry["progress"], entry["message"])
            if reached != self._progress.get(job, (0.0, "")):
                self._progress[job] = reached
                data = {"fraction": entry["progress"], "message": entry["message"]}
                self._pending.append(_Pending(round(picture["at"], 3), job, data))

    def events(self, page: "Sequence[Event]") -> None:
        """Print events, and before each of them the output and the progress that are earlier."""
        for job in dict.fromkeys(event.job for event in page if event.job):
            self._collect_lines(job)
        self._pending.sort(key=lambda item: item.at)
        for event in page:
            self._print_before(event)
            self._show(event)

    def rest(self) -> None:
        """Print the output and the progress that are later than every event."""
        self._pending.sort(key=lambda item: item.at)
        for item in self._pending:
            self._print(item)
        self._pending.clear()

    def _collect_lines(self, job: str) -> None:
        self._pending += [_Pending(line.at, job, line) for line in self._lines.new(job)]

    def _print_before(self, event: "Event") -> None:
        # Times of output have milliseconds. In the same one, output follows the start of its attempt and precedes
        # every other event; at the end of a job, all of its output was there.
        limit = round(event.at, 3)
        later: list[_Pending] = []
        for item in self._pending:
            is_before = item.at < limit or (item.at == limit and event.type != "started")
            if is_before or (event.is_final and item.job == event.job):
                self._print(item)
            else:
                later.append(item)
        self._pending = later

    def _print(self, item: "_Pending") -> None:
        from failwell.store.event import Event

        if isinstance(item.content, dict):
            self._show(Event(0, "progress", item.at, item.content, item.job))
        elif self._args.format == "json":
            self._show(Event(0, "line", item.at, line_json(item.content), item.job))
        else:
            prefix = "" if self._job is not None else f"{item.job} "
            mark = "- " if self._args.format == "markdown" else ""
            print_text(f"{mark}{prefix}{line_text(item.content)}")

    def _show(self, event: "Event") -> None:
        if self._args.format == "json":
            from failwell.store.event import to_json

            print_json_text(to_json(event_json(event)))
        else:
            print_text(event_text(event, self._args.format))


class _Pending(NamedTuple):
    """A line of output, or the progress of a job, at its time."""

    at: float
    job: str
    content: "OutputLine | dict[str, Any]"
