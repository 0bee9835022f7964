"""`failwell capabilities`: register, configure, enable and list tools that run in their own processes."""

import sys
from argparse import Namespace
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from json import JSONDecodeError, dumps, loads
from typing import TYPE_CHECKING, Any

from failwell.cli.listing import Listing, print_listing
from failwell.cli.output import is_terminal, print_aside, print_data, print_stderr
from failwell.cli.parser import Parser, usage_error
from failwell.cli.records import add_store

if TYPE_CHECKING:
    from failwell.jobs.capabilities import CapabilityRegistry, Replacing
    from failwell.jobs.client.registration import Registration
    from failwell.jobs.workers.protocol import WorkerEvent

_COLUMNS = ("name", "instance", "enabled", "runs", "needs", "description")


def add_list_options(parser: Parser) -> None:
    """Declare the store."""
    add_store(parser)


def add_add_options(parser: Parser) -> None:
    """Declare the file."""
    parser.add_argument(
        "name", metavar="FILE", help="the file of a manifest, or a Python file with `@capability` functions"
    )
    parser.add_argument("--force", action="store_true", help="replace it if it is registered")
    add_store(parser)
    parser.epilog = "examples: failwell capabilities add transcribe.toml; failwell capabilities add tasks.py"


def add_remove_options(parser: Parser) -> None:
    """Declare which capability."""
    add_capability(parser)
    add_store(parser)


def add_enable_options(parser: Parser) -> None:
    """Declare which instance."""
    add_capability(parser)
    add_instance(parser)
    add_store(parser)


add_disable_options = add_enable_options


def add_capability(parser: Parser) -> None:
    """Declare which capability."""
    parser.add_argument("name", metavar="NAME", help="the name of a capability")


def add_instance(parser: Parser) -> None:
    """Declare `--instance`."""
    parser.add_argument("--instance", metavar="ID", help="the instance (default: named like the capability)")


@contextmanager
def registry(args: Namespace) -> "Generator[CapabilityRegistry]":
    """The registered capabilities; after a change, the host is woken."""
    from failwell.jobs.capabilities import CapabilityRegistry
    from failwell.store.folder import state_folder

    capabilities = CapabilityRegistry(state_folder(args.store))
    before = capabilities.stamp(), capabilities.manifest_stamps()
    try:
        yield capabilities
    finally:
        if (capabilities.stamp(), capabilities.manifest_stamps()) != before:
            from failwell.jobs.store.sqlite import wake_host

            wake_host(capabilities.folder)


def run_remove(args: Namespace) -> int:
    """Unregister a capability."""
    with registry(args) as capabilities:
        check_known(capabilities, args.name)
        capabilities.remove(args.name)
    return print_data(args, {"id": args.name, "removed": args.name}, f"`{args.name}` is no longer registered")


def check_known(capabilities: "CapabilityRegistry", name: str) -> None:
    """Refuse a name that is not registered."""
    if name not in capabilities.names():
        raise usage_error(
            f"no capability is called `{name}`",
            value=name,
            valid=capabilities.names(),
            see="failwell capabilities list",
        )


def run_add(args: Namespace) -> int:
    """Register a capability."""
    with registry(args) as capabilities:
        registrations = registered(capabilities, args.name, args, replace=args.force)
        entries = [_registered(capabilities, entry) for entry in registrations]
    texts = [text for text, _ in entries]
    data = [row for _, row in entries]
    return print_data(args, data[0] if len(data) == 1 else data, texts)


def registered(
    capabilities: "CapabilityRegistry", file: str, args: Namespace, *, replace: "Replacing"
) -> "list[Registration]":
    """Register the capabilities of a file. If it cannot be imported, where it failed is printed above the error."""
    from asyncio import run

    from failwell.cli.jobs.capability_check import print_stack
    from failwell.jobs.client.registration import register_file
    from failwell.jobs.faults import WorkerStartFailed

    try:
        return run(register_file(capabilities, file, replace=replace))
    except WorkerStartFailed as error:
        print_stack(error, args)
        raise


def _registered(capabilities: "CapabilityRegistry", entry: "Registration") -> tuple[str, dict[str, Any]]:
    """What is printed for a new capability, as text and as data."""
    from failwell.jobs.platform import this_machine

    manifest = entry.manifest
    unset = [
        variable.name
        for variable in manifest.env
        if variable.secret and variable.name not in capabilities.secret_names(manifest.name)
    ]
    text = f"`{manifest.name}` is registered; check it with `failwell capabilities check {manifest.name}`"
    if unset:
        text += f"\nit needs {', '.join(f'`{name}`' for name in unset)}: `failwell capabilities secret {manifest.name} {unset[0]}`"
    missing = this_machine().missing(manifest.resources)
    text += "".join(f"\nwarning: it cannot run here: {problem}" for problem in missing)
    if entry.problem is not None and not (unset or missing):
        text += (
            f"\nwarning: its arguments are not known, because its code cannot be imported: {entry.problem}"
        )
    row = {"id": manifest.name, "added": manifest.name, "secrets_unset": unset, "missing_here": missing}
    return text, row


