"""What is drawn on the terminal again and again: a listing that is watched, and `failwell top`."""

import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from failwell.cli.exit_codes import Exit
from failwell.cli.output import Heading, console_of


def draw_again(args: Namespace, lines: Callable[[int], Sequence[str]], wait: Callable[[], None]) -> NoReturn:
    """Draw lines, made for a width, and draw them again after each `wait`, until the process is interrupted."""
    from rich.live import Live
    from rich.text import Text

    console = console_of(args, sys.stdout)

    def drawn() -> Text:
        text = Text(no_wrap=True, overflow="ellipsis")
        for line in lines(console.width)[: max(2, console.height - 1)]:
            text.append(f"{line}\n", style="bold" if isinstance(line, Heading) else "")
        return text

    # `screen` restores what was on the terminal, also after Ctrl-C.
    with _leaving_on_signals():
        live = Live(drawn(), console=console, screen=True, auto_refresh=False)
        try:
            live.start(refresh=True)
            while True:
                wait()
                live.update(drawn(), refresh=True)
        finally:
            live.stop()


@contextmanager
def _leaving_on_signals() -> Generator[None]:
    """Turn SIGTERM and SIGHUP into an exit with their codes, so that `with` blocks inside end as they do after Ctrl-C."""

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(Exit.of_signal(number))

    numbers = [
        number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN
    ]
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
