"""`failwell workers`: run the jobs that were handed in, or see who does."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import say, say_json
from failwell.apps.cli.parser import wrong
from failwell.apps.cli.workflows.runs_find import add_store

if TYPE_CHECKING:
    from failwell.jobs.memory.machine import Limits

_ACTIONS = ("list", "run")
_LIMITS = {"memory": "memory", "disk": "disk space", "gpu-memory": "memory of each GPU"}
COLUMNS = ("id", "state", "pid", "jobs", "memory", "gpu", "learned")


def add_options(parser: ArgumentParser) -> None:
    """Declare what can be done with workers."""
    parser.usage = (
        "%(prog)s [list] [options]\n       %(prog)s run [--until-empty] [--lanes N] [--memory MB] [options]"
    )
    parser.add_argument(
        "action", nargs="?", default="list", choices=_ACTIONS, help="what to do (default: list)"
    )
    parser.add_argument("--until-empty", action="store_true", help="end once no job is left")
    parser.add_argument("--lanes", metavar="N", type=int, help="jobs that run at a time (default: 4)")
    for option, what in _LIMITS.items():
        parser.add_argument(
            f"--{option}", metavar="MB", type=float, help=f"the most {what} that jobs may use together"
        )
    add_store(parser)
    parser.epilog = "One process at a time runs the jobs of a store; others are woken by what is handed in."


def run(args: Namespace) -> int:
    """List or run."""
    if args.action == "run":
        return _run(args)
    for name in ("until_empty", "lanes", "memory", "disk", "gpu_memory"):
        if getattr(args, name) not in (None, False):
            told = name.replace("_", "-")
            raise wrong(f"`--{told}` is for `failwell workers run`", see="failwell workers --help")
    return _list(args)


def _run(args: Namespace) -> int:
    from failwell.apps.cli.jobs.host import host

    lanes = 4 if args.lanes is None else args.lanes
    if lanes < 1:
        raise wrong("`--lanes` is at least 1", see="failwell workers --help")

    limits = _limits(args)

    from failwell.apps.cli.jobs.workers_run import Shift

    shift = Shift(args, lanes)
    code = host(args, until=shift.work, lanes=lanes, limits=limits)
    if code is Exit.TERMINATED or code is Exit.HUNG_UP:
        # To be asked to end is how such a process ends; whoever asked need not take it for a failure.
        return Exit.DONE
    return shift.told_end() if code is Exit.DONE else code


def _limits(args: Namespace) -> "Limits":
    from failwell.jobs.memory.machine import Limits

    for option in _LIMITS:
        much = getattr(args, option.replace("-", "_"))
        if much is not None and not much > 0:
            raise wrong(f"`--{option}` is more than 0", see="failwell workers --help")
    return Limits(memory_mb=args.memory, disk_mb=args.disk, gpu_mb=args.gpu_memory)


def _list(args: Namespace) -> int:
    seen = look(args)
    workers: list[dict[str, Any]] = [] if seen is None else seen["workers"]
    if args.format == "json":
        say_json(workers)
    elif args.format == "markdown":
        from failwell.apps.cli.tables import markdown_table

        say("\n".join(markdown_table(COLUMNS, [row(one) for one in workers])))
    elif workers:
        from failwell.apps.cli.tables import text_table

        say("\n".join(text_table(COLUMNS, [row(one) for one in workers], args)))
    else:
        import sys

        told = (
            "nobody runs jobs here; `failwell workers run` does"
            if seen is None
            else "no worker was needed yet"
        )
        print(told, file=sys.stderr)
    return Exit.DONE


def look(args: Namespace) -> dict[str, Any] | None:
    """What the process that runs the jobs shows of itself; `None` where nobody does."""
    from failwell.apps.cli.jobs.jobs_find import jobs_of
    from failwell.jobs.snapshot import read_picture

    with jobs_of(args) as desk:
        if desk is None or not desk.store.is_hosted():
            return None
        return read_picture(desk.store.folder)


def row(worker: dict[str, Any]) -> tuple[str, ...]:
    """One worker as a line."""
    learned: dict[str, float] = worker["learned"] or {}
    peaks = ", ".join(
        f"{words} {learned[name]:,.0f} MB"
        for name, words in (("ram_mb", "memory"), ("gpu_mb", "gpu"), ("disk_mb", "disk"))
        if learned.get(name)
    )
    return (
        worker["id"],
        worker["state"] if worker["enabled"] else f"{worker['state']}, disabled",
        "" if worker["pid"] is None else str(worker["pid"]),
        f"{worker['jobs']}/{worker['concurrency']}",
        "" if worker["ram_mb"] is None else f"{worker['ram_mb']:,.0f} MB",
        "" if worker["gpu_mb"] is None else f"{worker['gpu_mb']:,.0f} MB",
        peaks,
    )
