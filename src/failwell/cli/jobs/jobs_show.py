"""`failwell jobs show`: a job with its output and its events; also a job as a line of a list."""

from argparse import Namespace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from failwell.cli.exit_codes import Exit
from failwell.cli.listing import Listing
from failwell.cli.output import print_data, print_json, print_text
from failwell.cli.parser import Parser
from failwell.cli.records import add_name, add_store
from failwell.cli.temporal.connection import TEMPORAL, add_engine
from failwell.cli.times import clock, iso, lasted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from failwell.jobs.capabilities import CapabilityRegistry
    from failwell.jobs.job import Job
    from failwell.jobs.output import OutputLine
    from failwell.store.event import Event

COLUMNS = ("id", "status", "instance", "submitted", "lasted", "attempt", "what")
_LONG = 2_000
"""Characters of a result or of arguments in text output; JSON output has all of them."""


def summary(job: "Job", capabilities: "CapabilityRegistry") -> dict[str, Any]:
    """One job as JSON, without its result; secrets of its capability are masked."""
    from failwell.errors.redact import redact_value

    request = job.request
    values = {"arguments": redact_value(dict(request.arguments)), "key": request.key}
    shown = masked(values, job, capabilities)
    data: dict[str, Any] = {
        "id": job.id,
        "status": job.state.value,
        "instance": request.instance,
        "action": request.action,
        "arguments": shown["arguments"],
        "priority": request.priority,
        "timeout": request.timeout,
        "deadline": None if request.deadline is None else iso(request.deadline.timestamp()),
        "key": shown["key"],
        "unique": None if request.key is None else request.unique,
        "run": request.run,
        "actor": request.actor,
        "submitted": iso(job.submitted_at.timestamp()),
        "started": None if job.started_at is None else iso(job.started_at.timestamp()),
        "ended": None if job.completed_at is None else iso(job.completed_at.timestamp()),
        "attempts": job.attempt,
        "not_before": None if job.not_before is None else iso(job.not_before.timestamp()),
        "block_reason": job.block_reason,
        "certainty": certainty(job),
        "error": None if job.error is None else job.error.view("operator"),
    }
    return {name: value for name, value in data.items() if value not in (None, "", {})}


_DONE = {
    "not_sent": "it never began",
    "unknown": "it may have run",
    "partial": "it began and did not finish",
    "done_but_lost": "it had finished, and its result was dropped",
}
"""What a cancelled job did, by certainty."""


def certainty(job: "Job") -> str | None:
    """What a cancelled job did, for commands to print; `None` for other jobs, and for records that do not say it."""
    if job.state.value != "cancelled" or job.error is None or job.error.kind != "cancel.job":
        return None
    return job.error.certainty.value


def cancelled_text(job: "Job") -> str:
    """What a cancelled job did, in the words that commands print; empty if its record does not say it."""
    return _DONE.get(certainty(job) or "", "")


def result_json(job: "Job") -> dict[str, Any]:
    """The result of a job, as JSON under `result`; empty if the job did not succeed."""
    if job.state.value != "completed":
        return {}
    from json import loads

    from failwell.jobs.store.rows import result_to_json

    return {"result": loads(result_to_json(job.result))}


def masked(value: Any, job: "Job", capabilities: "CapabilityRegistry") -> Any:
    """The arguments or the result of a job, with the secrets of its capability masked."""
    from failwell.jobs.output import mask_secrets

    return mask_secrets(value, capabilities.secrets(capabilities.capability(job.request.instance)))


def print_cancelled(args: Namespace, job: "Job") -> int:
    """Print the end of a job that was to be cancelled."""
    data: dict[str, Any] = {"id": job.id, "status": job.state.value}
    if (did := certainty(job)) is not None:
        data["certainty"] = did
    text = cancelled_text(job)
    return print_data(args, data, f"job {job.id} is {job.state}{f': {text}' if text else ''}")


