"""Errors of SQLite and of the file system as faults: what happened to which file, and what to do.

This is the only place that translates them. Only SQLite's symbolic code is read; a message may quote a
statement. Each fault carries the next step.
"""

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from failwell.errors.axes import ActionKind, Certainty
from failwell.errors.facts import UserAction
from failwell.errors.fault import Fault
from failwell.errors.faults import Session, Validation


class NotRecordable(Fault, kind="internal.bug"):
    """An event holds something that cannot be stored."""

    reason: str

    def summary(self) -> str:
        return f"an event cannot be recorded: {self.reason}"


class StreamEnded(Session, kind="session.illegal_transition"):
    """An event was appended after the one that ended the run."""

    run: str
    ended_by: str
    refused: str

    def summary(self) -> str:
        return f"run `{self.run}` ended with `{self.ended_by}`, so `{self.refused}` cannot be added to it"


class UnknownRun(Session, kind="session.no_snapshot"):
    """No run with this id is recorded here."""

    run: str
    near: list[str] | None = None

    def summary(self) -> str:
        return f"no run `{self.run}` is recorded here"


class RunExists(Validation, kind="validation.input_invalid"):
    """A run with this id is already recorded."""

    run: str

    def summary(self) -> str:
        return f"a run `{self.run}` is recorded already"


class BadRunId(Validation, kind="validation.input_invalid"):
    """A run id has 1 to 64 letters, digits, `_` and `-`."""

    run: str
    reason: str = "use 1 to 64 letters, digits, `_` and `-`"

    def summary(self) -> str:
        return f"`{self.run[:80]}` is not a run id: {self.reason}"


class UnknownStatus(Validation, kind="validation.input_invalid"):
    """A run cannot have this status."""

    status: str
    valid: list[str]

    def summary(self) -> str:
        return f"`{self.status[:80]}` is not a status of a run: use {', '.join(self.valid)}"


class Locked(Session, kind="session.locked"):
    """Another process is writing to the run."""

    run: str
    pid: int | None = None
    host: str | None = None
    since: str | None = None

    def summary(self) -> str:
        process = "another process" if self.pid is None else f"process {self.pid}"
        where = "" if self.host is None else f" on {self.host}"
        when = "" if self.since is None else f" since {self.since}"
        return f"run `{self.run}` is locked by {process}{where}{when}"


class Interrupted(Fault, kind="internal.unknown"):
    """The process of a run died before the run ended."""

    run: str

    def summary(self) -> str:
        return f"the process of run `{self.run}` died before the run ended"


class StoreUnavailable(Session, kind="session.store_unavailable"):
    """The journal could not be read or written."""


class StoreCorrupt(Session, kind="session.store_corrupt"):
    """The file is damaged, or is not a journal."""


class StoreFull(Fault, kind="resource.disk"):
    """There is no space left for the journal."""


class NoFileHandle(StoreFull, kind="resource.file_handles"):
    """This process, or the machine, has as many files open as it may."""


class StoreNewer(Session, kind="session.resume_mismatch"):
    """The journal was written by a newer version of failwell."""

    path: str
    found: int
    known: int

    def summary(self) -> str:
        return (
            f"the journal `{self.path}` has version {self.found}, "
            f"and this failwell supports versions up to {self.known}"
        )


if TYPE_CHECKING:
    import sqlite3

_PROBE_BYTES = 1 << 16
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SQLITE_FILES = 4
"""The database, its log, the log's index, and their folder."""
_NO_HANDLE = frozenset({errno.EMFILE, errno.ENFILE})
_READ_ONLY = frozenset({"SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH"})
_DAMAGED = frozenset({"SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT"})
_UNSUITABLE = frozenset({"SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_TOOBIG"})
_NO_REASON = frozenset({"SQLITE_IOERR", "SQLITE_CANTOPEN"})
"""Codes that SQLite also uses for a disk without space or without room for another file."""
_BUSY = frozenset({"SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL"})
_ALLOW_WRITING = "allow writing to the file and its folder, or use another folder with `--store DIR`"


def os_fault(error: OSError, path: Path) -> StoreUnavailable | StoreFull:
    """The fault for a file or folder of the state folder that the system refuses."""
    if error.errno in _FULL:
        return StoreFull(
            message=f"there is no space left for `{path}`",
            user_action=UserAction(
                ActionKind.FREE_RESOURCES, "free disk space, or use another folder with `--store DIR`"
            ),
        )
    if error.errno in _NO_HANDLE:
        return _no_handle(path)
    reason = (error.strerror or type(error).__name__).lower()
    return StoreUnavailable(
        message=f"the state folder `{path}` cannot be used: {reason}",
        retryable=False,
        user_action=UserAction(
            ActionKind.FIX_CONFIGURATION, "use another folder with `--store DIR` or `FAILWELL_STORE`"
        ),
    )


def unsafe_fault(folder: Path, mode: int) -> StoreUnavailable:
    """The fault for a state folder in which others could replace files."""
    return StoreUnavailable(
        message=f"the state folder `{folder}` is not safe: others can write to it (mode {mode:04o})",
        retryable=False,
        user_action=UserAction(
            ActionKind.FIX_CONFIGURATION,
            f"run `chmod go-w {folder}`, or use a folder of your own with `--store DIR`",
        ),
    )


