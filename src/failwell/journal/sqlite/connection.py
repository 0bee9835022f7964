"""Opening the database: private to its owner, in write-ahead mode, of a version that is known."""

import os
import sqlite3
from pathlib import Path
from typing import Literal

from failwell.journal.folder import make_private, refused
from failwell.journal.lock import alone
from failwell.journal.sqlite.checkpoint import SECOND_NET
from failwell.journal.sqlite.errors import outdated, typed
from failwell.journal.sqlite.migrate import migrate, migrations, newer, version_of

Durability = Literal["normal", "full"]
"""`normal` outlives the death of the process; `full` outlives the loss of power too, for a disk flush a commit."""

_LOG_BYTES = 16 * 1024 * 1024
BUSY_SECONDS = 5.0
"""How long a statement waits for another process before it gives up, unless somebody says otherwise."""


def connect(path: Path, durability: Durability = "normal", busy: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Open the database at `path`, making and updating it as needed.

    The connection is in autocommit mode and may pass between threads one at a time. Where nothing may be
    written, a database that is there is opened for reading alone.

    Raises:
        Fault: the file cannot be used; the fault says why.
    """
    make_private(path.parent)
    if is_sealed(path):
        return _connect_sealed(path, busy)
    _make_file(path)
    return _opened(path, str(path), durability, busy)


def is_sealed(path: Path) -> bool:
    """Whether there is a database in a folder that this process may not write to."""
    return path.exists() and not os.access(path.parent, os.W_OK)


def _connect_sealed(path: Path, busy: float) -> sqlite3.Connection:
    """Open what may only be read. SQLite wants to write even then, unless it is told that nobody else does."""
    log = path.with_name(f"{path.name}-wal")
    is_at_rest = not log.exists() or log.stat().st_size == 0
    way = "immutable=1" if is_at_rest else "mode=ro"
    return _opened(path, f"{path.absolute().as_uri()}?{way}", None, busy)


def _opened(path: Path, target: str, durability: Durability | None, busy: float) -> sqlite3.Connection:
    with typed(path):
        made = sqlite3.connect(
            target,
            uri=durability is None,
            timeout=busy,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            if durability is None:
                _check_version(made, path)
            else:
                _prepare(made, path, durability)
        except BaseException:  # whatever it was, an open file would stay behind
            made.close()
            raise
    return made


def _make_file(path: Path) -> None:
    """See to it that the file is there and private; SQLite gives the files beside it the same bits.

    The file is never opened here: closing it would drop the locks that this process holds on it through
    SQLite (https://www.sqlite.org/howtocorrupt.html, 2.2), so it is made elsewhere and moved into place.
    """
    try:
        if not path.exists():
            draft = path.with_name(f".{path.name}-{os.getpid()}-{os.urandom(4).hex()}")
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            try:
                _link(draft, path)
            finally:
                draft.unlink()
        if os.name == "posix" and path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise refused(error, path) from error


def _link(draft: Path, path: Path) -> None:
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        # Another process was faster.
        return
    except OSError:
        # A file system without links. Nobody can have the file open yet, so it may be made in place.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))


def _prepare(made: sqlite3.Connection, path: Path, durability: Durability) -> None:
    made.execute("PRAGMA foreign_keys = ON")
    made.execute(f"PRAGMA synchronous = {durability.upper()}")
    # After a burst the log is cut back to this, instead of keeping the size that it once had.
    made.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
    made.execute(f"PRAGMA wal_autocheckpoint = {SECOND_NET}")
    if not _check_version(made, path) or made.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        _set_up(made, path)


def _check_version(made: sqlite3.Connection, path: Path) -> bool:
    """Whether the database is of the version that is known.

    Raises:
        StoreNewer: it is of one that is not.
        StoreUnavailable: it is of an earlier one, and may not be brought up to date.
    """
    latest = migrations()[-1].number
    found = version_of(made)
    if found > latest:
        raise newer(path, found, latest)
    if found < latest and is_sealed(path):
        raise outdated(path)
    return found == latest


def _set_up(made: sqlite3.Connection, path: Path) -> None:
    """Write-ahead mode and tables, by one process at a time: the change of mode does not wait its turn."""
    with alone(path.with_name(f"{path.name}.setup")):
        if made.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            made.execute("PRAGMA journal_mode = WAL")
        migrate(made, path)
