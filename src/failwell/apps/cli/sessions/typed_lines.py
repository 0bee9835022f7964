"""The lines that a person types, while turns run."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future


class TypedLines:
    """Reads stdin line by line. A line goes to the question that waits, else to the conversation."""

    def __init__(self) -> None:
        from asyncio import Queue

        self._typed: Queue[str | None] = Queue()
        self._question: Future[str | None] | None = None
        self._rest = b""

    @contextmanager
    def reading(self, loop: "AbstractEventLoop") -> Generator[None]:
        """Read while the block runs."""
        descriptor = sys.stdin.fileno()
        loop.add_reader(descriptor, self._read, descriptor)
        try:
            yield
        finally:
            loop.remove_reader(descriptor)

    async def next(self) -> str | None:
        """The next line of the conversation; `None` at the end of the input."""
        return await self._typed.get()

    async def answer(self) -> str | None:
        """The next line, for a question; `None` at the end of the input."""
        from asyncio import get_running_loop

        self._question = get_running_loop().create_future()
        try:
            return await self._question
        finally:
            self._question = None

    def close(self) -> None:
        """End the input."""
        self._give(None)
        self._typed.put_nowait(None)

    def _read(self, descriptor: int) -> None:
        try:
            content = os.read(descriptor, 65_536)
        except BlockingIOError:
            return
        except OSError:
            content = b""
        if not content:
            if self._rest:
                self._pass_on(self._rest)
                self._rest = b""
            self.close()
            return
        *lines, self._rest = (self._rest + content).split(b"\n")
        for line in lines:
            self._pass_on(line)

    def _pass_on(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip("\r")
        if not self._give(text):
            self._typed.put_nowait(text)

    def _give(self, text: str | None) -> bool:
        """Give a line to the question that waits, if there is one."""
        question = self._question
        if question is None or question.done():
            return False
        question.set_result(text)
        return True
