"""`failwell runs`: what was run, how each run stands, and what to do next."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import say, say_json
from failwell.apps.cli.parser import wrong
from failwell.apps.cli.workflows.runs_find import add_store, journal

if TYPE_CHECKING:
    from failwell.journal.store import Run, Store

_ACTIONS = ("list", "show", "tail", "export", "prune")
_ONLY_FOR = {
    "workflow": ("list",),
    "since": ("list",),
    "limit": ("list",),
    "status": ("list", "prune"),
    "all": ("show",),
    "after": ("tail", "export"),
    "output": ("export",),
    "force": ("export",),
    "older_than": ("prune",),
    "keep": ("prune",),
    "dry_run": ("prune",),
    "yes": ("prune",),
}
_STATUSES = ("running", "waiting", "parked", "interrupted", "completed", "failed", "cancelled")
_LIMIT = 50
_COLUMNS = ("id", "status", "workflow", "started", "lasted", "what")


def add_options(parser: ArgumentParser) -> None:
    """Declare what can be asked about runs."""
    parser.usage = (
        "%(prog)s [list] [--status STATUS ...] [--workflow NAME] [--since WHEN] [--limit N] [options]\n"
        "       %(prog)s show RUN [--all] [options]\n"
        "       %(prog)s tail RUN [--after SEQ] [options]\n"
        "       %(prog)s export RUN [--after SEQ] [--output FILE [--force]] [options]\n"
        "       %(prog)s prune [--older-than SPAN] [--keep N] [--status STATUS ...] [--dry-run | --yes] [options]"
    )
    parser.add_argument(
        "action", nargs="?", default="list", choices=_ACTIONS, help="what to do (default: list)"
    )
    parser.add_argument("run", nargs="?", metavar="RUN", help="an id, the beginning of one, or `last`")
    parser.add_argument(
        "--status", action="append", choices=_STATUSES, help="only runs that stand so (may be repeated)"
    )
    parser.add_argument("--workflow", metavar="NAME", help="only runs of this workflow")
    parser.add_argument("--since", metavar="WHEN", help="only runs started since: `2h`, or a date")
    parser.add_argument("--limit", metavar="N", type=int, help=f"list so many at most (default: {_LIMIT})")
    parser.add_argument("--all", action="store_true", help="show every node, however many there are")
    parser.add_argument("--after", metavar="SEQ", type=int, help="only events with a higher number")
    parser.add_argument("--output", metavar="FILE", help="write to this file instead of stdout")
    parser.add_argument("--force", action="store_true", help="replace the file if there is one")
    parser.add_argument("--older-than", metavar="SPAN", help="prune runs that ended so long ago: `7d`")
    parser.add_argument("--keep", metavar="N", type=int, help="never prune the newest N")
    parser.add_argument("--dry-run", action="store_true", help="say what would be pruned, and prune nothing")
    parser.add_argument("--yes", action="store_true", help="prune without being asked")
    add_store(parser)
    parser.epilog = "try it: failwell runs show last"


def run(args: Namespace) -> int:
    """Do what is asked."""
    _check(args)
    if args.action == "show":
        from failwell.apps.cli.workflows.runs_show import show

        return show(args)
    if args.action == "tail":
        from failwell.apps.cli.workflows.runs_stream import tail

        return tail(args)
    if args.action == "export":
        from failwell.apps.cli.workflows.runs_stream import export

        return export(args)
    if args.action == "prune":
        from failwell.apps.cli.workflows.runs_prune import prune

        return prune(args)
    return _list(args)


def _check(args: Namespace) -> None:
    see = "failwell runs --help"
    for name, actions in _ONLY_FOR.items():
        if getattr(args, name) not in (None, False) and args.action not in actions:
            told = " and ".join(f"`failwell runs {action}`" for action in actions)
            raise wrong(f"`--{name.replace('_', '-')}` is for {told}, not for `{args.action}`", see=see)
    takes_run = args.action in ("show", "tail", "export")
    if takes_run and args.run is None:
        raise wrong(
            f"`failwell runs {args.action}` needs the id of a run, or `last`", see="failwell runs list"
        )
    if not takes_run and args.run is not None:
        raise wrong(f"unexpected argument `{args.run}`", see=see)
    for name in ("limit", "keep"):
        if (getattr(args, name) or 0) < 0:
            raise wrong(f"`--{name}` cannot be negative", see=see)


def _list(args: Namespace) -> int:
    with journal(args) as store:
        found = [] if store is None else chosen(store, args)
    if args.format == "json":
        say_json([told for _, _, told in found])
    elif args.format == "markdown":
        from failwell.apps.cli.tables import markdown_table

        say("\n".join(markdown_table(_COLUMNS, [_row(run, status) for run, status, _ in found])))
    elif found:
        from failwell.apps.cli.tables import text_table

        say("\n".join(text_table(_COLUMNS, [_row(run, status) for run, status, _ in found], args)))
    else:
        import sys

        told = "no runs are recorded here yet" if store is None else "no recorded run fits"
        print(told, file=sys.stderr)
    return Exit.DONE


def chosen(store: "Store", args: Namespace) -> "list[tuple[Run, str, dict[str, Any]]]":
    """The runs that match the filters: each with its status, and as JSON."""
    from time import time

    from failwell.apps.cli.times import moment

    runs = store.runs(
        statuses=args.status or (),
        workflow=args.workflow,
        since=None if args.since is None else moment(args.since, "--since", time()),
        limit=_LIMIT if args.limit is None else args.limit,
    )
    return [(run, run.status, summary(run, run.status)) for run in runs]


def summary(run: "Run", status: str) -> dict[str, Any]:
    """One run as JSON."""
    from failwell.apps.cli.times import iso

    told: dict[str, Any] = {
        "id": run.id,
        "status": status,
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
        "resume": resume_command(run, status),
    }
    return {name: value for name, value in told.items() if value not in (None, "", {})}


def resume_command(run: "Run", status: str) -> str | None:
    """The command that resumes a run whose process died; one that has no event yet is run again instead."""
    return f"failwell resume {run.id}" if status == "interrupted" and run.events else None


def what(run: "Run", status: str) -> str:
    """The most telling thing about a run, in a few words."""
    from failwell.apps.cli.times import clock

    if status == "waiting":
        if not run.gates:
            return "answered; resume it"
        return f"{run.gates} question{'' if run.gates == 1 else 's'} open"
    if status == "parked":
        return "" if run.blocked_until is None else f"until {clock(run.blocked_until)}"
    if status == "interrupted":
        resume = resume_command(run, status)
        return "its process died before it began" if resume is None else f"its process died; resume: {resume}"
    where = f" in {run.node}" if run.node else ""
    return f"{run.kind}{where}" if run.kind else run.message or ""


def _row(run: "Run", status: str) -> tuple[str, ...]:
    from failwell.apps.cli.times import clock, lasted

    ended = run.updated if run.ended is None else run.ended
    return (
        run.id,
        status,
        run.workflow,
        clock(run.started),
        lasted(max(0.0, ended - run.started)),
        what(run, status),
    )
