"""`failwell jobs`: list, cancel and prune jobs, and find a job by its name."""

from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from failwell.cli.exit_codes import Exit
from failwell.cli.output import print_json, print_table, print_text
from failwell.cli.parser import Parser, usage_error
from failwell.cli.records import (
    add_limit,
    add_name,
    add_prune,
    add_store,
    check_prune_filters,
    counted,
    find_record,
    first_few,
    no_record,
    prune_records,
    state_folder_of,
)
from failwell.cli.temporal.connection import TEMPORAL, add_engine

if TYPE_CHECKING:
    from failwell.cli.faults import Usage
    from failwell.cli.watch_table import Listing
    from failwell.jobs.capabilities import CapabilityRegistry
    from failwell.jobs.client.queue_client import QueueClient
    from failwell.jobs.job import Job
    from failwell.jobs.store.records import Forgotten

STATUSES = ("pending", "running", "waiting", "completed", "failed", "cancelled")
_ENDED = ("completed", "failed", "cancelled")


@contextmanager
def job_queue(
    args: Namespace,
    *,
    create: bool = False,
    instance: str | None = None,
    registry: "CapabilityRegistry | None" = None,
) -> "Generator[QueueClient | None]":
    """The queue of the store; `None` if there is no store and `create` is false.

    A `registry` of the same folder has read manifests already, and is used instead of another one.

    Raises:
        Usage: the capability of `instance` is not registered. Nothing is created then.
    """
    from failwell.store.folder import JOURNAL, file_exists

    folder = state_folder_of(args) if registry is None else registry.folder
    if not create and not file_exists(folder / JOURNAL):
        yield None
        return
    from failwell.jobs.capabilities import CapabilityRegistry
    from failwell.jobs.client.queue_client import QueueClient
    from failwell.jobs.store.sqlite import JobStore

    registry = registry or CapabilityRegistry(folder)
    if instance is not None and not registry.has_instance(instance):
        raise unknown_capability(registry, instance)
    queue = QueueClient(JobStore(folder, read_when_full=True), registry)
    try:
        yield queue
    finally:
        queue.store.close()


def unknown_capability(registry: "CapabilityRegistry", instance: str) -> "Usage":
    """The error for an instance whose capability is not registered; it names similar ones."""
    return usage_error(
        f"no capability is called `{instance}`",
        value=instance,
        valid=registry.names(),
        see="failwell capabilities list` or `failwell capabilities add FILE",
    )


def find_job(queue: "QueueClient | None", name: str) -> "Job":
    """The job with this name: its id, a unique beginning of its id, or `last`.

    Raises:
        UnknownJob: no job has this name.
        Usage: several ids begin with it.
    """
    from failwell.jobs.faults import UnknownJob

    if queue is None:
        raise no_record(name, "job", UnknownJob)
    store = queue.store
    match = find_record(
        name,
        "job",
        get=store.find,
        search=lambda prefix, limit: store.jobs(prefix=prefix, limit=limit, results=False),
        unknown=UnknownJob,
    )
    return queue.find(match.id)


def add_list_options(parser: Parser) -> None:
    """Declare the filters."""
    from failwell.cli.jobs.bulk import add_job_filters
    from failwell.cli.watch_table import add_watch

    add_job_filters(parser)
    add_limit(parser)
    add_watch(parser)
    add_store(parser)
    add_engine(parser)
    parser.epilog = "example: failwell jobs list --status failed --kind provider.rate_limited --since 2h"


def run_list(args: Namespace) -> int:
    """List jobs, newest first."""
    if args.engine == TEMPORAL:
        from failwell.cli.temporal.jobs import list_jobs

        return list_jobs(args)
    from failwell.cli.jobs.jobs_show import COLUMNS, OPTIONAL
    from failwell.cli.watch_table import Listing, watch_table

    with job_queue(args, create=args.watch) as queue:
        if args.watch and queue is not None:
            watch_table(args, queue.store, COLUMNS, lambda: _listing(args, queue), OPTIONAL)
        listing = Listing([], []) if queue is None else _listing(args, queue)
    empty = "no jobs are recorded yet" if queue is None else "no recorded job matches"
    print_table(args, COLUMNS, listing.rows, listing.objects, empty, OPTIONAL)
    return Exit.DONE


def _listing(args: Namespace, queue: "QueueClient") -> "Listing":
    from failwell.cli.jobs.bulk import job_filter_of
    from failwell.cli.jobs.jobs_show import row, summary
    from failwell.cli.watch_table import Listing

    # Read again for every drawing: `--since 2h` moves on.
    chosen = job_filter_of(args, queue.registry, "failwell jobs list --help")
    jobs = queue.store.select(chosen, limit=args.limit)
    if args.format == "json":
        objects = [summary(job, queue.registry) for job in jobs]
    else:
        objects = [{"id": job.id, "row": row(job)} for job in jobs]
    return Listing([row(job) for job in jobs], objects)


