"""Runs blocking code of tools in threads that a run never waits for, and keeps their ends from ending the run."""

from collections.abc import Awaitable, Callable
from typing import Any

from failwell.calls.suppress import catch
from failwell.errors.faults import ToolTerminal


async def run_in_thread(function: Callable[[], Any]) -> Any:
    """The value of a blocking function.

    The thread is a daemon: one that never returns keeps neither the run nor the process from ending.

    Raises:
        ToolTerminal: the function left by `sys.exit` or in another way that is no failure.
    """
    import asyncio
    from contextvars import copy_context
    from threading import Thread

    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[Any, Exception | None]] = loop.create_future()

    def resolve(value: Any, error: Exception | None) -> None:
        if not ended.done():
            ended.set_result((value, error))

    def work() -> None:
        value: Any = None
        error: Exception | None = _left("an interrupt")
        try:
            value, error = catch(function)
            if isinstance(error, StopIteration):
                # A coroutine cannot raise it.
                error = _left(type(error).__name__)
        except (SystemExit, GeneratorExit, asyncio.CancelledError) as raised:
            # These would end the run in place of the tool.
            error = _left(type(raised).__name__)
        finally:
            if not loop.is_closed():
                loop.call_soon_threadsafe(resolve, value, error)

    Thread(target=copy_context().run, args=(work,), name="failwell-tool", daemon=True).start()
    value, error = await ended
    if error is not None:
        raise error
    return value


async def run_in_loop(coroutine: Awaitable[Any]) -> Any:
    """The value of a coroutine of a tool.

    Raises:
        ToolTerminal: it left by `sys.exit` or by a cancellation that nobody asked for.
    """
    import asyncio

    try:
        return await coroutine
    except (SystemExit, GeneratorExit) as error:
        raise _left(type(error).__name__) from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise _left(type(error).__name__) from error


def _left(way: str) -> ToolTerminal:
    return ToolTerminal(kind="tool.failed", message=f"the tool ended with {way}", details={"reason": "exit"})
