"""Being the process that runs the jobs, from the command line: signals, output, a graceful end."""

import signal
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.jobs.jobs_find import folder_of

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from failwell.jobs.memory.machine import Limits
    from failwell.jobs.runtime import Runtime

_CODES = {"SIGINT": Exit.INTERRUPTED, "SIGTERM": Exit.TERMINATED, "SIGHUP": Exit.HUNG_UP}
"""Not every system has all of them."""


def host(
    args: Namespace,
    *,
    until: "Callable[[Runtime], Awaitable[Any]]",
    lanes: int = 4,
    limits: "Limits | None" = None,
) -> Exit:
    """Run the jobs of the store until `until` is done, or somebody asks this process to end.

    The exit code that belongs to the signal comes back, or that of being done. A first signal lets running
    jobs end for a few seconds, a second one does not; either way, what has not ended waits for the next host.
    """
    from asyncio import run

    from failwell.apps.cli.warning_lines import warnings_as_lines

    with warnings_as_lines():
        return run(_host(args, until, lanes, limits))


async def _host(
    args: Namespace, until: "Callable[[Runtime], Awaitable[Any]]", lanes: int, limits: "Limits | None"
) -> Exit:
    import asyncio

    from failwell.jobs.memory.book import NO_LIMITS
    from failwell.jobs.runtime import DRAIN, Runtime

    jobs = Runtime(folder_of(args), lanes=lanes, limits=limits or NO_LIMITS)
    asked_to_end = asyncio.Event()
    heard: list[str] = []

    def interrupted(name: str) -> None:
        heard.append(name)
        asked_to_end.set()
        if len(heard) == 1:
            _tell(f"{name}: running jobs have {DRAIN:g} s to end, the others wait; once more ends it now")
        elif len(heard) == 2:
            _tell(f"{name}: ending now; jobs that ran are put back")
            jobs.hurry()

    with _listening(asyncio.get_running_loop(), interrupted):
        async with jobs:
            task = asyncio.ensure_future(until(jobs))
            end = asyncio.ensure_future(asked_to_end.wait())
            await asyncio.wait([task, end], return_when=asyncio.FIRST_COMPLETED)
            end.cancel()
            if task.done():
                task.result()
                return Exit.DONE
            task.cancel()
            await asyncio.wait([task])
    return _CODES[heard[0]]


@contextmanager
def _listening(loop: "AbstractEventLoop", told: "Callable[[str], None]") -> Generator[None]:
    """Have `told` called with the name of each signal, also while the workers are being stopped."""
    names = [name for name in _CODES if hasattr(signal, name) and not _is_ignored(name)]
    try:
        for name in names:
            loop.add_signal_handler(getattr(signal, name), told, name)
    except NotImplementedError:
        # An event loop without signals: Ctrl-C ends it as it ends any program.
        names = []
    try:
        yield
    finally:
        for name in names:
            loop.remove_signal_handler(getattr(signal, name))


def _is_ignored(name: str) -> bool:
    """Whether whoever started this process wants it to go on, as `nohup` does."""
    return signal.getsignal(getattr(signal, name)) is signal.SIG_IGN


def _tell(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
