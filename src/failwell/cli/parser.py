"""Argument parsing whose errors are faults: what is wrong, what is valid, and what is similar."""

from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from re import compile as pattern
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from failwell.cli.commands import Command
    from failwell.cli.faults import Usage

_NUMBER = pattern(r"-\d+|-\d*\.\d+")
"""A negative number, which begins like an option."""


def usage_error(what: str, *, value: str = "", valid: Iterable[str] = (), see: str) -> "Usage":
    """A usage error: `what` is wrong, a suggestion similar to `value`, and the command that documents it."""
    # Loaded only for a mistake: the faults cost more than all of argparse.
    from difflib import get_close_matches

    from failwell.cli.faults import Usage
    from failwell.errors.axes import ActionKind
    from failwell.errors.facts import UserAction

    known = list(valid)
    near = next(iter(get_close_matches(value, known, n=1, cutoff=0.6)), None) if value else None
    hint = f"; did you mean `{near}`?" if near else ""
    offered = [near] if near else known
    choices = f"write {' or '.join(f'`{name}`' for name in offered)}, or " if offered else ""
    return Usage(
        message=f"{what}{hint}",
        valid=known or None,
        near=near,
        user_action=UserAction(ActionKind.CHANGE_INPUT, f"{choices}run `{see}`"),
    )


class Parser(ArgumentParser):
    """An argument parser that raises `Usage` where argparse would print and exit.

    Args:
        command: The command whose arguments it parses; none for the program itself and for a group.
        settings: What `ArgumentParser` takes.
    """

    def __init__(self, command: "Command | None" = None, **settings: Any) -> None:
        self.command = command
        self.arguments: list[Action] = []
        """Every option and positional argument."""
        # An abbreviation that works today breaks when a second option begins like it.
        super().__init__(allow_abbrev=False, **settings)

    def add_argument(self, *names: Any, **settings: Any) -> Action:
        """Declare an option or a positional argument."""
        return self.declare(super().add_argument, *names, **settings)

    def group(self, title: str, description: str | None = None) -> "Group":
        """A group of options with a heading of its own in the help."""
        return Group(self, self.add_argument_group(title, description))

    def alternatives(self, *, required: bool = False) -> "Group":
        """Options that exclude each other."""
        return Group(self, self.add_mutually_exclusive_group(required=required))

    def declare(self, add: Callable[..., Action], *names: Any, **settings: Any) -> Action:
        """Declare an argument with the `add_argument` of this parser or of one of its groups."""
        if "choices" in settings:
            settings.setdefault("type", self._one_of("/".join(names), list(settings["choices"])))
        action = add(*names, **settings)
        self.arguments.append(action)
        return action

    def _one_of(self, names: str, valid: list[str]) -> Callable[[str], str]:
        what = f"value for {names}" if names.startswith("-") else names

        def check(value: str) -> str:
            if value not in valid:
                raise usage_error(
                    f"unknown {what} `{value}`", value=value, valid=valid, see=f"{self.prog} --help"
                )
            return value

        return check

    def error(self, message: str) -> NoReturn:
        """Raise an error of argparse as a usage error."""
        raise usage_error(
            message.replace("the following arguments are required: ", "missing "), see=f"{self.prog} --help"
        )

    def parse(self, arguments: Sequence[str]) -> Namespace:
        """Parse everything; options and positional arguments may come in any order."""
        args, extra = self.parse_known_args(self._options_first(arguments))
        if extra:
            raise usage_error(f"unexpected argument `{extra[0]}`", see=f"{self.prog} --help")
        return args

    def takes_value(self, option: str) -> bool:
        """Whether the word after `option` is its value."""
        return any(option in action.option_strings and action.nargs != 0 for action in self.arguments)

    def _options_first(self, arguments: Sequence[str]) -> list[str]:
        """The same arguments with the options, and what they take, before the positional ones."""
        # argparse fills all positional arguments at once, so it would refuse those that come after an option.
        known = {option for action in self.arguments for option in action.option_strings}
        options: list[str] = []
        positional: list[str] = []
        waiting = iter(arguments)
        for argument in waiting:
            if argument == "--":
                return [*options, *positional, argument, *waiting]
            if not argument.startswith("-") or argument == "-" or _NUMBER.fullmatch(argument):
                positional.append(argument)
                continue
            name = argument.partition("=")[0]
            if name not in known and (name.startswith("--") or name[:2] not in known):
                self._refuse(name)
            options.append(argument)
            if self.takes_value(argument):
                value = next(waiting, None)
                if value is None:
                    self.error(f"argument {argument}: expected one argument")
                options.append(value)
        return options + positional

    def _refuse(self, option: str) -> NoReturn:
        """Name the actions of the same group that do have the option, or else the nearest option."""
        owners = [f"`failwell {other.full_name}`" for other in self._siblings_with(option)]
        if owners and self.command is not None:
            raise usage_error(
                f"`{option}` is for {' and '.join(owners)}, not for `{self.command.name}`",
                see=f"{self.prog} --help",
            )
        valid = [name for action in self.arguments for name in action.option_strings if name.startswith("--")]
        raise usage_error(f"unknown option `{option}`", value=option, valid=valid, see=f"{self.prog} --help")

    def _siblings_with(self, option: str) -> "Iterator[Command]":
        if self.command is None or not self.command.group:
            return
        from failwell.cli.commands import COMMANDS
        from failwell.cli.options import command_parser

        for other in COMMANDS[self.command.group].actions:
            if any(option in action.option_strings for action in command_parser(other).arguments):
                yield other

    def short_usage(self) -> str:
        """The usage line: positional arguments, then `[options]`."""
        words = [_usage_word(action) for action in self.arguments if not action.option_strings]
        return " ".join([self.prog, *words, "[options]"])


class Group:
    """Options of a parser that belong together."""

    def __init__(self, parser: Parser, group: Any) -> None:
        self._parser = parser
        self._group = group

    def add_argument(self, *names: Any, **settings: Any) -> Action:
        """Declare an option of the group."""
        return self._parser.declare(self._group.add_argument, *names, **settings)


def port(text: str) -> int:
    """An argument type: the number of a port."""
    if not text.isdecimal() or not 0 <= int(text) <= 65_535:
        raise ArgumentTypeError(f"`{text}` is not a port; write a number from 0 to 65535")
    return int(text)


def choices_of(action: Action) -> tuple[str, ...]:
    """The words that an argument may be."""
    return tuple(str(choice) for choice in action.choices or ())


def _usage_word(action: Action) -> str:
    name = str(action.metavar or "|".join(choices_of(action)) or action.dest)
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}.get(str(action.nargs), name)
