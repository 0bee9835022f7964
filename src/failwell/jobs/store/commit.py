"""Writes one commit of the queue within a transaction: jobs, events, counts, groups, profiles."""

import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter, itemgetter

from failwell.jobs.faults import LeaseLost
from failwell.jobs.job import Job
from failwell.jobs.store.groups import GroupPart, add_members, finish_groups
from failwell.jobs.store.hosts import release
from failwell.jobs.store.job_log import POSITIONS, add_events, store_counts, tail
from failwell.jobs.store.records import COLUMNS, FREE, Committed, Profile, Values
from failwell.jobs.store.rows import job_values
from failwell.jobs.store.schedules import Firing, claim_firing
from failwell.store.event import Event

PROFILE_COLUMNS = (
    "instance", "config", "samples", "successes", "gpu_mb", "ram_mb", "disk_mb", "seconds", "updated",
)  # fmt: skip
_profile_values = attrgetter(*PROFILE_COLUMNS)
_INSERT = (
    f"INSERT INTO jobs ({', '.join(COLUMNS)}, owner, events) VALUES ({','.join('?' * (len(COLUMNS) + 2))})"  # noqa: S608  (constants)
)
_MOVE = """UPDATE jobs SET state = ?, priority = ?, started = ?, ended = ?, attempt = ?, charged = ?, losses = ?,
    due = ?, reason = ?, cancelled = ?, phase = ?, result = ?, error = ?,
    events = events || ? WHERE key = ?"""
_MOVE_OWNED = f"{_MOVE} AND owner = ?"
_PROFILE = "INSERT OR REPLACE INTO job_profiles VALUES (?,?,?,?,?,?,?,?,?)"
_CANCELLED = "SELECT job FROM job_controls WHERE action = 'cancel'"
_APPLIED = "DELETE FROM job_controls WHERE key = ?"
_FREE_KEY = "UPDATE jobs SET once = NULL WHERE key = ?"
_WAS, _KEY, _ID, _STATE, _SUBMITTED, _ONCE = 0, 1, 2, 4, 6, 19
"""Positions in `Values`."""
_states = itemgetter(_WAS, _STATE)


def write_commit(
    connection: sqlite3.Connection,
    jobs: Sequence[Values],
    events: Sequence[Event],
    profiles: Sequence[Profile] = (),
    applied: Sequence[int] = (),
    group: GroupPart | None = None,
    host: int | None = None,
    released: Sequence[int] = (),
    firing: Firing | None = None,
) -> Committed:
    """Write everything; see `JobStore.commit`.

    Raises:
        LeaseLost: one of the jobs does not belong to `host`.
    """
    last, counts, has_groups = tail(connection)
    if firing is not None and not claim_firing(connection, firing):
        return Committed({}, {}, last)
    new: list[Values] = []
    moved: list[Values] = []
    has_keys = False
    for job in jobs:
        if job[_KEY] is not None:
            moved.append(job)
        else:
            new.append(job)
            has_keys = has_keys or job[_ONCE] is not None
    cancelled = _cancelled(connection, moved) if moved else ()
    if cancelled:
        moved = [job for job in moved if job[_ID] not in cancelled]
        events = [event for event in events if event.type != "started" or event.job not in cancelled]
    twins: dict[str, str] = {}
    if has_keys:
        twins = _twins(connection, new)
        new = [job for job in new if job[_ID] not in twins]
        events = [event for event in events if event.job not in twins]
    numbers = _numbers(events, last + 1)
    keys = _insert(connection, new, host, numbers) if new else {}
    _append(connection, last, counts, events, new, moved, keys)
    last += len(events)
    if moved:
        _move(connection, moved, host, numbers)
    if group is not None:
        add_members(connection, group, list(keys.values()))
    is_grouped = group is not None or (has_groups and moved)
    callbacks = finish_groups(connection, moved, group) if is_grouped else ()
    if callbacks:
        last = _submit(connection, last, counts, callbacks)
    if profiles:
        connection.executemany(_PROFILE, [_profile_values(profile) for profile in profiles])
    if applied:
        connection.executemany(_APPLIED, [(key,) for key in applied])
    if released and host is not None:
        release(connection, host, released)
    return Committed(keys, twins, last, cancelled, len(callbacks))


