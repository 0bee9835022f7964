"""`failwell temporal worker`: run workflows and jobs that a Temporal server distributes."""

import logging
import os
from argparse import Namespace
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING

from failwell.cli.exit_codes import Exit
from failwell.cli.jobs.host import warnings_as_lines
from failwell.cli.jobs.workers import add_limits, limits_of
from failwell.cli.output import print_aside, print_stderr, print_text
from failwell.cli.parser import Parser, usage_error
from failwell.cli.records import add_store, at_least, state_folder_of
from failwell.cli.runs.run import log_as_lines
from failwell.cli.signals import on_signals
from failwell.cli.temporal.connection import add_connection, connection_of

if TYPE_CHECKING:
    from failwell.temporal.connection import ConnectionOptions
    from failwell.temporal.worker import TemporalWorker

_SEE = "failwell temporal worker --help"


def add_worker_options(parser: Parser) -> None:
    """Declare the server, the capabilities and the limits."""
    parser.add_argument(
        "--capabilities",
        metavar="DIR",
        help="register the capabilities of this folder first: manifests, and Python files with `@capability`",
    )
    parser.add_argument(
        "--lanes",
        metavar="N",
        type=at_least(1),
        default=4,
        help="jobs that this machine runs at a time (default: 4)",
    )
    add_limits(parser)
    add_connection(parser)
    add_store(parser)
    parser.epilog = (
        "It runs workflows of the task queue, and jobs of every registered capability that can run on this machine. "
        "SIGTERM lets running work finish for a few seconds; a second signal stops it at once. "
        "example: failwell temporal worker --capabilities capabilities --address temporal.example.com:7233"
    )


def run_worker(args: Namespace) -> int:
    """Poll the task queues until a signal arrives."""
    from asyncio import run

    from failwell.errors.missing_extra import need

    need("temporalio", "temporal")
    limits = limits_of(args, _SEE)
    options = connection_of(args)
    _register(args)

    from failwell.temporal.worker import TemporalWorker

    worker = TemporalWorker(options, state_folder_of(args), lanes=args.lanes, limits=limits)
    # Failures of activities are reported to the server, and stored in the record of the run or the job.
    logging.getLogger("temporalio.activity").setLevel(logging.ERROR)
    with warnings_as_lines(), log_as_lines(args, "failwell", "temporalio"):
        return run(_work(args, options, worker))


async def _work(args: Namespace, options: "ConnectionOptions", worker: "TemporalWorker") -> Exit:
    import asyncio

    from failwell.jobs.runtime import DRAIN

    stop = asyncio.Event()
    received: list[Signals] = []

    def on_signal(number: Signals) -> None:
        received.append(number)
        stop.set()
        if len(received) == 1:
            print_stderr(f"{number.name}: running work has {DRAIN:g} s to end; once more to stop at once")
        else:
            print_stderr(f"{number.name}: stopping now; another worker does the rest")
            # Guardians end every process that was started here.
            os._exit(exit_of(received[0]))

    with on_signals(on_signal, loop=asyncio.get_running_loop()):
        async with worker:
            _greet(args, options, worker)
            await stop.wait()
    return exit_of(received[0])


def exit_of(number: Signals) -> Exit:
    """The exit code after a signal. A service manager stops a worker with SIGTERM; that is not a failure."""
    return Exit.INTERRUPTED if number is Signals.SIGINT else Exit.DONE


def _greet(args: Namespace, options: "ConnectionOptions", worker: "TemporalWorker") -> None:
    if args.format == "json":
        from json import dumps

        event = {
            "event": "polling",
            "pid": os.getpid(),
            "address": options.address,
            "namespace": options.namespace,
            "task_queue": options.task_queue,
            "instances": worker.instances,
            "skipped": worker.skipped,
        }
        print_text(dumps(event))
        return
    place = f"{options.address}, namespace {options.namespace}, task queue {options.task_queue}"
    capabilities = ", ".join(worker.instances) or "none"
    print_text(
        [
            f"process {os.getpid()} works for {place}; it ends with Ctrl-C",
            f"capabilities: {capabilities}",
        ]
    )
    for instance, reason in worker.skipped.items():
        print_aside(args, f"`{instance}` is not served: {reason}")


def _register(args: Namespace) -> None:
    """Register the capabilities of the folder; those that are registered already are replaced."""
    if args.capabilities is None:
        return
    from failwell.cli.jobs.capabilities import registered, registry

    folder = Path(args.capabilities)
    if not folder.is_dir():
        raise usage_error(f"`--capabilities`: {folder} is not a folder", see=_SEE)
    files = sorted(path for path in folder.iterdir() if path.suffix in (".toml", ".py") and path.is_file())
    with registry(args) as capabilities:
        for file in files:
            if file.suffix == ".py" and not _has_capability(file):
                continue
            for entry in registered(capabilities, str(file), args, replace="same folder"):
                if entry.problem is not None:
                    print_aside(args, f"warning: {file}: {entry.problem}")
    if not files:
        raise usage_error(f"`--capabilities`: {folder} has no manifest and no Python file", see=_SEE)


def _has_capability(file: Path) -> bool:
    """Whether a Python file uses the decorator. Others in the folder are modules that capabilities import."""
    return "@capability" in file.read_text(encoding="utf-8", errors="replace")
