"""`failwell resume`: resume a run, and the command that resumes it, with every option that it needs."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from failwell.cli.parser import Parser, usage_error
from failwell.cli.records import add_name, command_for
from failwell.cli.runs.run import add_run_options, read_inputs, read_pairs
from failwell.cli.temporal.connection import add_engine
from failwell.store.status import as_mapping

if TYPE_CHECKING:
    from failwell.workflows.machine.run_state import State
    from failwell.workflows.run_details import RunDetails
    from failwell.workflows.running.settings import DriveResult, Settings

_LIMITS = {"max_iterations": int, "timeout_seconds": float, "budget_usd": float}


def add_options(parser: Parser) -> None:
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
    from failwell.cli.runs.run import RunCommand
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


_REACHED = {
    "limit.iterations": ("max_iterations", "max_iterations"),
    "limit.run_timeout": ("timeout_seconds", "timeout_seconds"),
    "limit.budget_exceeded": ("limit_usd", "budget_usd"),
}
"""Kind → where its details name the limit, and the name of the limit in `--raise-limit`."""


def resume_after(args: Namespace, run: str, state: "State") -> str:
    """The command that resumes a run which this process has driven."""
    root = state.scopes.get("")
    inputs = {} if root is None else root.inputs
    ending = state.ending or {}
    envelope: Mapping[str, Any] = {}
    if ending.get("error_type") == "LimitReached":
        from failwell.workflows.machine.run_state import failure_in

        failure = failure_in(ending)
        envelope = {} if failure is None else failure.envelope
    return _command(args, run, _secrets(inputs), envelope, state.metadata)


def resume_recorded(args: Namespace, run: str, seen: "RunDetails") -> str:
    """The command that resumes a recorded run."""
    end: Mapping[str, Any] = {} if seen.end is None else seen.end.data
    is_limit = end.get("error_type") == "LimitReached"
    return _command(
        args, run, seen.secret_inputs, as_mapping(end.get("envelope")) if is_limit else {}, seen.metadata
    )


def _command(
    args: Namespace,
    run: str,
    secrets: Sequence[str],
    envelope: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> str:
    options = [*_raised_limit(envelope), *_secret_options(args, secrets)]
    if metadata.get("allow_outside"):
        options.append("--allow-outside")
    return command_for(args, "resume", run, *options)


def _secrets(inputs: Mapping[str, Any]) -> list[str]:
    from failwell.workflows.machine.context import is_secret

    return [name for name, value in inputs.items() if is_secret(value)]


def _raised_limit(envelope: Mapping[str, Any]) -> list[str]:
    """The limit that the run has reached, doubled: below it, a resumed run fails at once."""
    where, name = _REACHED.get(str(envelope.get("kind")), ("", ""))
    limit = as_mapping(envelope.get("details")).get(where)
    if not isinstance(limit, int | float) or isinstance(limit, bool):
        return []
    return ["--raise-limit", f"{name}={2 * limit:g}"]


def _secret_options(args: Namespace, names: Sequence[str]) -> list[str]:
    """The options that pass secret inputs again, which are not recorded: from the same files, or as `VALUE`."""
    files = [text for text in getattr(args, "input", ()) if text.partition("=")[2].startswith("@")]
    typed = {text.partition("=")[0]: text for text in files}
    return [word for name in names for word in ("-i", typed.get(name, f"{name}=VALUE"))]
