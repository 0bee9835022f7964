"""`failwell workers`: run submitted jobs, or list the workers."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import print_table
from failwell.apps.cli.parser import usage_error
from failwell.apps.cli.records import add_store, at_least

if TYPE_CHECKING:
    from failwell.jobs.memory.machine import Limits

_LIMITS = {"memory": "memory", "disk": "disk space", "gpu-memory": "memory of each GPU"}
COLUMNS = ("id", "status", "pid", "jobs", "memory", "gpu", "learned")


def add_list_options(parser: ArgumentParser) -> None:
    """Declare the store."""
    add_store(parser)


def add_run_options(parser: ArgumentParser) -> None:
    """Declare how long it runs, and what jobs may use."""
    parser.add_argument("--until-empty", action="store_true", help="end when no job is left")
    parser.add_argument(
        "--lanes", metavar="N", type=at_least(1), default=4, help="jobs that run at a time (default: 4)"
    )
    for option, resource in _LIMITS.items():
        parser.add_argument(
            f"--{option}", metavar="MB", type=float, help=f"the most {resource} that jobs may use together"
        )
    add_store(parser)
    parser.epilog = "One process at a time runs the jobs of a store; submitting a job wakes it."


def run_run(args: Namespace) -> int:
    """Run submitted jobs until a signal arrives, or the queue is empty."""
    from failwell.apps.cli.jobs.host import host
    from failwell.apps.cli.jobs.workers_run import Shift

    limits = _limits(args)
    shift = Shift(args, args.lanes)
    code = host(args, until=shift.work, lanes=args.lanes, limits=limits)
    if code is Exit.TERMINATED or code is Exit.HUNG_UP:
        # A service manager ends a worker by a signal; that is no failure.
        return Exit.DONE
    return shift.print_end() if code is Exit.DONE else code


def _limits(args: Namespace) -> "Limits":
    from failwell.jobs.memory.machine import Limits

    for option in _LIMITS:
        much = getattr(args, option.replace("-", "_"))
        if much is not None and not much > 0:
            raise usage_error(f"`--{option}` must be more than 0", see="failwell workers run --help")
    return Limits(memory_mb=args.memory, disk_mb=args.disk, gpu_mb=args.gpu_memory)


def run_list(args: Namespace) -> int:
    """List the workers of the process that runs the jobs."""
    seen = look(args)
    workers: list[dict[str, Any]] = [] if seen is None else seen["workers"]
    empty = (
        "no process runs jobs; `failwell workers run` does" if seen is None else "no worker was needed yet"
    )
    objects = [{**worker, "status": worker["state"]} for worker in workers]
    print_table(args, COLUMNS, [row(worker) for worker in workers], objects, empty)
    return Exit.DONE


def look(args: Namespace) -> dict[str, Any] | None:
    """What the host of the jobs publishes about itself; `None` where there is none."""
    from failwell.apps.cli.jobs.jobs import job_queue
    from failwell.jobs.snapshot import read_picture

    with job_queue(args) as desk:
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
