"""`failwell chat`: talk to an agent at the terminal, or give it one input from a script.

One turn without a terminal: the answer as text, or every event as a line of JSON. Nobody can be asked.
"""

import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable
from signal import Signals
from typing import TYPE_CHECKING, Any

from failwell.cli.commands import JSON
from failwell.cli.exit_codes import Exit
from failwell.cli.output import (
    is_terminal,
    print_aside,
    print_json_text,
    print_text,
    until_it_fails,
)
from failwell.cli.parser import Parser, usage_error
from failwell.cli.records import add_store, command_for
from failwell.cli.signals import on_signals
from failwell.cli.times import add_answer_timeout
from failwell.delivery.plain_text import json_text

if TYPE_CHECKING:
    from failwell.agents.people.queue import InteractionQueue
    from failwell.sessions.log import OnEvent
    from failwell.sessions.session import AgentSession, TurnResult

_SEE = "failwell chat --help"
Talk = Callable[["AgentSession"], Awaitable[int]]


def add_options(parser: Parser) -> None:
    """Declare the agent, and how the session is held."""
    parser.add_argument("file", nargs="?", metavar="AGENT", help="an agent file, or a workflow file")
    parser.add_argument(
        "-p",
        "--prompt",
        metavar="TEXT",
        help="take one turn with this input and leave; `-` reads it from stdin, as does a stdin that is no terminal",
    )
    parser.add_argument(
        "--resume", metavar="ID", help="resume this session: an id, the beginning of one, or `last`"
    )
    parser.add_argument("--continue", dest="latest", action="store_true", help="resume the latest session")
    parser.add_argument(
        "--retry",
        action="store_true",
        help="run the latest turn of the session again, if it failed or was cancelled",
    )
    parser.add_argument("--name", metavar="NAME", help="which agent, for a file with several")
    parser.add_argument(
        "--model", metavar="NAME", help="call this model, such as openai:gpt-5 or scripted:replies.yaml"
    )
    parser.add_argument(
        "--accept-changes",
        action="store_true",
        help="resume although the agent, its model or its tools changed",
    )
    add_answer_timeout(parser, "chat")
    parser.add_argument("--session-id", metavar="ID", help="the id of a new session (default: a new one)")
    parser.add_argument(
        "--allow-outside", action="store_true", help="let the file include files outside its project"
    )
    parser.add_argument(
        "--durability",
        choices=("normal", "full"),
        default="normal",
        help="full: every record reaches the disk before anything follows from it",
    )
    add_store(parser)
    parser.epilog = (
        "Everything that is said is recorded in the state folder, which only you can read. Exit codes: 1 the turn"
        " failed, 2 the session could not be opened, 4 a person must answer and nobody can be asked, 130 cancelled."
    )


def run(args: Namespace) -> int:
    """Hold the conversation."""
    if args.resume is not None and args.latest:
        raise usage_error("`--resume` and `--continue` exclude each other", see=_SEE)
    is_resumed = args.resume is not None or args.latest
    if is_resumed == (args.file is not None):
        what = "give an agent file or a session, not both" if is_resumed else "no agent was given"
        raise usage_error(f"{what}: `failwell chat AGENT.yaml` or `failwell chat --resume ID`", see=_SEE)
    if args.retry:
        if not is_resumed or args.prompt is not None:
            raise usage_error("`--retry` goes with `--resume` or `--continue`, and without `-p`", see=_SEE)
        return HeadlessChat(args, None).hold()
    text = _input(args)
    if text is None:
        if args.format == JSON:
            raise usage_error("events are printed for one turn: add `-p TEXT`", see=_SEE)
        from failwell.cli.sessions.chat_terminal import TerminalChat

        return TerminalChat(args).hold()
    return HeadlessChat(args, text).hold()


def _input(args: Namespace) -> str | None:
    """The input of a headless turn; `None` at a terminal."""
    if args.prompt is None and is_terminal(sys.stdin):
        return None
    text: str = args.prompt or ""
    if args.prompt in (None, "-"):
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    # Bytes of an argument that are no UTF-8; no provider takes them.
    text = text.encode("utf-8", "replace").decode()
    if not text.strip():
        raise usage_error("the input is empty; write it after `-p`, or into stdin", see=_SEE)
    return text