def job_listing(
    args: Namespace, jobs: "Sequence[Job]", capabilities: "CapabilityRegistry", empty: str
) -> Listing:
    """Jobs as a listing."""
    rows = [_row(job) for job in jobs]
    if args.format == "json":
        objects = [summary(job, capabilities) for job in jobs]
    else:
        objects = [{"id": row[0], "row": row} for row in rows]
    return Listing(COLUMNS, rows, objects, empty, ("attempt", "lasted", "submitted"))


def _row(job: "Job") -> tuple[str, ...]:
    started = job.started_at
    until = job.completed_at
    span = "" if started is None or until is None else lasted((until - started).total_seconds())
    return (
        job.id,
        job.state.value,
        job.request.instance,
        clock(job.submitted_at.timestamp()),
        span,
        str(job.attempt),
        what(job),
    )


def what(job: "Job") -> str:
    """Why a job waits or failed, or what it did before it was cancelled, in a few words."""
    if job.state.value == "waiting" and job.not_before is not None:
        kind = "" if job.error is None else f" after {job.error.kind}"
        return f"next attempt {clock(job.not_before.timestamp())}{kind}"
    if job.block_reason:
        return job.block_reason
    if job.state.value == "pending" and job.not_before is not None and job.not_before > datetime.now(UTC):
        return f"starts {clock(job.not_before.timestamp())}"
    if text := cancelled_text(job):
        return text
    return "" if job.error is None or job.state.value == "completed" else job.error.kind


def add_show_options(parser: Parser) -> None:
    """Declare which job."""
    add_name(parser, "job")
    add_store(parser)
    add_engine(parser)
    parser.epilog = "example: failwell jobs show last"


def run_show(args: Namespace) -> int:
    """Show one job with its events and its output."""
    from failwell.cli.jobs.jobs import find_job, job_queue
    from failwell.jobs.output import read_lines

    if args.engine == TEMPORAL:
        from failwell.cli.temporal.jobs import show_job

        return show_job(args)
    with job_queue(args) as queue:
        job = find_job(queue, args.job)
        assert queue is not None
        events = queue.store.events(job=job.id)
        printed = read_lines(queue.store.folder, job.id)
        return print_record(args, job, queue.registry, events, printed)


def print_record(
    args: Namespace,
    job: "Job",
    registry: "CapabilityRegistry",
    events: "Sequence[Event]" = (),
    printed: "Sequence[OutputLine]" = (),
) -> int:
    """Print a job with its events and its output."""
    data = summary(job, registry)
    result = result_json(job)
    if args.format != "json":
        # JSON output has the result as it is stored; on a screen, secrets are masked.
        result = masked(result, job, registry)
    if args.format == "json":
        texts = {"lines": [line_json(item) for item in printed]} if printed else {}
        print_json({**data, **result, "events": [event_json(item) for item in events], **texts})
        return Exit.DONE
    from failwell.cli.error_output import with_capability_defect
    from failwell.delivery.plain_text import one_line
    from failwell.store.event import to_json

    fields = {name: value for name, value in data.items() if name not in ("error", "arguments", "state")}
    if job.request.arguments:
        fields["arguments"] = to_json(data["arguments"])
    if result:
        fields["result"] = to_json(result["result"])
    if text := cancelled_text(job):
        fields["certainty"] = f"{data['certainty']}: {text}"
    if job.error is not None:
        fields["error"] = f"{job.error.kind}: {job.error.message}"
        if "out_of_memory" in job.error.details:
            fields["memory"] = f"{job.error.details['out_of_memory']} to have run out"
        fields["next"] = with_capability_defect(job.error, is_shown=True).user_action.detail
    if args.format == "markdown":
        from failwell.delivery.agent_output import code, escaped

        lines = [
            f"- {name}: {code(str(value)) if name == 'id' else escaped(str(value))}"
            for name, value in fields.items()
        ]
    else:
        lines = [f"{name:<12} {one_line(str(value), _LONG)}" for name, value in fields.items()]
    lines += [
        *_blocks(job, {item.text.strip() for item in printed}, args.format),
        *output_block(printed, args.format),
    ]
    print_text("\n".join([*lines, "", *(event_text(item, args.format) for item in events)]))
    return Exit.DONE


