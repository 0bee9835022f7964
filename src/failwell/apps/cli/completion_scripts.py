"""The completion scripts of bash, zsh and fish, each from the same grammar."""

from collections.abc import Callable, Iterator
from typing import NamedTuple


class Option(NamedTuple):
    """One option as it is typed, and the words that may follow it."""

    flags: tuple[str, ...]
    help: str
    takes_value: bool
    choices: tuple[str, ...] = ()


class Words(NamedTuple):
    """What may be typed after a command (after none, for the program itself)."""

    command: str
    help: str
    options: tuple[Option, ...]
    places: tuple[str, ...] = ()
    """Words for its argument."""
    takes_file: bool = False


_BASH = """\
# Completion of `failwell` for bash. Try it: eval "$(failwell completion bash)"
_failwell() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" command="" word
    # bash takes `--format=json` apart at the sign.
    if [[ "$cur" == "=" ]]; then cur=""
    elif [[ "$prev" == "=" ]]; then prev="${COMP_WORDS[COMP_CWORD-2]}"; fi
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$word" in
            @COMMANDS@) command="$word"; break ;;
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
# Completion of `failwell` for zsh. Try it: eval "$(failwell completion zsh)"
_failwell() {
    local cur="${words[CURRENT]}" prev="${words[CURRENT-1]}" command="" word
    for word in "${(@)words[2,CURRENT-1]}"; do
        case "$word" in
            @COMMANDS@) command="$word"; break ;;
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
    # The shell's own completion of files knows about blanks and folders; where it cannot be asked, the
    # plain list has to do.
    files = 'compopt -o default 2>/dev/null || COMPREPLY=($(compgen -f -- "$cur"))'
    return _filled(_BASH, grammar, 'COMPREPLY=($(compgen -W "{words}" -- "$cur"))', files)


def zsh(grammar: list[Words]) -> str:
    """A function that zsh calls, usable from `fpath` and from `eval` alike."""
    return _filled(_ZSH, grammar, "compadd -- {words}", "_files")


def fish(grammar: list[Words]) -> str:
    """One `complete` line for each word."""
    return "\n".join(_fish_lines(grammar))


def _filled(template: str, grammar: list[Words], offer: str, files: str) -> str:
    commands = [words.command for words in grammar if words.command]
    values: list[str] = []
    places: list[str] = []
    for words in grammar:
        for option in words.options:
            if option.takes_value:
                names = "|".join(f"{words.command}:{flag}" for flag in option.flags)
                told = offer.format(words=" ".join(option.choices)) if option.choices else ":"
                values.append(f"        {names}) {told}; return ;;")
        flags = " ".join(flag for option in words.options for flag in option.flags)
        places.append(f"        {words.command}:-*) {offer.format(words=flags)} ;;")
        if words.takes_file:
            places.append(f"        {words.command}:*) {files} ;;")
        elif words.places:
            places.append(f"        {words.command}:*) {offer.format(words=' '.join(words.places))} ;;")
    return (
        template.replace("@COMMANDS@", "|".join(commands))
        .replace("@VALUES@", "\n".join(values))
        .replace("@WORDS@", "\n".join(places))
    )


def _fish_lines(grammar: list[Words]) -> Iterator[str]:
    yield "# Completion of `failwell` for fish. Try it: failwell completion fish | source"
    names = " ".join(words.command for words in grammar if words.command)
    for words in grammar:
        if words.command:
            when = f"__fish_seen_subcommand_from {words.command}"
            offered = f"-a {words.command} -d {_quoted(words.help)}"
            yield f"complete -c failwell -f -n 'not __fish_seen_subcommand_from {names}' {offered}"
        else:
            when = f"not __fish_seen_subcommand_from {names}"
        for option in words.options:
            flags = " ".join(
                f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags
            )
            value = f" -x -a {_quoted(' '.join(option.choices))}" if option.takes_value else " -f"
            yield f"complete -c failwell -n '{when}' {flags}{value} -d {_quoted(option.help)}"
        if words.command and words.places:
            yield f"complete -c failwell -f -n '{when}' -a {_quoted(' '.join(words.places))}"
        elif words.takes_file:
            yield f"complete -c failwell -F -n '{when}'"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS: dict[str, Callable[[list[Words]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
