"""`failwell runs`: list and prune recorded runs, and find the one that is meant."""

from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from failwell.cli.listing import Listing, print_listing
from failwell.cli.parser import Parser
from failwell.cli.records import (
    Deletion,
    add_filters,
    add_prune,
    counted,
    find_record,
    no_record,
    prune_before,
    prune_records,
    state_folder_of,
)
from failwell.cli.runs.resume import resume_recorded
from failwell.cli.temporal.connection import TEMPORAL, add_engine

if TYPE_CHECKING:
    from failwell.store.run_store import PruneResult, Run, Store
    from failwell.store.sqlite.run_store import SqliteStore
    from failwell.workflows.run_details import RunDetails

STATUSES = ("running", "waiting", "parked", "interrupted", "completed", "failed", "cancelled")
_COLUMNS = ("id", "status", "workflow", "started", "lasted", "what")


@contextmanager
def journal(args: Namespace, *, is_needed: bool = False) -> "Generator[SqliteStore | None]":
    """The journal for reading; `None` if there is none, and none is created unless it is needed."""
    from failwell.store.folder import JOURNAL, file_exists

    folder = state_folder_of(args)
    if not is_needed and not file_exists(folder / JOURNAL):
        yield None
        return
    from failwell.store.sqlite.run_store import SqliteStore

    store = SqliteStore(folder, read_when_full=True)
    try:
        yield store
    finally:
        store.close()


def find_run(store: "Store | None", name: str) -> "Run":
    """The run that `name` means: its id, the only id that begins with it, or `last`.

    Raises:
        UnknownRun: there is none; the fault names similar ids.
        Usage: several begin with it.
    """
    from failwell.store.faults import UnknownRun

    if store is None:
        raise no_record(name, "run", UnknownRun)

    def get(run: str) -> "Run | None":
        return next((match for match in store.runs(prefix=run) if match.id == run), None)

    return find_record(
        name,
        "run",
        get=get,
        search=lambda prefix, limit: store.runs(prefix=prefix, limit=limit),
        unknown=UnknownRun,
    )


def current_run(args: Namespace, store: "SqliteStore | None") -> "Run":
    """`find_run` of `args.run`, brought up to date if a server has it."""
    run = find_run(store, args.run)
    assert store is not None
    from failwell.cli.temporal.remote import sync

    return sync(store, run, args)


def add_list_options(parser: Parser) -> None:
    """Declare the filters."""
    parser.add_argument("--workflow", metavar="NAME", help="only runs of this workflow")
    parser.add_argument("--since", metavar="WHEN", help="only runs started since: `2h`, or a date")
    add_filters(parser, "run", STATUSES)
    add_engine(parser)
    parser.epilog = "example: failwell runs list --status failed --since 24h"


def run_list(args: Namespace) -> int:
    """List runs, the newest first."""
    from time import time

    from failwell.cli.times import moment

    see = "failwell runs list --help"
    since = None if args.since is None else moment(args.since, "--since", time(), see)
    with journal(args, is_needed=args.engine == TEMPORAL) as store:
        rows: list[tuple[Run, RunDetails | None]] = []
        if store is not None:
            _update(args, store)
            runs = store.runs(statuses=args.status, workflow=args.workflow, since=since, limit=args.limit)
            rows = [(run, start_of(store, run)) for run in runs]
    return print_listing(
        args,
        Listing(
            _COLUMNS,
            [_row(run, args, seen) for run, seen in rows],
            [summary(run, args, seen) for run, seen in rows],
            "no runs are recorded yet" if store is None else "no recorded run matches",
        ),
    )


def _update(args: Namespace, store: "SqliteStore") -> None:
    """Bring the runs of servers up to date that have not ended; with `--engine temporal`, all runs of the server."""
    from failwell.cli.temporal.remote import import_runs, sync_all

    if args.engine == TEMPORAL:
        import_runs(args, store)
    else:
        sync_all(store, store.runs(statuses=("running", "waiting", "parked")), args)


def resume_line(args: Namespace, store: "SqliteStore", run: str) -> str:
    """The command that resumes a run of `store`."""
    from failwell.workflows.run_details import run_details

    return resume_recorded(args, run, run_details(store.read(run)))


