"""The `failwell` program: finds the command, runs it, and turns whatever happens into an exit code.

Nothing is imported before it is needed: the version is told without an argument parser, and a
command's own modules are loaded when it runs.
"""

import sys

# `typing.TYPE_CHECKING`, without paying for `typing` to tell the version.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from failwell.apps.cli.parser import Parser


def entry() -> int:
    """The console script: `main`, with the streams made safe for whatever is printed."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # A terminal that cannot show a character shows its code instead of an error.
            reconfigure(errors="backslashreplace")
    code = main()
    _let_go()
    return code


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return its exit code. Never raises, never exits."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["--version"], ["-V"]):
        from failwell._version import __version__

        print(f"failwell {__version__}")
        return 0
    try:
        return _run(arguments)
    except SystemExit as ended:
        # How argparse says that it has shown the help.
        return ended.code if isinstance(ended.code, int) else 0
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  (the program's edge: all is told, none escapes)
        from failwell.apps.cli.error_output import tell

        return tell(error, arguments)


def parser(only: "Collection[str] | None" = None) -> "Parser":
    """The whole argument parser; with `only`, the options of just these commands are declared."""
    from failwell.apps.cli.commands import COMMANDS
    from failwell.apps.cli.options import add_shared, program

    made = program()
    commands = made.add_subparsers(dest="command", metavar="COMMAND", title="commands", prog="failwell")
    for command in COMMANDS.values():
        below = commands.add_parser(
            command.name,
            help=command.summary,
            description=f"{command.summary[0].upper()}{command.summary[1:]}.",
        )
        if only is None or command.name in only:
            command.add_options(below)
            add_shared(below, command.formats)
    add_shared(made)
    return made


def _run(arguments: list[str]) -> int:
    from failwell.apps.cli.commands import COMMANDS
    from failwell.apps.cli.options import settle

    made = parser([name for name in arguments if name in COMMANDS])
    if not arguments:
        from failwell.apps.cli.exit_codes import Exit

        made.print_help(sys.stderr)
        return Exit.ASKED_WRONGLY
    args = made.understand(arguments)
    command = COMMANDS.get(args.command or "")
    if command is None:
        from failwell.apps.cli.parser import wrong

        raise wrong("no command was given", valid=COMMANDS, see="failwell --help")
    settle(args, command)
    return command.run(args)


def _let_go() -> None:
    """Give up on output that nobody takes, so the interpreter does not complain about it at exit."""
    import os

    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
