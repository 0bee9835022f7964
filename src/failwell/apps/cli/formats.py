"""Which format data and errors take, read off the raw arguments.

An error may come up before the arguments are understood, so its format cannot wait for that.
Read afresh for every call; nothing is kept between two calls in one process.
"""

from collections.abc import Sequence
from typing import NamedTuple

from failwell.apps.cli.commands import COMMANDS, FORMATS, JSON, TEXT, Command

_VALUED = ("--error-format", "--format", "--color")


class Wishes(NamedTuple):
    """What the arguments ask for before anything else is known."""

    errors: str
    """The format for stderr."""
    traceback: bool


def wishes(arguments: Sequence[str]) -> Wishes:
    """Read the wishes: `--error-format`, then `--format`, then what agents get, then text."""
    values: dict[str, str] = {}
    flags: set[str] = set()
    words: list[str] = []
    pending: str | None = None
    for argument in arguments:
        if argument == "--":
            break
        name, equals, value = argument.partition("=")
        if pending is not None:
            values[pending] = argument
            pending = None
        elif name in _VALUED:
            if equals:
                values[name] = value
            else:
                pending = name
        elif argument == "--json":
            values["--format"] = JSON
        elif argument.startswith("-"):
            flags.add(argument)
        else:
            words.append(argument)
    command = COMMANDS.get(words[0]) if words else None
    return Wishes(_errors(values, flags, command), "--traceback" in flags)


def _errors(values: dict[str, str], flags: set[str], command: Command | None) -> str:
    for option in ("--error-format", "--format"):
        if values.get(option) in FORMATS:
            return values[option]
    if "--agent" in flags:
        return JSON if command is None else command.for_agents
    return TEXT