def hold(
    args: Namespace,
    talk: Talk,
    *,
    questions: "InteractionQueue | None" = None,
    on_event: "OnEvent | None" = None,
    on_text: Callable[[str], object] | None = None,
) -> int:
    """Open the session, talk, and close it; the exit code. A session that cannot be opened is exit code 2."""
    from asyncio import CancelledError
    from asyncio import run as run_loop

    from failwell.cli.runs.run import log_as_lines

    async def work() -> int:
        session = await _open(args, questions, on_event, on_text)
        if isinstance(session, int):
            return session
        async with session:
            return await talk(session)

    with log_as_lines(args):
        try:
            return run_loop(work())
        except (CancelledError, KeyboardInterrupt):
            return Exit.INTERRUPTED


async def _open(
    args: Namespace,
    questions: "InteractionQueue | None",
    on_event: "OnEvent | None",
    on_text: Callable[[str], object] | None,
) -> "AgentSession | int":
    """The session, or the exit code if there is none."""
    from failwell.errors.fault import Fault
    from failwell.sessions.opening import open_session, resume_session
    from failwell.workflows.running.faults import WorkflowInvalid

    try:
        if args.file is not None:
            return await open_session(
                args.file,
                name=args.name,
                store=args.store,
                session_id=args.session_id,
                model=args.model,
                questions=questions,
                on_event=on_event,
                on_text=on_text,
                allow_outside=args.allow_outside,
                durability=args.durability,
            )
        from failwell.cli.sessions.sessions import find_session

        return await resume_session(
            find_session(args, "last" if args.latest else args.resume).id,
            store=args.store,
            model=args.model,
            accept_changes=args.accept_changes,
            questions=questions,
            on_event=on_event,
            on_text=on_text,
            allow_outside=args.allow_outside,
            durability=args.durability,
        )
    except WorkflowInvalid as invalid:
        from failwell.cli.runs.validate import print_problems

        print_problems(invalid.mistakes, args)
    except Fault as fault:
        from failwell.cli.error_output import ErrorOptions, print_failure

        print_failure(fault, ErrorOptions.of(args))
    return Exit.INVALID_USAGE


def print_resume(args: Namespace, session: str) -> None:
    """Say how to resume a session."""
    print_aside(args, f"resume it with: {command_for(args, 'chat', '--resume', session)}")


_EXITS = {"answered": Exit.DONE, "failed": Exit.FAILED, "halted": Exit.WAITING, "cancelled": Exit.INTERRUPTED}


class HeadlessChat:
    """`failwell chat AGENT -p TEXT`; without a text, the latest turn is run again."""

    def __init__(self, args: Namespace, text: str | None) -> None:
        self._args = args
        self._text = text
        self._signal: Signals | None = None

    def hold(self) -> int:
        """Take the turn; the exit code."""
        if self._args.format == JSON:
            print_line = until_it_fails(print_json_text)
            return hold(
                self._args,
                self._talk,
                on_event=lambda event: print_line(event.to_line()),
                on_text=lambda piece: print_line(json_text({"type": "text", "text": piece})),
            )
        return hold(self._args, self._talk)

    async def _talk(self, session: "AgentSession") -> int:
        from asyncio import get_running_loop

        def interrupt(number: Signals) -> None:
            self._signal = number
            session.cancel_turn()

        with on_signals(interrupt, loop=get_running_loop()):
            result = await (session.retry() if self._text is None else session.send(self._text))
        return self._print(session, result)

    def _print(self, session: "AgentSession", result: "TurnResult") -> int:
        if self._args.format == JSON:
            print_json_text(json_text(result_line(session, result)))
        elif result.ok:
            print_text(result.text)
        if not result.ok and result.report is not None:
            from failwell.cli.error_output import ErrorOptions, print_report

            print_report(result.report, ErrorOptions.of(self._args))
        print_resume(self._args, session.id)
        if result.status == "cancelled" and self._signal is not None:
            return Exit.of_signal(self._signal)
        return _EXITS[result.status]


def result_line(session: "AgentSession", result: "TurnResult") -> dict[str, Any]:
    """The last line of JSON output: how the turn ended."""
    from failwell.sessions.history import usage_json

    line: dict[str, Any] = {
        "type": "result",
        "session": session.id,
        "turn": result.turn,
        "status": result.status,
        "text": result.text,
        "usage": usage_json(result.used),
        "session_usage": usage_json(session.state.total),
    }
    if result.report is not None:
        line["error"] = {"kind": result.report.kind, "message": result.report.message, "id": result.report.id}
    return line
