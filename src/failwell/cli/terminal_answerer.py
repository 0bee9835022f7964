"""Answers questions at the terminal. Texts of models and tools are escaped: nothing in them reaches the terminal as a command."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from failwell.agents.people.requests import (
    Answer,
    Ask,
    Confirm,
    DeviceCode,
    Password,
    Refusal,
    Request,
    Select,
)
from failwell.cli.output import print_stderr
from failwell.cli.terminal_questions import (
    ask_gate,
    choose,
    quoted,
    read_line,
    read_text,
    user_name,
)
from failwell.delivery.plain_text import one_line
from failwell.workflows.running.gate_requests import GateRequest


class Pausable(Protocol):
    """What draws on the terminal or reads from it, and must not while a question is open."""

    def pause(self) -> None:
        """Leave the terminal alone."""
        ...

    def resume(self) -> None:
        """Use the terminal again."""
        ...


class TerminalAnswerer:
    """Asks the person at the terminal.

    Args:
        display: What else uses the terminal; it pauses meanwhile.
    """

    name = "terminal"

    def __init__(self, display: Pausable | None = None) -> None:
        self._display = display

    async def answer(self, request: Request) -> Answer | Refusal | None:
        """Show the question and read the answer; `None` when the input has ended."""
        from asyncio import CancelledError

        if self._display is not None:
            self._display.pause()
        try:
            return await _ask(request)
        except CancelledError:
            print_stderr("\n  this question needs no answer any more")
            raise
        finally:
            if self._display is not None:
                self._display.resume()


async def _ask(request: Request) -> Answer | Refusal | None:
    if isinstance(request, GateRequest):
        reply = await ask_gate(request.id, request.question)
        if reply is None:
            return None
        return Answer(value=reply.decision, by=reply.by, payload=reply.payload, comment=reply.comment)
    print_stderr(f"\n{quoted('? ', request.text)}")
    match request:
        case Ask():
            value = await _text(request)
        case Password():
            value = await _secret()
        case DeviceCode():
            value = await _sign_in(request)
        case Select():
            option = await choose([option.to_dict() for option in request.options])
            value = None if option is None else option["value"]
        case _:
            words = ("no", "yes") if isinstance(request, Confirm) else request.values
            option = await choose([{"label": word, "value": word} for word in words])
            value = None if option is None else request.value_of(option["value"])
    if isinstance(value, Refusal):
        return value
    return None if value is None else Answer(value=value, by=user_name())


async def _text(request: Ask) -> str | Refusal | None:
    hint = "" if request.default is None else f"[{one_line(request.default)}] "
    text = await read_text(f"  {hint}", several=request.multiline)
    if text is None or text.strip():
        return text
    # Nothing is not an answer unless the question says what it stands for.
    return request.default if request.default is not None else Refusal(by=user_name(), reason="left empty")


async def _sign_in(request: DeviceCode) -> bool | None:
    print_stderr(f"  open {one_line(request.url)} and enter the code {one_line(request.code)}")
    line = await read_line("  press Enter when you have signed in, or write `no`: ")
    return None if line is None else line.strip().lower() not in ("n", "no")


async def _secret() -> str | Refusal | None:
    with _without_echo():
        text = await read_line("  (what you type is not shown) ")
    print_stderr("")
    return Refusal(by=user_name(), reason="left empty") if text == "" else text


@contextmanager
def _without_echo() -> Generator[None]:
    """Keep the terminal from showing what is typed, also if the question is withdrawn."""
    import termios

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    silent = [*before]
    silent[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
