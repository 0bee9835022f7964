"""Migrations: numbered SQL files that bring a database to the version that this code knows.

All tables of failwell share one sequence of numbers and one file. The database stores the number of the
last migration in `user_version`, which SQLite changes in the same transaction as the tables. Migrations
run in one process at a time (see `failwell.store.sqlite.database`), all of them or none.
"""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from failwell.store.faults import newer_fault


class Migration(NamedTuple):
    """One step: its number and its file of SQL statements."""

    number: int
    file: Path


@cache
def migrations() -> tuple[Migration, ...]:
    """The migrations of this version, in order."""
    files = sorted(Path(__file__).with_name("migrations").glob("[0-9][0-9][0-9][0-9]_*.sql"))
    return tuple(Migration(int(file.name[:4]), file) for file in files)


def version_of(connection: sqlite3.Connection) -> int:
    """The number of the last migration that the database has."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, path: Path, steps: Sequence[Migration] | None = None) -> None:
    """Apply the missing migrations in one transaction.

    Raises:
        StoreNewer: the database has migrations that this version does not know.
    """
    known = migrations() if steps is None else steps
    latest = max(step.number for step in known)
    if version_of(connection) == latest:
        return
    with transaction(connection):
        version = version_of(connection)
        if version > latest:
            raise newer_fault(path, version, latest)
        for step in known:
            if step.number > version:
                for statement in statements(step.file.read_text(encoding="utf-8")):
                    connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {latest}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[sqlite3.Connection]:
    """Run the block in one transaction: committed at its end, rolled back if anything is raised."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def statements(script: str) -> list[str]:
    """The statements of a script, one by one: `executescript` would commit before it starts."""
    complete: list[str] = []
    pending = ""
    for part in script.split(";"):
        pending += f"{part};"
        # A semicolon may also be in a comment, a string or the body of a trigger.
        if sqlite3.complete_statement(pending):
            complete.append(pending.strip())
            pending = ""
    return [statement for statement in complete if statement != ";"]
