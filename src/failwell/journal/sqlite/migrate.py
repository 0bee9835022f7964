"""Bringing a database to the form this version knows, one numbered file at a time, or not at all.

The files share one row of numbers and the database remembers the last one that it went through, so
several parts of failwell can keep their tables in one file.
"""

import sqlite3
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from failwell.fault.axes import ActionKind
from failwell.fault.facts import UserAction
from failwell.journal.faults import StoreNewer


class Migration(NamedTuple):
    """One step: a number, and the file of SQL statements that makes it."""

    number: int
    file: Path


@cache
def migrations() -> tuple[Migration, ...]:
    """Those that come with this version, in order."""
    files = sorted(Path(__file__).with_name("migrations").glob("[0-9][0-9][0-9][0-9]_*.sql"))
    return tuple(Migration(int(file.name[:4]), file) for file in files)


def version_of(connection: sqlite3.Connection) -> int:
    """The number of the last migration that the database went through."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, path: Path, steps: Sequence[Migration] | None = None) -> None:
    """Take the steps that are missing, all of them in one transaction.

    Raises:
        StoreNewer: the database has been through steps that this version does not know.
    """
    known = migrations() if steps is None else steps
    latest = max(step.number for step in known)
    if version_of(connection) == latest:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = _checked(version_of(connection), latest, path)
        for step in known:
            if step.number > found:
                for statement in statements(step.file.read_text(encoding="utf-8")):
                    connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {latest}")
        connection.execute("COMMIT")
    except BaseException:  # whatever it was, half a step must not stay
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def statements(script: str) -> list[str]:
    """The statements of a script, one by one: `executescript` would commit before it starts."""
    found: list[str] = []
    pending = ""
    for part in script.split(";"):
        pending += f"{part};"
        # A semicolon may also stand in a comment, a text or the body of a trigger.
        if sqlite3.complete_statement(pending):
            found.append(pending.strip())
            pending = ""
    return [statement for statement in found if statement != ";"]


def _checked(found: int, latest: int, path: Path) -> int:
    if found > latest:
        raise newer(path, found, latest)
    return found


def newer(path: Path, found: int, known: int) -> StoreNewer:
    """The fault for a database from the future."""
    return StoreNewer(
        path=str(path),
        found=found,
        known=known,
        user_action=UserAction(
            ActionKind.FIX_CONFIGURATION,
            "update failwell (`pip install -U failwell`), or give another `--store DIR`",
        ),
    )
