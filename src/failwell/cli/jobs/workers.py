"""`failwell workers`: run submitted jobs, or list the workers."""

import os
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from failwell.cli.exit_codes import Exit
from failwell.cli.listing import Listing, print_listing
from failwell.cli.output import print_aside
from failwell.cli.parser import Parser, usage_error
from failwell.cli.records import add_store, at_least

if TYPE_CHECKING:
    from failwell.jobs.memory.machine import Limits
    from failwell.jobs.runtime import Runtime

_LIMITS = {"memory": "memory", "disk": "disk space", "gpu-memory": "memory of each GPU"}
COLUMNS = ("id", "status", "pid", "jobs", "memory", "gpu", "learned")


def add_list_options(parser: Parser) -> None:
    """Declare the store."""
    add_store(parser)


def add_run_options(parser: Parser) -> None:
    """Declare the files and the options."""
    parser.add_argument(
        "files",
        nargs="*",
        default=[],
        metavar="FILE",
        help="register the capabilities of these files first: Python files with `@capability`, or manifests",
    )
    parser.add_argument("--until-empty", action="store_true", help="end when no job is left")
    parser.add_argument(
        "--lanes",
        metavar="N",
        type=at_least(1),
        default=4,
        help="jobs that this process runs at a time (default: 4)",
    )
    add_limits(parser)
    add_store(parser)
    parser.epilog = (
        "Several processes may run the jobs of one store: each has its own lanes and workers, and they share the"
        " machine's memory. When one ends or dies, the others take its jobs over."
    )


def add_limits(parser: Parser) -> None:
    """Declare the most that jobs may use together."""
    for option, resource in _LIMITS.items():
        parser.add_argument(
            f"--{option}", metavar="MB", type=float, help=f"the most {resource} that jobs may use together"
        )


def run_run(args: Namespace) -> int:
    """Run submitted jobs until a signal arrives, or the queue is empty."""
    from failwell.cli.jobs.host import host

    limits = limits_of(args, "failwell workers run --help")
    _register(args)
    host_run = HostRun(args, args.lanes)
    code = host(args, until=host_run.work, lanes=args.lanes, limits=limits)
    if code is Exit.TERMINATED or code is Exit.HUNG_UP:
        # A service manager stops the host with a signal; that is not a failure.
        return Exit.DONE
    return host_run.print_end() if code is Exit.DONE else code


def _register(args: Namespace) -> None:
    """Register the capabilities of the files; those that were registered from the same folder are replaced."""
    if not args.files:
        return
    from failwell.cli.jobs.capabilities import registered, registry

    with registry(args) as capabilities:
        for file in args.files:
            for entry in registered(capabilities, file, args, replace="same folder"):
                if entry.problem is not None:
                    raise entry.problem


def limits_of(args: Namespace, see: str) -> "Limits":
    """The limits of the command line.

    Raises:
        Usage: one is not more than 0; `see` is the command that shows the options.
    """
    from failwell.jobs.memory.machine import Limits

    for option in _LIMITS:
        megabytes = getattr(args, option.replace("-", "_"))
        if megabytes is not None and not megabytes > 0:
            raise usage_error(f"`--{option}` must be more than 0", see=see)
    return Limits(memory_mb=args.memory, disk_mb=args.disk, gpu_mb=args.gpu_memory)


def run_list(args: Namespace) -> int:
    """List the workers of the processes that run jobs."""
    snapshot = look(args)
    workers: list[dict[str, Any]] = [] if snapshot is None else snapshot["workers"]
    empty = (
        "no process runs jobs; `failwell workers run` does"
        if snapshot is None
        else "no worker was started yet"
    )
    objects = [{**worker, "status": worker["state"]} for worker in workers]
    columns, rows = table(workers)
    return print_listing(args, Listing(columns, rows, objects, empty))


def look(args: Namespace) -> dict[str, Any] | None:
    """The snapshot of all hosts; `None` without a host."""
    from failwell.cli.jobs.jobs import job_queue
    from failwell.jobs.queue.snapshot import read_picture

    with job_queue(args) as queue:
        if queue is None or not queue.store.is_hosted():
            return None
        return read_picture(queue.store.folder)


