"""What a command does when a signal arrives. A signal that the caller ignores, as under `nohup`, stays ignored."""

import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

# Not every system has all of them.
ENDING: tuple[signal.Signals, ...] = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)
ALL = (signal.SIGINT, *ENDING)


@contextmanager
def on_signals(
    handle: Callable[[signal.Signals], None],
    numbers: Sequence[signal.Signals] = ALL,
    loop: "AbstractEventLoop | None" = None,
) -> Generator[None]:
    """Call `handle` with each signal while the block runs; from the event loop, if there is one."""
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    if loop is not None:
        try:
            for number in heard:
                loop.add_signal_handler(number, handle, number)
        except NotImplementedError:
            # This event loop has no signal handlers; Ctrl-C raises KeyboardInterrupt instead.
            heard = []
        try:
            yield
        finally:
            for number in heard:
                loop.remove_signal_handler(number)
        return

    def call(number: int, _frame: FrameType | None) -> None:
        handle(signal.Signals(number))

    before = {number: signal.signal(number, call) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
