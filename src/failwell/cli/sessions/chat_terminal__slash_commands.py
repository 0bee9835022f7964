"""The commands of a conversation at the terminal, such as `/help`."""

from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from failwell.cli.output import print_stderr
from failwell.delivery.plain_text import one_line

if TYPE_CHECKING:
    from failwell.cli.sessions.chat_terminal import TerminalChat


class SlashCommand(NamedTuple):
    """One command: what it does in a line, and the function that does it."""

    summary: str
    run: "Callable[[TerminalChat, str], Awaitable[None]]"


async def _help(_chat: "TerminalChat", _rest: str) -> None:
    width = max(map(len, COMMANDS))
    lines = [f"  /{name:<{width}}  {command.summary}" for name, command in COMMANDS.items()]
    lines.append("Anything else is said to the agent; `//` begins a text with a slash.")
    lines.append(
        "Ctrl-C cancels the turn, a second one leaves. What you type during a turn waits for its end."
    )
    print_stderr("\n".join(lines))


async def _tools(chat: "TerminalChat", _rest: str) -> None:
    tools = chat.session.manifest.tools
    width = max(map(len, tools), default=0)
    lines = [f"  {one_line(name):<{width}}  {_what(value)}" for name, value in tools.items()]
    print_stderr("\n".join(lines) or "the agent has no tools")


def _what(value: str) -> str:
    """What the manifest says about a tool, in words."""
    effect, _, approval = value.partition(" ")
    known = {
        "read": "changes nothing",
        "idempotent": "may be repeated",
        "once": "happens once",
        "server": "the tools of an MCP server",
    }
    return f"{known.get(effect, one_line(effect))}{'; asks you first' if approval == 'ask' else ''}"


async def _cost(chat: "TerminalChat", _rest: str) -> None:
    from failwell.sessions.history__usage_text import usage_words

    state = chat.session.state
    lines = [f"  turn {turn}: {usage_words(used)}" for turn, used in list(state.used.items())[-10:]]
    print_stderr("\n".join([*lines, f"  session: {usage_words(state.total)}"]))


async def _retry(chat: "TerminalChat", _rest: str) -> None:
    if chat.session.state.turn_status in ("failed", "cancelled", "running") and not chat.session.is_busy:
        chat.start(None)
    else:
        print_stderr("the latest turn did not fail, so there is nothing to repeat")


async def _cancel(chat: "TerminalChat", _rest: str) -> None:
    if not chat.session.cancel_turn():
        print_stderr("no turn is running")


async def _model(chat: "TerminalChat", rest: str) -> None:
    if not rest:
        print_stderr(f"models: {', '.join(map(one_line, chat.session.manifest.models))}")
        return
    await chat.session.use_model(rest)
    print_stderr(f"the next turn calls {one_line(rest)}")


async def _exit(chat: "TerminalChat", _rest: str) -> None:
    chat.is_over = True


COMMANDS: dict[str, SlashCommand] = {
    "help": SlashCommand("list the commands", _help),
    "tools": SlashCommand("list the tools of the agent", _tools),
    "cost": SlashCommand("show tokens and money, by turn and in all", _cost),
    "retry": SlashCommand("run the latest turn again, if it failed or was cancelled", _retry),
    "cancel": SlashCommand("cancel the turn that runs", _cancel),
    "model": SlashCommand("show the model, or call another one: /model openai:gpt-5", _model),
    "exit": SlashCommand("leave; the session can be resumed", _exit),
}


def unknown_command(word: str) -> str:
    """What to say about a command that does not exist."""
    near = get_close_matches(word, COMMANDS, n=1)
    hint = f"did you mean /{near[0]}?" if near else "/help lists them"
    return f"there is no command /{one_line(word, 40)}; {hint}"
