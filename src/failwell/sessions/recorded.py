"""Sessions that are recorded: list, read and delete them."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from failwell.errors.frozen import frozen
from failwell.sessions.faults import SessionLocked, unknown_session
from failwell.sessions.history import SessionState
from failwell.store.event import Event
from failwell.store.faults import Locked, UnknownRun
from failwell.store.folder import JOURNAL, state_folder
from failwell.store.run_store import Run
from failwell.store.sqlite.run_store import SqliteStore
from failwell.store.status import Status

SessionStatus = Literal["open", "closed", "interrupted"]
STATUSES: tuple[SessionStatus, ...] = ("open", "closed", "interrupted")
_SHOWN: dict[str, SessionStatus] = {
    Status.RUNNING: "open",
    Status.WAITING: "closed",
    Status.INTERRUPTED: "interrupted",
}


@frozen
class RecordedSession:
    """One session in a listing."""

    id: str
    agent: str
    file: str
    status: SessionStatus
    """`open` in a living process, `closed` by it, or `interrupted` because it died."""
    started: float
    updated: float
    events: int
    pid: int | None = None
    """The process that has it open."""


def list_sessions(
    *,
    store: str | Path | None = None,
    statuses: tuple[str, ...] = (),
    prefix: str = "",
    limit: int | None = None,
) -> list[RecordedSession]:
    """The recorded sessions, the newest first.

    Args:
        store: The state folder.
        statuses: Any of `open`, `closed` and `interrupted`; every status by default.
        prefix: The beginning of an id.
        limit: How many at most.
    """
    folder = state_folder(None if store is None else str(store))
    if not (folder / JOURNAL).exists():
        return []
    journal = SqliteStore(folder, read_when_full=True)
    try:
        stored = [stored for stored, shown in _SHOWN.items() if shown in statuses]
        rows = journal.runs(statuses=stored, prefix=prefix, limit=limit, subject="session")
    finally:
        journal.close()
    return [_info(row) for row in rows]


def session_events(session: str, *, store: str | Path | None = None, after: int = -1) -> Iterator[Event]:
    """The events of a session, those numbered above `after`.

    Raises:
        UnknownSession: there is none with this id.
    """
    with _journal_of(session, store) as journal:
        yield from journal.read(session, after)


def read_session(session: str, *, store: str | Path | None = None) -> SessionState:
    """What was said in a session, what it is held with, and what it used.

    Raises:
        UnknownSession: there is none with this id.
        StoreCorrupt: its record is damaged.
    """
    from failwell.sessions.opening import read_state

    with _journal_of(session, store) as journal:
        return read_state(journal, session)


def delete_session(session: str, *, store: str | Path | None = None) -> int:
    """Delete a session, what was said in it, and its files; how many events it had.

    Raises:
        UnknownSession: there is none with this id.
        SessionLocked: a process has it open.
    """
    with _journal_of(session, store, read_when_full=False) as journal:
        try:
            return journal.delete(session)
        except Locked as locked:
            raise SessionLocked(session=session, pid=locked.pid, host=locked.host) from locked


@contextmanager
def _journal_of(
    session: str, store: str | Path | None, *, read_when_full: bool = True
) -> Generator[SqliteStore]:
    folder = state_folder(None if store is None else str(store))
    if not (folder / JOURNAL).exists():
        raise unknown_session(session)
    journal = SqliteStore(folder, read_when_full=read_when_full)
    try:
        check_recorded(journal, session)
        yield journal
    finally:
        journal.close()


def check_recorded(journal: SqliteStore, session: str) -> None:
    """Refuse an id that no session of the journal has.

    Raises:
        UnknownSession: there is none.
    """
    try:
        if journal.run(session).subject == "session":
            return
    except UnknownRun:
        pass
    raise unknown_session(session)


def _info(row: Run) -> RecordedSession:
    return RecordedSession(
        id=row.id,
        agent=row.workflow,
        file=row.file,
        status=_SHOWN.get(row.status, "closed"),
        started=row.started,
        updated=row.updated,
        events=row.events,
        pid=row.pid if row.status == Status.RUNNING else None,
    )
