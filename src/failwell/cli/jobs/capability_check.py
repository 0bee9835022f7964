"""`failwell capabilities check`: checks the manifest, the interpreter, the import and the configuration."""

import os
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from failwell.cli.jobs.capabilities import pair, registry
from failwell.cli.output import error_format, print_data, print_stderr
from failwell.cli.parser import Parser, usage_error
from failwell.cli.records import add_store

if TYPE_CHECKING:
    from failwell.errors.facts import UserAction
    from failwell.errors.faults import CapabilityConfigError
    from failwell.jobs.capabilities import CapabilityRegistry
    from failwell.jobs.faults import WorkerStartFailed
    from failwell.jobs.manifest import Manifest


def add_check_options(parser: Parser) -> None:
    """Declare the capability and settings to try."""
    parser.add_argument("name", metavar="FILE", help="the name of a capability, or the file of its manifest")
    parser.add_argument(
        "values", nargs="*", default=[], metavar="KEY=VALUE", help="settings to try, as JSON or as text"
    )
    add_store(parser)
    parser.epilog = "example: failwell capabilities check transcribe.toml"


def run_check(args: Namespace) -> int:
    """Check a capability."""
    with registry(args) as capabilities:
        return _check(capabilities, args)


def _check(capabilities: "CapabilityRegistry", args: Namespace) -> int:
    """Import the capability in its environment and print what it is; mistakes are raised."""
    import asyncio

    from failwell.errors.faults import CapabilityConfigError
    from failwell.errors.report import TracebackPolicy, default_policy
    from failwell.jobs.faults import WorkerStartFailed
    from failwell.jobs.platform import check_platform, this_machine
    from failwell.jobs.settings import settle
    from failwell.jobs.settings_schema import dropped_keys_text
    from failwell.jobs.workers.startup import inspect_capability, manifest_differences

    manifest = _manifest(capabilities, args.name)
    check_platform(manifest)
    secrets = capabilities.secrets(manifest.name)
    try:
        # Nothing is recorded, and its author asks why: messages are shown unless the operator withholds them.
        policy = default_policy(unset=TracebackPolicy.FULL)
        about = asyncio.run(inspect_capability(manifest, host=os.environ, secrets=secrets, policy=policy))
    except WorkerStartFailed as error:
        print_stack(error, args)
        raise
    if args.name in capabilities.names():
        capabilities.set_parameters(manifest.name, about)
    schema: Mapping[str, Any] = manifest.config if manifest.config is not None else about.get("schema") or {}
    config_values = {**capabilities.config(manifest.name), **dict(pair(text) for text in args.values)}
    try:
        settled = settle(manifest, schema, config_values)
    except CapabilityConfigError as error:
        error.user_action = _cure(error, args.name, is_kept=args.name in capabilities.names())
        raise
    config = dict(settled.effective)
    dropped = sorted({*settled.dropped, *settled.dropped_defaults})
    data: dict[str, Any] = {
        "name": manifest.name,
        "object": manifest.object,
        "python": manifest.python,
        "version": about.get("version") or manifest.version,
        "actions": about["actions"],
        "hooks": about["hooks"],
        "config": config,
        "warnings": [
            *manifest_differences(manifest, about),
            *this_machine().undetected(manifest.resources),
            *([dropped_keys_text(manifest.name, dropped)] if dropped else []),
        ],
    }
    lines = [
        f"`{manifest.name}` can be loaded" + (f" (version {data['version']})" if data["version"] else ""),
        f"  runs      {manifest.object} with {manifest.python}",
        f"  actions   {', '.join(data['actions']) or 'none'}",
        f"  hooks     {', '.join(data['hooks']) or 'none'}",
    ]
    if config:
        lines.append(f"  config    {', '.join(f'{key}={value!r}' for key, value in sorted(config.items()))}")
    return print_data(args, data, [*lines, *(f"warning: {text}" for text in data["warnings"])])


def print_stack(error: "WorkerStartFailed", args: Namespace) -> None:
    """Print where the import of a capability failed, above the error itself."""
    from failwell.adapters.describe import describe
    from failwell.delivery.plain_text import neutral

    internal = describe(error).internal
    if error_format(args) == "text" and internal is not None and internal.traceback:
        print_stderr(neutral(internal.traceback.rstrip()))


def _cure(error: "CapabilityConfigError", name: str, *, is_kept: bool) -> "UserAction | None":
    """The advice for invalid settings; other errors keep theirs."""
    from failwell.errors.axes import ActionKind
    from failwell.errors.facts import UserAction

    field = next((place for place in error.fields_invalid or () if not place.startswith("config.")), None)
    if field is None:
        return error.user_action
    keep = f", or keep it with `failwell capabilities config {name} {field}=VALUE`" if is_kept else ""
    return UserAction(
        ActionKind.CHANGE_INPUT,
        f"give it as an argument: `failwell capabilities check {name} {field}=VALUE`{keep}",
    )


def _manifest(capabilities: "CapabilityRegistry", name: str) -> "Manifest":
    from failwell.jobs.manifest_file import read_manifest

    if name in capabilities.names():
        return capabilities.manifest(name)
    if name.endswith(".py"):
        raise usage_error(
            f"`{name}` is a Python file and no manifest; `failwell capabilities add {name}` imports and registers it,"
            " and its capabilities can be checked by their names",
            see="failwell capabilities add --help",
        )
    if os.sep in name or name.endswith(".toml") or Path(name).exists():
        return read_manifest(name)
    raise usage_error(
        f"no capability is called `{name}`",
        value=name,
        valid=capabilities.names(),
        see="failwell capabilities list",
    )
