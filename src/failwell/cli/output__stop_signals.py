"""Lets a command that draws on the terminal clean up when a signal ends it."""

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from failwell.cli.exit_codes import Exit

if TYPE_CHECKING:
    from rich.live import Live


@contextmanager
def leaving_on_signals() -> Generator[None]:
    """Turn SIGTERM and SIGHUP into an exit with their codes, so that `with` blocks inside end as they do after Ctrl-C."""

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(Exit.of_signal(number))

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [getattr(signal, name) for name in names]
    before = {
        number: signal.signal(number, leave)
        for number in numbers
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def drawing(live: "Live") -> Generator["Live"]:
    """Start and stop a live display. Its own block leaves the terminal as it is if it is interrupted while it starts."""
    try:
        live.start(refresh=True)
        yield live
    finally:
        live.stop()
