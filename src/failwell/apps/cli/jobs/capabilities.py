"""`failwell capabilities`: register, list, enable and remove tools that run in their own processes."""

from argparse import ArgumentParser, Namespace
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import print_json, print_table, print_text
from failwell.apps.cli.parser import usage_error
from failwell.apps.cli.records import add_store

if TYPE_CHECKING:
    from failwell.jobs.registry import CapabilityRegistry

_COLUMNS = ("name", "instance", "enabled", "runs", "needs", "description")


def add_list_options(parser: ArgumentParser) -> None:
    """Declare the store."""
    add_store(parser)


def add_add_options(parser: ArgumentParser) -> None:
    """Declare the manifest."""
    parser.add_argument("name", metavar="FILE", help="the file of a manifest")
    parser.add_argument("--force", action="store_true", help="replace it if it is registered")
    add_store(parser)
    parser.epilog = "example: failwell capabilities add transcribe.toml"


def add_remove_options(parser: ArgumentParser) -> None:
    """Declare which capability."""
    add_capability(parser)
    add_store(parser)


def add_enable_options(parser: ArgumentParser) -> None:
    """Declare which instance."""
    add_capability(parser)
    add_instance(parser)
    add_store(parser)


add_disable_options = add_enable_options


def add_capability(parser: ArgumentParser) -> None:
    """Declare which capability."""
    parser.add_argument("name", metavar="NAME", help="the name of a capability")


def add_instance(parser: ArgumentParser) -> None:
    """Declare `--instance`."""
    parser.add_argument("--instance", metavar="ID", help="the instance (default: named like the capability)")


@contextmanager
def registry(args: Namespace) -> "Generator[CapabilityRegistry]":
    """The registered capabilities; the process that runs jobs is told of changes."""
    from failwell.jobs.registry import CapabilityRegistry
    from failwell.journal.folder import state_folder

    shelf = CapabilityRegistry(state_folder(args.store))
    before = shelf.stamp()
    try:
        yield shelf
    finally:
        if shelf.stamp() != before:
            from failwell.jobs.store.sqlite import wake_host

            wake_host(shelf.folder)


def run_remove(args: Namespace) -> int:
    """Unregister a capability."""
    with registry(args) as shelf:
        check_known(shelf, args.name)
        shelf.remove(args.name)
    return _done(args, f"`{args.name}` is no longer registered", {"id": args.name, "removed": args.name})


def check_known(shelf: "CapabilityRegistry", name: str) -> None:
    """Refuse a name that is not registered."""
    if name not in shelf.names():
        raise usage_error(
            f"no capability is called `{name}`",
            given=name,
            valid=shelf.names(),
            see="failwell capabilities list",
        )


def run_add(args: Namespace) -> int:
    """Register a capability."""
    with registry(args) as shelf:
        return _add(shelf, args)


def _add(shelf: "CapabilityRegistry", args: Namespace) -> int:
    from failwell.jobs.platform import this_machine

    made = shelf.add(args.name, replace=args.force)
    unset = [one.name for one in made.env if one.secret and one.name not in shelf.secret_names(made.name)]
    words = f"`{made.name}` is registered; look at it with `failwell capabilities check {made.name}`"
    if unset:
        words += f"\nit needs {', '.join(f'`{one}`' for one in unset)}: `failwell capabilities secret {made.name} {unset[0]}`"
    missing = this_machine().missing(made.resources)
    words += "".join(f"\nwarning: it cannot run here: {one}" for one in missing)
    return _done(
        args, words, {"id": made.name, "added": made.name, "secrets_unset": unset, "missing_here": missing}
    )


def run_enable(args: Namespace) -> int:
    """Let a capability run jobs."""
    with registry(args) as shelf:
        return _switch(shelf, args)


def run_disable(args: Namespace) -> int:
    """Stop a capability from running jobs."""
    with registry(args) as shelf:
        return _switch(shelf, args)


def _switch(shelf: "CapabilityRegistry", args: Namespace) -> int:
    check_known(shelf, args.name)
    instance = args.instance or args.name
    on = args.action == "enable"
    changed = shelf.set_enabled(instance, on, capability=args.name)
    state = "enabled" if on else "disabled"
    words = f"`{instance}` is {state}" if changed else f"`{instance}` was {state} already"
    return _done(args, words, {"id": instance, "instance": instance, "enabled": on, "changed": changed})


def _done(args: Namespace, words: str, told: dict[str, Any]) -> int:
    if args.format == "json":
        print_json(told)
    else:
        print_text(words)
    return Exit.DONE


def run_list(args: Namespace) -> int:
    """List the registered capabilities and their instances."""
    with registry(args) as shelf:
        rows = [row for name in shelf.names() for row in _rows(shelf, name)]
    if not rows and args.format != "json":
        print_text("no capability is registered; register one with `failwell capabilities add FILE`")
        return Exit.DONE
    cells = [_cells(row) for row in rows]
    columns = _COLUMNS
    if all(row["id"] == row["name"] for row in rows):
        # Without further instances the column would repeat the name.
        columns = tuple(column for column in _COLUMNS if column != "instance")
        cells = [(first, *rest) for first, _instance, *rest in cells]
    print_table(args, columns, cells, rows)
    return Exit.DONE


def _rows(shelf: "CapabilityRegistry", name: str) -> list[dict[str, Any]]:
    """The instance that is called like the capability, and every other that something is kept for."""
    about = _about(shelf, name)
    return [
        {"id": one, "name": name, "enabled": shelf.is_enabled(one), "config": shelf.config(one), **about}
        for one in shelf.instances(name)
    ]


def _about(shelf: "CapabilityRegistry", name: str) -> dict[str, Any]:
    from failwell.fault.capability import CapabilityConfigError
    from failwell.jobs.platform import this_machine

    try:
        made = shelf.manifest(name)
    except CapabilityConfigError as error:
        # One manifest that was broken by hand must not hide the others.
        return {"problem": str(error)}
    return {
        "object": made.object,
        "python": made.python,
        "version": made.version,
        "description": made.description,
        "gpu": made.resources.gpu,
        "accelerators": list(made.resources.accelerators),
        "platforms": list(made.resources.platforms),
        "missing_here": this_machine().missing(made.resources),
        "concurrency": made.concurrency,
        "secrets": {one.name: one.name in shelf.secret_names(name) for one in made.env if one.secret},
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    begin = (row["name"], row["id"], "yes" if row["enabled"] else "no")
    if "problem" in row:
        return (*begin, "-", "-", f"broken: {row['problem']}")
    needs = [*(["gpu"] if row["gpu"] else []), *row["accelerators"], *row["platforms"]]
    told = ", ".join(needs) or "-"
    if row["missing_here"]:
        told += " (not here)"
    return (*begin, row["object"], told, row["description"] or "-")
