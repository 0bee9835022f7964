"""Files beside the jobs that belong to none of them: of results that nobody got, of jobs that are deleted."""

import re
import sqlite3
from pathlib import Path
from time import time

from failwell.jobs.store import Forgotten

_FILE = re.compile(r"[0-9a-f]{24}\.bin")
"""What a worker calls the files of its results."""
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
