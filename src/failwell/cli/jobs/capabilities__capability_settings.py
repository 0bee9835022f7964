"""`failwell capabilities config` and `secret`: settings, checked before they are stored, and secrets, never shown."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from json import JSONDecodeError, loads
from typing import TYPE_CHECKING, Any

from failwell.cli.exit_codes import Exit
from failwell.cli.jobs.capabilities import add_capability, add_instance, check_known, registry
from failwell.cli.output import is_terminal, print_json, print_stderr, print_text
from failwell.cli.parser import usage_error
from failwell.cli.records import add_store

if TYPE_CHECKING:
    from failwell.jobs.capabilities import CapabilityRegistry


def add_config_options(parser: ArgumentParser) -> None:
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
    if args.format == "json":
        extra = {"left_out": list(dropped)} if dropped else {}
        print_json({"id": instance, "instance": instance, "config": config, **extra})
    elif config:
        from json import dumps

        print_text(
            "\n".join(f"{key} = {dumps(value, ensure_ascii=False)}" for key, value in sorted(config.items()))
        )
    else:
        print_text(
            f"`{instance}` runs with its defaults; set one with `failwell capabilities config {args.name} KEY=VALUE`"
        )
    return Exit.DONE


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


def add_secret_options(parser: ArgumentParser) -> None:
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
    if args.format == "json":
        print_json({"id": args.name, "name": args.name, "secrets": secrets})
    elif secrets:
        print_text("\n".join(f"{name}: {'set' if is_set else 'not set'}" for name, is_set in secrets.items()))
    else:
        print_text(f"`{args.name}` declares no secrets")
    return Exit.DONE


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
