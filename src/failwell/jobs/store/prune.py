"""Deletes ended jobs: their rows, their events and the files of their results.

Jobs are deleted in small batches, each in its own transaction and followed by a pause, so that the host of
the same store never waits for long.
"""

import re
import sqlite3
from collections import Counter
from collections.abc import Sequence
from json import loads
from pathlib import Path
from time import time
from typing import Any, NamedTuple, cast

from failwell.jobs.store.groups import delete_members
from failwell.jobs.store.job_log import NUMBERS, changed, store_counts, tail
from failwell.jobs.store.records import Forgotten
from failwell.store.status import ENDED

_FILE = re.compile(r"[0-9a-f]{24}\.bin")
"""The names that workers give to the files of their results."""
_WORKER = "worker-"
_BATCH = 500
_SHORTEST_AGE = 86_400.0
"""Seconds for which a result file is kept although no job names it: its job may not be recorded yet, or a
consumer of a stream may still use it."""


def delete_orphan_results(connection: sqlite3.Connection, results: Path, *, dry_run: bool) -> Forgotten:
    """Delete old result files that no job names; return what was deleted, or would be."""
    until = time() - _SHORTEST_AGE
    files = [file for file in _result_files(results) if _is_older(file, until)]
    if not files:
        return Forgotten()
    referenced: set[str] = set()
    for (result,) in connection.execute("""SELECT result FROM jobs WHERE instr(result, '"$file"')"""):
        referenced.update(_FILE.findall(result))
    orphans = [file for file in files if file.name not in referenced]
    if dry_run:
        return Forgotten(files=len(orphans))
    undeleted = tuple(str(file) for file in orphans if not _is_deleted(file))
    return Forgotten(files=len(orphans) - len(undeleted), files_left=undeleted)


def delete_orphan_lines(connection: sqlite3.Connection, lines: Path, before: float | None) -> None:
    """Delete the output of deleted jobs, and of workers that have printed nothing since `before`."""
    try:
        files = {file.stem: file for file in lines.iterdir() if file.suffix == ".jsonl"}
    except OSError:
        return
    jobs = [name for name in files if not name.startswith(_WORKER)]
    for start in range(0, len(jobs), _BATCH):
        batch = jobs[start : start + _BATCH]
        marks = ",".join("?" * len(batch))
        rows = connection.execute(f"SELECT id FROM jobs WHERE id IN ({marks})", batch)  # noqa: S608  (constants)
        for name in set(batch) - {row[0] for row in rows}:
            _is_deleted(files[name])
    for name, file in files.items():
        if name.startswith(_WORKER) and before is not None and _is_older(file, before):
            _is_deleted(file)


def _result_files(folder: Path) -> list[Path]:
    try:
        return [file for file in folder.iterdir() if _FILE.fullmatch(file.name)]
    except OSError:
        # The folder does not exist or cannot be read.
        return []


def _is_older(file: Path, than: float) -> bool:
    try:
        return file.stat().st_mtime < than
    except OSError:
        return False


RESULTS = "results"
BATCH = 200
_OVER = ("completed", "failed", "cancelled")


class Prunable(NamedTuple):
    """The jobs that may be deleted."""

    keys: Sequence[int]
    needed: tuple[str, ...]
    """Jobs that are old enough but stay, because their run has not ended and may ask for them."""


def old_jobs(
    connection: sqlite3.Connection,
    *,
    before: float | None,
    keep: int,
    states: Sequence[str],
    instance: str | None,
) -> Prunable:
    """Jobs that ended in these states and before `before`, without the newest `keep` of them."""
    final_states = [state for state in _OVER if not states or state in states]
    rows = connection.execute(
        f"""SELECT key, id, CASE WHEN instr(request, '"run"') THEN request END FROM (
            SELECT key, id, ended, request FROM jobs
            WHERE state IN ({",".join("?" * len(final_states))}) AND (? IS NULL OR instance = ?)
            ORDER BY key DESC LIMIT -1 OFFSET ?
        ) WHERE (? IS NULL OR ended < ?) AND key < (SELECT max(key) FROM jobs) ORDER BY key""",  # noqa: S608  (constants)
        (*final_states, instance, instance, keep, before, before),
    ).fetchall()
    runs = _open_runs(connection) if any(row[2] is not None for row in rows) else frozenset[str]()
    needed = {job: key for key, job, request in rows if request is not None and _run(request) in runs}
    needed_keys = set(needed.values())
    return Prunable([key for key, _, _ in rows if key not in needed_keys], tuple(needed))