def add_cancel_options(parser: Parser) -> None:
    """Declare which job, or which jobs."""
    from failwell.cli.jobs.bulk import add_all

    add_name(parser, "job", optional=True)
    add_all(parser, "cancel")
    add_store(parser)
    add_engine(parser)
    parser.epilog = (
        "A running job is asked to stop, and killed if it does not. "
        "Without a terminal, `--all` changes nothing unless `--yes` is given, and the exit code is 2. "
        "example: failwell jobs cancel --all --capability transcribe"
    )


def run_cancel(args: Namespace) -> int:
    """Cancel a job and wait until it has ended; with `--all`, cancel every chosen job."""
    from failwell.cli.jobs.bulk import cancel_all, wants_all
    from failwell.cli.jobs.jobs_show import cancelled_text, certainty

    is_bulk = wants_all(args, "failwell jobs cancel --help")
    if args.engine == TEMPORAL:
        from failwell.cli.temporal.jobs import cancel_job

        if is_bulk:
            raise usage_error(
                "`--all` and `--engine temporal` exclude each other", see="failwell jobs cancel --help"
            )
        return cancel_job(args)
    with job_queue(args) as queue:
        if is_bulk:
            return cancel_all(args, queue)
        job = find_job(queue, args.job)
        assert queue is not None
        if not queue.cancel(job.id):
            raise usage_error(f"job `{job.id}` is {job.state} already", see=f"failwell jobs show {job.id}")
        final = queue.wait(job.id, give_up=lambda: not queue.store.is_hosted())
    if args.format == "json":
        data: dict[str, Any] = {"id": final.id, "status": final.state.value, "state": final.state.value}
        if (did := certainty(final)) is not None:
            data["certainty"] = did
        print_json(data)
    else:
        text = cancelled_text(final)
        print_text(f"job {final.id} is {final.state}{f': {text}' if text else ''}")
    return Exit.DONE


def add_prune_options(parser: Parser) -> None:
    """Declare which jobs may be deleted."""
    parser.add_argument("--instance", metavar="ID", help="only jobs of this instance")
    add_prune(parser, "job", STATUSES, "30d")
    parser.epilog = "A job that has not ended is never deleted. example: failwell jobs prune --older-than 30d"


def run_prune(args: Namespace) -> int:
    """Delete jobs that have ended."""
    from failwell.jobs.store.records import Forgotten
    from failwell.store.reserved_space import reserve_spent

    filters = _prune_filters(args)
    with reserve_spent(state_folder_of(args)), job_queue(args) as queue:

        def delete(*, dry_run: bool = False) -> _DeletedJobs:
            return _DeletedJobs(
                Forgotten() if queue is None else queue.store.forget(**filters, dry_run=dry_run)
            )

        return prune_records(args, "job", delete, lambda: delete(dry_run=True))


def _prune_filters(args: Namespace) -> dict[str, Any]:
    from time import time

    from failwell.cli.times import span

    see = "failwell jobs prune --help"
    check_prune_filters(args, "job")
    for status in args.status:
        if status not in _ENDED:
            raise usage_error(
                f"a job that is {status} has not ended and cannot be deleted; cancel it first",
                valid=_ENDED,
                see=see,
            )
    return {
        "before": None if args.older_than is None else time() - span(args.older_than, "--older-than", see),
        "keep": args.keep or 0,
        "states": args.status,
        "instance": args.instance,
    }


class _DeletedJobs:
    """The jobs that a command deleted, or would delete."""

    def __init__(self, deleted: "Forgotten") -> None:
        self._deleted = deleted
        self.ids = deleted.jobs
        self.is_empty = not (deleted.jobs or deleted.events or deleted.files)
        files = f" and {counted(deleted.files, 'file')}" if deleted.files else ""
        self.summary = f"{counted(len(deleted.jobs), 'job')} with {counted(deleted.events, 'event')}{files}"
        self.remarks: list[str] = []
        if deleted.needed:
            self.remarks.append(f"left alone, because their runs have not ended: {first_few(deleted.needed)}")
        if deleted.files_left:
            self.remarks.append(f"could not be deleted: {first_few(deleted.files_left)}")

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON."""
        deleted = self._deleted
        return {
            "jobs": list(deleted.jobs),
            "events": deleted.events,
            "files": deleted.files,
            "files_left": list(deleted.files_left),
            "kept_for_runs": list(deleted.needed),
        }
