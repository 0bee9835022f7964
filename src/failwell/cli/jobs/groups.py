"""`failwell groups`: groups of jobs that were submitted together."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from failwell.cli.jobs.jobs import job_queue
from failwell.cli.listing import Listing, print_listing
from failwell.cli.output import print_fields
from failwell.cli.parser import Parser
from failwell.cli.records import add_limit, add_store, command_for, no_record
from failwell.cli.times import clock, iso

if TYPE_CHECKING:
    from failwell.jobs.store.groups import JobGroup
    from failwell.jobs.store.job_filter import JobTotal

COLUMNS = ("id", "status", "jobs", "left", "completed", "failed", "cancelled", "submitted")


def add_list_options(parser: Parser) -> None:
    """Declare how many."""
    add_limit(parser)
    add_store(parser)


def run_list(args: Namespace) -> int:
    """List groups, newest first."""
    with job_queue(args) as queue:
        groups = [] if queue is None else queue.store.groups(limit=args.limit)
    return print_listing(
        args,
        Listing(
            COLUMNS,
            [_row(group) for group in groups],
            [group_json(group) for group in groups],
            "no groups are recorded yet",
        ),
    )


def add_show_options(parser: Parser) -> None:
    """Declare which group."""
    parser.add_argument("group", metavar="GROUP", help="the id of the group")
    add_store(parser)


def run_show(args: Namespace) -> int:
    """Show one group: how many of its jobs have ended, the kinds of failures, and its callback."""
    from failwell.jobs.faults import UnknownGroup
    from failwell.jobs.store.job_filter import JobFilter

    with job_queue(args) as queue:
        groups = [] if queue is None else queue.store.groups(args.group)
        if queue is None or not groups:
            near = [] if queue is None else [group.id for group in queue.store.groups(limit=200)]
            raise no_record(args.group, "group", UnknownGroup, near)
        group = groups[0]
        kinds = [
            total
            for total in queue.store.totals(JobFilter(states=("failed",), group=group.id))
            if total.kind is not None
        ]
    data = {**group_json(group), "kinds": {total.kind: total.jobs for total in kinds}}
    fields = [(name, str(value)) for name, value in data.items() if value is not None and name != "kinds"]
    fields += [("failures", _words(total)) for total in kinds]
    if group.failed:
        fields.append(("next", command_for(args, "jobs", "retry", "--all", "--group", group.id)))
    return print_fields(args, data, fields)


def _words(total: "JobTotal") -> str:
    return f"{total.jobs:,} {total.kind} of {total.instance}"


def _status(group: "JobGroup") -> str:
    if group.ended is not None:
        return "ended"
    return "running" if group.is_sealed else "incomplete"


def _row(group: "JobGroup") -> tuple[str, ...]:
    counts = (group.jobs, group.left, group.completed, group.failed, group.cancelled)
    return (group.id, _status(group), *(f"{number:,}" for number in counts), clock(group.created))


def group_json(group: "JobGroup") -> dict[str, Any]:
    """One group as JSON."""
    return {
        "id": group.id,
        "status": _status(group),
        "jobs": group.jobs,
        "left": group.left,
        "completed": group.completed,
        "failed": group.failed,
        "cancelled": group.cancelled,
        "submitted": iso(group.created),
        "ended": iso(group.ended),
        "callback": None if group.callback is None else group.callback.instance,
        "callback_job": group.callback_job,
    }
