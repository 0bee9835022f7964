"""The database file: opening it, transactions, and moving its write-ahead log.

Private to its owner, in write-ahead mode, and with the tables of `journal.sql` or `limits.sql`. Every `sqlite3.Error`
is translated into a fault here.
"""

import errno
import os
import sqlite3
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import RLock, Thread
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, cast

from failwell.calls.suppress import suppress
from failwell.errors.fault import Fault
from failwell.store.faults import NoFileHandle, StoreFull, empty_fault, newer_fault, os_fault, sqlite_fault
from failwell.store.folder import file_exists, make_private
from failwell.store.locks import exclusive
from failwell.store.private_files import create_private
from failwell.store.reserved_space import is_short, keep_reserve

Durability = Literal["normal", "full"]
"""`normal` survives the death of the process; `full` also survives power loss, for one disk flush a commit."""

Schema = Literal["journal", "limits"]
"""Which tables a database has."""
VERSION = 1
"""The version of the tables, which a database keeps as `user_version`. One of a newer version is refused."""

BUSY_SECONDS = 5.0
"""How long a statement waits for another process by default."""
CHECKPOINT_EVERY = 3_000
"""Rows between two checkpoints: some megabytes of log."""
_AUTO_CHECKPOINT_PAGES = 16_000
"""Pages of log, 64 MiB, at which SQLite checkpoints inside a commit after all."""
_LOG_BYTES = 16 * 1024 * 1024
_COMPACT_PAGES = 256
"""A megabyte: less free space is not worth rewriting the file for."""
_HIGHEST = "\x7f"
_T = TypeVar("_T")
_P = ParamSpec("_P")


class Database:
    """One connection to the database at `path`. Threads may share it."""

    def __init__(
        self,
        path: Path,
        durability: Durability = "normal",
        busy: float = BUSY_SECONDS,
        *,
        schema: Schema = "journal",
        read_when_full: bool = False,
    ) -> None:
        """Open the database; create it if it is missing.

        With `read_when_full`, an existing one is opened for reading if the disk is full; writing raises then.

        Raises:
            Fault: the file cannot be used; the fault says why.
        """
        self.path = path
        self._busy = busy
        self.turn = RLock()
        """Held for every use of the connection."""
        self._no_space: StoreFull | None = None
        """Why the database is only read: SQLite cannot create the files that it writes through."""
        try:
            self.connection = connect(path, durability, busy, schema)
        except StoreFull as fault:
            # Without file handles it cannot be read either.
            if not read_when_full or isinstance(fault, NoFileHandle) or not path.exists():
                raise
            self._no_space = fault
            self.connection = _connect_sealed(path, busy)
        self._checkpointer = Checkpointer(path)
        self.written = self._checkpointer.count
        """Counts committed rows, so that the log is checkpointed now and then."""

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of one query."""
        with self.reading() as connection:
            return connection.execute(statement, values).fetchall()

    def read(
        self, query: Callable[Concatenate[sqlite3.Connection, _P], _T], *args: _P.args, **options: _P.kwargs
    ) -> _T:
        """Call `query` with the connection, for several statements outside a transaction."""
        with self.reading() as connection:
            return query(connection, *args, **options)

    def write(
        self, change: Callable[Concatenate[sqlite3.Connection, _P], _T], *args: _P.args, **options: _P.kwargs
    ) -> _T:
        """Call `change` with the connection, for statements that are committed together or not at all."""
        with self.transaction() as connection:
            return change(connection, *args, **options)

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """The connection, for a block of statements outside a transaction."""
        with self.turn:
            try:
                yield self.connection
            except sqlite3.Error as error:
                raise self.fault(error) from error

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """The connection, for a block of statements that are committed together or not at all."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def fault(self, error: sqlite3.Error) -> Fault:
        """The fault for an error of a statement."""
        is_refused = str(getattr(error, "sqlite_errorname", "")).startswith("SQLITE_READONLY")
        if self._no_space is not None and is_refused:
            return self._no_space
        return sqlite_fault(error, self.path)

    @contextmanager
    def short_waits(self, seconds: float) -> Generator[None]:
        """Within the block, let each statement wait no longer than this for other processes."""
        self._set_busy_timeout(min(seconds, self._busy))
        try:
            yield
        finally:
            self._set_busy_timeout(self._busy)

    def _set_busy_timeout(self, seconds: float) -> None:
        with self.reading() as connection:
            connection.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")

    def compact(self) -> None:
        """Return free space to the disk if there is much of it. Nobody can write meanwhile."""
        with self.reading() as connection:
            free, pages = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("freelist_count", "page_count")
            )
            if (free > _COMPACT_PAGES or is_short(self.path.parent)) and free * 4 > pages:
                # Before it too: on a nearly full disk the rewritten file needs the space of the log.
                self.shrink_log()
                connection.execute("VACUUM")
                self.shrink_log()

    def shrink_log(self) -> None:
        """Move the write-ahead log into the database and give its space back."""
        with self.reading() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close the connection."""
        with self.turn, translate_errors(self.path):
            self._checkpointer.close()
            self.connection.close()


@contextmanager
def translate_errors(path: Path) -> Generator[None]:
    """Translate every error of SQLite's in the block into a fault about the file at `path`."""
    try:
        yield
    except sqlite3.Error as error:
        raise sqlite_fault(error, path) from error


