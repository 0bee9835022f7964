"""Limits that the processes of one machine share, in a SQLite file of the state folder.

A number in shared memory says whether anything has changed, so a call that is allowed reads eight bytes and nothing
else. It is written after each commit; because a process may die in between, the file is looked at once a second, too.
"""

import os
from collections.abc import Mapping, Sequence
from json import dumps, loads
from mmap import ACCESS_WRITE, mmap
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.calls.shared_limits import Change, Limits, LimitStore
from failwell.calls.suppress import record_suppressed, suppressed
from failwell.errors.fault import Fault
from failwell.store.faults import os_fault
from failwell.store.folder import make_private, state_folder
from failwell.store.private_files import append_private
from failwell.store.sqlite.database import Database

_LOST = "the store of shared limits cannot be used, so every process counts for itself"


def is_first(store: LimitStore, name: str, seconds: float) -> bool:
    """Whether nobody has asked for `name` within `seconds`; also if the store cannot be used."""
    own = dumps(["first", name])
    answers: list[bool] = []

    def change(now: float, values: Mapping[str, str]) -> Mapping[str, str | None]:
        ends = _end_of(values.get(own))
        # A clock that was set back must not keep a name for longer than it was asked to be kept.
        answers[:] = [not now < ends <= now + seconds]
        if not answers[0]:
            return {}
        over = {
            other: None
            for other, text in values.items()
            if other.startswith('["first"') and _end_of(text) <= now
        }
        return {**over, own: dumps({"until": now + seconds})}

    try:
        store.change(change)
    except Fault as fault:
        record_suppressed(suppressed(fault, _LOST))
        return True
    return answers[0]


def _end_of(text: str | None) -> float:
    try:
        fields: Any = loads(text or "{}")
        return float(fields.get("until", 0.0))
    except (ValueError, TypeError, AttributeError):
        return 0.0


if TYPE_CHECKING:
    import sqlite3

DATABASE = "limits.db"
COUNTER = "limits.version"
_BUSY = 0.25
"""Seconds that a change waits for another process; then the limits of this process apply."""
_CHECK = 1.0
_UNREAD = -2
"""The version before the file was opened. It is never that of a change, so the caller reads."""
_KEEP = 30 * 86_400.0
"""Seconds after which a value that nobody has changed is deleted."""
_READ = "SELECT name, value FROM limits"
_VERSION = "SELECT value FROM limits WHERE name = ''"
_WRITE = "INSERT INTO limits VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value, changed = excluded.changed"
_of_parents: list[object] = []
"""Connections that processes before a fork had opened."""


class SqliteLimits:
    """Limits in a state folder: pass it as `store` to the guards and budgets of every process."""

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, clock: Clock = SYSTEM_CLOCK) -> None:
        """Nothing is opened yet.

        Args:
            folder: The state folder; by default the one that the environment names.
            clock: Where times come from.
        """
        self.folder = state_folder(None if folder is None else os.fspath(folder))
        self._clock = clock
        self._lock = Lock()
        self._open: tuple[int, Database, memoryview] | None = None
        self._next_check = 0.0

    def version(self) -> int:
        """A number that every change changes, read from memory."""
        opened = self._open
        if opened is None or opened[0] != os.getpid():
            return _UNREAD
        if self._clock.monotonic() >= self._next_check:
            self._check(opened[1], opened[2])
        return opened[2][0]

    def read(self) -> Limits:
        """All values."""
        database, counter = self._opened()
        values = dict(database.rows(_READ))
        version = int(values.pop("", 0))
        self._count(counter, version)
        return Limits(version, self._clock.now().timestamp(), values)

    def change(self, change: Change) -> int:
        """Write what `change` returns, in one transaction, and return the new version."""
        database, counter = self._opened()
        now = self._clock.now().timestamp()

        def write(connection: "sqlite3.Connection") -> int:
            values: dict[str, str] = dict(connection.execute(_READ).fetchall())
            version = int(values.pop("", 0))
            written = change(now, values)
            if not written:
                return version
            rows: Sequence[tuple[str, str, float]] = [
                (name, value, now) for name, value in written.items() if value is not None
            ]
            connection.executemany("DELETE FROM limits WHERE name = ?", [(name,) for name in written])
            connection.executemany(_WRITE, [*rows, ("", str(version + 1), now)])
            connection.execute("DELETE FROM limits WHERE changed < ? AND name != ''", (now - _KEEP,))
            return version + 1

        version = database.write(write)
        self._count(counter, version)
        return version

    def is_first(self, name: str, seconds: float) -> bool:
        """Whether nobody has asked for `name` within `seconds`, in any process."""
        return is_first(self, name, seconds)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._open is not None and self._open[0] == os.getpid():
                self._open[1].close()
            self._open = None

    def _opened(self) -> tuple[Database, memoryview]:
        with self._lock:
            if self._open is None or self._open[0] != os.getpid():
                if self._open is not None:
                    # It is the parent's, and must not even be closed here.
                    _of_parents.append(self._open)
                make_private(self.folder)
                database = Database(self.folder / DATABASE, busy=_BUSY, schema="limits")
                self._open = (os.getpid(), database, _shared_number(self.folder / COUNTER))
            return self._open[1], self._open[2]

    def _count(self, counter: memoryview, version: int) -> None:
        self._next_check = self._clock.monotonic() + _CHECK
        counter[0] = max(counter[0], version)

    def _check(self, database: Database, counter: memoryview) -> None:
        """Look whether a process died between its change and the number in memory."""
        self._next_check = self._clock.monotonic() + _CHECK
        before = counter[0]
        rows = database.rows(_VERSION)
        # A lower one means that the file was replaced by a new one.
        if rows and int(rows[0][0]) != before:
            counter[0] = int(rows[0][0])


def _shared_number(path: Path) -> memoryview:
    """Eight bytes that all processes see, as one number."""
    try:
        descriptor = append_private(path)
        try:
            if os.fstat(descriptor).st_size < 8:
                os.ftruncate(descriptor, 8)
        finally:
            os.close(descriptor)
        with path.open("r+b") as file:
            return memoryview(mmap(file.fileno(), 8, access=ACCESS_WRITE)).cast("q")
    except (OSError, ValueError) as error:
        raise os_fault(error if isinstance(error, OSError) else OSError(str(error)), path) from error
