"""Moving what was written from the log into the database, beside the writer instead of in its way.

SQLite would do it inside a commit, and a commit would then wait for the disk: a few milliseconds as a
rule, a hundred on a busy machine, during which an event loop stands still. Here a thread of its own
does it with a connection of its own. Should it fall behind, SQLite's way remains as the second net.
"""

import sqlite3
from pathlib import Path
from threading import Thread

from failwell.runtime.suppress import suppress

EVERY = 3_000
"""Facts between two moves: some megabytes of log."""
SECOND_NET = 16_000
"""Pages of log, 64 MiB, at which a commit does it after all."""


class Checkpointer:
    """Counts what is written and starts a move when there is enough."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = 0
        self._thread: Thread | None = None

    def count(self, facts: int) -> None:
        """Note that so many facts were committed."""
        self._written += facts
        if self._written >= EVERY and (self._thread is None or not self._thread.is_alive()):
            self._written = 0
            self._thread = Thread(target=self._move, name="failwell-checkpoint", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Wait for the move that is under way."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _move(self) -> None:
        with suppress(sqlite3.Error, reason="the log is moved another time"):
            connection = sqlite3.connect(self._path, isolation_level=None)
            try:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            finally:
                connection.close()
