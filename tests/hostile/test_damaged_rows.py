"""One damaged row of a store never hides the others from a listing."""

import sqlite3
from collections.abc import Iterator
from typing import Any, cast

import pytest

from tests.cli.job_place import Place
from tests.cli.running import Done

WORKFLOW = """
workflow: {name: ask, entry_point: ask}
agents:
  - name: ask
    type: human_gate
    prompt: Go?
    options: [{label: Go, value: go, route: $end}, {label: Stop, value: stop, route: $end}]
"""
TEXTS = (
    "",
    "{",
    "[]",
    "null",
    "7",
    '"x"',
    '{"a": NaN}',
    '{"state": 1}',
    "\x1b[2J\u202e",
    "[" * 5_000,
    "x" * 70_000,
)
NUMBERS = (1e300, -1e300, float("inf"), 0.0)
INTEGERS = (-1, 2**62)
LISTINGS = (
    ("runs", "list"),
    ("gates", "list"),
    ("jobs", "list"),
    ("top", "--once"),
    ("capabilities", "list"),
    ("workers", "list"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A store with three waiting runs and with jobs that ended, failed and wait."""
    folder = tmp_path_factory.mktemp("store")
    place = Place(folder, "echo", "fails")
    (folder / "workflow.yaml").write_text(WORKFLOW)
    for _ in range(3):
        assert place("run", str(folder / "workflow.yaml"), "--no-input").code == 4
    for name in ("echo", "fails", "echo"):
        assert place("jobs", "submit", name, "value=1").code == 0
    place("workers", "run", "--until-empty")
    for _ in range(2):
        assert place("jobs", "submit", "echo", "value=1").code == 0
    return place


def columns(connection: sqlite3.Connection) -> Iterator[tuple[str, str, str]]:
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        if table.startswith("sqlite_"):
            continue
        for _, name, kind, _, _, is_key in connection.execute(f"PRAGMA table_info({table})"):
            if not is_key and name != "id":
                yield table, name, kind


def damages(kind: str) -> tuple[object, ...]:
    return {"TEXT": TEXTS, "REAL": NUMBERS, "INTEGER": INTEGERS}[kind]


def ids(done: Done) -> set[str]:
    rows: Any = done.data
    return {str(row["id"]) for row in cast("list[Any]", rows)} if isinstance(rows, list) else set()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("every", [23, pytest.param(1, marks=pytest.mark.slow)])
def test_the_others_are_still_listed(place: Place, every: int) -> None:
    database = sqlite3.connect(place.folder / "state/journal.db", isolation_level=None)
    database.execute("PRAGMA ignore_check_constraints = ON")
    before = {command: ids(place(*command, "--json")) for command in LISTINGS}
    assert len(before["runs", "list"]) == 3
    assert len(before["jobs", "list"]) == 5
    wrong: list[str] = []
    number = 0
    for table, column, kind in list(columns(database)):
        if "WITHOUT ROWID" in ddl(database, table):
            continue
        row = database.execute(f"SELECT rowid, {column} FROM {table} LIMIT 1 OFFSET 1").fetchone()
        if row is None:
            continue
        for value in damages(kind):
            number += 1
            if number % every:
                continue
            try:
                database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row[0]))
            except sqlite3.IntegrityError:
                continue
            for command in LISTINGS:
                for form in ("--json", "--format=text"):
                    done = place(*command, form)
                    missing = (
                        before[command] - ids(done) if done.code == 0 and form == "--json" else set[str]()
                    )
                    if done.code != 0 or len(missing) > 1:
                        told = done.err.partition("\n")[0][:160]
                        wrong.append(
                            f"{table}.{column} = {str(value)[:20]!r}: {' '.join(command)}: {done.code} {told}"
                        )
            database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (row[1], row[0]))
    assert wrong == []


def ddl(database: sqlite3.Connection, table: str) -> str:
    return database.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
