"""The hosts of a store: the lease of each, the jobs that it owns, and what becomes of them when it dies.

The lease is a lock of the operating system on a file of the host's own. The system releases it when the
process ends, so a free lock proves that the host is dead, and no clock is involved. A suspended host keeps it.
"""

import math
import os
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from heapq import nsmallest
from pathlib import Path
from types import TracebackType
from typing import Any

from failwell.calls.clock import Clock
from failwell.jobs.faults import LeaseLost
from failwell.jobs.store.job_log import COUNT_OPEN
from failwell.jobs.store.records import COLUMNS, Booking, Host, Ownership, Reserved, Unowned, Want
from failwell.store.locks import LOCK, ProcessLock, is_held
from failwell.store.sqlite.database import Database

HOSTS = "hosts"
_CHOSEN = "-chosen"
"""The end of the name of a host that runs chosen jobs only. Others read it with the lock, so it is never missing."""
_MOMENT = 0.02
"""Seconds for which an event loop may be blocked by a database that another process has locked."""
SNAPSHOT = "host.json"
"""The file of a host's folder in which other processes read what it does."""
_ROUNDING = 1.000001
"""Shares of a budget may add up to a little more than the whole."""
OPEN = "state IN ('pending', 'running', 'waiting')"
_UNOWNED = f"owner IS NULL AND {OPEN}"
_READY = f"owner IS NULL AND due IS NULL AND {OPEN}"
_SINCE = "coalesce(ready, submitted)"
_RANK = f"{_SINCE} - 60.0 * priority"
_COLUMNS = ", ".join(COLUMNS)
_NEXT_INSTANCE = f"SELECT instance FROM jobs INDEXED BY jobs_ready WHERE {_READY} AND instance > ? ORDER BY instance LIMIT 1"  # noqa: S608  (constants)
_BEST = (
    f"SELECT {_RANK}, key, {_SINCE}, {_COLUMNS} FROM jobs INDEXED BY jobs_ready WHERE {_READY} AND instance = ? AND {_RANK} < ?"  # noqa: S608  (constants)
    f" ORDER BY {_RANK}, key LIMIT ?"
)
_LATE = (
    f"SELECT {_SINCE}, {_COLUMNS} FROM jobs INDEXED BY jobs_deadline WHERE {_UNOWNED} AND deadline IS NOT NULL"  # noqa: S608  (constants)
    " AND deadline <= ? LIMIT ?"
)
_LATER = f"SELECT {_COLUMNS} FROM jobs INDEXED BY jobs_due WHERE {_UNOWNED} AND due IS NOT NULL ORDER BY due LIMIT ?"  # noqa: S608  (constants)
# A job that was submitted for later begins to wait for its turn when it is due.
_DUE = f"UPDATE jobs INDEXED BY jobs_due SET ready = iif(attempt, NULL, due), due = NULL WHERE {_UNOWNED} AND due IS NOT NULL AND due <= ?"  # noqa: S608  (constants)
_FIRST_DUE = f"SELECT min(due) FROM jobs INDEXED BY jobs_due WHERE {_UNOWNED} AND due IS NOT NULL"  # noqa: S608  (constants)
_FIRST_DEADLINE = (
    f"SELECT min(deadline) FROM jobs INDEXED BY jobs_deadline WHERE {_UNOWNED} AND deadline IS NOT NULL"  # noqa: S608  (constants)
)
# The number of open jobs is known, and they are among the newest, so this needs no index.
_OWNED = (
    f"SELECT key FROM (SELECT key, owner, state FROM jobs WHERE {OPEN} ORDER BY key DESC LIMIT ({COUNT_OPEN}))"  # noqa: S608  (constants)
    " WHERE owner = ?"
)
# Not those that ran, that were being cancelled, and streams: more has to happen than that they wait.
_RELEASE_WAITING = f"""UPDATE jobs SET owner = NULL WHERE key IN ({_OWNED})
    AND state != 'running' AND cancelled IS NULL AND NOT instr(request, '"stream"')"""  # noqa: S608  (constants)
