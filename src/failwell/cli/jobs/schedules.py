"""`failwell schedules`: list, pause, resume, run and remove schedules of jobs."""

from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from failwell.cli.listing import Listing, print_listing
from failwell.cli.output import print_data
from failwell.cli.parser import Parser
from failwell.cli.records import add_store
from failwell.cli.times import clock, iso

if TYPE_CHECKING:
    from failwell.jobs.client.queue_client import QueueClient
    from failwell.jobs.schedule_spec import JobSchedule
    from failwell.jobs.schedules import Schedules

COLUMNS = ("id", "status", "cron", "timezone", "next", "last", "job")


def add_list_options(parser: Parser) -> None:
    """Declare the store."""
    add_store(parser)


def run_list(args: Namespace) -> int:
    """List schedules with their next time and their last job."""
    from time import time

    with _schedules(args) as (_, schedules):
        entries = schedules.all()
    now = time()
    return print_listing(
        args,
        Listing(
            COLUMNS,
            [_row(entry, now) for entry in entries],
            [schedule_json(entry, now) for entry in entries],
            "no schedule is recorded; a manifest has them under `[[schedule]]`",
        ),
    )


def _add_name(parser: Parser) -> None:
    parser.add_argument("schedule", metavar="SCHEDULE", help="its id: CAPABILITY/NAME")
    add_store(parser)


def add_pause_options(parser: Parser) -> None:
    """Declare which schedule."""
    _add_name(parser)


def add_resume_options(parser: Parser) -> None:
    """Declare which schedule."""
    _add_name(parser)
    parser.epilog = "Times that passed while it was paused are not missed: it starts with the next one."


def add_run_options(parser: Parser) -> None:
    """Declare which schedule."""
    from failwell.cli.jobs.submit import add_wait

    add_wait(parser)
    _add_name(parser)


def add_remove_options(parser: Parser) -> None:
    """Declare which schedule."""
    _add_name(parser)
    parser.epilog = "A schedule of a manifest is removed there."


def run_pause(args: Namespace) -> int:
    """Submit no more jobs of a schedule."""
    return _set_paused(args, on=True)


def run_resume(args: Namespace) -> int:
    """Submit jobs of a paused schedule again."""
    return _set_paused(args, on=False)


def _set_paused(args: Namespace, *, on: bool) -> int:
    from time import time

    with _schedules(args) as (_, schedules):
        is_changed = schedules.pause(args.schedule, on=on)
        entry = schedules.find(args.schedule)
    text = "is paused" if on else f"is active; its next time is {_moment(entry.next_at(time()))}"
    return print_data(args, {**schedule_json(entry, time()), "changed": is_changed}, f"`{entry.id}` {text}")


def run_run(args: Namespace) -> int:
    """Submit a job of a schedule now."""
    from failwell.cli.jobs.submit import print_submitted

    with _schedules(args) as (queue, schedules):
        job = schedules.run(args.schedule)
        return print_submitted(args, queue, job, is_served=args.wait or queue.store.is_served(job.id))


def run_remove(args: Namespace) -> int:
    """Remove a schedule that a client added."""
    with _schedules(args) as (_, schedules):
        schedules.remove(args.schedule)
    return print_data(args, {"id": args.schedule, "removed": True}, f"`{args.schedule}` is removed")


@contextmanager
def _schedules(args: Namespace) -> "Generator[tuple[QueueClient, Schedules]]":
    from failwell.cli.jobs.jobs import job_queue
    from failwell.jobs.schedules import Schedules

    with job_queue(args, create=True) as queue:
        assert queue is not None
        yield queue, Schedules(queue)


def _row(entry: "JobSchedule", now: float) -> tuple[str, ...]:
    status = "paused" if entry.is_paused else "active"
    last = "" if entry.last_at is None else clock(entry.last_at)
    return (
        entry.id,
        status,
        entry.spec.cron,
        entry.spec.timezone,
        _moment(entry.next_at(now)),
        last,
        entry.last_job or "",
    )


def _moment(at: float | None) -> str:
    return "" if at is None else clock(at)


def schedule_json(entry: "JobSchedule", now: float) -> dict[str, Any]:
    """One schedule as JSON."""
    return {
        "id": entry.id,
        "status": "paused" if entry.is_paused else "active",
        "instance": entry.instance,
        "source": entry.source,
        "cron": entry.spec.cron,
        "timezone": entry.spec.timezone,
        "missed": entry.spec.missed,
        "action": entry.spec.action,
        "priority": entry.spec.priority,
        "next": iso(entry.next_at(now)),
        "last": iso(entry.last_at),
        "last_job": entry.last_job,
    }
