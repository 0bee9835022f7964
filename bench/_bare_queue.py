"""A bare queue of jobs in SQLite: what durability alone costs. The standard library alone.

One table and two warm workers over pipes. A job is inserted before it is sent and updated before its result is
handed over, each in a transaction of its own, in write-ahead mode with `synchronous = NORMAL`, as the durable queue
has it. It has no events, retries, time-outs, priorities, memory or cancels, and loses a job whose worker dies.
"""

import json
import multiprocessing
import sqlite3
import tempfile
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from bench._processes import Figures, Sizes, measure

WORKERS = 2
MOST = 200
"""Jobs that are sent and not answered."""


def _serve(end: Connection) -> None:
    while (order := end.recv_bytes()) != b"":
        number, request = json.loads(order)
        end.send_bytes(json.dumps([number, request["value"]]).encode())


class BareQueue:
    """Jobs in one table, run by warm processes."""

    def __init__(self, folder: Path) -> None:
        self._database = sqlite3.connect(folder / "jobs.sqlite3", isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.execute(
            "CREATE TABLE jobs (key INTEGER PRIMARY KEY, state TEXT NOT NULL, request TEXT NOT NULL, result TEXT)"
        )
        self._ends: list[Connection] = []
        self._processes: list[multiprocessing.Process] = []
        for _ in range(WORKERS):
            ours, theirs = multiprocessing.Pipe()
            process = multiprocessing.Process(target=_serve, args=(theirs,), daemon=True)
            process.start()
            self._ends.append(ours)
            self._processes.append(process)
        self._results: dict[int, Any] = {}
        self._running = 0

    def submit(self, value: Any) -> int:
        """Record a job and send it; the number is its key."""
        request = json.dumps({"value": value})
        statement = "INSERT INTO jobs (state, request) VALUES ('running', ?)"
        number = self._database.execute(statement, (request,)).lastrowid or 0
        self._running += 1
        while self._running > MOST:
            # A worker whose answers nobody reads takes no more jobs.
            self._read()
        self._ends[number % WORKERS].send_bytes(f"[{number},{request}]".encode())
        return number

    def result(self, number: int) -> Any:
        """The result of a job, once its end is recorded."""
        while number not in self._results:
            self._read()
        return self._results.pop(number)

    def _read(self) -> None:
        for end in wait(self._ends):
            assert isinstance(end, Connection)
            self._record(*json.loads(end.recv_bytes()))

    def _record(self, number: int, value: Any) -> None:
        statement = "UPDATE jobs SET state = 'completed', result = ? WHERE key = ?"
        self._database.execute(statement, (json.dumps(value), number))
        self._results[number] = value
        self._running -= 1

    def close(self) -> None:
        """End the workers."""
        for end in self._ends:
            end.send_bytes(b"")
        for process in self._processes:
            process.join()
        self._database.close()


def bare_queue(sizes: Sizes) -> Figures:
    """One round of the bare queue."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        queue = BareQueue(Path(folder))
        try:
            return measure(queue.submit, queue.result, sizes)
        finally:
            queue.close()
