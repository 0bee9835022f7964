"""`failwell completion`: print a completion script for bash, zsh or fish, written from the argument parser.

The script holds every word it can offer, so pressing Tab never starts Python.
"""

from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import NamedTuple

from failwell.cli.exit_codes import Exit
from failwell.cli.output import print_text
from failwell.cli.parser import Parser, choices_of


class Option(NamedTuple):
    """One option as it is typed, and the words that may follow it."""

    flags: tuple[str, ...]
    help: str
    takes_value: bool
    choices: tuple[str, ...] = ()


class Words(NamedTuple):
    """What may be typed after a command; `path` is empty for the program itself, `("jobs", "list")` for an action."""

    path: tuple[str, ...]
    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...] = ()
    """Words for its argument: choices, commands or actions."""
    takes_file: bool = False
    below: tuple[str, ...] = ()
    """Its commands or actions."""


def add_options(parser: Parser) -> None:
    """Declare which shell."""
    parser.add_argument("shell", choices=list(SCRIPTS), help="the shell that reads the script")
    parser.epilog = 'example: eval "$(failwell completion bash)"'


def run(args: Namespace) -> int:
    """Print the script."""
    print_text(SCRIPTS[args.shell](list(grammar())))
    return Exit.DONE


def grammar() -> Iterator[Words]:
    """Everything that can be typed: the words of the program, of each command and of each action."""
    from failwell.cli.options import every_parser

    parsers = dict(every_parser())
    for path, parser in parsers.items():
        summary = (parser.description or "").rstrip(".") if path else ""
        below = tuple(words[-1] for words in parsers if len(words) == len(path) + 1 and words[:-1] == path)
        if below:
            # A group without an action is its default action.
            default = parser.command.default if parser.command is not None else ""
            options = _options(parsers.get((*path, default), parser))
            yield Words(path, summary, options, below, below=below)
        else:
            yield _leaf(path, summary, parser)


def _leaf(path: tuple[str, ...], summary: str, parser: Parser) -> Words:
    words: list[str] = []
    takes_file = False
    for action in parser.arguments:
        if action.option_strings:
            continue
        if action.metavar == "KIND":
            from failwell.errors.kind_registry import kinds

            words += [kind.name for kind in kinds()]
        takes_file = takes_file or action.metavar == "FILE"
        words += choices_of(action)
    return Words(path, summary, _options(parser), tuple(words), takes_file)


def _options(parser: Parser) -> tuple[Option, ...]:
    return tuple(
        Option(tuple(action.option_strings), action.help or "", action.nargs != 0, choices_of(action))
        for action in parser.arguments
        if action.option_strings
    )


_BASH = """\
# Completion of `failwell` for bash. Load it with: eval "$(failwell completion bash)"
_failwell() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" command="" word
    # bash splits `--format=json` at the sign.
    if [[ "$cur" == "=" ]]; then cur=""
    elif [[ "$prev" == "=" ]]; then prev="${COMP_WORDS[COMP_CWORD-2]}"; fi
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$command:$word" in
            @COMMANDS@) command="${command:+$command }$word" ;;
        esac
    done
    COMPREPLY=()
    case "$command:$prev" in
@VALUES@
    esac
    case "$command:$cur" in
@WORDS@
    esac
}
complete -F _failwell failwell"""

_ZSH = """\
#compdef failwell
# Completion of `failwell` for zsh. Load it with: eval "$(failwell completion zsh)"
_failwell() {
    local cur="${words[CURRENT]}" prev="${words[CURRENT-1]}" command="" word
    for word in "${(@)words[2,CURRENT-1]}"; do
        case "$command:$word" in
            @COMMANDS@) command="${command:+$command }$word" ;;
        esac
    done
    case "$command:$prev" in
@VALUES@
    esac
    case "$command:$cur" in
@WORDS@
    esac
}
if [[ "${funcstack[1]}" == _failwell ]]; then _failwell "$@"; else compdef _failwell failwell; fi"""


def bash(grammar: list[Words]) -> str:
    """A function that fills `COMPREPLY`."""
    # The shell's own completion of files handles blanks and folders; where it is missing, the plain list is used.
    files = 'compopt -o default 2>/dev/null || COMPREPLY=($(compgen -f -- "$cur"))'
    return _filled(_BASH, grammar, 'COMPREPLY=($(compgen -W "{words}" -- "$cur"))', files)


def zsh(grammar: list[Words]) -> str:
    """A function that zsh calls, usable from `fpath` and from `eval` alike."""
    return _filled(_ZSH, grammar, "compadd -- {words}", "_files")


def fish(grammar: list[Words]) -> str:
    """One `complete` line for each word."""
    return "\n".join(_fish_lines(grammar))


def _filled(template: str, grammar: list[Words], offer: str, files: str) -> str:
    commands: list[str] = []
    values: list[str] = []
    words: list[str] = []
    for entry in grammar:
        command = " ".join(entry.path)
        if entry.path:
            commands.append(f'"{" ".join(entry.path[:-1])}:{entry.path[-1]}"')
        for option in entry.options:
            if option.takes_value:
                names = "|".join(f'"{command}:{flag}"' for flag in option.flags)
                action = offer.format(words=" ".join(option.choices)) if option.choices else ":"
                values.append(f"        {names}) {action}; return ;;")
        flags = " ".join(flag for option in entry.options for flag in option.flags)
        words.append(f'        "{command}:"-*) {offer.format(words=flags)} ;;')
        if entry.takes_file:
            words.append(f'        "{command}:"*) {files} ;;')
        elif entry.words:
            words.append(f'        "{command}:"*) {offer.format(words=" ".join(entry.words))} ;;')
    return (
        template.replace("@COMMANDS@", "|".join(commands))
        .replace("@VALUES@", "\n".join(values))
        .replace("@WORDS@", "\n".join(words))
    )


def _fish_lines(grammar: list[Words]) -> Iterator[str]:
    yield "# Completion of `failwell` for fish. Load it with: failwell completion fish | source"
    below = {entry.path: " ".join(entry.below) for entry in grammar}
    for entry in grammar:
        when = _fish_condition(entry.path, below)
        if entry.path:
            above = _fish_condition(entry.path[:-1], below)
            offer = f"-a {entry.path[-1]} -d {_quoted(entry.help)}"
            yield f"complete -c failwell -f -n '{above}' {offer}"
        for option in entry.options:
            flags = " ".join(
                f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags
            )
            value = f" -x -a {_quoted(' '.join(option.choices))}" if option.takes_value else " -f"
            yield f"complete -c failwell -n '{when}' {flags}{value} -d {_quoted(option.help)}"
        if entry.below:
            continue
        if entry.words:
            yield f"complete -c failwell -f -n '{when}' -a {_quoted(' '.join(entry.words))}"
        elif entry.takes_file:
            yield f"complete -c failwell -F -n '{when}'"


def _fish_condition(path: tuple[str, ...], below: dict[tuple[str, ...], str]) -> str:
    """The test that the command line names `path` and nothing below it."""
    tests = [f"__fish_seen_subcommand_from {name}" for name in path]
    if below[path]:
        tests.append(f"not __fish_seen_subcommand_from {below[path]}")
    return "; and ".join(tests)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS: dict[str, Callable[[list[Words]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
