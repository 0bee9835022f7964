"""A folder with a store, a task queue and a worker of its own, for tests of commands."""

import asyncio
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from failwell.temporal.connection import ConnectionOptions
from failwell.temporal.worker import TemporalWorker
from tests.cli.running import Done, failwell
from tests.temporal_server import server, task_queue


class Project:
    """A folder with a store and a worker of its own, and the commands as somebody types them there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.queue = task_queue()
        self.env: dict[str, str] = {}
        self.store = folder / "store"

    def type(self, *arguments: str) -> Done:
        return failwell(*arguments, env={"FAILWELL_STORE": str(self.store), **self.env})

    def run(self, text: str, *arguments: str, run: str = "r") -> Done:
        file = self.folder / "workflow.yaml"
        file.write_text(text, encoding="utf-8")
        return self.type("run", str(file), "--run-id", f"{run}{self.queue[-8:]}", *self.engine, *arguments)

    @property
    def engine(self) -> tuple[str, ...]:
        return ("--engine", "temporal", "--address", server().address, "--task-queue", self.queue)

    def events(self, run: str = "last") -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.type("runs", "export", run).out.splitlines()]


@contextmanager
def worker(queue: str, folder: Path, codec: str | None = None) -> Generator[None]:
    """A worker in a thread of this process."""
    ready, stop = Event(), Event()

    async def work() -> None:
        options = ConnectionOptions(address=server().address, task_queue=queue, codec=codec)
        async with TemporalWorker(options, folder):
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = Thread(target=lambda: asyncio.run(work()))
    thread.start()
    try:
        assert ready.wait(30)
        yield
    finally:
        stop.set()
        thread.join()
