"""Claims of effects in the SQLite database of a state folder.

The claim is on disk, flushed, before the effect begins. A process holds a lock of the operating system as long as
it lives, so a free lock proves that the process of a claim is dead, without a clock.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.calls.suppress import suppress
from failwell.errors.fault import Fault
from failwell.store.effects.claims import Claim, EffectKey
from failwell.store.event import to_json
from failwell.store.folder import JOURNAL, state_folder
from failwell.store.locks import ProcessLock, is_held
from failwell.store.sqlite.database import Database, escape_surrogates, listing_query
from failwell.store.watch import Waker, Watch

if TYPE_CHECKING:
    import sqlite3

FOLDER = "effects"
_PROCESSES = "processes"
_NAMES = (
    "id", "name", "scope", "key", "status", "token", "holder", "pid", "started", "ended", "expires", "arguments",
    "result", "kind",
)  # fmt: skip
_COLUMNS = ", ".join(_NAMES)
_FIND = f"SELECT {_COLUMNS} FROM effects WHERE id = ?"  # noqa: S608  (constants)
_INSERT = f"INSERT INTO effects ({_COLUMNS}) VALUES ({', '.join('?' * len(_NAMES))})"  # noqa: S608  (constants)
_EXPIRE = "DELETE FROM effects WHERE expires IS NOT NULL AND expires <= ?"
_TAKE = """UPDATE effects SET status = 'running', token = ?, holder = ?, pid = ?, started = ?, ended = NULL
    WHERE id = ? AND token = ? AND status != 'done'"""
_COMPLETE = """UPDATE effects SET status = 'done', result = ?, ended = ?, expires = ?, kind = NULL
    WHERE id = ? AND token = ?"""
_UNCLEAR = "UPDATE effects SET status = 'unclear', kind = ?, ended = ? WHERE id = ? AND token = ? AND status = 'running'"
_RELEASE = "DELETE FROM effects WHERE id = ? AND token = ?"


_of_parents: list[object] = []
"""Connections that processes before a fork had opened."""


class SqliteClaims:
    """Claims in a state folder, shared by all processes of this machine that use it. Threads may share it."""

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, clock: Clock = SYSTEM_CLOCK) -> None:
        """Nothing is opened yet.

        Args:
            folder: The state folder; by default the one that the environment names.
            clock: Where times come from.
        """
        self.folder = state_folder(None if folder is None else os.fspath(folder))
        self._clock = clock
        self._lock = Lock()
        self._open: tuple[int, Database, Waker] | None = None
        self._process: tuple[str, ProcessLock] | None = None

    # -------------------------------------------------------------- taking and completing

    def claim(self, effect: EffectKey, arguments: Mapping[str, str]) -> Claim:
        """Take the claim if nobody has it; else return it as it is."""
        database, _ = self._opened()
        holder = self._holder()
        now = self._now()
        token = os.urandom(8).hex()
        values = (
            effect.id, *map(escape_surrogates, (effect.name, effect.scope, effect.key)), "running", token, holder,
            os.getpid(), now, None, None, to_json(arguments), None, None,
        )  # fmt: skip

        def take(connection: "sqlite3.Connection") -> tuple[Any, ...] | None:
            connection.execute(_EXPIRE, (now,))
            row = connection.execute(_FIND, (effect.id,)).fetchone()
            if row is None:
                connection.execute(_INSERT, values)
            return row

        row = database.write(take)
        if row is None:
            return replace(self._read(values), is_own=True)
        return self._read(row)

    def take_over(self, claim: Claim) -> Claim | None:
        """Take an unclear claim; `None` if somebody else changed it first."""
        token = os.urandom(8).hex()
        now = self._now()
        values = (token, self._holder(), os.getpid(), now, claim.id, claim.token)
        if not self._change(_TAKE, values):
            return None
        return replace(claim, token=token, status="running", started=now, ended=None, is_own=True)

    def complete(self, claim: Claim, result: str | None, keep: float | None) -> bool:
        """Store the result. `False` if the claim is no longer the caller's."""
        now = self._now()
        return self._change(
            _COMPLETE, (result, now, None if keep is None else now + keep, claim.id, claim.token)
        )

    def mark_unclear(self, claim: Claim, kind: str | None) -> bool:
        """Record that nobody knows whether it happened. `False` if the claim is no longer the caller's."""
        return self._change(_UNCLEAR, (kind, self._now(), claim.id, claim.token))

    def release(self, claim: Claim) -> bool:
        """Delete the claim, so that the effect may be run. `False` if it was changed meanwhile."""
        return self._change(_RELEASE, (claim.id, claim.token))

    # -------------------------------------------------------------- reading

    def get(self, effect: str) -> Claim | None:
        """The claim with this id."""
        database, _ = self._opened()
        rows = database.rows(_FIND, (effect,))
        return self._read(rows[0]) if rows else None

    def find(self, prefix: str, limit: int | None = None) -> list[Claim]:
        """The claims whose ids begin with `prefix`, newest first."""
        return self._list(prefix, (), limit)

    def claims(self, statuses: Sequence[str] = (), limit: int | None = None) -> list[Claim]:
        """Claims with one of these statuses, or all, newest first."""
        # Only its lock tells whether a claim is running or unclear, so both are read for either.
        stored = (*statuses, "running") if "unclear" in statuses else (*statuses,)
        claims = self._list("", stored, None if statuses else limit)
        return [claim for claim in claims if not statuses or claim.status in statuses][:limit]

    def watch(self) -> Watch:
        """Something that waits for changes of claims."""
        return Watch(self.folder / FOLDER)

    def close(self) -> None:
        """Close the connection, and give up the lock. What this process has claimed and not completed is unclear then."""
        with self._lock:
            if self._open is not None and self._open[0] == os.getpid():
                self._open[1].close()
                self._open[2].close()
            if self._process is not None and self._open is not None and self._open[0] == os.getpid():
                self._process[1].release()
            self._open = self._process = None

    # -------------------------------------------------------------- inside

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _opened(self) -> tuple[Database, Waker]:
        with self._lock:
            if self._open is None or self._open[0] != os.getpid():
                self._leave_to_parent()
                database = Database(self.folder / JOURNAL, "full")
                self._open = (os.getpid(), database, Waker(self.folder / FOLDER))
            return self._open[1], self._open[2]

    def _leave_to_parent(self) -> None:
        """After a fork the connection is the parent's: it must not even be closed here. The lock's file must."""
        if self._open is not None:
            _of_parents.append(self._open)
        if self._process is not None:
            self._process[1].release()
            self._process = None

    def _holder(self) -> str:
        """The name of this process, whose lock it holds from the first claim on."""
        with self._lock:
            if self._process is None:
                name = f"{os.getpid()}-{os.urandom(4).hex()}"
                lock = ProcessLock(self.folder / FOLDER / _PROCESSES / name, clock=self._clock)
                lock.acquire()
                self._process = (name, lock)
                self._delete_dead()
            return self._process[0]

    def _delete_dead(self) -> None:
        """Delete the folders of processes that are gone. A claim whose folder is missing is unclear all the same."""
        from shutil import rmtree

        for folder in (self.folder / FOLDER / _PROCESSES).iterdir():
            if not is_held(folder):
                # Under its lock, so that no process takes it meanwhile.
                with (
                    suppress(Fault, reason="another process deletes it"),
                    ProcessLock(folder, clock=self._clock),
                ):
                    rmtree(folder, ignore_errors=True)

    def _change(self, statement: str, values: tuple[Any, ...]) -> bool:
        database, waker = self._opened()

        def change(connection: "sqlite3.Connection") -> int:
            return connection.execute(statement, values).rowcount

        is_changed = database.write(change) == 1
        waker.wake()
        return is_changed

    def _list(self, prefix: str, statuses: tuple[str, ...], limit: int | None) -> list[Claim]:
        statement, values = listing_query(
            "effects", _COLUMNS, "started, id", filters={"status": statuses}, prefix=prefix, limit=limit
        )
        database, _ = self._opened()
        return [self._read(row) for row in database.rows(statement, values)]

    def _read(self, row: Sequence[Any]) -> Claim:
        from failwell.store.event import from_json

        fields: dict[str, Any] = dict(zip(_NAMES, row, strict=True))
        id_, name, scope, key = (fields.pop(part) for part in ("id", "name", "scope", "key"))
        holder = fields.pop("holder")
        if fields["status"] == "running" and not self._is_alive(holder):
            fields["status"] = "unclear"
        fields["arguments"] = from_json(fields["arguments"])
        return Claim(effect=EffectKey(id=id_, name=name, scope=scope, key=key), **fields)

    def _is_alive(self, holder: str) -> bool:
        if self._process is not None and self._process[0] == holder:
            return True
        return is_held(self.folder / FOLDER / _PROCESSES / holder)
