"""Drivers of databases without their libraries: what the codes, classes and sentences of their exceptions mean.

tests/sdks/stores raises them for real, where the drivers are installed.
"""

from typing import Any

import pytest

from failwell import describe
from tests.adapters.raisers import CANARY
from tests.specimens import each


def an_error(dotted: str, *args: Any, **attributes: Any) -> Exception:
    """An exception with the names, arguments and attributes that the driver gives it."""
    module, _, name = dotted.rpartition(".")
    error: Exception = type(name, (Exception,), {"__module__": module})(*args)
    vars(error).update(attributes)
    return error


@each(
    ("error", "kind", "certainty"),
    [
        (an_error("psycopg.errors.UniqueViolation", CANARY, sqlstate="23505"), "provider.bad_request", "rejected"),
        (an_error("psycopg2.errors.DeadlockDetected", CANARY, pgcode="40P01"), "tool.busy", "rejected"),
        (an_error("asyncpg.exceptions.SerializationError", CANARY), "tool.busy", "rejected"),
        (an_error("psycopg.errors.QueryCanceled", "canceling statement due to statement timeout", sqlstate="57014"), "provider.timeout", "rejected"),
        (an_error("psycopg.errors.QueryCanceled", "canceling statement due to user request", sqlstate="57014"), "cancel.run", "rejected"),
        (an_error("psycopg.Error", 'FATAL:  password authentication failed for user "x"'), "provider.auth", "rejected"),
        (an_error("psycopg.Error", 'FATAL:  database "x" does not exist'), "provider.rejected", "rejected"),
        (an_error("psycopg.Error", "FATAL:  sorry, too many clients already"), "provider.overloaded", "rejected"),
        (an_error("psycopg.Error", "FATAL:  the database system is starting up"), "provider.unavailable", "rejected"),
        (an_error("psycopg2.Error", "connection to server failed: Connection refused"), "provider.connection", "not_sent"),
        (an_error("psycopg2.Error", "server closed the connection unexpectedly"), "provider.outcome_unknown", "unknown"),
        (an_error("psycopg2.InterfaceError", "connection already closed"), "provider.connection", "not_sent"),
        (an_error("asyncpg.exceptions.InterfaceError", "cannot perform operation: another operation is in progress"), "internal.bug", "unknown"),
        (an_error("pymysql.err.MySQLError", 1213, CANARY), "tool.busy", "rejected"),
        (an_error("pymysql.err.MySQLError", 2013, CANARY), "provider.outcome_unknown", "unknown"),
        (an_error("mysql.connector.errors.Error", CANARY, errno=99_999, sqlstate="42000"), "provider.bad_request", "rejected"),
        (an_error("redis.exceptions.ResponseError", "OOM command not allowed when used memory > 'maxmemory'."), "resource.system_memory", "rejected"),
        (an_error("redis.exceptions.ReadOnlyError", "You can't write against a read only replica."), "provider.rejected", "rejected"),
        (an_error("redis.exceptions.ResponseError", "You can't write …", status_code="READONLY"), "provider.rejected", "rejected"),
        (an_error("pymongo.errors.OperationFailure", CANARY, code=112), "tool.busy", "rejected"),
        (an_error("pymongo.errors.OperationFailure", CANARY, code=None, _error_labels={"TransientTransactionError"}), "tool.busy", "rejected"),
        (an_error("pymilvus.exceptions.MilvusException", CANARY, code=8), "provider.rate_limited", "rejected"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)  # fmt: skip
def test_a_driver_is_read_by_the_code_that_its_server_sent(
    error: Exception, kind: str, certainty: str
) -> None:
    report = describe(error)

    assert (report.kind, report.certainty) == (kind, certainty)
    assert CANARY not in report.to_json()


class StatementError(Exception):
    """Prints as SQLAlchemy's does."""

    def __init__(self, message: str, statement: str, orig: BaseException) -> None:
        super().__init__(message)
        self.statement, self.orig = statement, orig

    def __str__(self) -> str:
        return f"{super().__str__()}\n[SQL: {self.statement}]\n[parameters: ('{CANARY}',)]"


StatementError.__module__ = "sqlalchemy.exc"


@pytest.mark.parametrize("policy", ["full", "repr_only", "none", "strict"])
def test_a_statement_and_its_parameters_are_recorded_under_no_policy(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILWELL_TRACEBACK", policy)
    below = an_error("psycopg.errors.ForeignKeyViolation", "refused", sqlstate="23503")

    report = describe(StatementError("refused", f"insert into held values ('{CANARY}')", below))

    assert report.kind == "provider.bad_request"
    for secret in (CANARY, "[SQL:", "[parameters:", "insert into"):
        assert secret not in report.to_json()