def escape_surrogates(value: _T) -> _T | str:
    """`value` for the database; in a text, characters that UTF-8 cannot encode become escapes. File names may have such."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def listing_query(
    table: str,
    columns: str,
    order: str,
    *,
    filters: Mapping[str, Any],
    prefix: str = "",
    before: str | None = None,
    limit: int | None = None,
) -> tuple[str, list[Any]]:
    """The query of every listing, and its values: filtered, newest first, a page at a time.

    Args:
        table: A table with a unique column `id`.
        columns: What to select.
        order: The columns that order the rows by age, unique together.
        filters: Condition → value. A tuple matches any of its items; `None` and an empty one match all.
            A condition is a column, or ends in an operator: `started >=`.
        prefix: The beginning of an id.
        before: Only rows older than the one with this id: the last id of the page before.
        limit: How many at most.
    """
    where: list[str] = []
    values: list[Any] = []
    for condition, value in filters.items():
        if value is None or value == ():
            continue
        if isinstance(value, tuple):
            choices = cast("tuple[Any, ...]", value)
            where.append(f"{condition} IN ({','.join('?' * len(choices))})")
            values += choices
        else:
            where.append(f"{condition} ?" if condition.endswith("=") else f"{condition} = ?")
            values.append(value)
    if prefix:
        # A range instead of LIKE: `_` is allowed in ids and is a wildcard there.
        where.append("id >= ? AND id < ?")
        values += (prefix, prefix + _HIGHEST)
    if before is not None:
        where.append(f"({order}) < (SELECT {order} FROM {table} WHERE id = ?)")  # noqa: S608  (constants)
        values.append(before)
    matching = f" WHERE {' AND '.join(where)}" if where else ""
    descending = ", ".join(f"{column} DESC" for column in order.split(", "))
    values.append(-1 if limit is None else limit)
    return f"SELECT {columns} FROM {table}{matching} ORDER BY {descending} LIMIT ?", values  # noqa: S608  (constants)


# ---------------------------------------------------------------- opening


def connect(
    path: Path, durability: Durability = "normal", busy: float = BUSY_SECONDS, schema: Schema = "journal"
) -> sqlite3.Connection:
    """A connection to the database at `path`, which is created if it is missing.

    The connection is in autocommit mode, and threads may use it one at a time. In a read-only folder an
    existing database is opened for reading only.

    Raises:
        Fault: the file cannot be used; the fault says why.
    """
    make_private(path.parent)
    if _is_sealed(path):
        return _connect_sealed(path, busy)
    is_new = not file_exists(path)
    _create_file(path)
    connection = _open(
        path, str(path), busy, lambda connection: _prepare(connection, path, durability, schema)
    )
    if is_new:
        keep_reserve(path.parent)
    return connection


def _is_sealed(path: Path) -> bool:
    """Whether the database exists in a folder that this process may not write to."""
    return file_exists(path) and not os.access(path.parent, os.W_OK)


def _connect_sealed(path: Path, busy: float) -> sqlite3.Connection:
    """Open for reading only. SQLite writes even then, unless it is told that the file does not change."""
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    mode = "mode=ro" if has_log else "immutable=1"
    return _open(
        path, f"{path.absolute().as_uri()}?{mode}", busy, lambda connection: _check(connection, path)
    )


def _open(
    path: Path, target: str, busy: float, prepare: Callable[[sqlite3.Connection], None]
) -> sqlite3.Connection:
    with translate_errors(path), ExitStack() as on_failure:
        connection = sqlite3.connect(
            target,
            uri=target.startswith("file:"),
            timeout=busy,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        on_failure.callback(connection.close)
        prepare(connection)
        on_failure.pop_all()
    return connection


def _create_file(path: Path) -> None:
    """Create the file if it is missing, and make it private; SQLite gives its other files the same mode.

    The file is never opened here: closing it would drop the locks that this process holds on it through
    SQLite (https://www.sqlite.org/howtocorrupt.html, 2.2). It is created elsewhere and moved into place.
    """
    try:
        if path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))  # noqa: TRY301  (it is reported as any other)
        if not path.exists():
            draft = path.with_name(f".{path.name}-{os.getpid()}-{os.urandom(4).hex()}")
            os.close(create_private(draft))
            try:
                _link(draft, path)
            finally:
                draft.unlink()
        if os.name == "posix" and path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise os_fault(error, path) from error


def _link(draft: Path, path: Path) -> None:
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        # Another process was faster.
        return
    except OSError:
        # A file system without links. Nobody can have the file open yet, so it may be created in place.
        os.close(create_private(path))


def _prepare(connection: sqlite3.Connection, path: Path, durability: Durability, schema: Schema) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA synchronous = {durability.upper()}")
    # After a burst the log is truncated to this size.
    connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_AUTO_CHECKPOINT_PAGES}")
    if _version_of(connection, path) and _journal_mode(connection) == "wal":
        return
    # In one process at a time: the change of mode does not wait for others.
    with exclusive(path.with_name(f"{path.name}.setup")):
        if _journal_mode(connection) != "wal":
            connection.execute("PRAGMA journal_mode = WAL")
        if not _version_of(connection, path):
            _create_tables(connection, schema)


def _create_tables(connection: sqlite3.Connection, schema: Schema) -> None:
    script = Path(__file__).with_name(f"{schema}.sql").read_text(encoding="utf-8")
    try:
        connection.executescript(f"BEGIN IMMEDIATE;{script}\n;PRAGMA user_version = {VERSION};COMMIT;")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _journal_mode(connection: sqlite3.Connection) -> str:
    return connection.execute("PRAGMA journal_mode").fetchone()[0]


def _version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The version of the tables; 0 if there are none.

    Raises:
        StoreNewer: it is newer than this code.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        raise newer_fault(path, version, VERSION)
    return version


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Check that a database that is only read has tables.

    Raises:
        StoreNewer: it is of a newer version.
        StoreUnavailable: it has none.
    """
    if not _version_of(connection, path):
        raise empty_fault(path)


# ---------------------------------------------------------------- checkpoints


class Checkpointer:
    """Moves the write-ahead log into the database in a thread with a connection of its own.

    SQLite would do it inside a commit, which then waits for the disk: some milliseconds as a rule, a hundred
    on a busy machine, during which an event loop is blocked.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = 0
        self._thread: Thread | None = None

    def count(self, rows: int) -> None:
        """Note committed rows; start a checkpoint when there are enough."""
        self._rows += rows
        if self._rows >= CHECKPOINT_EVERY and (self._thread is None or not self._thread.is_alive()):
            self._rows = 0
            self._thread = Thread(target=self._checkpoint, name="failwell-checkpoint", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Wait for the checkpoint that is under way."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _checkpoint(self) -> None:
        with suppress(sqlite3.Error, reason="the log is moved another time"):
            connection = sqlite3.connect(self._path, isolation_level=None)
            try:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            finally:
                connection.close()
