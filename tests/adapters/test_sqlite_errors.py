"""SQLite's errors: the code decides, and no statement is quoted."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import failwell
from failwell.adapters.vendors.sqlite import _BY_CODE as BY_CODE  # pyright: ignore[reportPrivateUsage]
from tests.adapters.raisers import CANARY, caught
from tests.specimens import each


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "store.db"
    store = open_store(made)
    store.execute("create table held (id integer primary key, name text unique)")
    store.execute("insert into held values (1, ?)", (CANARY,))
    store.close()
    return made


@pytest.fixture
def store(path: Path) -> Iterator[sqlite3.Connection]:
    made = open_store(path)
    yield made
    made.close()


def open_store(path: Path | str, *, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=0, isolation_level=None, uri=uri)


def deny(*_question: object) -> int:
    return sqlite3.SQLITE_DENY


def report_of(store: sqlite3.Connection, statement: str, *values: object) -> failwell.ErrorReport:
    report = failwell.describe(caught(lambda: store.execute(statement, values).fetchall()))
    assert CANARY not in report.to_json()
    return report


def test_a_locked_database_is_busy(path: Path, store: sqlite3.Connection) -> None:
    other = open_store(path)
    other.execute("begin exclusive")

    report = report_of(store, "insert into held values (2, ?)", CANARY)
    other.close()

    assert (report.kind, report.retryable) == ("tool.busy", True)
    assert report.details == {"sqlite_code": "SQLITE_BUSY"}


def test_a_broken_constraint_is_the_callers_input(store: sqlite3.Connection) -> None:
    report = report_of(store, "insert into held values (2, ?)", CANARY)

    assert (report.kind, report.details) == (
        "validation.input_invalid",
        {"sqlite_code": "SQLITE_CONSTRAINT_UNIQUE"},
    )
    assert report.evidence[0].rule == "sqlite.SQLITE_CONSTRAINT"


def test_a_value_of_the_wrong_type_is_the_callers_input(store: sqlite3.Connection) -> None:
    assert report_of(store, "insert into held values (?, 'x')", CANARY).kind == "validation.input_invalid"


def test_a_value_that_is_too_big_is_the_callers_input(store: sqlite3.Connection) -> None:
    store.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100)

    assert report_of(store, "select ?", CANARY * 10).kind == "validation.input_invalid"


def test_a_wrong_statement_is_a_bug(store: sqlite3.Connection) -> None:
    report = report_of(store, f"select {CANARY.replace('-', '_')} from held where")

    assert (report.kind, report.evidence[0].saw) == ("internal.bug", "SQLITE_ERROR")


def test_a_missing_table_has_to_be_made(store: sqlite3.Connection) -> None:
    report = report_of(store, f"select * from {CANARY.replace('-', '_')}")

    assert (report.kind, report.evidence[0].saw) == ("provider.rejected", "no such table")


def test_a_closed_connection_is_a_bug(store: sqlite3.Connection) -> None:
    store.close()

    report = report_of(store, "select 1")

    assert (report.kind, report.evidence[0].rule) == ("internal.bug", "sqlite.ProgrammingError")


def test_a_database_that_is_only_to_be_read_refuses_to_be_written(path: Path) -> None:
    store = open_store(f"file:{path}?mode=ro", uri=True)

    report = report_of(store, "insert into held values (2, 'x')")
    store.close()

    assert (report.kind, report.category) == ("validation.path_denied", "denied")


def test_a_full_database_is_a_full_disk(store: sqlite3.Connection) -> None:
    store.execute("pragma max_page_count = 3")

    report = report_of(store, "insert into held values (2, ?)", "x" * 100_000)

    assert (report.kind, report.category) == ("resource.disk", "resource")


def test_a_file_that_is_no_database_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "odd.db").write_text(CANARY * 100, encoding="utf-8")
    store = open_store(tmp_path / "odd.db")

    report = report_of(store, "select * from held")
    store.close()

    assert (report.kind, report.category) == ("session.store_corrupt", "fatal")


def test_a_folder_that_is_not_there_makes_the_file_unavailable(tmp_path: Path) -> None:
    report = failwell.describe(caught(lambda: open_store(tmp_path / "missing" / CANARY)))

    assert (report.kind, report.details) == (
        "internal.file_unavailable",
        {"sqlite_code": "SQLITE_CANTOPEN"},
    )


def test_an_interrupted_statement_was_cancelled(store: sqlite3.Connection) -> None:
    store.set_progress_handler(lambda: 1, 1)

    assert report_of(store, "select count(*) from held").kind == "cancel.run"


def test_a_forbidden_statement_is_denied(store: sqlite3.Connection) -> None:
    store.set_authorizer(deny)

    assert report_of(store, "select * from held").category == "denied"


@each(("code", "kind"), BY_CODE.items())
@each("suffix", ["", "_EXTENDED_CODE"])
def test_every_code_is_read_in_its_plain_and_its_extended_form(code: str, kind: str, suffix: str) -> None:
    error = sqlite3.OperationalError(CANARY)
    error.sqlite_errorname = f"{code}{suffix}"

    report = failwell.describe(error)

    assert (report.kind, report.details) == (kind, {"sqlite_code": f"{code}{suffix}"})


@pytest.mark.parametrize("made", [sqlite3.Warning, sqlite3.InterfaceError, sqlite3.DataError])
def test_without_a_code_it_is_a_bug(made: type[Exception]) -> None:
    assert failwell.describe(made(CANARY)).kind == "internal.bug"
