"""One turn without a terminal: the answer as text, or every event as a line of JSON. Nobody can be asked."""

import signal
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from failwell.cli.commands import JSON
from failwell.cli.exit_codes import Exit
from failwell.cli.output import error_format, print_json_text, print_text, until_it_fails
from failwell.cli.sessions.chat import hold, print_resume
from failwell.delivery.plain_text import json_text

if TYPE_CHECKING:
    from failwell.sessions.session import Session, TurnResult

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_EXITS = {"answered": Exit.DONE, "failed": Exit.FAILED, "halted": Exit.WAITING, "cancelled": Exit.INTERRUPTED}


class HeadlessChat:
    """`failwell chat AGENT -p TEXT`; without a text, the latest turn is run again."""

    def __init__(self, args: Namespace, text: str | None) -> None:
        self._args = args
        self._text = text
        self._signal: int | None = None

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

    async def _talk(self, session: "Session") -> int:
        from asyncio import get_running_loop

        loop = get_running_loop()
        # A signal that the caller ignores stays ignored, as under `nohup`.
        signals = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        for number in signals:
            loop.add_signal_handler(number, self._interrupt, session, number)
        try:
            result = await (session.retry() if self._text is None else session.send(self._text))
        finally:
            for number in signals:
                loop.remove_signal_handler(number)
        return self._print(session, result)

    def _interrupt(self, session: "Session", number: int) -> None:
        self._signal = number
        session.cancel_turn()

    def _print(self, session: "Session", result: "TurnResult") -> int:
        if self._args.format == JSON:
            print_json_text(json_text(result_line(session, result)))
        elif result.ok:
            print_text(result.text)
        if not result.ok and result.report is not None:
            from failwell.cli.error_output import print_report
            from failwell.cli.raw_arguments import ErrorOptions

            print_report(result.report, ErrorOptions(error_format(self._args), traceback=False))
        print_resume(self._args, session.id)
        if result.status == "cancelled" and self._signal is not None:
            return Exit.of_signal(self._signal)
        return _EXITS[result.status]


def result_line(session: "Session", result: "TurnResult") -> dict[str, Any]:
    """The last line of JSON output: how the turn ended."""
    from failwell.sessions.history__usage_text import usage_json

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
