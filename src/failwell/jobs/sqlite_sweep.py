"""Files beside the jobs that belong to none of them: of results that nobody got, of jobs that are deleted."""

import re
import sqlite3
from pathlib import Path
from time import time

from failwell.jobs.store import Forgotten

_FILE = re.compile(r"[0-9a-f]{24}\.bin")
"""What a worker calls the files of its results."""
_WORKER = "worker-"
_FEW = 500
_YOUNG = 86_400.0
"""Seconds in which a file may still come to belong to a job, or be in the hands of who takes a stream."""


def sweep(connection: sqlite3.Connection, results: Path, *, dry_run: bool) -> Forgotten:
    """Delete the old files of results that no job names; what went, or would go, comes back."""
    until = time() - _YOUNG
    found = [file for file in _files(results) if _is_older(file, until)]
    if not found:
        return Forgotten()
    named: set[str] = set()
    for (result,) in connection.execute("""SELECT result FROM jobs WHERE instr(result, '"$file"')"""):
        named.update(_FILE.findall(result))
    lost = [file for file in found if file.name not in named]
    if dry_run:
        return Forgotten(files=len(lost))
    left = tuple(str(file) for file in lost if not _unlinked(file))
    return Forgotten(files=len(lost) - len(left), files_left=left)


def sweep_lines(connection: sqlite3.Connection, lines: Path, before: float | None) -> None:
    """Delete the lines of jobs that are gone, and those of workers that have said nothing since `before`."""
    try:
        found = {file.stem: file for file in lines.iterdir() if file.suffix == ".jsonl"}
    except OSError:
        return
    jobs = [name for name in found if not name.startswith(_WORKER)]
    for start in range(0, len(jobs), _FEW):
        few = jobs[start : start + _FEW]
        marks = ",".join("?" * len(few))
        known = connection.execute(f"SELECT id FROM jobs WHERE id IN ({marks})", few)  # noqa: S608  (constants)
        for gone in set(few) - {row[0] for row in known}:
            _unlinked(found[gone])
    for name, file in found.items():
        if name.startswith(_WORKER) and before is not None and _is_older(file, before):
            _unlinked(file)


def _files(folder: Path) -> list[Path]:
    try:
        return [file for file in folder.iterdir() if _FILE.fullmatch(file.name)]
    except OSError:
        # There is none, or nobody may look into it.
        return []


def _is_older(file: Path, than: float) -> bool:
    try:
        return file.stat().st_mtime < than
    except OSError:
        return False


def _unlinked(file: Path) -> bool:
    try:
        file.unlink(missing_ok=True)
    except OSError:
        # It is told of, and found again next time.
        return False
    return True
