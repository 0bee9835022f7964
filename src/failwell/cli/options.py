"""The program's own help, and the options that every command shares.

The option that limits how long a question to a person is open.
"""

from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter

from failwell._version import __version__
from failwell.cli.commands import FORMATS, Command
from failwell.cli.parser import Parser, usage_error
from failwell.cli.times import span

COLORS = ("auto", "always", "never")

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


def program() -> Parser:
    """The parser of the program itself, without its commands."""
    parser = Parser(
        prog="failwell",
        usage="failwell COMMAND [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("-V", "--version", action="version", version=f"failwell {__version__}")
    return parser


def add_shared(parser: ArgumentParser, formats: tuple[str, ...] = FORMATS) -> None:
    """Declare the shared options; they may stand before or after the command."""
    # Without a default, an option left out after the command does not hide one that stood before it.
    shared = parser.add_argument_group("output")
    shared.add_argument("--format", choices=formats, default=SUPPRESS, help="format of the data")
    if "json" in formats:
        shared.add_argument(
            "--json",
            dest="format",
            action="store_const",
            const="json",
            default=SUPPRESS,
            help="--format json",
        )
    shared.add_argument(
        "--error-format", choices=FORMATS, default=SUPPRESS, help="format of errors (default: as the data)"
    )
    shared.add_argument(
        "--agent", action="store_true", default=SUPPRESS, help="formats for an agent: Markdown, or else JSON"
    )
    shared.add_argument(
        "--color",
        choices=COLORS,
        default=SUPPRESS,
        help="colour on stdout (default: auto; NO_COLOR is respected)",
    )
    shared.add_argument(
        "--traceback", action="store_true", default=SUPPRESS, help="show this program's own stack on an error"
    )


def fill_defaults(args: Namespace, command: Command) -> None:
    """Fill in what was not given: the format, and whether there may be colour."""
    agent: bool = getattr(args, "agent", False)
    default = (
        command.agent_format if agent and command.agent_format in command.formats else command.formats[0]
    )
    args.format = getattr(args, "format", default)
    args.color = getattr(args, "color", "auto")
    if args.format not in command.formats:
        raise usage_error(
            f"`{command.full_name}` has no {args.format} format",
            valid=command.formats,
            see=f"failwell {command.full_name} --help",
        )


def add_answer_timeout(parser: ArgumentParser, command: str) -> None:
    """Declare `--answer-timeout` of a command."""
    see = f"failwell {command} --help"

    def seconds(text: str) -> float:
        value = span(text, "--answer-timeout", see)
        if not value:
            raise usage_error("`--answer-timeout` must be more than nothing", see=see)
        return value

    parser.add_argument(
        "--answer-timeout",
        metavar="SPAN",
        type=seconds,
        help="how long a question is shown, such as 90s; then it counts as a no, and a gate waits in the journal",
    )