_ROW = f"SELECT {_COLUMNS} FROM jobs WHERE key = ?"  # noqa: S608  (constants)
_OWNER = f"SELECT name FROM jobs JOIN job_hosts ON owner = job_hosts.key WHERE id = ? AND {OPEN}"  # noqa: S608  (constants)
# Of one job: its index is that of the ids, whatever else is stored.
_ONE_TIMES = f"SELECT instance, due, deadline FROM jobs WHERE id = ? AND {_UNOWNED}"  # noqa: S608  (constants)
_ONE_DUE = (
    f"UPDATE jobs SET ready = iif(attempt, NULL, due), due = NULL WHERE id = ? AND {_UNOWNED} AND due <= ?"  # noqa: S608  (constants)
)
_ONE_READY = f"SELECT {_SINCE}, {_COLUMNS} FROM jobs WHERE id = ? AND {_READY}"  # noqa: S608  (constants)
_ONE_LATE = f"SELECT {_SINCE}, {_COLUMNS} FROM jobs WHERE id = ? AND {_UNOWNED} AND deadline <= ?"  # noqa: S608  (constants)
_INSTANCE = 1 + COLUMNS.index("instance")
"""The position in a row that begins with the time since which its job waits."""
_LIST = "INSERT INTO job_hosts (name, pid, since, lanes) VALUES (?, ?, ?, ?)"
_RELEASE = f"UPDATE jobs SET owner = NULL WHERE key = ? AND owner = ? AND {OPEN}"  # noqa: S608  (constants)


