"""`failwell run`: run a workflow file, show how it goes, and print what it puts out."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from failwell.apps.cli.workflows.run_options import add_running, inputs_of, pairs_of

if TYPE_CHECKING:
    from failwell.workflow.run.launch import Settings
    from failwell.workflow.run.world import Ended


def add_options(parser: ArgumentParser) -> None:
    """Declare what to run and with what."""
    parser.usage = "%(prog)s WORKFLOW [-i NAME=VALUE ...] [options]"
    parser.add_argument("workflow", metavar="WORKFLOW", help="a workflow file")
    parser.add_argument("--run-id", metavar="ID", help="the run's name (default: a new one)")
    parser.add_argument(
        "-m", "--metadata", action="append", default=[], metavar="NAME=VALUE", help="a note kept with the run"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="check the file and the inputs, and run nothing"
    )
    add_running(parser)
    parser.epilog = "The result goes to stdout as JSON, everything else to stderr. Exit code 3: an error that no route took."


def run(args: Namespace) -> int:
    """Run it."""
    inputs = inputs_of(args)
    metadata = pairs_of(args, "metadata")
    if args.dry_run:
        from failwell.apps.cli.workflows.run_dry import dry_run

        return dry_run(args, inputs)
    from failwell.apps.cli.workflows.run_command import Conductor

    async def work(settings: "Settings") -> "Ended":
        from failwell.workflow.run.launch import start

        return await start(args.workflow, inputs, settings, run=args.run_id, metadata=metadata)

    return Conductor(args).conduct(work)