def _open_runs(connection: sqlite3.Connection) -> frozenset[str]:
    marks = ",".join("?" * len(ENDED))
    rows = connection.execute(f"SELECT id FROM runs WHERE status NOT IN ({marks})", sorted(ENDED))  # noqa: S608  (constants)
    return frozenset(row[0] for row in rows)


def _run(request: str) -> object:
    stored = _read(request)
    return cast("dict[str, Any]", stored).get("run") if isinstance(stored, dict) else None


def _read(text: str) -> object:
    try:
        return loads(text)
    except ValueError:
        # A damaged row may be deleted.
        return None


def delete_jobs(
    connection: sqlite3.Connection, keys: Sequence[int], folder: Path, *, dry_run: bool
) -> Forgotten:
    """Delete these jobs within the open transaction; return what was deleted, or would be."""
    marks = ",".join("?" * len(keys))
    rows = connection.execute(
        f"""SELECT id, state, CASE WHEN instr(result, '"$file"') THEN result END FROM jobs
            WHERE key IN ({marks}) ORDER BY key""",  # noqa: S608  (constants)
        keys,
    ).fetchall()
    # The latest event stays, so that no number is used twice.
    condition = f"seq IN ({NUMBERS}.key IN ({marks})) AND seq < (SELECT max(seq) FROM job_events)"  # noqa: S608  (constants)
    events = connection.execute(f"SELECT count(*) FROM job_events WHERE {condition}", keys).fetchone()[0]  # noqa: S608  (constants)
    files = [file for row in rows if row[2] is not None for file in _files(_read(row[2]), folder)]
    deleted = Forgotten(jobs=tuple(row[0] for row in rows), events=events, files=len(files))
    if dry_run:
        return deleted
    numbers = changed(
        tail(connection)[1], {state: -number for state, number in Counter(row[1] for row in rows).items()}
    )
    connection.execute(f"DELETE FROM job_events WHERE {condition}", keys)  # noqa: S608  (constants)
    connection.execute(f"DELETE FROM jobs WHERE key IN ({marks})", keys)  # noqa: S608  (constants)
    delete_members(connection, keys)
    store_counts(connection, numbers)
    # Before the commit: a file that outlives its row would not be found by its name again.
    undeleted = tuple(str(file) for file in files if not _is_deleted(file))
    return Forgotten(
        jobs=deleted.jobs, events=events, files=len(files) - len(undeleted), files_left=undeleted
    )


def delete_worker_events(connection: sqlite3.Connection, before: float, *, dry_run: bool) -> int:
    """Delete the events of workers before a time; return how many."""
    condition = "job IS NULL AND at < ? AND seq < (SELECT max(seq) FROM job_events)"
    if dry_run:
        count = connection.execute(f"SELECT count(*) FROM job_events WHERE {condition}", (before,))  # noqa: S608  (constants)
        return count.fetchone()[0]
    return connection.execute(f"DELETE FROM job_events WHERE {condition}", (before,)).rowcount  # noqa: S608  (constants)


def combined(parts: Sequence[Forgotten]) -> Forgotten:
    """The sum of all parts."""
    return Forgotten(
        jobs=tuple(job for part in parts for job in part.jobs),
        events=sum(part.events for part in parts),
        files=sum(part.files for part in parts),
        files_left=tuple(file for part in parts for file in part.files_left),
        needed=tuple(job for part in parts for job in part.needed),
    )


def _files(value: Any, folder: Path) -> list[Path]:
    """The files of a result that lie in the store's folder. Other files that it names are never deleted."""
    if isinstance(value, list):
        return [file for item in cast("list[Any]", value) for file in _files(item, folder)]
    if not isinstance(value, dict):
        return []
    table = cast("dict[str, Any]", value)
    if len(table) == 1 and isinstance(table.get("$file"), dict):
        # Only the name counts: the state folder may have been moved.
        name = Path(str(table["$file"].get("path"))).name
        file = folder / RESULTS / name
        return [file] if _FILE.fullmatch(name) and file.exists() else []
    if len(table) == 1 and isinstance(table.get("$plain"), dict):
        # A result that only looks like a file handle: see `failwell.jobs.store.rows`.
        table = cast("dict[str, Any]", table["$plain"])
    return [file for item in table.values() for file in _files(item, folder)]


def _is_deleted(file: Path) -> bool:
    try:
        file.unlink(missing_ok=True)
    except OSError:
        # It is reported as not deleted, and the job is deleted anyway.
        return False
    return True
