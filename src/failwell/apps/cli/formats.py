"""The format of errors, read off the raw arguments.

An error may occur before the arguments are parsed, so its format cannot depend on that.
"""

from collections.abc import Sequence
from typing import NamedTuple

from failwell.apps.cli.commands import FORMATS, JSON, TEXT, VALUE_OPTIONS, find_command


class ErrorOptions(NamedTuple):
    """How errors are shown."""

    format: str
    """The format on stderr."""
    traceback: bool


def error_options(arguments: Sequence[str]) -> ErrorOptions:
    """Read `--error-format`, then `--format`, then the format for agents, then text."""
    values: dict[str, str] = {}
    flags: set[str] = set()
    pending: str | None = None
    for argument in arguments:
        if argument == "--":
            break
        name, equals, value = argument.partition("=")
        if pending is not None:
            values[pending] = argument
            pending = None
        elif name in VALUE_OPTIONS:
            if equals:
                values[name] = value
            else:
                pending = name
        elif argument == "--json":
            values["--format"] = JSON
        elif argument.startswith("-"):
            flags.add(argument)
    return ErrorOptions(_format(values, flags, arguments), "--traceback" in flags)


def _format(values: dict[str, str], flags: set[str], arguments: Sequence[str]) -> str:
    for option in ("--error-format", "--format"):
        if values.get(option) in FORMATS:
            return values[option]
    if "--agent" in flags:
        command = find_command(list(arguments))
        return JSON if command is None else command.agent_format
    return TEXT
