"""A conversation at the terminal: answers on stdout while they come in, everything else on stderr.

What is typed during a turn waits for its end. Ctrl-C cancels the turn; a second one, or one between turns, leaves.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from signal import Signals
from typing import TYPE_CHECKING, Any, NamedTuple

from failwell.cli.exit_codes import Exit
from failwell.cli.output import print_piece, print_stderr, print_text
from failwell.cli.sessions.chat import hold, print_resume
from failwell.cli.signals import on_signals
from failwell.delivery.plain_text import one_line
from failwell.errors.fault import Fault

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task

    from failwell.sessions.session import AgentSession
    from failwell.store.event import Event


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
    from failwell.sessions.history import usage_words

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


class TypedLines:
    """Reads stdin line by line. A question pauses it and reads its own answer."""

    def __init__(self) -> None:
        from asyncio import Queue

        self._typed: Queue[str | None] = Queue()
        self._rest = b""
        self._loop: AbstractEventLoop | None = None

    @contextmanager
    def reading(self, loop: "AbstractEventLoop") -> Generator[None]:
        """Read while the block runs."""
        self._loop = loop
        self.resume()
        try:
            yield
        finally:
            self.pause()
            self._loop = None

    def pause(self) -> None:
        """Leave what is typed to somebody else."""
        if self._loop is not None:
            self._loop.remove_reader(sys.stdin.fileno())

    def resume(self) -> None:
        """Read again."""
        if self._loop is not None:
            self._loop.add_reader(sys.stdin.fileno(), self._read, sys.stdin.fileno())

    async def next(self) -> str | None:
        """The next line; `None` at the end of the input."""
        return await self._typed.get()

    def close(self) -> None:
        """End the input."""
        self._typed.put_nowait(None)

    def _read(self, descriptor: int) -> None:
        try:
            content = os.read(descriptor, 65_536)
        except BlockingIOError:
            return
        except OSError:
            content = b""
        if not content:
            if self._rest:
                self._pass_on(self._rest)
                self._rest = b""
            self.pause()
            self.close()
            return
        *lines, self._rest = (self._rest + content).split(b"\n")
        for line in lines:
            self._pass_on(line)

    def _pass_on(self, line: bytes) -> None:
        self._typed.put_nowait(line.decode("utf-8", "replace").rstrip("\r"))


_PROMPT = "> "


class TerminalChat:
    """`failwell chat AGENT` at a terminal."""

    def __init__(self, args: Namespace) -> None:
        self.args = args
        self._lines = TypedLines()
        self._turns: set[Task[None]] = set()
        self._interrupts = 0
        self._has_text = False
        self.is_over = False
        self.code: int = Exit.DONE

    def hold(self) -> int:
        """Talk until the user leaves; the exit code."""
        from failwell.agents.people.queue import InteractionQueue
        from failwell.cli.terminal_answerer import TerminalAnswerer

        return hold(
            self.args,
            self._talk,
            # A question reads its answer itself.
            questions=InteractionQueue(TerminalAnswerer(self._lines), timeout=self.args.answer_timeout),
            on_event=self._show,
            on_text=self._show_piece,
        )

    async def _talk(self, session: "AgentSession") -> int:
        from asyncio import get_running_loop

        self.session = session
        loop = get_running_loop()
        models = ", ".join(map(one_line, session.manifest.models))
        print_stderr(f"session {session.id} with {models}; /help lists the commands")
        state = session.state
        if state.turn:
            open_end = (
                "" if state.turn_status == "ended" else "; the latest one has no answer, /retry runs it again"
            )
            print_stderr(f"resumed after {state.turn} turns{open_end}")
        self._prompt()
        try:
            with on_signals(self._on_signal, loop=loop), self._lines.reading(loop):
                while not self.is_over:
                    line = await self._lines.next()
                    if line is None:
                        break
                    await self._take(line)
        finally:
            await session.close("exit")
            for turn in tuple(self._turns):
                await turn
        print_resume(self.args, session.id)
        return self.code

    async def _take(self, line: str) -> None:
        """A command, or an input for the agent."""
        self._interrupts = 0
        text = line.strip()
        if not text:
            self._prompt()
        elif not text.startswith("/") or text.startswith("//"):
            # Two slashes send a text that begins with one.
            self.start(text.removeprefix("/") if text.startswith("//") else line)
        else:
            word, _, rest = text[1:].partition(" ")
            command = COMMANDS.get(word)
            try:
                if command is None:
                    print_stderr(unknown_command(word))
                else:
                    await command.run(self, rest.strip())
            except Fault as fault:
                print_stderr(f"error: {one_line(str(fault))}")
            if not self._turns and not self.is_over:
                self._prompt()

    def start(self, text: str | None) -> None:
        """Send an input, or repeat the latest turn. What comes during a turn waits for its end."""
        from asyncio import create_task

        if self.session.is_busy:
            print_stderr("(queued)")
        task = create_task(self._turn(text))
        self._turns.add(task)
        task.add_done_callback(self._turns.discard)

    async def _turn(self, text: str | None) -> None:
        session = self.session
        try:
            await (session.retry() if text is None else session.send(text))
        except Fault as fault:
            self._end_text()
            print_stderr(f"error: {one_line(str(fault))} ({fault.kind})")
            if session.has_failed:
                # Nothing can be recorded any more, so nothing more may happen.
                self._leave(Exit.FAILED)
            return
        if not session.is_busy and not self.is_over:
            self._prompt()

    # -------------------------------------------------------------- what is shown

    def _show_piece(self, piece: str) -> None:
        self._has_text = True
        print_piece(piece)

    def _show(self, event: "Event") -> None:
        if event.type == "session:tool_started":
            self._end_text()
            print_stderr(f"· {one_line(event.data['tool'])} …")
        elif event.type == "session:tool_ended":
            print_stderr(f"· {one_line(event.data['tool'])}: {event.data.get('kind') or 'done'}")
        elif event.type == "session:answered":
            self._end_text()
        elif event.type in ("session:turn_ended", "session:turn_failed", "session:turn_cancelled"):
            self._show_end(event)

    def _show_end(self, event: "Event") -> None:
        """Why the turn has no answer, if it has none, and what it used."""
        from failwell.sessions.history import usage_words

        self._end_text()
        self._interrupts = 0
        data, state = event.data, self.session.state
        if event.type == "session:turn_failed":
            report: Mapping[str, Any] = data["report"]
            print_stderr(f"failed: {one_line(report['message'])} ({data['kind']})")
            advice = report.get("user_action", {}).get("detail")
            if advice:
                print_stderr(f"hint: {one_line(advice)}")
        elif event.type == "session:turn_cancelled":
            print_stderr(f"cancelled ({data['kind']})")
        turn: int = data["turn"]
        print_stderr(
            f"[turn {turn}: {usage_words(state.used.get(turn))}; session: {usage_words(state.total)}]"
        )

    def _end_text(self) -> None:
        if self._has_text:
            self._has_text = False
            print_text("")

    def _prompt(self) -> None:
        print_stderr(_PROMPT, end="")

    # -------------------------------------------------------------- signals and questions

    def _on_signal(self, number: Signals) -> None:
        if number is Signals.SIGINT:
            self._interrupt()
        else:
            self._leave(Exit.of_signal(number))

    def _interrupt(self) -> None:
        """The first Ctrl-C cancels the turn; the second leaves."""
        self._interrupts += 1
        if self._interrupts == 1 and self.session.cancel_turn():
            print_stderr("\n(cancelling the turn; once more to leave)")
            return
        if self._interrupts == 1:
            print_stderr("\n(once more to leave)")
            self._prompt()
            return
        self._leave(Exit.INTERRUPTED)

    def _leave(self, code: int) -> None:
        self.code, self.is_over = code, True
        self._lines.close()
