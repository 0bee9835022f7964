"""Runs and sessions in SQLite.

The usual append is one INSERT statement. It knows the next number from the append before; if another
process has written meanwhile, the primary key refuses the number, and the append is repeated in a
transaction that reads the number first.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, cast

from failwell.calls.suppress import suppress
from failwell.errors.fault import Fault
from failwell.store.event import Event, Fact, from_json, to_json
from failwell.store.faults import Locked, RunExists, UnknownRun
from failwell.store.folder import ENGINE, JOURNAL, check_run_id, run_folder
from failwell.store.locks import Holder, holder_of, run_lock, run_locked
from failwell.store.run_store import PruneResult, Run, Snapshot, Subject
from failwell.store.sqlite.database import (
    BUSY_SECONDS,
    Database,
    Durability,
    escape_surrogates,
    listing_query,
)
from failwell.store.sqlite.event_log import ONE_STATEMENT, PAGE, EventLog, follow
from failwell.store.status import (
    Status,
    StatusFields,
    as_mapping,
    fold_status,
    mark_interrupted,
    prune_statuses,
    stored_statuses,
)
from failwell.store.watch import Waker, Watch

if TYPE_CHECKING:
    from failwell.store.audit import AuditLog

_FIELDS = "status, ended, blocked_until, gates, kind, message, node"
_LAST = "FROM events WHERE id >= key << 32 AND id < (key + 1) << 32 ORDER BY id DESC LIMIT 1"
_FIND = f"SELECT key, (SELECT seq {_LAST}), {_FIELDS} FROM runs WHERE id = ?"  # noqa: S608  (constants)
_UPDATE = """UPDATE runs SET status = ?, ended = ?, blocked_until = ?, gates = ?, kind = ?, message = ?, node = ?
    WHERE key = ?"""
_DELETE_UNUSED = (
    "DELETE FROM sources WHERE digest = ? AND NOT EXISTS"
    " (SELECT 1 FROM run_sources WHERE run_sources.digest = sources.digest)"
)
_NAMES = (
    "id", "subject", "workflow", "file", "digest", "started", "status", "ended", "blocked_until", "gates",
    "kind", "message", "node", "pid", "host",
)  # fmt: skip
_COLUMNS = f"{', '.join(_NAMES)}, metadata, (SELECT at {_LAST}), (SELECT seq + 1 {_LAST})"

assert list(StatusFields._fields) == _FIELDS.split(", ")


class _Stream:
    """What is remembered of a run between two appends."""

    __slots__ = ("base", "fields", "key", "next")

    def __init__(self, key: int, next_seq: int, fields: StatusFields) -> None:
        self.key = key
        self.base = key << 32
        self.next = next_seq
        self.fields = fields


class SqliteStore:
    """See `failwell.store.run_store.Store`. One object per state folder and process; threads may share it."""

    def __init__(
        self,
        folder: Path | str,
        durability: Durability = "normal",
        *,
        busy: float = BUSY_SECONDS,
        read_when_full: bool = False,
    ) -> None:
        self.folder = Path(folder)
        self.path = self.folder / JOURNAL
        self._database = Database(self.path, durability, busy, read_when_full=read_when_full)
        # The key of the run and the number of the event are one integer: see journal.sql.
        self._log = EventLog(self._database, "events", "id")
        self._streams: dict[str, _Stream] = {}
        self._wakers: dict[str, Waker] = {}

    @property
    def audit(self) -> "AuditLog":
        """The audit of this store."""
        from failwell.store.audit import AuditLog

        return AuditLog(self._database)

    # -------------------------------------------------------------- writing

    def create(
        self,
        run: str,
        *,
        at: float,
        workflow: str = "",
        file: str = "",
        digest: str = "",
        sources: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        subject: Subject = "run",
        facts: Sequence[Fact] = (),
    ) -> list[Event]:
        from socket import gethostname

        check_run_id(run)
        about = (
            subject,
            escape_surrogates(workflow),
            escape_surrogates(file),
            escape_surrogates(digest),
            at,
            StatusFields().status,
        )
        with self._database.transaction() as connection:
            try:
                key = connection.execute(
                    "INSERT INTO runs (id, subject, workflow, file, digest, started, status, pid, host, metadata)"
                    " VALUES (?,?,?,?,?,?,?,?,?,?)",
                    (run, *about, os.getpid(), gethostname(), to_json(metadata or {})),
                ).lastrowid
            except sqlite3.IntegrityError:
                raise RunExists(run=run) from None
            _add_sources(connection, cast("int", key), sources or {})
            stream = _Stream(cast("int", key), 0, StatusFields())
            events = self._add(run, stream, facts)
        self._streams[run] = stream
        return events

    def append(self, run: str, facts: Sequence[Fact]) -> list[Event]:
        with self._database.turn:
            stream = self._streams.get(run)
            events = None if stream is None else self._append_fast(run, stream, facts)
            if events is None:
                with self._database.transaction():
                    stream = self._find(run)
                    events = self._add(run, stream, facts)
                self._streams[run] = stream
            waker = self._wakers.get(run)
            if waker is None:
                waker = self._wakers[run] = Waker(run_folder(self.folder, run))
            waker.wake()
            self._database.written(len(events))
        return events

    def _append_fast(self, run: str, stream: _Stream, facts: Sequence[Fact]) -> list[Event] | None:
        """One statement, if these facts leave the status alone and nobody else has written; else `None`."""
        if not 0 < len(facts) <= ONE_STATEMENT:
            return None
        if fold_status(run, stream.fields, facts) is not stream.fields:
            return None
        rows, events = _number(stream, facts)
        try:
            self._log.append(rows)
        except sqlite3.IntegrityError:
            return None
        except sqlite3.Error as error:
            self._streams.pop(run, None)
            raise self._database.fault(error) from error
        stream.next += len(rows)
        return events

    def _add(self, run: str, stream: _Stream, facts: Sequence[Fact]) -> list[Event]:
        """Insert inside the open transaction, and bring `stream` up to date."""
        fields = fold_status(run, stream.fields, facts)
        rows, events = _number(stream, facts)
        self._log.append(rows)
        if fields is not stream.fields:
            self._database.connection.execute(_UPDATE, (*map(escape_surrogates, fields), stream.key))
        stream.next += len(rows)
        stream.fields = fields
        return events

    def snapshot(self, run: str, seq: int, state: str) -> None:
        with self._database.transaction() as connection:
            key = self._key(run)
            connection.execute(
                "INSERT OR REPLACE INTO snapshots VALUES (?,?,?)", (key, seq, escape_surrogates(state))
            )
            connection.execute(
                "DELETE FROM snapshots WHERE run = ? AND seq NOT IN"
                " (SELECT seq FROM snapshots WHERE run = ? ORDER BY seq DESC LIMIT 2)",
                (key, key),
            )

    # -------------------------------------------------------------- reading

    def read(self, run: str, after: int = -1, limit: int | None = None) -> Iterator[Event]:
        return self._read(self._key(run), after, limit)

    def _read(self, key: int, after: int, limit: int | None = None) -> Iterator[Event]:
        return self._log.read(after, limit, base=key << 32, end=(key + 1) << 32)

    def tail(self, run: str, after: int = -1, give_up: Callable[[], bool] | None = None) -> Iterator[Event]:
        key = self._key(run)

        def read(last: int) -> Iterator[Event]:
            return self._read(key, last)

        def has_ended() -> bool:
            rows = self._database.rows("SELECT ended FROM runs WHERE key = ?", (key,))
            return not rows or rows[0][0] is not None

        return follow(Watch(run_folder(self.folder, run)), read, after, is_over=has_ended, give_up=give_up)

    def latest_snapshot(self, run: str) -> Snapshot | None:
        rows = self._database.rows(
            "SELECT seq, state FROM snapshots WHERE run = ? ORDER BY seq DESC LIMIT 1", (self._key(run),)
        )
        return Snapshot(*rows[0]) if rows else None

    def run(self, run: str) -> Run:
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM runs WHERE id = ?", (run,))  # noqa: S608  (constants)
        if not rows:
            raise UnknownRun(run=run)
        return mark_interrupted(_read_run(rows[0]), self._driver)

    def runs(
        self,
        *,
        statuses: Sequence[str] = (),
        workflow: str | None = None,
        since: float | None = None,
        prefix: str = "",
        before: str | None = None,
        limit: int | None = None,
        subject: Subject = "run",
    ) -> list[Run]:
        stored = stored_statuses(statuses)
        filters = {"subject": subject, "status": tuple(stored), "workflow": workflow, "started >=": since}
        matches: list[Run] = []
        # Only its lock tells whether a run is running or interrupted. Then a page may have to be followed by more.
        size = None if limit is None else limit if Status.RUNNING not in stored else max(limit, PAGE)
        while True:
            statement, values = listing_query(
                "runs", _COLUMNS, "started, id", filters=filters, prefix=prefix, before=before, limit=size
            )
            page = [
                mark_interrupted(_read_run(row), self._driver)
                for row in self._database.rows(statement, values)
            ]
            matches += [run for run in page if not statuses or run.status in statuses]
            if limit is None or size is None or len(page) < size or len(matches) >= limit:
                return matches[:limit]
            before = page[-1].id

    def continuations(self, run: str) -> list[str]:
        rows = self._database.rows(
            "SELECT id, metadata FROM runs WHERE key > ? AND instr(metadata, ?) ORDER BY key",
            (self._key(run), f'"continues":{to_json(run)}'),
        )
        return [name for name, metadata in rows if _read_metadata(metadata).get("continues") == run]

    def sources(self, run: str) -> dict[str, str]:
        return dict(
            self._database.rows(
                "SELECT path, text FROM run_sources JOIN sources USING (digest) WHERE run = ?",
                (self._key(run),),
            )
        )

    def replace_sources(self, run: str, sources: Mapping[str, str]) -> None:
        with self._database.transaction() as connection:
            key = self._key(run)
            digests = connection.execute("SELECT digest FROM run_sources WHERE run = ?", (key,)).fetchall()
            connection.execute("DELETE FROM run_sources WHERE run = ?", (key,))
            _add_sources(connection, key, sources)
            connection.executemany(_DELETE_UNUSED, digests)

    def identity(self) -> str:
        """The id of this store, which no other store has."""
        return self._database.rows("SELECT id FROM store")[0][0]

    # -------------------------------------------------------------- locking, deleting, closing

    def lock(self, run: str) -> AbstractContextManager[object]:
        # The previous holder may have written, or deleted the run.
        self._streams.pop(run, None)
        return run_lock(run_folder(self.folder, run), run)

    def is_locked(self, run: str) -> bool:
        return self._holder(run) is not None

    def _holder(self, run: str) -> Holder | None:
        return holder_of(run_folder(self.folder, run))

    def _driver(self, run: str) -> Holder | None:
        """The process that drives a run; of a run that another engine drives, nothing is known here."""
        holder = self._holder(run)
        return Holder() if holder is None and (run_folder(self.folder, run) / ENGINE).exists() else holder

    def prune(
        self,
        *,
        before: float | None = None,
        keep: int = 0,
        statuses: Sequence[str] = (),
        dry_run: bool = False,
    ) -> PruneResult:
        deleted: list[str] = []
        live: list[str] = []
        events = 0
        for run in self.runs(statuses=prune_statuses(statuses))[keep:]:
            if before is not None and run.updated >= before:
                continue
            removed = self._prune_one(run, dry_run=dry_run)
            if removed is None:
                live.append(run.id)
            elif removed >= 0:
                deleted.append(run.id)
                events += removed
        if deleted and not dry_run:
            with suppress(Fault, reason="the runs are deleted; their space is used again later"):
                self._database.compact()
        return PruneResult(runs=tuple(deleted), events=events, kept_live=tuple(live))

    def delete(self, run: str) -> int:
        """Delete one run or session and its folder; how many events it had. Nothing of it stays in the file.

        Raises:
            UnknownRun: there is none with this id.
            Locked: a process is writing to it.
        """
        with self._database.reading() as connection:
            # Freed pages would hold what was said until they are used again.
            connection.execute("PRAGMA secure_delete = ON")
        events = self._prune_one(self.run(run), dry_run=False)
        if events is None:
            raise run_locked(run, self._holder(run) or Holder())
        with suppress(Fault, reason="the run is deleted; its copy in the log goes with the next checkpoint"):
            self._database.shrink_log()
        return max(0, events)

    def _prune_one(self, run: Run, *, dry_run: bool) -> int | None:
        """How many events were deleted with the run; `None` if it is locked, -1 if it is already gone.

        The lock is held meanwhile, so that nobody begins to write to the run.
        """
        if dry_run:
            return None if self.is_locked(run.id) else run.events
        folder = run_folder(self.folder, run.id)
        try:
            with self.lock(run.id):
                events = self._delete(run.id)
                rmtree(folder, ignore_errors=True)
        except Locked:
            return None
        except UnknownRun:
            # Another process pruned it this moment; taking its lock created the folder again.
            rmtree(folder, ignore_errors=True)
            return -1
        return events

    def _delete(self, run: str) -> int:
        """Delete one run with all that belongs to it alone; how many events it had."""
        with self._database.transaction() as connection:
            key = self._key(run)
            span = (key << 32, (key + 1) << 32)
            count = connection.execute("DELETE FROM events WHERE id >= ? AND id < ?", span).rowcount
            digests = connection.execute("SELECT digest FROM run_sources WHERE run = ?", (key,)).fetchall()
            connection.execute("DELETE FROM runs WHERE key = ?", (key,))
            connection.executemany(_DELETE_UNUSED, digests)
            self._streams.pop(run, None)
        return count

    def close(self) -> None:
        for waker in self._wakers.values():
            waker.close()
        self._wakers.clear()
        self._streams.clear()
        self._database.close()

    def _find(self, run: str) -> _Stream:
        row = self._database.connection.execute(_FIND, (run,)).fetchone()
        if row is None:
            raise UnknownRun(run=run)
        key, last, *fields = row
        return _Stream(key, 0 if last is None else last + 1, StatusFields(*fields))

    def _key(self, run: str) -> int:
        rows = self._database.rows("SELECT key FROM runs WHERE id = ?", (run,))
        if not rows:
            raise UnknownRun(run=run)
        return rows[0][0]


def _add_sources(connection: sqlite3.Connection, key: int, sources: Mapping[str, str]) -> None:
    for path, source in sources.items():
        text = escape_surrogates(source)
        digest = sha256(text.encode()).hexdigest()
        connection.execute("INSERT OR IGNORE INTO sources VALUES (?,?)", (digest, text))
        connection.execute("INSERT INTO run_sources VALUES (?,?,?)", (key, escape_surrogates(path), digest))


def _number(stream: _Stream, facts: Sequence[Fact]) -> tuple[list[tuple[Any, ...]], list[Event]]:
    """The rows and the events of facts that follow what the stream has."""
    events = [Event(seq, type_, at, data) for seq, (type_, at, data) in enumerate(facts, stream.next)]
    base = stream.base
    return [(base + seq, type_, at, to_json(data)) for seq, type_, at, data, _ in events], events


def _read_metadata(text: str) -> Mapping[str, Any]:
    try:
        value: object = from_json(text)
    except (ValueError, RecursionError):
        # A damaged row must not hide the others; its events have their own copy.
        return {}
    return as_mapping(value)


def _read_run(row: Sequence[Any]) -> Run:
    """One row of `_COLUMNS`."""
    *values, metadata, updated, events = row
    fields: dict[str, Any] = dict(zip(_NAMES, values, strict=True))
    return Run(
        **fields,
        metadata=_read_metadata(metadata),
        updated=fields["started"] if updated is None else updated,
        events=events or 0,
    )
