"""The audit: one append-only, hash-chained log of a store.

A record is written, and on disk, before the action that it announces. Each holds the hash of the one before, so a record that
was changed, removed or inserted later is found. Records hold no secrets: every text is redacted when it is written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.errors.frozen import frozen
from failwell.errors.redact import are_clean, redact_text, redact_value, refresh
from failwell.store.event import from_json, to_json
from failwell.store.sqlite.database import Database, escape_surrogates
from failwell.store.status import as_mapping

if TYPE_CHECKING:
    import sqlite3

FIRST = "0" * 64
"""The previous hash of the first record."""
LONGEST_TEXT = 64 * 1024
"""Characters of a foreign text, such as an error message of a provider."""
_PAGE = 1_000
_PLAIN = frozenset({str, int, bool, type(None)})
_LAST = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1"
_INSERT = "INSERT INTO audit (seq, at, type, run, data, previous, hash) VALUES (?,?,?,?,?,?,?)"
_READ = "SELECT seq, at, type, run, data, previous, hash FROM audit"


@frozen
class AuditRecord:
    """One record."""

    seq: int
    at: float
    """Seconds since 1970."""
    type: str
    run: str | None
    """The run or session that it belongs to."""
    data: Mapping[str, Any]
    previous: str
    hash: str

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON."""
        return {
            "seq": self.seq,
            "at": self.at,
            "type": self.type,
            "run": self.run,
            "data": self.data,
            "previous": self.previous,
            "hash": self.hash,
        }


@frozen
class AuditProblem:
    """Something that is not as it was written."""

    seq: int
    problem: str

    def to_dict(self) -> dict[str, Any]:
        """The problem as JSON."""
        return {"seq": self.seq, "problem": self.problem}


@frozen
class AuditCheck:
    """What `verify` found."""

    records: int
    head: str
    """The hash of the last record. Keep it elsewhere to prove later that nothing was rewritten."""
    problems: tuple[AuditProblem, ...] = field(default=())


