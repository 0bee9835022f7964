"""The event log: numbered events in a table, appended in a transaction, read in pages, followed as they come.

Runs, sessions and jobs use it, each in its own table; `docs/decisions/records.md` says why.
An event is committed before it is delivered, and numbers have no gaps.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, cast

from failwell.store.event import Event, from_json
from failwell.store.faults import damaged_fault
from failwell.store.sqlite.database import Database
from failwell.store.watch import Watch

PAGE = 256
"""Events that are read at a time. Nothing stays open while the reader works on them."""
ONE_STATEMENT = 32
"""Up to so many rows are inserted by one statement, which takes two thirds of the time of one for each."""


def _insert_statements(table: str, columns: Sequence[str]) -> list[str]:
    """The statements that insert 0, 1, … `ONE_STATEMENT` rows into a table."""
    row = f"({','.join('?' * len(columns))})"
    return [
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES {','.join([row] * count)}"  # noqa: S608  (constants)
        for count in range(ONE_STATEMENT + 1)
    ]


class EventLog:
    """One table of events."""

    def __init__(self, database: Database, table: str, key: str, *, of_job: str | None = None) -> None:
        """Nothing is read yet.

        Args:
            database: Where the table is.
            table: Its name. It has the columns `type`, `at` and `data`.
            key: Its integer primary key: the number of the event, above the base of its stream.
            of_job: The query for the numbers of the events of a job, if its column `job` has keys of jobs; a column
                of the job and its value follow.
        """
        self._database = database
        self._insert = _insert_statements(table, (key, "type", "at", "data"))
        self._last = f"SELECT max({key}) FROM {table} WHERE {key} >= ? AND {key} < ?"  # noqa: S608  (constants)
        name = "''" if of_job is None else f"coalesce((SELECT id FROM jobs WHERE key = {table}.job), '')"  # noqa: S608  (constants)
        select = f"SELECT {key}, type, at, data, {name} FROM {table} WHERE {key} > ? AND {key} < ?"  # noqa: S608  (constants)
        order = f" ORDER BY {key} LIMIT ?"
        self._page = select + order
        self._page_of_job = f"{select} AND {key} IN ({of_job}.id = ?){order}"

    def append(self, rows: Sequence[Sequence[Any]]) -> int:
        """Insert rows of key, type, time and JSON text, and return the last key.

        Without a transaction around it only up to `ONE_STATEMENT` rows are inserted together.
        """
        connection = self._database.connection
        if 0 < len(rows) <= ONE_STATEMENT:
            values = rows[0] if len(rows) == 1 else [value for row in rows for value in row]
            return connection.execute(self._insert[len(rows)], values).lastrowid or 0
        connection.executemany(self._insert[1], rows)
        return connection.execute("SELECT last_insert_rowid()").fetchone()[0]

    def last(self, base: int = 0, end: int = 1 << 62) -> int | None:
        """The number of the latest event of a stream: the keys from `base` up to `end`.

        To be called in a block of `Database.reading` or `Database.transaction`.
        """
        key = self._database.connection.execute(self._last, (base, end)).fetchone()[0]
        return None if key is None else key - base

    def read(
        self,
        after: int,
        limit: int | None = None,
        *,
        base: int = 0,
        end: int = 1 << 62,
        job: str | None = None,
    ) -> Iterator[Event]:
        """The events of a stream numbered above `after`, in order; only those of one `job` if it is given.

        Raises:
            StoreCorrupt: an event cannot be decoded.
        """
        # A chain of pages: whoever iterates enters this class once a page, not once an event.
        return chain.from_iterable(self._pages(after, limit, base, end, job))

    def _pages(
        self, after: int, limit: int | None, base: int, end: int, job: str | None
    ) -> Iterator[list[Event]]:
        statement = self._page if job is None else self._page_of_job
        subject = () if job is None else (job,)
        while limit is None or limit > 0:
            size = PAGE if limit is None else min(PAGE, limit)
            rows = self._database.rows(statement, (base + after, end, *subject, size))
            if rows:
                yield self._decode(rows, base)
                after = rows[-1][0] - base
            if len(rows) < size:
                return
            limit = None if limit is None else limit - size

    def _decode(self, rows: Sequence[Sequence[Any]], base: int) -> list[Event]:
        page: list[Event] = []
        for key, type_, at, data, job in rows:
            try:
                page.append(Event(key - base, type_, at, _data(data), job))
            except (TypeError, ValueError, RecursionError) as error:
                raise damaged_fault(self._database.path, seq=key - base) from error
        return page


def follow(
    watch: Watch,
    read: Callable[[int], Iterator[Event]],
    after: int,
    *,
    is_over: Callable[[], bool],
    give_up: Callable[[], bool] | None = None,
) -> Iterator[Event]:
    """The events above `after` and those to come, until `is_over`.

    `give_up` is called whenever nothing came for about a second; `True` ends the iteration.
    """
    with watch:
        while True:
            # Asked first: what is added after the answer is read in the next round.
            has_ended = is_over()
            for event in read(after):
                after = event.seq
                yield event
            if has_ended or (not watch.wait(watch.interval) and give_up is not None and give_up()):
                return


def _data(text: str) -> Mapping[str, Any]:
    value: object = from_json(text)
    if not isinstance(value, dict):
        raise TypeError("the data of an event is an object")
    return cast("dict[str, Any]", value)
