"""What is read off the raw arguments before they are parsed: the format of errors, and older spellings.

An error may occur before the arguments are parsed, so its format cannot depend on that. Older spellings of commands,
actions and options still work, and a line on stderr says what is new.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from failwell.cli.commands import (
    COMMANDS,
    FORMATS,
    JSON,
    TEXT,
    VALUE_OPTIONS,
    command_index,
    find_command,
)


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


OLD_COMMANDS: dict[str, tuple[str, ...]] = {
    "job": ("jobs",),
    "gate": ("gates",),
    "capability": ("capabilities",),
}
OLD_ACTIONS: dict[tuple[str, str], str] = {("gates", "respond"): "answer"}
OLD_OPTIONS: dict[tuple[str, str], str] = {
    ("jobs", "--state"): "--status",
    ("jobs", "--do"): "--action",
    ("capabilities", "--replace"): "--force",
    ("resume", "--limit"): "--raise-limit",
    ("show", "--as"): "--picture",
}


def current_spelling(arguments: Iterable[str]) -> tuple[list[str], list[str]]:
    """The arguments with other spellings replaced and the default action of a group filled in.

    `--input.NAME=VALUE` is conductor's spelling of `--input NAME=VALUE`.

    The second list has one note for each older spelling.
    """
    words = list(arguments)
    notes: list[str] = []
    index = command_index(words)
    if index is None:
        return words, notes
    if words[index] in OLD_COMMANDS:
        new = OLD_COMMANDS[words[index]]
        notes.append(_note(f"failwell {words[index]}", f"failwell {' '.join(new)}"))
        words[index : index + 1] = new
    command = COMMANDS.get(words[index])
    if command is None:
        return words, notes
    rest = words[index + 1 :]
    if command.actions:
        rest = _with_action(words[index], rest, notes)
    for place, word in enumerate(rest):
        if word == "--":
            break
        if command.name == "run" and word.startswith("--input.") and "=" in word:
            rest[place] = word.replace("--input.", "--input=", 1)
            continue
        option, equals, value = word.partition("=")
        new_option = OLD_OPTIONS.get((command.name, option))
        if new_option is not None:
            notes.append(_note(option, new_option))
            rest[place] = f"{new_option}{equals}{value}"
    return [*words[: index + 1], *rest], notes


def _with_action(group: str, rest: list[str], notes: list[str]) -> list[str]:
    """`rest` with its action first, in today's spelling."""
    command = COMMANDS[group]
    names = {action.name for action in command.actions} | {
        old for owner, old in OLD_ACTIONS if owner == group
    }
    place = _place_of_action(group, rest, names)
    if place is None:
        is_default = command.default and not (
            rest and (rest[0] in ("-h", "--help") or not rest[0].startswith("-"))
        )
        return [command.default, *rest] if is_default else rest
    action = rest[place]
    new = OLD_ACTIONS.get((group, action), action)
    if new != action:
        notes.append(_note(f"failwell {group} {action}", f"failwell {group} {new}"))
    return [new, *rest[:place], *rest[place + 1 :]]


def _place_of_action(group: str, rest: list[str], names: set[str]) -> int | None:
    if not rest or not rest[0].startswith("-") or rest[0] in ("-h", "--help"):
        return 0 if rest and rest[0] in names else None
    # Options may come before the action. Which of them take a value, only the parsers know.
    from failwell.cli.main import parser

    below = parser([group, *names]).commands()[group].commands()
    valued = {option for command in below.values() for option in command.valued_options()}
    valued |= {old for owner, old in OLD_OPTIONS if owner == group and OLD_OPTIONS[owner, old] in valued}
    is_value = False
    for index, word in enumerate(rest):
        if is_value:
            is_value = False
        elif word.startswith("-"):
            is_value = word in valued
        else:
            return index if word in names else None
    return None


def _note(old: str, new: str) -> str:
    return f"note: `{old}` is now `{new}`; the old spelling still works"
