"""A conversation at the terminal: answers on stdout while they come in, everything else on stderr.

What is typed during a turn waits for its end. Ctrl-C cancels the turn; a second one, or one between turns, leaves.
"""

import signal
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from failwell.cli.exit_codes import Exit
from failwell.cli.output import print_piece, print_stderr, print_text
from failwell.cli.sessions.chat import hold, print_resume
from failwell.cli.sessions.chat_terminal__slash_commands import COMMANDS, unknown_command
from failwell.cli.sessions.chat_terminal__typed_lines import TypedLines
from failwell.delivery.plain_text import one_line
from failwell.errors.fault import Fault

if TYPE_CHECKING:
    from asyncio import Task

    from failwell.sessions.session import Session
    from failwell.store.event import Event

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

    async def _talk(self, session: "Session") -> int:
        from asyncio import get_running_loop

        self.session = session
        loop = get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._leave, Exit.of_signal(number))
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
            with self._lines.reading(loop):
                while not self.is_over:
                    line = await self._lines.next()
                    if line is None:
                        break
                    await self._take(line)
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.remove_signal_handler(number)
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
        from failwell.sessions.history__usage_text import usage_words

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
