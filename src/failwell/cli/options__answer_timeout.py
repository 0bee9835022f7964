"""The option that limits how long a question to a person is open."""

from argparse import ArgumentParser

from failwell.cli.parser import usage_error
from failwell.cli.times import span


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
