"""The parsers of the program, of its groups and of its commands, and the options that every command shares."""

from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Iterator

from failwell._version import __version__
from failwell.cli.commands import COMMANDS, FORMATS, JSON, Command
from failwell.cli.parser import Parser

_DESCRIPTION = """\
Describe failures, run workflows and jobs, and act on typed errors.
Data goes to stdout, errors to stderr."""

_EPILOG = """\
exit codes:
  0    done
  1    failed
  2    invalid usage, input or configuration
  3    stopped on a typed error that no route handled
  4    waiting for a person or a time
  129  the terminal was closed
  130  interrupted
  143  terminated by SIGTERM

examples:
  python job.py 2>&1 | failwell describe
  failwell explain provider.rate_limited

`failwell COMMAND --help` shows the options or actions of a command."""


def program_parser() -> Parser:
    """The parser of the program itself, which lists its commands."""
    parser = Parser(
        prog="failwell",
        usage="failwell COMMAND [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("-V", "--version", action="version", version=f"failwell {__version__}")
    _list(parser, "commands", "COMMAND", COMMANDS.values())
    _add_shared(parser)
    return parser


def group_parser(group: Command) -> Parser:
    """The parser of a group, which lists its actions."""
    parser = _parser(group)
    parser.usage = f"{parser.prog} ACTION [options]"
    default = f"`{parser.prog}` alone is `{parser.prog} {group.default}`. " if group.default else ""
    parser.epilog = f"{default}`{parser.prog} ACTION --help` shows the options of an action."
    _list(parser, "actions", "ACTION", group.actions)
    return parser


def command_parser(command: Command) -> Parser:
    """The parser of one command or action, whose module is imported for it."""
    parser = _parser(command)
    command.add_options(parser)
    parser.usage = parser.short_usage()
    _add_shared(parser, command.formats)
    return parser


def every_parser() -> Iterator[tuple[tuple[str, ...], Parser]]:
    """The words of each command line and its parser: the program, each command, and each action after its group."""
    yield (), program_parser()
    for command in COMMANDS.values():
        yield (command.name,), group_parser(command) if command.actions else command_parser(command)
        for action in command.actions:
            yield (command.name, action.name), command_parser(action)


def _parser(command: Command) -> Parser:
    summary = command.summary
    return Parser(
        command, prog=f"failwell {command.full_name}", description=f"{summary[0].upper()}{summary[1:]}."
    )


def _list(parser: Parser, title: str, metavar: str, commands: Iterable[Command]) -> None:
    listed = parser.add_subparsers(title=title, metavar=metavar, prog=parser.prog)
    for command in commands:
        listed.add_parser(command.name, help=command.summary, add_help=False)


def _add_shared(parser: Parser, formats: tuple[str, ...] = FORMATS) -> None:
    shared = parser.group("output")
    shared.add_argument("--format", choices=formats, help="format of the data")
    if JSON in formats:
        shared.add_argument("--json", dest="format", action="store_const", const=JSON, help="--format json")
    shared.add_argument("--error-format", choices=FORMATS, help="format of errors (default: as the data)")
    shared.add_argument("--agent", action="store_true", help="formats for an agent: Markdown, or else JSON")
    shared.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colour on stdout (default: auto; NO_COLOR is respected)",
    )
    shared.add_argument("--traceback", action="store_true", help="show this program's own stack on an error")


def fill_defaults(args: Namespace, command: Command) -> None:
    """Fill in the names of the command, and its format where none was given."""
    args.command, args.action = command.group or command.name, command.name if command.group else None
    if args.format is None:
        is_for_agent = args.agent and command.agent_format in command.formats
        args.format = command.agent_format if is_for_agent else command.formats[0]