def run_enable(args: Namespace) -> int:
    """Let a capability run jobs, or stop it from running them."""
    instance = args.instance or args.name
    on = args.action == "enable"
    with registry(args) as capabilities:
        check_known(capabilities, args.name)
        changed = capabilities.set_enabled(instance, on, capability=args.name)
    state = "enabled" if on else "disabled"
    text = f"`{instance}` is {state}" if changed else f"`{instance}` was {state} already"
    data = {"id": instance, "instance": instance, "enabled": on, "changed": changed}
    return print_data(args, data, text)


run_disable = run_enable


def run_list(args: Namespace) -> int:
    """List the registered capabilities and their instances."""
    with registry(args) as capabilities:
        rows = [row for name in capabilities.names() for row in _rows(capabilities, name)]
    cells = [_cells(row) for row in rows]
    columns = _COLUMNS
    if all(row["id"] == row["name"] for row in rows):
        # Without further instances the column would repeat the name.
        columns = tuple(column for column in _COLUMNS if column != "instance")
        cells = [(first, *rest) for first, _instance, *rest in cells]
    empty = "no capability is registered; register one with `failwell capabilities add FILE`"
    return print_listing(args, Listing(columns, cells, rows, empty))


def _rows(capabilities: "CapabilityRegistry", name: str) -> list[dict[str, Any]]:
    """The instance that is named like the capability, and every other one with settings."""
    about = _about(capabilities, name)
    return [
        {
            "id": entry,
            "name": name,
            "enabled": capabilities.is_enabled(entry),
            "config": capabilities.config(entry),
            **about,
        }
        for entry in capabilities.instances(name)
    ]


