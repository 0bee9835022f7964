"""SQLite's errors as faults: what happened to the file, and what somebody can do about it.

Only the symbolic code is read; a message may quote a statement.
"""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from failwell.fault.axes import ActionKind, Certainty
from failwell.fault.base import Fault
from failwell.fault.facts import UserAction
from failwell.journal.faults import NotRecordable, StoreCorrupt, StoreFull, StoreUnavailable

_PROBE = 1 << 16
_DENIED = frozenset({"SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH"})
_DAMAGED = frozenset({"SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT"})
_UNFIT = frozenset({"SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_TOOBIG"})
_ALLOW = "allow writing to the file and its folder, or give another `--store DIR`"
_BUSY = frozenset({"SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL"})


@contextmanager
def typed(path: Path) -> Generator[None]:
    """Let no error of SQLite's out of the block, only faults about the file at `path`."""
    try:
        yield
    except sqlite3.Error as error:
        raise trouble(error, path) from error


def trouble(error: sqlite3.Error, path: Path) -> Fault:
    """The fault that `error` stands for. Whatever was being written was not."""
    code = str(getattr(error, "sqlite_errorname", None) or type(error).__name__)
    primary = "_".join(code.split("_")[:2])
    if primary in _DAMAGED:
        return damaged(path, sqlite_code=code)
    if primary == "SQLITE_FULL" or (primary == "SQLITE_IOERR" and _is_full(path)):
        return StoreFull(
            message=f"there is no space left for the journal `{path}`",
            details={"sqlite_code": code},
            certainty=Certainty.NOT_SENT,
            user_action=UserAction(
                ActionKind.FREE_RESOURCES,
                "free disk space, for instance with `failwell runs prune`, or give another `--store DIR`",
            ),
        )
    if primary in _UNFIT:
        return NotRecordable(reason="the store does not take it")
    if primary in _BUSY:
        return _unavailable(f"the journal `{path}` is kept busy by another process", code)
    if primary in _DENIED:
        return _unavailable(f"the journal `{path}` may not be written to", code, _ALLOW)
    if primary == "SQLITE_CANTOPEN":
        return _unavailable(
            f"the journal `{path}` cannot be opened{_why_not(path)}",
            code,
            "check the file and its folder, or give another `--store DIR`",
        )
    return _unavailable(f"the journal `{path}` could not be read or written", code)


def outdated(path: Path) -> StoreUnavailable:
    """The fault for a file of an earlier version that may not be written to."""
    return _unavailable(
        f"the journal `{path}` was written by an earlier version and may not be brought up to date:"
        " it may not be written to",
        "SQLITE_READONLY",
        _ALLOW,
    )


def _why_not(path: Path) -> str:
    """What the system says of the file, where it says something."""
    for name, way in ((path.parent, os.W_OK | os.X_OK), (path, os.R_OK | os.W_OK)):
        if name.exists() and not os.access(name, way):
            return f": `{name}` may not be written to"
    return ": it is a folder" if path.is_dir() else ""


def damaged(path: Path, **details: object) -> StoreCorrupt:
    """The fault for a file that is there and cannot be read as a journal."""
    return StoreCorrupt(
        message=f"the journal `{path}` is damaged, or is no journal",
        details=details,
        user_action=UserAction(
            ActionKind.CONTACT_SUPPORT,
            "move the file away or restore a copy of it; it was left as it is",
        ),
    )


def _unavailable(message: str, code: str, cure: str | None = None) -> StoreUnavailable:
    return StoreUnavailable(
        message=message,
        details={"sqlite_code": code},
        certainty=Certainty.NOT_SENT,
        # What only a person can cure is not tried again.
        retryable=None if cure is None else False,
        user_action=None if cure is None else UserAction(ActionKind.FIX_CONFIGURATION, cure),
    )


def _is_full(path: Path) -> bool:
    """Whether a failed write was for want of space; SQLite tells a quota or a limit as a plain failure."""
    probe = path.with_name(f".space-{os.getpid()}")
    try:
        try:
            with probe.open("wb", buffering=0) as file:
                short = file.write(bytes(_PROBE)) < _PROBE
        finally:
            probe.unlink(missing_ok=True)
    except OSError:
        return True
    return short or _reached_limit(path)


def _reached_limit(path: Path) -> bool:
    """Whether the journal is as large as a file of this process may become."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_FSIZE, getrlimit
    except ImportError:
        return False
    most = getrlimit(RLIMIT_FSIZE)[0]
    if most == RLIM_INFINITY:
        return False
    sizes = [one.stat().st_size for one in (path, path.with_name(f"{path.name}-wal")) if one.exists()]
    return max(sizes, default=0) + _PROBE >= most
