"""The journal in SQLite.

The common append is one INSERT statement and nothing else. It knows the next number from the append
before; if somebody else has written meanwhile, the primary key refuses the numbers and the slow way,
which reads them inside the transaction, is taken.
"""

import os
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any, cast

from failwell.journal.event import Event, Fact, decoded, encoded
from failwell.journal.faults import RunExists, UnknownRun
from failwell.journal.folder import JOURNAL, checked_id, run_folder
from failwell.journal.lock import held, is_held
from failwell.journal.sqlite.checkpoint import Checkpointer
from failwell.journal.sqlite.compact import compact
from failwell.journal.sqlite.connection import BUSY_SECONDS, Durability, connect
from failwell.journal.sqlite.errors import damaged, trouble, typed
from failwell.journal.sqlite.listing import COLUMNS, listed, read_run, storable
from failwell.journal.sqlite.prune import prune
from failwell.journal.status import Standing, fold
from failwell.journal.store import Pruned, Run, Snapshot, Subject
from failwell.journal.watch import Bell, Watch

_PAGE = 256
"""Events that are read at a time: nothing stays open while the reader thinks."""
_ONE_STATEMENT = 8
"""Up to so many facts one INSERT is faster than a transaction around several."""
_ROWS = "INSERT INTO events (id, type, at, data) VALUES "
_INSERT = [_ROWS + ",".join(["(?,?,?,?)"] * n) for n in range(_ONE_STATEMENT + 1)]
_STANDING = "status, ended, blocked_until, gates, kind, message, node"
_LAST = "SELECT seq FROM events WHERE id >= key << 32 AND id < (key + 1) << 32 ORDER BY id DESC LIMIT 1"
_FIND = f"SELECT key, ({_LAST}), {_STANDING} FROM runs WHERE id = ?"  # noqa: S608  (constants)
_MOVE = """UPDATE runs SET status = ?, ended = ?, blocked_until = ?, gates = ?, kind = ?, message = ?, node = ?
    WHERE key = ?"""


class _Stream:
    """What is remembered of a run between two appends."""

    __slots__ = ("key", "next", "standing")

    def __init__(self, key: int, following: int, standing: Standing) -> None:
        self.key = key
        self.next = following
        self.standing = standing