def _submit(connection: sqlite3.Connection, last: int, counts: list[int], jobs: Sequence[Job]) -> int:
    """Submit the callbacks of groups, which wait for any host; returns the number of the last event."""
    rows = [job_values(job, None) for job in jobs]
    events = [Event(0, "submitted", row[_SUBMITTED], {}, row[_ID]) for row in rows]
    keys = _insert(connection, rows, None, _numbers(events, last + 1))
    _append(connection, last, counts, events, rows, (), keys)
    return last + len(events)


def _numbers(events: Sequence[Event], first: int) -> dict[str, str]:
    """Job → the numbers that its events get, as its row lists them."""
    numbers: dict[str, str] = {}
    for number, event in enumerate(events, first):
        job = event.job
        numbers[job] = f"{numbers[job]}{number}," if job in numbers else f"{number},"
    return numbers


def _append(
    connection: sqlite3.Connection,
    last: int,
    counts: list[int],
    events: Sequence[Event],
    new: Sequence[Values],
    moved: Sequence[Values],
    keys: dict[str, int],
) -> None:
    """Append events after the one with the number `last`, and bring the number of jobs in each state up to date."""
    have_changed = False
    # Few of the many jobs of a commit change their state in different ways.
    for (was, state), number in Counter(map(_states, (*new, *moved))).items():
        if was != state:
            have_changed = True
            counts[POSITIONS[state]] += number
            # A new job was in no state, and another program may have written one that does not exist.
            if was in POSITIONS:
                counts[POSITIONS[was]] -= number
    if events:
        row_keys: dict[str, int] = keys | {job[_ID]: job[_KEY] for job in moved} if moved else keys
        add_events(connection, last + 1, events, counts, row_keys)
    elif have_changed:
        store_counts(connection, counts)


def _cancelled(connection: sqlite3.Connection, moved: Sequence[Values]) -> Collection[str]:
    """The jobs that are about to start and that another process has cancelled."""
    starting = {job[_ID] for job in moved if job[_STATE] == "running" != job[_WAS]}
    if not starting:
        return starting
    return starting.intersection(row[0] for row in connection.execute(_CANCELLED))


def _twins(connection: sqlite3.Connection, new: Sequence[Values]) -> dict[str, str]:
    """New job → the job that has its idempotency key already."""
    twins: dict[str, str] = {}
    first: dict[str, str] = {}
    for job in new:
        key = job[_ONCE]
        if key is None:
            continue
        row = connection.execute("SELECT id FROM jobs WHERE once = ?", (key,)).fetchone()
        twin = row[0] if row is not None else first.setdefault(key, job[_ID])
        if twin != job[_ID]:
            twins[job[_ID]] = twin
    return twins


def _insert(
    connection: sqlite3.Connection, new: Sequence[Values], host: int | None, numbers: Mapping[str, str]
) -> dict[str, int]:
    """Insert new jobs, which belong to `host`; returns the key of each."""
    # A row without a key gets the next one.
    connection.executemany(_INSERT, [(*job[_KEY:], host, numbers.get(job[_ID], "")) for job in new])
    last: int = connection.execute("SELECT last_insert_rowid()").fetchone()[0]
    return {job[_ID]: key for key, job in enumerate(new, last + 1 - len(new))}


def _move(
    connection: sqlite3.Connection, moved: Sequence[Values], host: int | None, numbers: Mapping[str, str]
) -> None:
    """Write jobs that are stored already.

    Raises:
        LeaseLost: one of them does not belong to `host`.
    """
    rows = [(*job[4:6], *job[7:16], *job[17:19], numbers.get(job[_ID], ""), job[_KEY]) for job in moved]
    if host is None:
        connection.executemany(_MOVE, rows)
    elif connection.executemany(_MOVE_OWNED, [(*row, host) for row in rows]).rowcount != len(moved):
        raise LeaseLost(host=host)
    freed = [(job[_KEY],) for job in moved if job[_ONCE] == FREE]
    if freed:
        connection.executemany(_FREE_KEY, freed)