def table(workers: Sequence[dict[str, Any]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The columns and the rows of a table of workers. It names the host of each if there are several."""
    rows = [row(worker) for worker in workers]
    if len({worker["host"] for worker in workers}) < 2:
        return COLUMNS, rows
    hosts = [str(worker["host"]) for worker in workers]
    return (*COLUMNS, "host"), [(*cells, host) for cells, host in zip(rows, hosts, strict=True)]


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
        _memory(worker["ram_mb"], worker.get("limit_mb")),
        "" if worker["gpu_mb"] is None else f"{worker['gpu_mb']:,.0f} MB",
        peaks,
    )


def _memory(used: float | None, limit: float | None) -> str:
    """What a worker uses, and the most that it may use. A host of an older version has no limits."""
    if used is None:
        return ""
    return f"{used:,.0f} MB" if limit is None else f"{used:,.0f} of {limit:,.0f} MB"


_LOOK_EVERY = 1.0
"""Seconds after which the queue is checked without an event."""
_SHOWN = 8


class HostRun:
    """One run of `failwell workers run`, from its start to its end."""

    def __init__(self, args: Namespace, lanes: int) -> None:
        self._args = args
        self._lanes = lanes
        self._stuck: dict[str, int] = {}
        """Instance that cannot run → number of its waiting jobs."""
        self._announced: set[str] = set()
        self._is_reported = False
        """Whether the jobs that no host has were looked at."""
        self._words: dict[str, str] = {}

    async def work(self, jobs: "Runtime") -> None:
        """Run jobs; with `--until-empty`, until no job is left that can run."""
        import asyncio

        self._greet(jobs)
        with jobs.events(live=False) as events:
            while True:
                stuck = self._look(jobs)
                if self._args.until_empty and stuck is not None:
                    self._stuck = stuck
                    return
                try:
                    async with asyncio.timeout(_LOOK_EVERY):
                        await anext(events)
                except TimeoutError:
                    continue

    def print_end(self) -> Exit:
        """Print which jobs are left and why; return the exit code."""
        if not self._stuck:
            return Exit.DONE
        number = sum(self._stuck.values())
        jobs = "1 job is" if number == 1 else f"{number:,} jobs are"
        reasons = "; ".join(
            f"{self._words[instance]} ({count:,})" for instance, count in sorted(self._stuck.items())
        )
        print_aside(self._args, f"{jobs} left, and none of them can run: {reasons}")
        return Exit.WAITING

    def _greet(self, jobs: "Runtime") -> None:
        capabilities = jobs.registry
        names = capabilities.names()
        labels = [name if capabilities.is_enabled(name) else f"{name} (disabled)" for name in names[:_SHOWN]]
        rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        listing = (
            ", ".join(labels) + rest if names else "none; `failwell capabilities add FILE` registers one"
        )
        end = "once no job is left" if self._args.until_empty else "with Ctrl-C"
        print_aside(
            self._args,
            f"process {os.getpid()} runs the jobs of {capabilities.folder}, {self._lanes} at a time; it ends {end}\n"
            f"capabilities: {listing}",
        )

    def _look(self, jobs: "Runtime") -> dict[str, int] | None:
        """The jobs that cannot run, by instance, once no other job is left; until then `None`.

        Each instance that cannot run is reported once.
        """
        stuck: Counter[str] = Counter()
        able: dict[str, bool] = {}
        is_busy = False
        for entry in jobs.queue.state.live.values():
            instance = entry.request.instance
            if instance not in able:
                able[instance] = self._can_run(jobs, instance)
            if able[instance] or entry.state.value == "running":
                is_busy = True
            else:
                stuck[instance] += 1
        if is_busy and self._is_reported:
            # The jobs that no host has are counted when this one has nothing to do.
            return None
        self._is_reported = True
        ownership = jobs.store.ownership(jobs.queue.state.host.key)
        for instance, number in ownership.unowned.items():
            if instance not in able:
                able[instance] = self._can_run(jobs, instance)
            if able[instance]:
                is_busy = True
            else:
                stuck[instance] += number
        return None if is_busy or ownership.elsewhere else dict(stuck)

    def _can_run(self, jobs: "Runtime", name: str) -> bool:
        instance = jobs.queue.state.find_instance(name)
        if instance is not None and instance.is_enabled:
            self._announced.discard(name)
            return True
        if instance is None:
            words = f"`{name}` is not registered; `failwell capabilities add FILE` registers it"
        else:
            words = f"`{name}` is disabled; `failwell capabilities enable {name}` lets it work"
        self._words[name] = words
        if name not in self._announced:
            self._announced.add(name)
            print_aside(self._args, f"jobs wait that cannot run: {words}")
        return False
