"""`failwell resume`: take a run up where it was left, or go on where it failed."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.parser import wrong
from failwell.apps.cli.workflows.run_options import add_running, inputs_of, pairs_of

if TYPE_CHECKING:
    from failwell.workflow.run.launch import Settings
    from failwell.workflow.run.world import Ended

_LIMITS = {"max_iterations": int, "timeout_seconds": float, "budget_usd": float}


def add_options(parser: ArgumentParser) -> None:
    """Declare which run, and what may be different this time."""
    parser.usage = "%(prog)s RUN [--accept-changes] [--limit NAME=VALUE ...] [options]"
    parser.add_argument("run", metavar="RUN", help="an id, the beginning of one, or `last`")
    parser.add_argument(
        "--accept-changes", action="store_true", help="go on although the workflow's files have changed"
    )
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"raise a limit of the run: {', '.join(_LIMITS)}",
    )
    add_running(parser)
    parser.epilog = (
        "A run that ended badly goes on under a new id. Secret inputs are not kept: give them again with -i."
    )


def run(args: Namespace) -> int:
    """Take it up."""
    inputs = inputs_of(args)
    limits = _limits(args)
    from failwell.apps.cli.workflows.run_command import Conductor
    from failwell.apps.cli.workflows.runs_find import find_run

    async def work(settings: "Settings") -> "Ended":
        from failwell.workflow.run.launch import resume

        found = find_run(settings.store, args.run)
        return await resume(
            found.id, settings, inputs=inputs, accept_changes=args.accept_changes, limits=limits
        )

    return Conductor(args).conduct(work)


def _limits(args: Namespace) -> dict[str, Any]:
    raised: dict[str, Any] = {}
    for name, value in pairs_of(args, "limit").items():
        if name not in _LIMITS:
            raise wrong(
                f"there is no limit `{name}`", given=name, valid=_LIMITS, see="failwell resume --help"
            )
        try:
            raised[name] = _LIMITS[name](value)
        except ValueError:
            raise wrong(f"`{value}` is not a number for `{name}`", see="failwell resume --help") from None
    return raised