class AuditLog:
    """The audit of one store. Threads and processes may write to it at the same time."""

    def __init__(self, database: Database, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._database = database
        self._clock = clock

    def append(
        self, type_: str, data: Mapping[str, Any], *, run: str | None = None, text: str | None = None
    ) -> int:
        """Write one record, and return its number once it is on disk.

        Args:
            type_: What happens, as `tool:called`.
            data: The facts, as JSON. They are redacted and cut.
            run: The run or session that it belongs to.
            text: A foreign text, such as an error message: redacted, and kept up to 64 KiB.

        Raises:
            Fault: it cannot be written. What it announces must not be done then.
        """
        facts = _redacted(data)
        if text is not None:
            facts["text"] = redact_text(text, LONGEST_TEXT)
        at = self._clock.now().timestamp()
        body = (type_, None if run is None else escape_surrogates(run), to_json(facts))
        return self._database.write(_append, at, body)

    def bind(self, run: str, **scope: Any) -> "Audit":
        """Write records of one run or session, with `scope` in each."""
        return Audit(self, run, scope)

    def records(
        self, *, run: str | None = None, types: tuple[str, ...] = (), after: int = 0
    ) -> Iterator[AuditRecord]:
        """The records after number `after`, the oldest first.

        Args:
            run: Only those of this run or session.
            types: Only those whose type is, or begins with, one of these: `tool:called`, `tool`.
            after: The number of the last record that is known already.
        """
        where, values = _filter(run, types)
        while True:
            page = self._rows(f"seq > ? AND {where} ORDER BY seq LIMIT {_PAGE}", (after, *values))
            yield from map(_record, page)
            if len(page) < _PAGE:
                return
            after = page[-1][0]

    def latest(
        self, limit: int, *, run: str | None = None, types: tuple[str, ...] = (), after: int = 0
    ) -> list[AuditRecord]:
        """The last `limit` of `records`, the oldest first."""
        where, values = _filter(run, types)
        page = self._rows(f"seq > ? AND {where} ORDER BY seq DESC LIMIT ?", (after, *values, limit))
        return [_record(row) for row in reversed(page)]

    def runs(self, prefix: str, limit: int) -> list[str]:
        """The runs and sessions with records whose ids begin with `prefix`, the latest first; also those that were pruned."""
        rows = self._database.rows(
            "SELECT run FROM audit WHERE run >= ? AND run < ? GROUP BY run ORDER BY MAX(seq) DESC LIMIT ?",
            (prefix, f"{prefix}\x7f", limit),
        )
        return [row[0] for row in rows]

    def verify(self, expected: tuple[int, str] | None = None) -> AuditCheck:
        """Compute every hash again.

        Args:
            expected: The number and the hash of a record that was noted elsewhere.
        """
        problems: list[AuditProblem] = []
        seq, head, count = 0, FIRST, 0
        for row in self._all_rows():
            number, *_, previous, stored = row
            if number != seq + 1:
                problems.append(AuditProblem(seq=seq + 1, problem=_missing(seq + 1, number - 1)))
            elif previous != head:
                problems.append(
                    AuditProblem(seq=number, problem=f"record {number} does not follow record {seq}")
                )
            if _hash(row) != stored:
                problems.append(AuditProblem(seq=number, problem=f"record {number} was changed"))
            if expected is not None and expected[0] == number and expected[1] != stored:
                problems.append(AuditProblem(seq=number, problem=f"record {number} is not the expected one"))
            seq, head, count = number, stored, count + 1
        last = self._last_number()
        if last > seq:
            problems.append(AuditProblem(seq=seq + 1, problem=_missing(seq + 1, last)))
        elif expected is not None and expected[0] > seq:
            problems.append(AuditProblem(seq=seq + 1, problem=_missing(seq + 1, expected[0])))
        return AuditCheck(records=count, head=head, problems=tuple(problems))

    def _all_rows(self) -> Iterator[tuple[Any, ...]]:
        after = 0
        while page := self._rows(f"seq > ? ORDER BY seq LIMIT {_PAGE}", (after,)):
            yield from page
            after = page[-1][0]

    def _rows(self, where: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return self._database.rows(f"{_READ} WHERE {where}", values)

    def _last_number(self) -> int:
        rows = self._database.rows("SELECT seq FROM sqlite_sequence WHERE name = 'audit'")
        return int(rows[0][0]) if rows else 0


class Audit:
    """The audit of one run or session: `record` writes before the caller acts.

    Args:
        log: The audit of the store.
        run: The run or session.
        scope: Facts that every record has, such as `node` or `turn`.
    """

    def __init__(self, log: AuditLog, run: str, scope: Mapping[str, Any]) -> None:
        self._log = log
        self.run = run
        self._scope = {name: value for name, value in scope.items() if value is not None}

    def record(self, type_: str, *, text: str | None = None, **data: Any) -> int:
        """Write one record; see `AuditLog.append`. Facts that are `None` are left out."""
        facts = {name: value for name, value in data.items() if value is not None}
        return self._log.append(type_, {**self._scope, **facts}, run=self.run, text=text)

    def bind(self, **scope: Any) -> "Audit":
        """The same with more facts in each record."""
        return Audit(self._log, self.run, {**self._scope, **scope})


def _append(connection: "sqlite3.Connection", at: float, body: tuple[str, str | None, str]) -> int:
    last: tuple[int, str] | None = connection.execute(_LAST).fetchone()
    seq, previous = (0, FIRST) if last is None else last
    row = (seq + 1, at, *body, previous)
    connection.execute(_INSERT, (*row, _hash((*row, ""))))
    return seq + 1


def _hash(row: tuple[Any, ...]) -> str:
    """The hash of a record, over its fields as JSON, so that no two records write the same text."""
    return sha256(to_json(list(row[:-1])).encode("ascii")).hexdigest()


def _redacted(data: Mapping[str, Any]) -> dict[str, Any]:
    """The facts without secrets. Most records hold names and numbers, and only their texts are looked at."""
    values = data.values()
    if _PLAIN.issuperset(map(type, values)):
        refresh()
        texts = [value for value in values if type(value) is str]
        if are_clean([*data, *texts]):
            return dict(data)
    return redact_value(dict(data))


def _filter(run: str | None, types: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The condition of a listing, and its values."""
    where, values = ["1"], list[str]()
    if run is not None:
        where.append("run = ?")
        values.append(run)
    if types:
        # `;` follows `:` in ASCII, so the range holds everything that begins with `type:`.
        where.append(f"({' OR '.join(['type = ? OR (type >= ? AND type < ?)'] * len(types))})")
        for name in types:
            values += (name, f"{name}:", f"{name};")
    return " AND ".join(where), tuple(values)


def _missing(first: int, last: int) -> str:
    return f"record {first} is missing" if first == last else f"records {first} to {last} are missing"


def _record(row: tuple[Any, ...]) -> AuditRecord:
    seq, at, type_, run, data, previous, stored = row
    return AuditRecord(seq=seq, at=at, type=type_, run=run, data=_facts(data), previous=previous, hash=stored)


def _facts(text: str) -> Mapping[str, Any]:
    try:
        value: object = from_json(text)
    except (ValueError, RecursionError):
        # A damaged record must not hide the others; `verify` names it.
        return {}
    return as_mapping(value)
