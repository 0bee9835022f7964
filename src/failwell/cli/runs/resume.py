"""`failwell resume`: resume a run that waits, was interrupted, failed or was cancelled."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from failwell.cli.parser import usage_error
from failwell.cli.records import add_name
from failwell.cli.runs.run import add_run_options, read_inputs, read_pairs
from failwell.cli.temporal.connection import add_engine

if TYPE_CHECKING:
    from failwell.workflows.running.settings import DriveResult, Settings

_LIMITS = {"max_iterations": int, "timeout_seconds": float, "budget_usd": float}


def add_options(parser: ArgumentParser) -> None:
    """Declare which run, and what may differ this time."""
    add_name(parser, "run")
    parser.add_argument(
        "--accept-changes", action="store_true", help="resume although the workflow's files have changed"
    )
    parser.add_argument(
        "--raise-limit",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"raise a limit of the run: {', '.join(_LIMITS)}",
    )
    add_run_options(parser)
    add_engine(parser, default=None)
    parser.epilog = (
        "A run that failed or was cancelled continues under a new id. "
        "Secret inputs are not recorded: give them again with -i."
    )


def run(args: Namespace) -> int:
    """Resume it."""
    inputs = read_inputs(args)
    limits = _limits(args)
    from failwell.cli.runs.run__run_command import RunCommand
    from failwell.cli.runs.runs import find_run
    from failwell.cli.temporal.remote import resumed_settings

    async def work(settings: "Settings") -> "DriveResult":
        from failwell.workflows.running.launch import resume

        run_id = find_run(settings.store, args.run).id
        settings = await resumed_settings(args, settings, run_id)
        return await resume(
            run_id, settings, inputs=inputs, accept_changes=args.accept_changes, limits=limits
        )

    return RunCommand(args).execute(work)


def _limits(args: Namespace) -> dict[str, Any]:
    raised: dict[str, Any] = {}
    for name, value in read_pairs(args, "raise_limit").items():
        if name not in _LIMITS:
            raise usage_error(
                f"there is no limit `{name}`", value=name, valid=_LIMITS, see="failwell resume --help"
            )
        try:
            raised[name] = _LIMITS[name](value)
        except ValueError:
            raise usage_error(
                f"`{value}` is not a number for `{name}`", see="failwell resume --help"
            ) from None
    return raised