def sqlite_fault(error: "sqlite3.Error", path: Path) -> Fault:
    """The fault for an error of SQLite's. Nothing of what was being written was stored."""
    code = str(getattr(error, "sqlite_errorname", None) or type(error).__name__)
    primary = "_".join(code.split("_")[:2])
    if primary in _DAMAGED:
        return damaged_fault(path, sqlite_code=code)
    if primary == "SQLITE_CANTOPEN" and _lacks_handles(path):
        return _no_handle(path, sqlite_code=code)
    if primary == "SQLITE_FULL" or (primary in _NO_REASON and _may_write(path) and _is_full(path)):
        from failwell.store.folder import store_option

        return StoreFull(
            message=f"there is no space left for the journal `{path}`",
            details={"sqlite_code": code},
            certainty=Certainty.NOT_SENT,
            user_action=UserAction(
                ActionKind.FREE_RESOURCES,
                f"free disk space, for instance with `failwell runs prune{store_option(path.parent)}`"
                " or `failwell jobs prune`, or use another folder with `--store DIR`",
            ),
        )
    if primary in _UNSUITABLE:
        return NotRecordable(reason="the store does not accept it")
    if primary in _BUSY:
        return _unavailable(f"the journal `{path}` is kept busy by another process", code)
    if primary in _READ_ONLY:
        return _unavailable(f"the journal `{path}` may not be written to", code, _ALLOW_WRITING)
    if primary == "SQLITE_CANTOPEN":
        return _unavailable(
            f"the journal `{path}` cannot be opened{_open_refusal(path)}",
            code,
            "check the file and its folder, or use another folder with `--store DIR`",
        )
    return _unavailable(f"the journal `{path}` could not be read or written", code)


def damaged_fault(path: Path, **details: object) -> StoreCorrupt:
    """The fault for a file that exists and cannot be read as a journal."""
    return StoreCorrupt(
        message=f"the journal `{path}` is damaged, or is no journal",
        details=details,
        user_action=UserAction(
            ActionKind.CONTACT_SUPPORT,
            "move the file away or restore a copy of it; it was left as it is",
        ),
    )


def damaged_record_fault(record: str, cause: BaseException) -> StoreCorrupt:
    """The fault for one record that cannot be read; the others can."""
    fault = StoreCorrupt(
        message=f"the record of {record} is damaged; other records are not affected",
        user_action=UserAction(
            ActionKind.CONTACT_SUPPORT, "restore a copy of the journal, or delete the record with `prune`"
        ),
    )
    fault.__cause__ = cause
    return fault


def newer_fault(path: Path, version: int, supported: int) -> StoreNewer:
    """The fault for a database of a newer version."""
    return StoreNewer(
        path=str(path),
        found=version,
        known=supported,
        user_action=UserAction(
            ActionKind.FIX_CONFIGURATION,
            "update failwell (`pip install -U failwell`), or use another folder with `--store DIR`",
        ),
    )


def empty_fault(path: Path) -> StoreUnavailable:
    """The fault for a database without tables that may not be written to."""
    return _unavailable(
        f"the journal `{path}` is empty and may not be written to", "SQLITE_READONLY", _ALLOW_WRITING
    )


def _no_handle(path: Path, **details: object) -> NoFileHandle:
    return NoFileHandle(
        message=f"`{path}` cannot be opened: too many files are open",
        details=details or None,
        certainty=Certainty.NOT_SENT,
        user_action=UserAction(
            ActionKind.FREE_RESOURCES, "close files, or raise the limit with `ulimit -n`, then run it again"
        ),
    )


def _lacks_handles(path: Path) -> bool:
    """Whether fewer files can be opened than SQLite needs, which does not say why it could not open its own."""
    handles: list[int] = []
    try:
        while len(handles) < _SQLITE_FILES:
            handles.append(os.open(path.parent, os.O_RDONLY))
    except OSError as error:
        return error.errno in _NO_HANDLE
    finally:
        for handle in handles:
            os.close(handle)
    return False


def _open_refusal(path: Path) -> str:
    """Why the system does not open the file, where that is known."""
    for file, access in ((path.parent, os.W_OK | os.X_OK), (path, os.R_OK | os.W_OK)):
        if file.exists() and not os.access(file, access):
            return f": `{file}` may not be written to"
    return ": it is a folder" if path.is_dir() else ""


def _unavailable(message: str, code: str, remedy: str | None = None) -> StoreUnavailable:
    return StoreUnavailable(
        message=message,
        details={"sqlite_code": code},
        certainty=Certainty.NOT_SENT,
        # What only a person can fix is not retried.
        retryable=None if remedy is None else False,
        user_action=None if remedy is None else UserAction(ActionKind.FIX_CONFIGURATION, remedy),
    )


def _may_write(path: Path) -> bool:
    return os.access(path.parent, os.W_OK | os.X_OK) and (not path.exists() or os.access(path, os.W_OK))


def _is_full(path: Path) -> bool:
    """Whether a write failed for lack of space. SQLite reports a quota or a size limit as a plain I/O error."""
    probe = path.with_name(f".space-{os.getpid()}")
    try:
        try:
            with probe.open("wb", buffering=0) as file:
                is_short = file.write(bytes(_PROBE_BYTES)) < _PROBE_BYTES
        finally:
            probe.unlink(missing_ok=True)
    except OSError:
        return True
    return is_short or _reached_size_limit(path)


def _reached_size_limit(path: Path) -> bool:
    """Whether the journal is as large as a file of this process may become."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_FSIZE, getrlimit
    except ImportError:
        return False
    limit = getrlimit(RLIMIT_FSIZE)[0]
    if limit == RLIM_INFINITY:
        return False
    files = (path, path.with_name(f"{path.name}-wal"))
    largest = max((file.stat().st_size for file in files if file.exists()), default=0)
    return largest + _PROBE_BYTES >= limit
