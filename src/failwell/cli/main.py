"""The `failwell` program: find the command, run it, and return an exit code.

Nothing is imported before it is needed: the version is printed without an argument parser, and a
command's own modules are loaded when it runs.
"""

import sys

# `typing.TYPE_CHECKING`, without importing `typing` to print the version.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from failwell.cli.commands import Command
    from failwell.cli.parser import Parser


def entry() -> int:
    """The console script: `main`, with streams that can print any text."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # A terminal that cannot show a character shows its code instead of an error.
            reconfigure(errors="backslashreplace")
    code = main()
    flush()
    return code


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return its exit code. Never raises, never exits."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["--version"], ["-V"]):
        from failwell._version import __version__

        print(f"failwell {__version__}")
        return 0
    words = list(arguments)
    try:
        from failwell.cli.raw_arguments import current_spelling

        words, notes = current_spelling(arguments)
        if notes:
            _print_notes(notes, words)
        return _run(words)
    except SystemExit as ended:
        # argparse exits after it has printed the help.
        return ended.code if isinstance(ended.code, int) else 0
    except KeyboardInterrupt:
        from failwell.cli.exit_codes import Exit

        return Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001  (the edge of the program: every error is printed, none escapes)
        from failwell.cli.error_output import print_error

        return print_error(error, words)


def parser(only: "Collection[str] | None" = None) -> "Parser":
    """The whole argument parser; with `only`, just the commands and actions in it get their options."""
    from failwell.cli.commands import COMMANDS
    from failwell.cli.options import add_shared, program

    root = program()
    commands = root.add_commands(dest="command", metavar="COMMAND", title="commands", prog="failwell")
    for command in COMMANDS.values():
        below = _add_command(commands, command, only)
        if command.actions and (only is None or command.name in only):
            _add_actions(below, command, only)
    add_shared(root)
    return root


def _add_actions(below: "Parser", group: "Command", only: "Collection[str] | None") -> None:
    actions = below.add_commands(dest="action", metavar="ACTION", title="actions", prog=below.prog)
    actions.required = True
    for action in group.actions:
        _add_command(actions, action, only)
    below.usage = f"{below.prog} ACTION [options]"
    default = f"`{below.prog}` alone is `{below.prog} {group.default}`. " if group.default else ""
    below.epilog = f"{default}`{below.prog} ACTION --help` shows the options of an action."


def _add_command(commands: "Any", command: "Command", only: "Collection[str] | None") -> "Parser":
    from failwell.cli.options import add_shared

    summary = command.summary
    is_named = only is None or command.name in only
    below: Parser = commands.add_parser(
        command.name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        is_named=is_named,
    )
    if not command.actions and is_named:
        command.add_options(below)
        below.usage = below.short_usage()
        add_shared(below, command.formats)
    return below


def _run(arguments: list[str]) -> int:
    from failwell.cli.commands import find_command
    from failwell.cli.options import fill_defaults

    if not arguments:
        from failwell.cli.exit_codes import Exit

        parser([]).print_help(sys.stderr)
        return Exit.INVALID_USAGE
    args = parser(arguments).parse(arguments)
    command = find_command(arguments)
    if command is None:
        from failwell.cli.commands import COMMANDS
        from failwell.cli.parser import usage_error

        raise usage_error("no command was given", valid=COMMANDS, see="failwell --help")
    fill_defaults(args, command)
    return command.run(args)


def _print_notes(notes: list[str], arguments: list[str]) -> None:
    """Print notes for a person. A program that reads errors as JSON gets nothing else on stderr."""
    from failwell.cli.commands import JSON
    from failwell.cli.raw_arguments import error_options

    if error_options(arguments).format != JSON:
        from failwell.cli.output import print_stderr

        print_stderr("\n".join(notes))


def flush() -> None:
    """Drop output that nobody reads, so the interpreter does not complain about it at exit."""
    import os

    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
