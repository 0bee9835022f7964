"""Runs the jobs of a store from a command, with signals, warnings and a graceful end."""

import warnings
from argparse import Namespace
from collections.abc import Awaitable, Callable, Collection, Generator
from contextlib import contextmanager
from signal import Signals
from typing import TYPE_CHECKING, Any

from failwell.cli.exit_codes import Exit
from failwell.cli.output import print_stderr
from failwell.cli.records import state_folder_of
from failwell.cli.signals import on_signals

if TYPE_CHECKING:
    from failwell.jobs.client.queue_client import QueueClient
    from failwell.jobs.memory.machine import Limits
    from failwell.jobs.runtime import Runtime


def host(
    args: Namespace,
    *,
    until: "Callable[[Runtime], Awaitable[Any]]",
    queue: "QueueClient | None" = None,
    lanes: int = 4,
    limits: "Limits | None" = None,
    respawn: bool = True,
    only: "Collection[str] | None" = None,
) -> Exit:
    """Run the jobs of the store until `until` is done or a signal arrives, and return the exit code.

    With `only`, no other jobs are run than these and those that `until` submits, and times of schedules are left to
    other hosts. An open `queue` is used as it is; without one, the store is opened and closed here.

    A first signal gives running jobs a few seconds to end, a second one does not. Jobs that have not ended
    wait for the next host.
    """
    from asyncio import run

    with warnings_as_lines():
        return run(_host(args, until, queue, lanes, limits, respawn=respawn, only=only))


async def _host(
    args: Namespace,
    until: "Callable[[Runtime], Awaitable[Any]]",
    queue: "QueueClient | None",
    lanes: int,
    limits: "Limits | None",
    *,
    respawn: bool,
    only: "Collection[str] | None",
) -> Exit:
    import asyncio
    from contextlib import ExitStack, closing

    from failwell.jobs.memory.book import NO_LIMITS
    from failwell.jobs.queue.state import Rules
    from failwell.jobs.runtime import DRAIN, Runtime
    from failwell.jobs.store.sqlite import ChosenJobs, JobStore, open_jobs
    from failwell.jobs.workers.protocol import Supervision

    stop = asyncio.Event()
    received: list[Signals] = []

    def on_signal(number: Signals) -> None:
        received.append(number)
        stop.set()
        if len(received) == 1:
            print_stderr(
                f"{number.name}: running jobs have {DRAIN:g} s to end, the others wait; once more to stop at once"
            )
        elif len(received) == 2:
            print_stderr(f"{number.name}: stopping now; running jobs go back to the queue")
            jobs.hurry()

    with on_signals(on_signal, loop=asyncio.get_running_loop()), ExitStack() as stack:
        store = (
            stack.enter_context(closing(open_jobs(state_folder_of(args)))) if queue is None else queue.store
        )
        if only is not None:
            assert isinstance(store, JobStore)
            store = ChosenJobs(store, only)
        jobs = Runtime(
            store,
            registry=None if queue is None else queue.registry,
            rules=Rules(lanes=lanes),
            limits=limits or NO_LIMITS,
            # A command that waits for one job restarts a dead worker only if that job is retried.
            supervision=Supervision(respawn=respawn),
        )
        async with jobs:
            task = asyncio.ensure_future(until(jobs))
            end = asyncio.ensure_future(stop.wait())
            await asyncio.wait([task, end], return_when=asyncio.FIRST_COMPLETED)
            end.cancel()
            if task.done():
                task.result()
                return Exit.DONE
            task.cancel()
            await asyncio.wait([task])
    return Exit.of_signal(received[0])


@contextmanager
def warnings_as_lines() -> Generator[None]:
    """Print every warning about dropped settings as one line on stderr."""
    from failwell.jobs.settings_schema import UnknownConfigWarning

    with warnings.catch_warnings():
        before = warnings.showwarning

        def shown(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: object = None,  # noqa: ARG001  (what `warnings` calls it with; ours go to stderr)
            line: str | None = None,
        ) -> None:
            if issubclass(category, UnknownConfigWarning):
                print_stderr(f"warning: {message}")
            else:
                before(message, category, filename, lineno, None, line)

        warnings.simplefilter("always", UnknownConfigWarning)
        warnings.showwarning = shown
        yield
