"""The command that resumes a run, with every option that it needs to work when it is pasted."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from failwell.cli.records import command_for
from failwell.store.status import as_mapping

if TYPE_CHECKING:
    from failwell.workflows.machine.run_state import State
    from failwell.workflows.run_details import RunDetails

_LIMITS = {
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
    where, name = _LIMITS.get(str(envelope.get("kind")), ("", ""))
    limit = as_mapping(envelope.get("details")).get(where)
    if not isinstance(limit, int | float) or isinstance(limit, bool):
        return []
    return ["--raise-limit", f"{name}={2 * limit:g}"]


def _secret_options(args: Namespace, names: Sequence[str]) -> list[str]:
    """The options that pass secret inputs again, which are not recorded: from the same files, or as `VALUE`."""
    files = [text for text in getattr(args, "input", ()) if text.partition("=")[2].startswith("@")]
    typed = {text.partition("=")[0]: text for text in files}
    return [word for name in names for word in ("-i", typed.get(name, f"{name}=VALUE"))]
