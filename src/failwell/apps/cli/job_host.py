"""Being the process that runs the jobs, from the command line: signals, output, a graceful end."""

import signal
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from failwell.jobs.resources import Limits
    from failwell.jobs.runtime import Runtime

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def host(
    asked: Namespace,
    *,
    until: "Callable[[Runtime], Awaitable[Any]]",
    lanes: int = 4,
    limits: "Limits | None" = None,
) -> bool:
    """Run the jobs of the store until `until` is done, or somebody asks this process to end.

    Whether it came to its end, rather than being asked to, comes back.
    """
    from asyncio import run

    from failwell.apps.cli.warned import warnings_as_lines

    with warnings_as_lines():
        return run(_host(asked, until, lanes, limits))


async def _host(
    asked: Namespace, until: "Callable[[Runtime], Awaitable[Any]]", lanes: int, limits: "Limits | None"
) -> bool:
    import asyncio

    from failwell.jobs.resources_book import NO_LIMITS
    from failwell.jobs.runtime import Runtime
    from failwell.journal.folder import state_folder

    loop = asyncio.get_running_loop()
    asked_to_end = asyncio.Event()
    task: asyncio.Future[Any] | None = None
    async with Runtime(state_folder(asked.store), lanes=lanes, limits=limits or NO_LIMITS) as jobs:

        def interrupted(number: int) -> None:
            if not asked_to_end.is_set():
                name = signal.Signals(number).name
                print(f"{name}: letting running jobs end, then stopping", file=sys.stderr)
            asked_to_end.set()

        for number in _SIGNALS:
            loop.add_signal_handler(number, interrupted, number)
        try:
            task = asyncio.ensure_future(until(jobs))
            end = asyncio.ensure_future(asked_to_end.wait())
            await asyncio.wait([task, end], return_when=asyncio.FIRST_COMPLETED)
            end.cancel()
            if task.done():
                task.result()
            else:
                task.cancel()
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)
    if asked_to_end.is_set():
        raise KeyboardInterrupt
    return True
