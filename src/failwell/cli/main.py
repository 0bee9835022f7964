"""The `failwell` program: find the command, run it, and return an exit code.

Nothing is imported before it is needed: the version is printed without an argument parser, and of the commands only
the one that is named is loaded.
"""

import sys

# `typing.TYPE_CHECKING`, without importing `typing` to print the version.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from failwell.cli.commands import Command


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
    words = sys.argv[1:] if argv is None else argv
    if words in (["--version"], ["-V"]):
        from failwell._version import __version__

        print(f"failwell {__version__}")
        return 0
    try:
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


def _run(words: list[str]) -> int:
    from failwell.cli.commands import COMMANDS, command_index
    from failwell.cli.options import command_parser, fill_defaults, program_parser
    from failwell.cli.parser import usage_error

    if not words:
        from failwell.cli.exit_codes import Exit

        program_parser().print_help(sys.stderr)
        return Exit.INVALID_USAGE
    index = command_index(words)
    before = words[:index]
    if before:
        program_parser().parse(before)
    if index is None:
        raise usage_error("no command was given", valid=COMMANDS, see="failwell --help")
    command = COMMANDS.get(words[index])
    if command is None:
        name = words[index]
        raise usage_error(f"unknown command `{name}`", value=name, valid=COMMANDS, see="failwell --help")
    after = words[index + 1 :]
    if command.actions:
        command, after = _action(command, after)
    args = command_parser(command).parse([*before, *command.plain_options(after)])
    fill_defaults(args, command)
    return command.run(args)


def _action(group: "Command", words: list[str]) -> "tuple[Command, list[str]]":
    """The action that `words` name, or the default one, and the other words. Options may come before the action."""
    from failwell.cli.options import command_parser, group_parser
    from failwell.cli.parser import usage_error

    if words[:1] in (["-h"], ["--help"]):
        group_parser(group).print_help()
        raise SystemExit(0)
    for place, word in enumerate(words):
        if place and not words[0].startswith("-"):
            break
        action = group.action(word)
        if action is not None and not (place and command_parser(action).takes_value(words[place - 1])):
            return action, words[:place] + words[place + 1 :]
    default = group.action(group.default)
    if default is not None and (not words or words[0].startswith("-")):
        return default, words
    what = f"unknown action `{words[0]}`" if words else "missing ACTION"
    valid = [action.name for action in group.actions]
    raise usage_error(what, value="".join(words[:1]), valid=valid, see=f"failwell {group.name} --help")


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
