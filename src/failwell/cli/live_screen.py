"""What is drawn on the terminal again and again: a listing that is watched, and `failwell top`."""

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from signal import Signals
from typing import NoReturn

from failwell.cli.exit_codes import Exit
from failwell.cli.output import Heading, console_of
from failwell.cli.signals import ENDING, on_signals


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

    # `screen` restores what was on the terminal, also when a signal ends it.
    with on_signals(_leave, ENDING):
        live = Live(drawn(), console=console, screen=True, auto_refresh=False)
        try:
            live.start(refresh=True)
            while True:
                wait()
                live.update(drawn(), refresh=True)
        finally:
            live.stop()


def _leave(number: Signals) -> NoReturn:
    raise SystemExit(Exit.of_signal(number))
