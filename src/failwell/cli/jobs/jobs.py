"""`failwell jobs`: list, cancel and prune jobs, and find a job by its name."""

from argparse import Namespace
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from failwell.cli.parser import Parser, usage_error
from failwell.cli.records import (
    Deletion,
    add_limit,
    add_name,
    add_prune,
    add_store,
    counted,
    find_record,
    first_few,
    no_record,
    prune_before,
    prune_records,
    state_folder_of,
)
from failwell.cli.temporal.connection import TEMPORAL, add_engine

if TYPE_CHECKING:
    from failwell.cli.faults import Usage
    from failwell.cli.listing import Listing
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
    from failwell.cli.listing import add_watch

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
    from failwell.cli.jobs.jobs_show import COLUMNS

    return print_jobs(args, COLUMNS, _listing)


def print_jobs(
    args: Namespace, columns: "Sequence[str]", read: "Callable[[Namespace, QueueClient], Listing]"
) -> int:
    """Print a listing of the queue, or watch it."""
    from failwell.cli.listing import Listing, print_listing, watch_listing

    with job_queue(args, create=args.watch) as queue:
        if queue is None:
            return print_listing(args, Listing(columns, (), (), "no jobs are recorded yet"))
        if args.watch:
            watch_listing(args, queue.store, lambda: read(args, queue))
        return print_listing(args, read(args, queue))


def _listing(args: Namespace, queue: "QueueClient") -> "Listing":
    from failwell.cli.jobs.bulk import job_filter_of
    from failwell.cli.jobs.jobs_show import job_listing

    # Read again for every drawing: `--since 2h` moves on.
    chosen = job_filter_of(args, queue.registry, "failwell jobs list --help")
    jobs = queue.store.select(chosen, limit=args.limit)
    return job_listing(args, jobs, queue.registry, "no recorded job matches")


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
    from failwell.cli.jobs.jobs_show import print_cancelled

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
    return print_cancelled(args, final)


def add_prune_options(parser: Parser) -> None:
    """Declare which jobs may be deleted."""
    parser.add_argument("--instance", metavar="ID", help="only jobs of this instance")
    add_prune(parser, "job", STATUSES, "30d")
    parser.epilog = "A job that has not ended is never deleted. example: failwell jobs prune --older-than 30d"


def run_prune(args: Namespace) -> int:
    """Delete jobs that have ended."""
    from failwell.jobs.store.records import Forgotten
    from failwell.store.reserved_space import reserve_spent

    see = "failwell jobs prune --help"
    before = prune_before(args, "job")
    for status in args.status:
        if status not in _ENDED:
            raise usage_error(
                f"a job that is {status} has not ended and cannot be deleted; cancel it first",
                valid=_ENDED,
                see=see,
            )
    with reserve_spent(state_folder_of(args)), job_queue(args) as queue:

        def delete(*, dry_run: bool) -> Deletion:
            if queue is None:
                return _deletion(Forgotten())
            return _deletion(
                queue.store.forget(
                    before=before,
                    keep=args.keep or 0,
                    states=args.status,
                    instance=args.instance,
                    dry_run=dry_run,
                )
            )

        return prune_records(args, "job", delete)


def _deletion(deleted: "Forgotten") -> Deletion:
    files = f" and {counted(deleted.files, 'file')}" if deleted.files else ""
    remarks: list[str] = []
    if deleted.needed:
        remarks.append(f"left alone, because their runs have not ended: {first_few(deleted.needed)}")
    if deleted.files_left:
        remarks.append(f"could not be deleted: {first_few(deleted.files_left)}")
    return Deletion(
        ids=deleted.jobs,
        summary=f"{counted(len(deleted.jobs), 'job')} with {counted(deleted.events, 'event')}{files}",
        remarks=remarks,
        data={
            "jobs": list(deleted.jobs),
            "events": deleted.events,
            "files": deleted.files,
            "files_left": list(deleted.files_left),
            "kept_for_runs": list(deleted.needed),
        },
        is_empty=not (deleted.jobs or deleted.events or deleted.files),
    )
