"""The lines that a person types, while turns run."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


class TypedLines:
    """Reads stdin line by line. A question pauses it and reads its own answer."""

    def __init__(self) -> None:
        from asyncio import Queue

        self._typed: Queue[str | None] = Queue()
        self._rest = b""
        self._loop: AbstractEventLoop | None = None

    @contextmanager
    def reading(self, loop: "AbstractEventLoop") -> Generator[None]:
        """Read while the block runs."""
        self._loop = loop
        self.resume()
        try:
            yield
        finally:
            self.pause()
            self._loop = None

    def pause(self) -> None:
        """Leave what is typed to somebody else."""
        if self._loop is not None:
            self._loop.remove_reader(sys.stdin.fileno())

    def resume(self) -> None:
        """Read again."""
        if self._loop is not None:
            self._loop.add_reader(sys.stdin.fileno(), self._read, sys.stdin.fileno())

    async def next(self) -> str | None:
        """The next line; `None` at the end of the input."""
        return await self._typed.get()

    def close(self) -> None:
        """End the input."""
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
            self.pause()
            self.close()
            return
        *lines, self._rest = (self._rest + content).split(b"\n")
        for line in lines:
            self._pass_on(line)

    def _pass_on(self, line: bytes) -> None:
        self._typed.put_nowait(line.decode("utf-8", "replace").rstrip("\r"))
