"""Argument parsing whose errors are faults: what is wrong, what is valid, and what is similar."""

import re
from argparse import Action, ArgumentParser, Namespace, _SubParsersAction  # pyright: ignore[reportPrivateUsage]
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

if TYPE_CHECKING:
    from failwell.cli.faults import Usage

_NUMBER = re.compile(r"-\d+|-\d*\.\d+")
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
    """An argument parser that raises `Usage` where argparse would print and exit."""

    def __init__(self, **settings: Any) -> None:
        # An abbreviation that works today breaks when a second option begins like it.
        super().__init__(allow_abbrev=False, **settings)

    def add_commands(self, **settings: Any) -> Any:
        """`add_subparsers`, whose `add_parser` takes `is_named`: a command that is not named is listed, and cannot be parsed."""
        # Most of what the parsers of all commands cost would be for those that are not named.
        unnamed = Parser(add_help=False)

        def made(*, is_named: bool, **settings: Any) -> Parser:
            return Parser(**settings) if is_named else unnamed

        return self.add_subparsers(parser_class=cast("Any", made), **settings)

    def error(self, message: str) -> NoReturn:
        """Raise an error of argparse as a usage error."""
        raise usage_error(
            message.replace("the following arguments are required: ", "missing "), see=f"{self.prog} --help"
        )

    def _check_value(self, action: Action, value: Any) -> None:
        valid = [str(choice) for choice in cast("Iterable[object]", action.choices or ())]
        if valid and value not in valid:
            name = f"value for {'/'.join(action.option_strings)}" if action.option_strings else action.dest
            raise usage_error(
                f"unknown {name} `{value}`", value=str(value), valid=valid, see=f"{self.prog} --help"
            )

    def parse(self, arguments: Sequence[str]) -> Namespace:
        """Parse everything. An argument left over is an error, and its nearest option is named."""
        self._check_before_command(arguments)
        args, extra = self.parse_known_args(arguments)
        if extra:
            below = self.commands().get(getattr(args, "command", None) or "", self)
            below = below.commands().get(getattr(args, "action", None) or "", below)
            if extra[0].startswith("-"):
                _refuse_option_of_sibling(extra[0].partition("=")[0], args)
                below.refuse(extra[0])
            raise usage_error(f"unexpected argument `{extra[0]}`", see=f"{below.prog} --help")
        return args

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]  (no other namespace is ever given)
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse what is known; options and places may come in any order."""
        # argparse fills all places at once, so it would refuse those that come after an option.
        arguments = args if args is None or self.commands() else self._options_first(args)
        return super().parse_known_args(arguments, namespace)

    def _options_first(self, arguments: Sequence[str]) -> list[str]:
        """The same arguments with the options, and what they take, before the places."""
        valued = self.valued_options()
        options: list[str] = []
        places: list[str] = []
        waiting = iter(arguments)
        for argument in waiting:
            if argument == "--":
                return [*options, *places, argument, *waiting]
            if not argument.startswith("-") or argument == "-" or _NUMBER.fullmatch(argument):
                places.append(argument)
                continue
            options.append(argument)
            if argument in valued:
                value = next(waiting, None)
                if value is None:
                    # Unchanged, so that argparse reports the missing value; a positional must not be taken for it.
                    return list(arguments)
                options.append(value)
        return options + places

    def refuse(self, option: str) -> NoReturn:
        """Raise a usage error for an unknown option, with the nearest valid one."""
        name = option.partition("=")[0]
        valid = [known for known in self.options() if known.startswith("--")]
        raise usage_error(f"unknown option `{name}`", value=name, valid=valid, see=f"{self.prog} --help")

    def _check_before_command(self, arguments: Sequence[str]) -> None:
        # argparse would take the value of a misspelt option for the command, and complain about that.
        valued = self.valued_options()
        waiting = iter(arguments)
        for argument in waiting:
            name, equals, _ = argument.partition("=")
            if not argument.startswith("-") or argument == "--":
                return
            if name not in self.options():
                self.refuse(name)
            if name in valued and not equals:
                next(waiting, None)

    def options(self) -> list[str]:
        """Every option of this parser, as it is typed."""
        return [option for action in self._actions for option in action.option_strings]

    def valued_options(self) -> set[str]:
        """The options that take a value."""
        return {option for action in self._actions if action.nargs != 0 for option in action.option_strings}

    def arguments(self) -> list[Action]:
        """Every option and positional argument of this parser."""
        return [action for action in self._actions if not isinstance(action, _SubParsersAction)]

    def commands(self) -> dict[str, "Parser"]:
        """The parsers of its commands or actions, by name."""
        for action in self._actions:
            if isinstance(action, _SubParsersAction):
                return cast("dict[str, Parser]", action.choices)  # pyright: ignore[reportUnknownMemberType]
        return {}

    def short_usage(self) -> str:
        """The usage line: positional arguments, then `[options]`."""
        words = [_usage_word(action) for action in self.arguments() if not action.option_strings]
        return " ".join([self.prog, *words, "[options]"])


def _refuse_option_of_sibling(option: str, args: Namespace) -> None:
    """Name the actions of the same command that do have the option."""
    group, action = args.command, getattr(args, "action", None)
    if action is None:
        return
    from failwell.cli.commands import COMMANDS
    from failwell.cli.main import parser

    names = [other.name for other in COMMANDS[group].actions]
    siblings = parser([group, *names]).commands()[group].commands()
    owners = [f"`failwell {group} {name}`" for name in names if option in siblings[name].options()]
    if owners:
        raise usage_error(
            f"`{option}` is for {' and '.join(owners)}, not for `{action}`",
            see=f"failwell {group} {action} --help",
        )


def _usage_word(action: Action) -> str:
    choices = cast("Iterable[object]", action.choices or ())
    name = str(action.metavar or "|".join(map(str, choices)) or action.dest)
    match action.nargs:
        case "?":
            return f"[{name}]"
        case "*":
            return f"[{name} ...]"
        case "+":
            return f"{name} [{name} ...]"
        case _:
            return name