class HostLease:
    """Makes this process a host of the store within the block."""

    def __init__(
        self, database: Database, folder: Path, lanes: int, clock: Clock, *, serves_all: bool = True
    ) -> None:
        self._database = database
        self._folder = folder
        self._lanes = lanes
        self._clock = clock
        self._serves_all = serves_all
        self._lock: ProcessLock | None = None
        self._waits = database.short_waits(_MOMENT)

    def __enter__(self) -> Host:
        """Take the lease.

        Raises:
            Fault: the store cannot be used.
        """
        name = f"{os.getpid()}-{os.urandom(4).hex()}{'' if self._serves_all else _CHOSEN}"
        folder = self._folder / HOSTS / name
        lock = ProcessLock(folder, clock=self._clock)
        lock.acquire()
        # The row follows the lock: a host that is listed without one is dead.
        is_listed = False
        try:
            with self._database.transaction() as connection:
                values = (name, os.getpid(), self._clock.now().timestamp(), self._lanes)
                key = connection.execute(_LIST, values).lastrowid
            is_listed = True
        finally:
            if not is_listed:
                lock.release()
                _delete(folder)
        assert key is not None
        self._lock = lock
        self._waits.__enter__()
        return Host(key, name, os.getpid(), folder, self._lanes, self._serves_all)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the lease back. The host stays listed until another one takes its jobs over."""
        assert self._lock is not None
        try:
            self._waits.__exit__(None, None, None)
        finally:
            self._lock.release()


def hosts_of(connection: sqlite3.Connection, folder: Path) -> list[Host]:
    """The hosts that are listed, dead or alive."""
    rows = connection.execute("SELECT key, name, pid, lanes FROM job_hosts ORDER BY key")
    return [
        Host(key, name, pid, folder / HOSTS / name, lanes, serves_all(Path(name)))
        for key, name, pid, lanes in rows
    ]


def serves_all(folder: Path) -> bool:
    """Whether the host with this folder runs all jobs."""
    return not folder.name.endswith(_CHOSEN)


def live_folders(folder: Path) -> list[Path]:
    """The folders of all live hosts."""
    try:
        names = sorted(os.listdir(folder / HOSTS))
    except OSError:
        return []
    return [folder / HOSTS / name for name in names if is_held(folder / HOSTS / name)]


def is_served(folder: Path) -> bool:
    """Whether a live host runs all jobs."""
    return any(map(serves_all, live_folders(folder)))


def is_owned(connection: sqlite3.Connection, folder: Path, job: str) -> bool:
    """Whether a live host has this job."""
    owner = connection.execute(_OWNER, (job,)).fetchone()
    return owner is not None and is_held(folder / HOSTS / owner[0])


def take_over(connection: sqlite3.Connection, host: int, dead: Sequence[Host]) -> list[tuple[Any, ...]]:
    """Take the jobs of dead hosts over, within a transaction.

    Jobs that only waited are released. The others belong to `host` afterwards, and their rows are returned.
    """
    adopted: list[int] = []
    for other in dead:
        if not connection.execute("DELETE FROM job_hosts WHERE key = ?", (other.key,)).rowcount:
            # Another host was faster.
            continue
        connection.execute("DELETE FROM job_reserved WHERE host = ?", (other.key,))
        connection.execute(_RELEASE_WAITING, (other.key,))
        keys = [row[0] for row in connection.execute(_OWNED, (other.key,))]
        connection.executemany("UPDATE jobs SET owner = ? WHERE key = ?", [(host, key) for key in keys])
        adopted += keys
    return [connection.execute(_ROW, (key,)).fetchone() for key in sorted(adopted)]


def delete_folders(dead: Sequence[Host]) -> None:
    """Delete what dead hosts have left on the disk."""
    for other in dead:
        _delete(other.folder)


def ready_instances(connection: sqlite3.Connection) -> list[str]:
    """The instances for which jobs wait that no host owns."""
    names: list[str] = []
    row = connection.execute(_NEXT_INSTANCE, ("",)).fetchone()
    while row is not None:
        names.append(row[0])
        row = connection.execute(_NEXT_INSTANCE, (row[0],)).fetchone()
    return names


def unowned_jobs(
    connection: sqlite3.Connection, most: int | None, instance: str | None
) -> list[tuple[Any, ...]]:
    """The rows of waiting jobs that no host owns: those that are ready, best first, then those due later."""
    limit = -1 if most is None else most
    names = ready_instances(connection) if instance is None else [instance]
    rows = [row for name in names for row in connection.execute(_BEST, (name, math.inf, limit))]
    rows.sort(key=lambda row: row[:2])
    best = [row[3:] for row in rows[:most]]
    if instance is None and (most is None or len(best) < most):
        best += connection.execute(_LATER, (limit if most is None else most - len(best),)).fetchall()
    return best


def unowned(connection: sqlite3.Connection) -> Unowned:
    """The instances for which jobs wait that no host owns, and when another one becomes due."""
    return Unowned(ready_instances(connection), next_time(connection))


def next_time(connection: sqlite3.Connection) -> float:
    """When a job that no host owns becomes due, or reaches its deadline; infinity if none does."""
    times = [connection.execute(query).fetchone()[0] for query in (_FIRST_DUE, _FIRST_DEADLINE)]
    return min((at for at in times if at is not None), default=math.inf)


def make_ready(connection: sqlite3.Connection, now: float) -> bool:
    """Let the jobs be claimed whose time has come; whether there were any."""
    return connection.execute(_DUE, (now,)).rowcount > 0


def claim(
    connection: sqlite3.Connection, host: int, wants: Mapping[str, Want], most: int, now: float
) -> list[tuple[Any, ...]]:
    """Give the host the best jobs that it wants and no host owns, within a transaction.

    Jobs whose time has come by `now` are among them. Returns their rows, each after the time since which the job
    waits for its turn.

    Raises:
        LeaseLost: another host has taken this one to be dead.
    """
    _check_lease(connection, host)
    make_ready(connection, now)
    best: list[tuple[Any, ...]] = []
    for instance, want in wants.items():
        best += connection.execute(_BEST, (instance, want.before, min(want.number, most))).fetchall()
    rows = [row[2:] for row in nsmallest(most, best, key=lambda row: row[:2])]
    claimed = {row[1] for row in rows}
    # A job that has missed its deadline is failed by any host, whatever that can run.
    rows += [row for row in connection.execute(_LATE, (now, most or 1)) if row[1] not in claimed]
    _give(connection, host, rows)
    return rows


def _check_lease(connection: sqlite3.Connection, host: int) -> None:
    if connection.execute("SELECT 1 FROM job_hosts WHERE key = ?", (host,)).fetchone() is None:
        raise LeaseLost(host=host)


def _give(connection: sqlite3.Connection, host: int, rows: Sequence[tuple[Any, ...]]) -> None:
    connection.executemany("UPDATE jobs SET owner = ? WHERE key = ?", [(host, row[1]) for row in rows])


def chosen_unowned(connection: sqlite3.Connection, chosen: Sequence[str]) -> Unowned:
    """`unowned`, of these jobs only."""
    rows = [row for job in chosen for row in connection.execute(_ONE_TIMES, (job,))]
    times = [at for _, due, deadline in rows for at in (due, deadline) if at is not None]
    return Unowned(sorted({row[0] for row in rows if row[1] is None}), min(times, default=math.inf))


def chosen_jobs(connection: sqlite3.Connection, chosen: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows of those of these jobs that are ready and that no host owns."""
    return [row[1:] for job in chosen for row in connection.execute(_ONE_READY, (job,))]


