"""psycopg, psycopg2, asyncpg and SQLAlchemy against a real PostgreSQL: what they raise is read by its SQLSTATE."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from failwell import ErrorReport, describe
from tests.adapters.raisers import CANARY, caught
from tests.sdks.stores.servers import Postgres, free_port, postgres

pytestmark = pytest.mark.slow

psycopg: Any = pytest.importorskip("psycopg")
psycopg2: Any = pytest.importorskip("psycopg2")
asyncpg: Any = pytest.importorskip("asyncpg")
sqlalchemy: Any = pytest.importorskip("sqlalchemy")

Run = Callable[..., object]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as started:
        with psycopg.connect(started.dsn(), autocommit=True) as link:
            link.execute(
                "create table held (id integer primary key, name text unique, age integer check (age > 0))"
            )
            link.execute("insert into held values (1, %s, 7)", (CANARY,))
            link.execute("create role guest login password 'right'")
        yield started


def by_psycopg(dsn: str, statement: str, before: str = "") -> None:
    with psycopg.connect(dsn, autocommit=True) as link:
        if before:
            link.execute(before)
        link.execute(statement)


def by_psycopg2(dsn: str, statement: str, before: str = "") -> None:
    link = psycopg2.connect(dsn)
    try:
        link.autocommit = True
        with link.cursor() as cursor:
            if before:
                cursor.execute(before)
            cursor.execute(statement)
    finally:
        link.close()


def by_asyncpg(dsn: str, statement: str, before: str = "") -> None:
    async def run() -> None:
        link = await asyncpg.connect(dsn)
        try:
            if before:
                await link.execute(before)
            await link.execute(statement)
        finally:
            await link.close()

    asyncio.run(run())


def by_sqlalchemy(dsn: str, statement: str, before: str = "") -> None:
    engine = sqlalchemy.create_engine(dsn.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.connect() as link:
            if before:
                link.execute(sqlalchemy.text(before))
            link.execute(sqlalchemy.text(statement))
    finally:
        engine.dispose()


DRIVERS: dict[str, Run] = {
    "psycopg": by_psycopg,
    "psycopg2": by_psycopg2,
    "asyncpg": by_asyncpg,
    "sqlalchemy": by_sqlalchemy,
}


def report_of(run: Callable[[], object]) -> ErrorReport:
    report = describe(caught(run))
    assert CANARY not in report.to_json()
    return report


STATEMENTS: dict[str, tuple[str, str, str]] = {
    # what → a statement, the SQLSTATE, the kind
    "unique": (f"insert into held values (2, '{CANARY}', 7)", "23505", "provider.bad_request"),
    "check": (f"insert into held values (3, '{CANARY}x', -1)", "23514", "provider.bad_request"),
    "not a number": (f"select '{CANARY}'::integer", "22P02", "provider.bad_request"),
    "divided by zero": ("select 1/0", "22012", "provider.bad_request"),
    "no such table": (f'select * from "{CANARY}"', "42P01", "provider.rejected"),
    "no such column": (f'select "{CANARY}" from held', "42703", "provider.rejected"),
    "syntax": (f"selec '{CANARY}'", "42601", "provider.bad_request"),
    "raised by a function": (
        f"do $$ begin raise exception '{CANARY}'; end $$",
        "P0001",
        "provider.bad_request",
    ),
}


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_statement_that_fails_is_read_by_its_sqlstate(server: Postgres, driver: str) -> None:
    seen = {
        what: report_of(lambda s=statement: DRIVERS[driver](server.dsn(), s))
        for what, (statement, _, _) in STATEMENTS.items()
    }

    expected = {what: (kind, f"postgresql.{code}") for what, (_, code, kind) in STATEMENTS.items()}
    assert {what: (report.kind, _rule(report)) for what, report in seen.items()} == expected
    assert {report.certainty for report in seen.values()} == {"rejected"}


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_session_that_an_operator_ends(server: Postgres, driver: str) -> None:
    report = report_of(lambda: DRIVERS[driver](server.dsn(), "select pg_terminate_backend(pg_backend_pid())"))

    # These hand on that the connection broke, and not the reason that the server gave before.
    lost = driver in ("psycopg2", "asyncpg")
    assert report.kind == ("provider.outcome_unknown" if lost else "provider.unavailable")


def _rule(report: ErrorReport) -> str:
    """The rule that decided: that of the exception below, where the outer one only carries it."""
    return next(entry.rule for entry in report.evidence if entry.rule.startswith("postgresql."))


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_time_limit_of_the_server_is_a_timeout_that_was_undone(server: Postgres, driver: str) -> None:
    report = report_of(
        lambda: DRIVERS[driver](server.dsn(), "select pg_sleep(30)", "set statement_timeout = '50ms'")
    )

    assert (report.kind, report.certainty, report.retryable) == ("provider.timeout", "rejected", True)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_connection_that_is_refused_says_why(server: Postgres, driver: str) -> None:
    run = DRIVERS[driver]

    seen = {
        "password": report_of(lambda: run(server.dsn(password="wrong"), "select 1")),
        "database": report_of(lambda: run(server.dsn(database="missing"), "select 1")),
        "nobody": report_of(lambda: run(f"postgresql://a:b@127.0.0.1:{free_port()}/x", "select 1")),
        "name": report_of(lambda: run("postgresql://a:b@nowhere.invalid/x", "select 1")),
    }

    assert {what: report.kind for what, report in seen.items()} == {
        "password": "provider.auth",
        "database": "provider.rejected",
        "nobody": "provider.connection",
        "name": "provider.connection",
    }
    assert [what for what, report in seen.items() if report.retryable] == ["nobody", "name"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_missing_privilege_is_a_matter_of_permission(server: Postgres, driver: str) -> None:
    report = report_of(lambda: DRIVERS[driver](server.dsn(user="guest"), "select * from held"))

    assert (report.kind, report.retryable) == ("provider.permission", False)


@pytest.mark.parametrize("driver", DRIVERS)
def test_too_many_connections_are_an_overload(server: Postgres, driver: str) -> None:
    links: list[Any] = []
    try:
        with suppress(psycopg.OperationalError):
            while True:
                links.append(psycopg.connect(server.dsn(user="guest")))

        report = report_of(lambda: DRIVERS[driver](server.dsn(user="guest"), "select 1"))
    finally:
        for link in links:
            link.close()

    assert (report.kind, report.retryable) == ("provider.overloaded", True)


@pytest.mark.parametrize("driver", ["psycopg", "sqlalchemy"])
def test_a_statement_that_another_session_cancels_was_cancelled(server: Postgres, driver: str) -> None:
    def cancel() -> None:
        with psycopg.connect(server.dsn(), autocommit=True) as link:
            while not link.execute(
                "select pg_cancel_backend(pid) from pg_stat_activity where query like 'select pg_sleep(31)%'"
            ).fetchall():
                pass

    thread = threading.Thread(target=cancel)
    thread.start()
    report = report_of(lambda: DRIVERS[driver](server.dsn(), "select pg_sleep(31)"))
    thread.join()

    assert (report.kind, report.category) == ("cancel.run", "cancelled")


def _two(server: Postgres) -> tuple[Any, Any]:
    return psycopg.connect(server.dsn()), psycopg.connect(server.dsn())


def test_a_serialization_failure_may_be_run_again(server: Postgres) -> None:
    first, second = _two(server)
    with first, second:
        for link in (first, second):
            link.execute("set transaction isolation level serializable")
            link.execute("select sum(age) from held").fetchall()
        first.execute("insert into held values (11, 'a', 1)")
        second.execute("insert into held values (12, 'b', 1)")
        first.commit()

        report = report_of(second.commit)
        second.rollback()

    assert (report.kind, report.certainty, report.retryable) == ("tool.busy", "rejected", True)


def test_a_deadlock_may_be_run_again(server: Postgres) -> None:
    first, second = _two(server)
    ids = (21, 22)
    with first, second:
        for number in ids:
            first.execute("insert into held values (%s, %s, 1)", (number, str(number)))
        first.commit()
        first.execute("update held set age = 2 where id = 21")
        second.execute("update held set age = 2 where id = 22")
        errors: list[BaseException] = []

        def cross(link: Any, number: int) -> None:
            try:
                link.execute("update held set age = 3 where id = %s", (number,))
            except psycopg.Error as error:
                errors.append(error)
            link.rollback()

        threads = [threading.Thread(target=cross, args=pair) for pair in ((first, 22), (second, 21))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)

    report = describe(errors[0])
    assert (report.kind, report.retryable, _rule(report)) == ("tool.busy", True, "postgresql.40P01")


def test_a_lock_that_is_not_waited_for_is_busy(server: Postgres) -> None:
    first, second = _two(server)
    with first, second:
        first.execute("lock table held")

        report = report_of(lambda: second.execute("lock table held nowait"))

        second.rollback()
        first.rollback()
    assert (report.kind, report.retryable) == ("tool.busy", True)


def test_a_connection_that_was_closed_before_sends_nothing(server: Postgres) -> None:
    links = [psycopg.connect(server.dsn()), psycopg2.connect(server.dsn())]
    for link in links:
        link.close()

    reports = [report_of(lambda link=link: link.cursor().execute("select 1")) for link in links]

    assert [(report.kind, report.certainty) for report in reports] == [
        ("provider.connection", "not_sent")
    ] * 2


def test_a_pool_without_a_free_connection_sends_nothing(server: Postgres) -> None:
    engine = sqlalchemy.create_engine(
        server.dsn().replace("postgresql://", "postgresql+psycopg://"),
        pool_size=1,
        max_overflow=0,
        pool_timeout=0.05,
    )
    with engine.connect():
        report = report_of(engine.connect)
    engine.dispose()

    assert (report.kind, report.certainty, report.retryable) == ("provider.connection", "not_sent", True)


def test_statement_and_parameters_are_shown_to_nobody(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILWELL_TRACEBACK", "full")
    engine = sqlalchemy.create_engine(server.dsn().replace("postgresql://", "postgresql+psycopg://"))
    statement = sqlalchemy.text("select :secret_of_mine::integer_that_is_none")

    with engine.connect() as link:
        report = describe(caught(lambda: link.execute(statement, {"secret_of_mine": CANARY})))
    engine.dispose()

    assert CANARY not in report.to_json()
    assert "[SQL:" not in report.to_json()
    assert "[parameters:" not in report.to_json()


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "asyncpg", "sqlalchemy"])
def test_a_server_that_dies_in_the_middle_of_a_query(driver: str) -> None:
    with postgres() as server:
        reports: list[ErrorReport] = []
        begun = threading.Event()

        def run() -> None:
            begun.set()
            reports.append(report_of(lambda: DRIVERS[driver](server.dsn(), "select pg_sleep(60)")))

        thread = threading.Thread(target=run)
        thread.start()
        begun.wait()
        with psycopg.connect(server.dsn(), autocommit=True) as link:
            while not link.execute(
                "select 1 from pg_stat_activity where query = 'select pg_sleep(60)' and state = 'active'"
            ).fetchall():
                pass
        server.stop("immediate")
        thread.join(30)

        refused = report_of(lambda: DRIVERS[driver](server.dsn(), "select 1"))

    # PostgreSQL says good-bye to the sessions that it can reach; to the others the connection just breaks.
    assert reports[0].kind in ("provider.unavailable", "provider.outcome_unknown")
    assert refused.kind == "provider.connection"