_HOW_TO_RECORD = 'set FAILWELL_TRACEBACK=full, or traceback = "full" in the manifest, to record messages'


def _blocks(job: "Job", texts: set[str], form: str) -> list[str]:
    """The traceback of a failure, and its last lines on stderr unless they are in `texts` already."""
    error = job.error
    if error is None:
        return []
    from failwell.adapters.stack import WITHHELD
    from failwell.delivery.plain_text import neutral

    trace = None if error.internal is None else error.internal.traceback
    if trace is not None and WITHHELD in trace:
        trace = f"{trace.rstrip()}\n{WITHHELD}: {_HOW_TO_RECORD}"
    last: object = error.details.get("stderr_tail")
    if isinstance(last, str) and all(line.strip() in texts for line in last.splitlines()):
        last = None
    lines: list[str] = []
    for title, text in (("traceback", trace), ("stderr", last)):
        if not isinstance(text, str) or not text.strip():
            continue
        whole = text.strip("\n")
        if form == "markdown":
            from failwell.delivery.agent_output import fenced

            lines += ["", f"## {title}", "", fenced(whole)]
        else:
            lines += ["", title, *(f"  {line}" for line in neutral(whole).split("\n"))]
    return lines


def event_json(event: "Event") -> dict[str, Any]:
    """One event as JSON."""
    return {"id": event.seq, "job": event.job or None, "type": event.type, "at": event.at, "data": event.data}


def event_text(event: "Event", form: str) -> str:
    """One event as text or Markdown."""
    from failwell.delivery.agent_output import escaped
    from failwell.delivery.plain_text import one_line

    data = "  ".join(f"{name}={value}" for name, value in event.data.items() if value not in (None, [], ""))
    if form == "markdown":
        return f"- {clock(event.at)} `{event.type}` {escaped(data)}".rstrip()
    return f"{clock(event.at)}  {event.seq:>5}  {event.type:<18} {one_line(data)}".rstrip()


SHOWN = 40
"""Lines of output in text and Markdown; JSON output has all that are stored."""


def output_block(lines: "Sequence[OutputLine]", form: str) -> list[str]:
    """The last lines of output of a job, as a section."""
    if not lines:
        return []
    last = [line_text(item) for item in lines[-SHOWN:]]
    hidden = lines[-1].n - len(last)
    title = "printed" if hidden <= 0 else f"printed (the last {len(last)} of {lines[-1].n} lines)"
    if form == "markdown":
        from failwell.delivery.agent_output import fenced

        return ["", f"## {title}", "", fenced("\n".join(last))]
    return ["", title, *(f"  {row}" for item in last for row in item.split("\n"))]


def line_text(line: "OutputLine") -> str:
    """One line of output as text, with its stream or level unless it is stdout.

    A log record may have several lines. Those after the first are indented, so none looks like a line of ours.
    """
    from failwell.delivery.plain_text import neutral

    source = line.level.lower() if line.stream == "log" else line.stream
    mark = "" if line.stream == "stdout" else f"{source}: "
    head = f"{clock(line.at)}  "
    below = f"\n{' ' * len(head)}  | "
    return below.join(f"{head}{mark}{neutral(line.text)}".rstrip().split("\n"))


def line_json(line: "OutputLine") -> dict[str, Any]:
    """One line of output as JSON."""
    data: dict[str, Any] = {"n": line.n, "at": line.at, "stream": line.stream, "text": line.text}
    if line.stream == "log":
        data |= {"level": line.level, "logger": line.logger}
    return data


class OutputFollower:
    """Reads the output of jobs for commands that follow it, each line once."""

    def __init__(self, folder: "Path") -> None:
        self._folder = folder
        self._last: dict[str, int] = {}

    def new(self, job: str) -> "list[OutputLine]":
        """New lines of a job."""
        from failwell.jobs.output import read_lines

        lines = read_lines(self._folder, job, self._last.get(job, 0))
        if lines:
            self._last[job] = lines[-1].n
        return lines