def claim_chosen(
    connection: sqlite3.Connection, host: int, chosen: Sequence[str], instances: Collection[str], now: float
) -> list[tuple[Any, ...]]:
    """`claim`, of these jobs only: those of `instances`, and those that have missed their deadline."""
    _check_lease(connection, host)
    rows: list[tuple[Any, ...]] = []
    for job in chosen:
        connection.execute(_ONE_DUE, (job, now))
        row = connection.execute(_ONE_READY, (job,)).fetchone()
        if row is None or row[_INSTANCE] not in instances:
            row = connection.execute(_ONE_LATE, (job, now)).fetchone()
        if row is not None:
            rows.append(row)
    _give(connection, host, rows)
    return rows


def release(connection: sqlite3.Connection, host: int, keys: Sequence[int]) -> None:
    """Let other hosts claim these jobs of a host."""
    connection.executemany(_RELEASE, [(key, host) for key in keys])


def reserved_elsewhere(connection: sqlite3.Connection, host: int) -> dict[int, dict[str, Reserved]]:
    """What the other hosts have reserved."""
    reserved: dict[int, dict[str, Reserved]] = {}
    rows = connection.execute("SELECT host, pool, mb, used FROM job_reserved WHERE host != ?", (host,))
    for other, pool, megabytes, used in rows:
        reserved.setdefault(other, {})[pool] = Reserved(megabytes, used)
    return reserved


def reserve(
    connection: sqlite3.Connection, host: int, reserved: Mapping[str, Reserved], budgets: Mapping[str, float]
) -> Booking:
    """Set what a host has reserved, unless that exceeds a budget, within a transaction."""
    others = reserved_elsewhere(connection, host)
    before = dict(connection.execute("SELECT pool, mb FROM job_reserved WHERE host = ?", (host,)))
    for pool, megabytes in ((pool, part.mb) for pool, part in reserved.items()):
        elsewhere = sum(pools[pool].mb for pools in others.values() if pool in pools)
        is_over = elsewhere > 0 and elsewhere + megabytes > budgets.get(pool, math.inf) * _ROUNDING
        if is_over and megabytes > before.get(pool, 0.0):
            return Booking(is_granted=False, others=others)
    connection.execute("DELETE FROM job_reserved WHERE host = ?", (host,))
    rows = [(host, pool, part.mb, part.used) for pool, part in reserved.items()]
    connection.executemany("INSERT INTO job_reserved (host, pool, mb, used) VALUES (?, ?, ?, ?)", rows)
    return Booking(is_granted=True, others=others)


def is_unowned(connection: sqlite3.Connection, folder: Path, key: int, state: str, attempt: int) -> bool:
    """Whether no live host owns a job that still has this state and number of attempts."""
    row = connection.execute("SELECT state, attempt, owner FROM jobs WHERE key = ?", (key,)).fetchone()
    if row is None or row[:2] != (state, attempt):
        return False
    owner = connection.execute("SELECT name FROM job_hosts WHERE key = ?", (row[2],)).fetchone()
    return owner is None or not is_held(folder / HOSTS / owner[0])


def ownership(connection: sqlite3.Connection, host: int) -> Ownership:
    """Where the open jobs of the store are."""
    rows = connection.execute(
        f"SELECT instance, owner, count(*) FROM (SELECT instance, owner, key FROM jobs WHERE {OPEN}"  # noqa: S608  (constants)
        f" ORDER BY key DESC LIMIT ({COUNT_OPEN})) GROUP BY instance, owner"
    ).fetchall()
    return Ownership(
        {instance: number for instance, owner, number in rows if owner is None},
        sum(number for _, owner, number in rows if owner not in (None, host)),
    )


def _delete(folder: Path) -> None:
    try:
        (folder / SNAPSHOT).unlink(missing_ok=True)
        (folder / LOCK).unlink(missing_ok=True)
        folder.rmdir()
    except OSError:
        # An empty folder without a lock is nobody's, and harms nobody.
        return