class SqliteStore:
    """See `failwell.journal.store.Store`. One object per state folder and process; threads may share it."""

    def __init__(
        self, folder: Path | str, durability: Durability = "normal", *, busy: float = BUSY_SECONDS
    ) -> None:
        self.folder = Path(folder)
        self.path = self.folder / JOURNAL
        self._connection = connect(self.path, durability, busy)
        self._turn = RLock()
        self._streams: dict[str, _Stream] = {}
        self._bells: dict[str, Bell] = {}
        self._checkpointer = Checkpointer(self.path)

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

        checked_id(run)
        about = (subject, storable(workflow), storable(file), storable(digest), at, Standing().status)
        with self._transaction() as connection:
            try:
                key = connection.execute(
                    "INSERT INTO runs (id, subject, workflow, file, digest, started, status, pid, host, metadata)"
                    " VALUES (?,?,?,?,?,?,?,?,?,?)",
                    (run, *about, os.getpid(), gethostname(), encoded(metadata or {})),
                ).lastrowid
            except sqlite3.IntegrityError:
                raise RunExists(run=run) from None
            for path, given in (sources or {}).items():
                text = storable(given)
                name = sha256(text.encode()).hexdigest()
                connection.execute("INSERT OR IGNORE INTO sources VALUES (?,?)", (name, text))
                connection.execute("INSERT INTO run_sources VALUES (?,?,?)", (key, storable(path), name))
            stream = _Stream(cast("int", key), 0, Standing())
            events = self._add(run, stream, facts)
        self._streams[run] = stream
        return events

    def append(self, run: str, facts: Sequence[Fact]) -> list[Event]:
        with self._turn:
            stream = self._streams.get(run)
            events = None if stream is None else self._append_fast(run, stream, facts)
            if events is None:
                with self._transaction():
                    stream = self._find(run)
                    events = self._add(run, stream, facts)
                self._streams[run] = stream
            bell = self._bells.get(run)
            if bell is None:
                bell = self._bells[run] = Bell(run_folder(self.folder, run))
            bell.ring()
            self._checkpointer.count(len(events))
        return events

    def read(self, run: str, after: int = -1, limit: int | None = None) -> Iterator[Event]:
        return self._pages(self._key(run), after, limit)

    def tail(self, run: str, after: int = -1, give_up: Callable[[], bool] | None = None) -> Iterator[Event]:
        return self._follow(run, self._key(run), after, give_up)

    def snapshot(self, run: str, seq: int, state: str) -> None:
        with self._transaction() as connection:
            key = self._key(run)
            connection.execute("INSERT OR REPLACE INTO snapshots VALUES (?,?,?)", (key, seq, storable(state)))
            connection.execute(
                "DELETE FROM snapshots WHERE run = ?1 AND seq NOT IN"
                " (SELECT seq FROM snapshots WHERE run = ?1 ORDER BY seq DESC LIMIT 2)",
                (key,),
            )

    def latest_snapshot(self, run: str) -> Snapshot | None:
        found = self._rows(
            "SELECT seq, state FROM snapshots WHERE run = ? ORDER BY seq DESC LIMIT 1", (self._key(run),)
        )
        return Snapshot(*found[0]) if found else None

    def run(self, run: str) -> Run:
        found = self._rows(f"SELECT {COLUMNS} FROM runs WHERE id = ?", (run,))  # noqa: S608  (constants)
        if not found:
            raise UnknownRun(run=run)
        return read_run(found[0])

    def runs(
        self,
        *,
        statuses: Sequence[str] = (),
        workflow: str | None = None,
        since: float | None = None,
        prefix: str = "",
        limit: int | None = None,
        subject: Subject = "run",
    ) -> list[Run]:
        statement, values = listed(subject, statuses, workflow, since, prefix, limit)
        return [read_run(row) for row in self._rows(statement, values)]

    def sources(self, run: str) -> dict[str, str]:
        return dict(
            self._rows(
                "SELECT path, text FROM run_sources JOIN sources USING (digest) WHERE run = ?",
                (self._key(run),),
            )
        )

    def lock(self, run: str) -> AbstractContextManager[None]:
        # Whoever had the lock before may have written, or deleted.
        self._streams.pop(run, None)
        return held(run_folder(self.folder, run), run)

    def is_locked(self, run: str) -> bool:
        return is_held(run_folder(self.folder, run))

    def prune(
        self,
        *,
        before: float | None = None,
        keep: int = 0,
        statuses: Sequence[str] = (),
        dry_run: bool = False,
    ) -> Pruned:
        return prune(self, before=before, keep=keep, statuses=statuses, dry_run=dry_run)

    def forget(self, run: str) -> int:
        """Delete one run with all that belongs to it alone; how many events there were."""
        with self._transaction() as connection:
            key = self._key(run)
            span = (key << 32, (key + 1) << 32)
            count = connection.execute("DELETE FROM events WHERE id >= ? AND id < ?", span).rowcount
            digests = connection.execute("SELECT digest FROM run_sources WHERE run = ?", (key,)).fetchall()
            connection.execute("DELETE FROM runs WHERE key = ?", (key,))
            connection.executemany(
                "DELETE FROM sources WHERE digest = ?1"
                " AND NOT EXISTS (SELECT 1 FROM run_sources WHERE digest = ?1)",
                digests,
            )
            self._streams.pop(run, None)
        return count

    def compact(self) -> None:
        """Give space back to the disk if much of the file lies empty."""
        with self._turn, typed(self.path):
            compact(self._connection)

    def close(self) -> None:
        with self._turn, typed(self.path):
            self._checkpointer.close()
            for bell in self._bells.values():
                bell.close()
            self._bells.clear()
            self._streams.clear()
            self._connection.close()

    def _append_fast(self, run: str, stream: _Stream, facts: Sequence[Fact]) -> list[Event] | None:
        """One statement, if these facts move nothing and nobody else has written; else `None`."""
        if len(facts) > _ONE_STATEMENT or not facts:
            return None
        if fold(run, stream.standing, facts) is not stream.standing:
            return None
        seq = stream.next
        first = stream.key << 32
        values: list[Any] = []
        events: list[Event] = []
        for type_, at, data in facts:
            values += (first + seq, type_, at, encoded(data))
            events.append(Event(seq, type_, at, data))
            seq += 1
        try:
            self._connection.execute(_INSERT[len(facts)], values)
        except sqlite3.IntegrityError:
            return None
        except sqlite3.Error as error:
            self._streams.pop(run, None)
            raise trouble(error, self.path) from error
        stream.next = seq
        return events

    def _add(self, run: str, stream: _Stream, facts: Sequence[Fact]) -> list[Event]:
        """Insert inside the transaction that is open; `stream` is brought forward."""
        standing = fold(run, stream.standing, facts)
        first = stream.next
        following = (stream.key << 32) + first
        rows = [(following + i, type_, at, encoded(data)) for i, (type_, at, data) in enumerate(facts)]
        self._connection.executemany(_INSERT[1], rows)
        if standing is not stream.standing:
            self._connection.execute(_MOVE, (*map(storable, standing), stream.key))
        stream.next = first + len(rows)
        stream.standing = standing
        return [Event(first + i, *fact) for i, fact in enumerate(facts)]

    def _find(self, run: str) -> _Stream:
        found = self._connection.execute(_FIND, (run,)).fetchone()
        if found is None:
            raise UnknownRun(run=run)
        key, last, *standing = found
        return _Stream(key, 0 if last is None else last + 1, Standing(*standing))

    def _key(self, run: str) -> int:
        found = self._rows("SELECT key FROM runs WHERE id = ?", (run,))
        if not found:
            raise UnknownRun(run=run)
        return found[0][0]

    def _pages(self, key: int, after: int, limit: int | None) -> Iterator[Event]:
        while limit is None or limit > 0:
            size = _PAGE if limit is None else min(_PAGE, limit)
            page = self._rows(
                "SELECT seq, type, at, data FROM events WHERE id > ? AND id < ? ORDER BY id LIMIT ?",
                ((key << 32) + after, (key + 1) << 32, size),
            )
            for seq, type_, at, data in page:
                try:
                    yield Event(seq, type_, at, decoded(data))
                except ValueError as error:
                    raise damaged(self.path, seq=seq) from error
                after = seq
            if len(page) < size:
                return
            limit = None if limit is None else limit - size

    def _follow(self, run: str, key: int, after: int, give_up: Callable[[], bool] | None) -> Iterator[Event]:
        with Watch(run_folder(self.folder, run)) as watch:
            while True:
                # Asked first: what is added after the question is read by the next round.
                ended = self.run(run).ended is not None
                for event in self._pages(key, after, None):
                    after = event.seq
                    yield event
                if ended:
                    return
                if not watch.wait(watch.patience) and give_up is not None and give_up():
                    return

    def _rows(self, statement: str, values: Sequence[Any]) -> list[Any]:
        with self._turn, typed(self.path):
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        with self._turn, typed(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:  # whatever it was, half a transaction must not stay open
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


assert list(Standing._fields) == [name.strip() for name in _STANDING.split(",")]