def start_of(store: "SqliteStore", run: "Run") -> "RunDetails | None":
    """What the first event of an interrupted run says, which a command that resumes it needs."""
    from failwell.workflows.run_details import run_details

    return run_details(store.read(run.id, limit=1)) if run.status == "interrupted" else None


def summary(run: "Run", args: Namespace, seen: "RunDetails | None") -> dict[str, Any]:
    """One run as JSON."""
    from failwell.cli.times import iso

    data: dict[str, Any] = {
        "id": run.id,
        "status": run.status,
        "workflow": run.workflow,
        "file": run.file,
        "digest": run.digest,
        "started": iso(run.started),
        "updated": iso(run.updated),
        "ended": iso(run.ended),
        "blocked_until": iso(run.blocked_until),
        "gates": run.gates,
        "events": run.events,
        "failure": None if run.kind is None else {"kind": run.kind, "message": run.message, "node": run.node},
        "pid": run.pid,
        "host": run.host,
        "metadata": dict(run.metadata),
        "resume": resume_command(run, args, seen),
    }
    return {name: value for name, value in data.items() if value not in (None, "", {})}


def resume_command(run: "Run", args: Namespace, seen: "RunDetails | None") -> str | None:
    """The command that resumes a run whose process died; one that has no event yet is run again instead."""
    if run.status != "interrupted" or not run.events or seen is None:
        return None
    return resume_recorded(args, run.id, seen)


def seconds_of(run: "Run") -> float:
    """How long a run has lasted: until now while it runs, until its last event if it has stopped without an end."""
    from time import time

    last = time() if run.status == "running" else run.updated
    return max(0.0, (last if run.ended is None else run.ended) - run.started)


def _row(run: "Run", args: Namespace, seen: "RunDetails | None") -> tuple[str, ...]:
    from failwell.cli.times import clock, lasted

    return (
        run.id,
        run.status,
        run.workflow,
        clock(run.started),
        lasted(seconds_of(run)),
        _remark(run, args, seen),
    )


def _remark(run: "Run", args: Namespace, seen: "RunDetails | None") -> str:
    """The most important fact about a run, in a few words."""
    from failwell.cli.times import clock

    if run.status == "waiting":
        return f"{counted(run.gates, 'gate')} pending" if run.gates else "answered; resume it"
    if run.status == "parked":
        return "" if run.blocked_until is None else f"until {clock(run.blocked_until)}"
    if run.status == "interrupted":
        resume = resume_command(run, args, seen)
        return "its process died before it began" if resume is None else f"its process died; resume: {resume}"
    where = f" in {run.node}" if run.node else ""
    return f"{run.kind}{where}" if run.kind else run.message or ""


def add_prune_options(parser: Parser) -> None:
    """Declare which runs may be deleted."""
    add_prune(parser, "run", STATUSES, "7d")
    parser.epilog = "A running workflow is never deleted. example: failwell runs prune --older-than 30d"


def run_prune(args: Namespace) -> int:
    """Delete old runs."""
    from failwell.store.reserved_space import reserve_spent
    from failwell.store.run_store import PruneResult

    before = prune_before(args, "run")
    with reserve_spent(state_folder_of(args)), journal(args) as store:

        def delete(*, dry_run: bool) -> Deletion:
            if store is None:
                return _deletion(PruneResult())
            return _deletion(
                store.prune(before=before, keep=args.keep or 0, statuses=args.status, dry_run=dry_run)
            )

        return prune_records(args, "run", delete)


def _deletion(pruned: "PruneResult") -> Deletion:
    live = ", ".join(pruned.kept_live)
    remarks = [f"left alone, because they are running: {live}"] if live else []
    if not (pruned.runs or live):
        remarks.append("no recorded run matches; running ones are never deleted")
    return Deletion(
        ids=pruned.runs,
        summary=f"{counted(len(pruned.runs), 'run')} with {counted(pruned.events, 'event')}",
        remarks=remarks,
        data={"runs": list(pruned.runs), "events": pruned.events, "kept_live": list(pruned.kept_live)},
        is_empty=not pruned.runs,
    )
