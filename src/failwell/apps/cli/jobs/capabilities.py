"""`failwell capability`: register tools that run in processes of their own, and settle how they run."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import bold, say, say_json
from failwell.apps.cli.parser import wrong
from failwell.apps.cli.workflows.runs_find import add_store

if TYPE_CHECKING:
    from failwell.jobs.registry import Shelf

_ACTIONS = ("list", "add", "remove", "check", "enable", "disable", "config", "secret")
_TAKES_NAME = ("remove", "enable", "disable", "config", "secret")
_ONLY_FOR = {
    "replace": ("add",),
    "instance": ("enable", "disable", "config"),
    "unset": ("config", "secret"),
    "values": ("check", "config", "secret"),
}
_COLUMNS = ("name", "instance", "enabled", "runs", "needs", "description")


def add_options(parser: ArgumentParser) -> None:
    """Declare what can be done with capabilities."""
    parser.usage = (
        "%(prog)s [list] [options]\n"
        "       %(prog)s add FILE [--replace] [options]\n"
        "       %(prog)s check NAME|FILE [KEY=VALUE ...] [options]\n"
        "       %(prog)s enable|disable NAME [--instance ID] [options]\n"
        "       %(prog)s config NAME [KEY=VALUE ...] [--unset KEY] [--instance ID] [options]\n"
        "       %(prog)s secret NAME [VARIABLE] [--unset VARIABLE] [options]\n"
        "       %(prog)s remove NAME [options]"
    )
    parser.add_argument(
        "action", nargs="?", default="list", choices=_ACTIONS, help="what to do (default: list)"
    )
    parser.add_argument("name", nargs="?", metavar="FILE", help="a capability's name, or its manifest's file")
    parser.add_argument(
        "values",
        nargs="*",
        metavar="KEY=VALUE",
        help="settings, as JSON or as plain text; or a secret's name",
    )
    parser.add_argument("--replace", action="store_true", help="register it again if it is registered")
    parser.add_argument(
        "--instance", metavar="ID", help="which instance is meant (default: named like the capability)"
    )
    parser.add_argument(
        "--unset", action="append", metavar="KEY", help="forget this setting (may be repeated)"
    )
    add_store(parser)
    parser.epilog = (
        "A secret's value is read from stdin, or asked for without being shown. "
        "try it: failwell capability check transcribe.toml"
    )


def run(args: Namespace) -> int:
    """Do what is asked."""
    from failwell.jobs.registry import Shelf
    from failwell.journal.folder import state_folder

    _check(args)
    shelf = Shelf(state_folder(args.store))
    before = shelf.stamp()
    try:
        return _act(shelf, args)
    finally:
        if shelf.stamp() != before:
            from failwell.jobs.store.sqlite import wake_host

            # Whoever runs jobs there need not wait for his next look.
            wake_host(shelf.folder)


def _act(shelf: "Shelf", args: Namespace) -> int:
    if args.action == "list":
        return _list(shelf, args)
    if args.action == "add":
        return _add(shelf, args)
    if args.action == "remove":
        _known(shelf, args.name)
        shelf.remove(args.name)
        return _done(args, f"`{args.name}` is not registered any more", {"removed": args.name})
    if args.action in ("enable", "disable"):
        return _switch(shelf, args)
    if args.action == "check":
        from failwell.apps.cli.jobs.capability_check import check

        return check(shelf, args)
    from failwell.apps.cli.jobs.capability_settings import config, secret

    _known(shelf, args.name)
    return config(shelf, args) if args.action == "config" else secret(shelf, args)


def _check(args: Namespace) -> None:
    see = "failwell capability --help"
    for name, actions in _ONLY_FOR.items():
        if getattr(args, name) and args.action not in actions:
            if name == "values":
                raise wrong(f"unexpected argument `{args.values[0]}`", see=see)
            told = " and ".join(f"`{action}`" for action in actions)
            raise wrong(f"`--{name}` is for {told}, not for `{args.action}`", see=see)
    if args.name is None and args.action in (*_TAKES_NAME, "check"):
        raise wrong(f"`{args.action}` needs the name of a capability", see="failwell capability list")
    if args.name is None and args.action == "add":
        raise wrong("`add` needs the file of a manifest", see=see)
    if args.name is not None and args.action == "list":
        raise wrong(f"unexpected argument `{args.name}`", see=see)


def _known(shelf: "Shelf", name: str) -> None:
    if name not in shelf.names():
        raise wrong(
            f"no capability is called `{name}`",
            given=name,
            valid=shelf.names(),
            see="failwell capability list",
        )


def _add(shelf: "Shelf", args: Namespace) -> int:
    from failwell.jobs.platform import here

    made = shelf.add(args.name, replace=args.replace)
    unset = [one.name for one in made.env if one.secret and one.name not in shelf.secret_names(made.name)]
    words = f"`{made.name}` is registered; look at it with `failwell capability check {made.name}`"
    if unset:
        words += f"\nit needs {', '.join(f'`{one}`' for one in unset)}: `failwell capability secret {made.name} {unset[0]}`"
    missing = here().missing(made.resources)
    words += "".join(f"\nwarning: it cannot run here: {one}" for one in missing)
    return _done(args, words, {"added": made.name, "secrets_unset": unset, "missing_here": missing})


def _switch(shelf: "Shelf", args: Namespace) -> int:
    _known(shelf, args.name)
    instance = args.instance or args.name
    on = args.action == "enable"
    changed = shelf.set_enabled(instance, on, capability=args.name)
    state = "enabled" if on else "disabled"
    words = f"`{instance}` is {state}" if changed else f"`{instance}` was {state} already"
    return _done(args, words, {"instance": instance, "enabled": on, "changed": changed})


def _done(args: Namespace, words: str, told: dict[str, Any]) -> int:
    if args.format == "json":
        say_json(told)
    else:
        say(words)
    return Exit.DONE


def _list(shelf: "Shelf", args: Namespace) -> int:
    rows = [row for name in shelf.names() for row in _rows(shelf, name)]
    if args.format == "json":
        say_json(rows)
        return Exit.DONE
    if not rows:
        say("no capability is registered; register one with `failwell capability add FILE`")
        return Exit.DONE
    cells = [_cells(row) for row in rows]
    columns = _COLUMNS
    if all(row["id"] == row["name"] for row in rows):
        # Whoever has no further instances need not know that there can be some.
        columns = tuple(one for one in _COLUMNS if one != "instance")
        cells = [(first, *rest) for first, _instance, *rest in cells]
    if args.format == "markdown":
        lines = [f"| {' | '.join(row)} |" for row in cells]
        say("\n".join([f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}", *lines]))
        return Exit.DONE
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (columns, *cells)
    ]
    say("\n".join([bold(lines[0], args), *lines[1:]]))
    return Exit.DONE


def _rows(shelf: "Shelf", name: str) -> list[dict[str, Any]]:
    """The instance that is called like the capability, and every other that something is kept for."""
    about = _about(shelf, name)
    return [
        {"id": one, "name": name, "enabled": shelf.is_enabled(one), "config": shelf.config(one), **about}
        for one in shelf.instances(name)
    ]


def _about(shelf: "Shelf", name: str) -> dict[str, Any]:
    from failwell.fault.capability import CapabilityConfigError
    from failwell.jobs.platform import here

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
        "missing_here": here().missing(made.resources),
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
