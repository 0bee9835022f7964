"""`failwell completion`: print a completion script, written from the argument parser itself.

The script holds every word it can offer, so pressing Tab never starts Python.
"""

from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterable
from typing import cast

from failwell.apps.cli.completion_scripts import SCRIPTS, Option, Words
from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import say
from failwell.apps.cli.parser import Parser


def add_options(parser: ArgumentParser) -> None:
    """Declare which shell."""
    parser.usage = "%(prog)s bash|zsh|fish [options]"
    parser.add_argument("shell", choices=list(SCRIPTS), help="the shell that will read the script")
    parser.epilog = 'try it: eval "$(failwell completion bash)"'


def run(args: Namespace) -> int:
    """Print the script."""
    from failwell.apps.cli.main import parser

    say(SCRIPTS[args.shell](grammar(parser())))
    return Exit.DONE


def grammar(parser: Parser) -> list[Words]:
    """Everything that can be typed: first the program's own words, then those of each command."""
    from failwell.apps.cli.commands import COMMANDS

    below = parser.commands()
    program = Words("", "", _options(parser), tuple(below))
    return [program, *(_command(name, COMMANDS[name].summary, made) for name, made in below.items())]


def _command(name: str, summary: str, made: Parser) -> Words:
    words: list[str] = []
    takes_file = False
    for action in made.arguments():
        if action.option_strings:
            continue
        if action.metavar == "KIND":
            from failwell.fault.registry import kinds

            words += [kind.name for kind in kinds()]
        takes_file = takes_file or action.metavar == "FILE"
        words += _choices(action)
    return Words(name, summary, _options(made), tuple(words), takes_file)


def _options(made: Parser) -> tuple[Option, ...]:
    return tuple(
        Option(tuple(action.option_strings), action.help or "", action.nargs != 0, _choices(action))
        for action in made.arguments()
        if action.option_strings
    )


def _choices(action: Action) -> tuple[str, ...]:
    return tuple(str(choice) for choice in cast("Iterable[object]", action.choices or ()))