def _about(capabilities: "CapabilityRegistry", name: str) -> dict[str, Any]:
    from failwell.errors.faults import CapabilityConfigError
    from failwell.jobs.platform import this_machine

    try:
        manifest = capabilities.manifest(name)
    except CapabilityConfigError as error:
        # One invalid manifest must not hide the others.
        return {"problem": str(error)}
    return {
        "object": manifest.object,
        "python": manifest.python,
        "version": manifest.version,
        "description": manifest.description,
        "gpu": manifest.resources.gpu,
        "accelerators": list(manifest.resources.accelerators),
        "platforms": list(manifest.resources.platforms),
        "missing_here": this_machine().missing(manifest.resources),
        "concurrency": manifest.concurrency,
        "secrets": {
            entry.name: entry.name in capabilities.secret_names(name)
            for entry in manifest.env
            if entry.secret
        },
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    begin = (row["name"], row["id"], "yes" if row["enabled"] else "no")
    if "problem" in row:
        return (*begin, "-", "-", f"broken: {row['problem']}")
    needs = [*(["gpu"] if row["gpu"] else []), *row["accelerators"], *row["platforms"]]
    data = ", ".join(needs) or "-"
    if row["missing_here"]:
        data += " (not here)"
    return (*begin, row["object"], data, row["description"] or "-")


def add_prefetch_options(parser: Parser) -> None:
    """Declare which instance."""
    add_capability(parser)
    add_instance(parser)
    add_store(parser)
    parser.epilog = "example: failwell capabilities prefetch transcribe"


def run_prefetch(args: Namespace) -> int:
    """Call the `prefetch` hook of a capability in a process of its own, which ends afterwards."""
    from asyncio import run

    from failwell.cli.jobs.host import warnings_as_lines
    from failwell.jobs.platform import check_platform

    instance = args.instance or args.name
    with registry(args) as capabilities:
        check_known(capabilities, args.name)
        check_platform(capabilities.manifest(args.name))
        with warnings_as_lines():
            has_hook = run(_prefetch(args, capabilities, instance))
    nothing = f"`{instance}` has nothing to fetch: `{args.name}` has no method `prefetch`"
    text = f"`{instance}` has its models and data" if has_hook else nothing
    return print_data(args, {"id": instance, "instance": instance, "prefetched": has_hook}, text)


async def _prefetch(args: Namespace, capabilities: "CapabilityRegistry", instance: str) -> bool:
    """Start a worker, let it fetch and stop it; `False` if the capability has no such hook."""
    from failwell.jobs.workers.protocol import Progress
    from failwell.jobs.workers.supervisor import SupervisedWorker

    def show(event: "WorkerEvent") -> None:
        if isinstance(event, Progress) and event.message:
            print_aside(args, f"{event.fraction:.0%} {event.message}")

    worker = SupervisedWorker(
        capabilities.manifest(args.name),
        instance=instance,
        config=capabilities.config(instance),
        secrets=capabilities.secrets(args.name),
    )
    worker.listen(show)
    try:
        await worker.prefetch()
        return "prefetch" in worker.about["hooks"]
    finally:
        await worker.stop()


def add_config_options(parser: Parser) -> None:
    """Declare the instance and the settings."""
    add_capability(parser)
    parser.add_argument(
        "values", nargs="*", default=[], metavar="KEY=VALUE", help="settings, as JSON or as text"
    )
    parser.add_argument(
        "--unset", action="append", metavar="KEY", help="remove this setting (may be repeated)"
    )
    add_instance(parser)
    add_store(parser)


def run_config(args: Namespace) -> int:
    """Show or change the configuration."""
    with registry(args) as capabilities:
        check_known(capabilities, args.name)
        return _config(capabilities, args)


def _config(capabilities: "CapabilityRegistry", args: Namespace) -> int:
    """Show the configuration of an instance, after changing it if settings are given."""
    instance = args.instance or args.name
    config = capabilities.config(instance)
    dropped: tuple[str, ...] = ()
    if args.values or args.unset:
        config |= dict(pair(text) for text in args.values)
        for key in args.unset or ():
            if config.pop(key, None) is None and key not in capabilities.config(instance):
                raise usage_error(
                    f"`{key}` is not set",
                    value=key,
                    valid=config,
                    see=f"failwell capabilities config {args.name}",
                )
        config, dropped = _checked(capabilities, args.name, config)
        capabilities.set_config(instance, config, capability=args.name)
    if dropped:
        names = ", ".join(f"`{key}`" for key in dropped)
        print_stderr(
            f"warning: `{args.name}` has no setting {names}; it was dropped;"
            f" `failwell capabilities check {args.name}` shows its settings"
        )
    extra = {"left_out": list(dropped)} if dropped else {}
    lines = [f"{key} = {dumps(value, ensure_ascii=False)}" for key, value in sorted(config.items())]
    hint = f"set one with `failwell capabilities config {args.name} KEY=VALUE`"
    return print_data(
        args,
        {"id": instance, "instance": instance, "config": config, **extra},
        lines or f"`{instance}` runs with its defaults; {hint}",
    )


def pair(text: str) -> tuple[str, Any]:
    """The key and the value of `KEY=VALUE`."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise usage_error(f"`{text}` is not KEY=VALUE", see="failwell capabilities --help")
    try:
        return key, loads(value)
    except JSONDecodeError:
        # A value that is not JSON is text: model=large needs no quotes.
        return key, value


def _checked(
    capabilities: "CapabilityRegistry", name: str, config: dict[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The settings to store, and the places of dropped ones; invalid settings are raised."""
    import asyncio
    import os

    from failwell.jobs.settings import settle
    from failwell.jobs.workers.startup import inspect_capability

    manifest = capabilities.manifest(name)
    schema: Mapping[str, Any] | None = manifest.config
    if schema is None:
        about = asyncio.run(inspect_capability(manifest, host=os.environ, secrets=capabilities.secrets(name)))
        code_schema: Mapping[str, Any] = about.get("schema") or {}
        schema = code_schema
    settled = settle(manifest, schema, config)
    return dict(settled.requested), settled.dropped


def add_secret_options(parser: Parser) -> None:
    """Declare which secret."""
    add_capability(parser)
    parser.add_argument("values", nargs="*", default=[], metavar="VARIABLE", help="the secret to set")
    parser.add_argument(
        "--unset", action="append", metavar="VARIABLE", help="remove this secret (may be repeated)"
    )
    add_store(parser)
    parser.epilog = "The value is read from stdin, or asked for without being shown."


def run_secret(args: Namespace) -> int:
    """Show which secrets are set, or set one."""
    with registry(args) as capabilities:
        check_known(capabilities, args.name)
        return _secret(capabilities, args)


def _secret(capabilities: "CapabilityRegistry", args: Namespace) -> int:
    """Show which secrets are set, or set one from stdin or from a prompt without echo."""
    if len(args.values) > 1 or any("=" in variable for variable in args.values):
        # A value on the command line would be in the shell's history and in every list of processes.
        raise usage_error(
            "give the name of one secret; its value is read from stdin or asked for",
            see="failwell capabilities --help",
        )
    for variable in args.unset or ():
        capabilities.set_secret(args.name, variable, None)
    if args.values:
        capabilities.set_secret(args.name, args.values[0], _value(args.values[0]))
    declared = [variable.name for variable in capabilities.manifest(args.name).env if variable.secret]
    secrets = {variable: variable in capabilities.secret_names(args.name) for variable in declared}
    lines = [f"{name}: {'set' if is_set else 'not set'}" for name, is_set in secrets.items()]
    data = {"id": args.name, "name": args.name, "secrets": secrets}
    return print_data(args, data, lines or f"`{args.name}` declares no secrets")


def _value(variable: str) -> str:
    if is_terminal(sys.stdin):
        from getpass import getpass

        value = getpass(f"{variable}: ")
    else:
        value = sys.stdin.read().rstrip("\r\n")
    if not value:
        raise usage_error(
            f"the value of `{variable}` is empty; remove the secret with `--unset {variable}`",
            see="failwell capabilities --help",
        )
    return value
