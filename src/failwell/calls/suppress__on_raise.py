"""A block that notes how it ends: what it raises is passed to a callback and goes on.

For what has to be recorded or undone and is decided about elsewhere. `suppress` is for what ends here.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any


def _ignore(_error: BaseException) -> None:
    return


class OnRaise:
    """A context manager that calls back with what its block raises, and never keeps it.

    Args:
        failed: Called with an exception. In an `async with` block, what it returns is awaited.
        abandoned: Called with what is no failure: an interrupt, an exit, a cancellation or a closed generator.
    """

    __slots__ = ("_abandoned", "_failed")

    def __init__(
        self,
        failed: Callable[[Exception], Any] = _ignore,
        *,
        abandoned: Callable[[BaseException], object] = _ignore,
    ) -> None:
        self._failed = failed
        self._abandoned = abandoned

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            self._failed(error)
        elif error is not None:
            self._abandoned(error)

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            await self._failed(error)
        elif error is not None:
            self._abandoned(error)
