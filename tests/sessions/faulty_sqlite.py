"""Runs the command in this process, with a SQLite that stops in the middle of writing events of one type.

`python -m tests.sessions.faulty_sqlite refuse session:turn_ended 2 chat …` refuses the first two writes; `die` kills the process
in the write, after so many instructions of SQLite. Each write of that type is a line on stderr, with the time before it.
"""

import os
import signal
import sqlite3
import sys
import time
from typing import Any

from failwell.cli.main import entry


def _refuse() -> int:
    return 1


def _die() -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 1


class FaultyConnection(sqlite3.Connection):
    """A connection whose statements are stopped while SQLite executes them."""

    dies = False
    type = ""
    number = 0
    """How many writes are refused; after how many instructions the process dies."""

    def execute(self, sql: str, values: Any = (), /) -> sqlite3.Cursor:
        cls = FaultyConnection
        if not sql.startswith("INSERT INTO events") or cls.type not in values:
            return super().execute(sql, values)
        sys.stderr.write(f"write {time.monotonic()}\n")
        sys.stderr.flush()
        if cls.dies:
            self.set_progress_handler(_die, cls.number)
        elif cls.number:
            cls.number -= 1
            self.set_progress_handler(_refuse, 1)
        try:
            return super().execute(sql, values)
        finally:
            self.set_progress_handler(None, 1)


_connect = sqlite3.connect


def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
    """As `sqlite3.connect`, with connections that are stopped."""
    return _connect(*arguments, **{**options, "factory": FaultyConnection})


if __name__ == "__main__":
    _, how, FaultyConnection.type, number, *sys.argv[1:] = sys.argv
    FaultyConnection.dies, FaultyConnection.number = how == "die", int(number)
    sqlite3.connect = connect
    sys.exit(entry())
