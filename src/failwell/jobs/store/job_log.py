"""The log of the job queue: all events in one sequence, and the number of jobs in each state.

The row of a job lists the numbers of its events, and the latest event has the counts. An index of events by job, or a
table of counts, would be another page to write in each commit of a host.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from failwell.store.event import Event, to_json

STATES = ("pending", "running", "waiting", "completed", "failed", "cancelled")
"""The order of the counts."""
POSITIONS: Mapping[str | None, int] = {state: position for position, state in enumerate(STATES)}
TABLE, KEY = "job_events", "seq"
_COLUMNS = (KEY, "type", "at", "data", "job", "counts")
_INSERT = f"INSERT INTO {TABLE} ({', '.join(_COLUMNS)}) VALUES (?,?,?,?,?,?)"  # noqa: S608  (constants)
_TAIL = """SELECT seq, counts, EXISTS (SELECT 1 FROM job_groups WHERE ended IS NULL)
    FROM job_events ORDER BY seq DESC LIMIT 1"""
_SCAN = "SELECT state, count(*) FROM jobs GROUP BY state"
_COUNT = "UPDATE job_events SET counts = ? WHERE seq = (SELECT max(seq) FROM job_events)"
_ADD = "UPDATE jobs SET events = events || ? WHERE id = ? RETURNING key"
COUNT_OPEN = """SELECT coalesce((SELECT json_extract(counts, '$[0]') + json_extract(counts, '$[1]') + json_extract(counts, '$[2]')
    FROM job_events ORDER BY seq DESC LIMIT 1), -1)"""
"""How many jobs have not ended; -1 if the latest event does not say."""
NUMBERS = "SELECT value FROM jobs, json_each('[' || jobs.events || '0]') WHERE jobs"
"""The numbers of the events of some jobs, and 0; the condition on a column of `jobs` follows."""


Tail = tuple[int, list[int], bool]
"""The number of the latest event, 0 if there is none; the number of jobs in each state; whether a group may be open."""


def tail(connection: sqlite3.Connection) -> Tail:
    """The end of the log, as of now. One query, because it is asked in every commit."""
    row = connection.execute(_TAIL).fetchone()
    if row is None:
        return 0, _scan(connection), True
    last, counts, has_groups = row
    try:
        numbers = list(map(int, counts[1:-1].split(",")))
    except (TypeError, ValueError):
        numbers = []
    # Another program may have written the latest event.
    return last, numbers if len(numbers) == len(STATES) else _scan(connection), has_groups


def counts(connection: sqlite3.Connection) -> dict[str, int]:
    """How many jobs are in each state."""
    return dict(zip(STATES, tail(connection)[1], strict=True))


def store_counts(connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Store the number of jobs in each state, without a new event."""
    connection.execute(_COUNT, (_text(numbers),))


def changed(numbers: Sequence[int], changes: Mapping[str, int]) -> Sequence[int]:
    """The number of jobs in each state after some of them have changed."""
    result = [*numbers]
    for state, number in changes.items():
        # Another program may have written a state that does not exist.
        if state in POSITIONS:
            result[POSITIONS[state]] += number
    return result


def _scan(connection: sqlite3.Connection) -> list[int]:
    found: dict[str, int] = dict(connection.execute(_SCAN).fetchall())
    return [found.get(state, 0) for state in STATES]


def _text(numbers: Sequence[int]) -> str:
    return f"[{','.join(map(str, numbers))}]"


def add_events(
    connection: sqlite3.Connection,
    first: int,
    events: Sequence[Event],
    numbers: Sequence[int],
    keys: Mapping[str, int],
) -> None:
    """Insert events from the number `first` on, with the number of jobs in each state.

    `keys` has the keys of the jobs whose rows this commit writes, with their events.
    """
    rows: list[tuple[Any, ...]] = []
    latest = first + len(events) - 1
    for number, (_, what, at, data, job) in enumerate(events, first):
        key = keys.get(job)
        if key is None and job:
            # Its row stays as it is, but for this event.
            row = connection.execute(_ADD, (f"{number},", job)).fetchone()
            key = None if row is None else row[0]
        rows.append((number, what, at, to_json(data), key, _text(numbers) if number == latest else None))
    connection.executemany(_INSERT, rows)
