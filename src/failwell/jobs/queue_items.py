"""The items of a stream between the worker that makes them and whoever takes them: few, and in order."""

import asyncio
from collections import deque
from typing import Any, Self

from failwell.jobs.dropped import drop

ROOM = 16
"""Items that may wait to be taken; the worker waits with further ones."""


class Items:
    """An async iterator that somebody else fills."""

    def __init__(self) -> None:
        self._held: deque[Any] = deque()
        self._moved = asyncio.Event()
        self._is_closed = False

    async def put(self, item: Any) -> None:
        """Hand over an item, once there is room for it. After the end it is dropped."""
        while len(self._held) >= ROOM and not self._is_closed:
            await self._wait()
        if self._is_closed:
            drop(item)
            return
        self._held.append(item)
        self._moved.set()

    def close(self) -> None:
        """No more will come, or nobody takes them any more. What is there can still be taken."""
        self._is_closed = True
        self._moved.set()

    def leave(self) -> None:
        """Nobody takes any more; what is there goes."""
        self.close()
        drop(list(self._held))
        self._held.clear()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        while not self._held:
            if self._is_closed:
                raise StopAsyncIteration
            await self._wait()
        self._moved.set()
        return self._held.popleft()

    async def _wait(self) -> None:
        self._moved.clear()
        await self._moved.wait()
