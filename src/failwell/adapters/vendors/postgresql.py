"""psycopg, psycopg2, asyncpg and their pools: the SQLSTATE decides.

libpq does not hand on the SQLSTATE of a connection that the server refused, so the two drivers that stand on
it are read by the sentences of PostgreSQL and libpq for those states.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.facts import NOT_SENT
from failwell.adapters.protocols.database_errors import by_class, client_error, server_error
from failwell.adapters.protocols.sql import class_names, condition_of, kind_of_sqlstate, sqlstate_of
from failwell.adapters.protocols.system_errors import NAME_BY_SENTENCE, PHASE_BY_NAME
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import text_of, transport
from failwell.adapters.vendor_tables import rows
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import safe_getattr, str_attr

_SERVER = "postgresql"
_SENTENCES: tuple[tuple[str, str], ...] = (
    ("password authentication failed", "28P01"),
    ("no password supplied", "28P01"),
    ("no pg_hba.conf entry", "28000"),
    ("authentication failed for user", "28000"),
    ("is not permitted to log in", "28000"),
    ("too many clients already", "53300"),
    ("remaining connection slots are reserved", "53300"),
    ("too many connections for", "53300"),
    ("the database system is", "57P03"),
    ("terminating connection due to administrator command", "57P01"),
    ("terminating connection because of crash", "57P02"),
    ("timeout expired", "08001"),
    ("connection timeout", "08001"),
    ("no such file or directory", "08001"),
    ("server closed the connection unexpectedly", "08006"),
    ("connection has been closed unexpectedly", "08006"),
    ("connection was closed in the middle", "08006"),
    ("connection to server was lost", "08006"),
    ("the connection is lost", "08006"),
    ("could not receive data from server", "08006"),
    ("could not send data to server", "08006"),
    ("consuming input failed", "08006"),
)
"""libpq's and PostgreSQL's sentences about a connection → the SQLSTATE of that state."""
_MISSING: tuple[tuple[str, str], ...] = (("database ", "3D000"), ("role ", "28000"))
"""What a `FATAL` says does not exist."""
_CLOSED = ("connection is closed", "connection already closed", "connection not open", "pool is closed")


def _read(error: BaseException) -> Classification:
    sdk = type(error).__module__.partition(".")[0]
    code = str_attr(error, "sqlstate", "pgcode") or sqlstate_of(type(error).__name__)
    text = text_of(error)
    if code is None:
        code = _by_sentence(text.lower())
    kind = kind_of_sqlstate(code)
    if code is not None and kind is not None:
        if code == "57014" and "user request" in text:
            kind = "cancel.run"
        return server_error(
            error, kind, server=_SERVER, sdk=sdk, code=code, label="SQLSTATE", name=condition_of(code)
        )
    if "certificate verify failed" in text or "root certificate file" in text:
        return client_error(error, "provider.tls_failed", server=_SERVER, sdk=sdk)
    if any(words in text.lower() for words in _CLOSED):
        return _not_sent(error)
    return by_class(error, server=_SERVER, sdk=sdk)


def _by_sentence(low: str) -> str | None:
    if "fatal:" in low and "does not exist" in low:
        return next((code for word, code in _MISSING if word in low), None)
    code = next((code for words, code in _SENTENCES if words in low), None)
    if code is not None:
        return code
    phase = PHASE_BY_NAME.get(next((name for words, name in NAME_BY_SENTENCE.items() if words in low), ""))
    return None if phase is None else "08001" if phase in NOT_SENT else "08006"


def _not_sent(error: BaseException) -> Classification:
    """A connection that was not open: the statement never left."""
    sdk = type(error).__module__.partition(".")[0]
    return client_error(error, "provider.connection", server=_SERVER, sdk=sdk, certainty=Certainty.NOT_SENT)


def _interface(error: BaseException) -> Classification:
    """Asyncpg's own findings, and those of psycopg: a closed connection, or a misuse."""
    if any(words in text_of(error).lower() for words in _CLOSED) or transport(error)[0] is not None:
        return _not_sent(error)
    inner = safe_getattr(error, "__cause__")
    if isinstance(inner, OSError):
        return _not_sent(error)
    return client_error(error, "internal.bug", server=_SERVER, sdk=type(error).__module__.partition(".")[0])


_OWN_NAMES = (
    "PostgresConnectionError ClientCannotConnectError ConnectionRejectionError ActiveSQLTransactionError ReadOnlySQLTransactionError "
    "NoActiveSQLTransactionError InFailedSQLTransactionError InvalidSQLStatementNameError SerializationError SyntaxOrAccessError "
    "PostgresSyntaxError PostgresSystemError PostgresIOError RaiseError AssertError InternalServerError"
)
"""Classes of asyncpg that are not named like psycopg's."""
_NAMED: Table = dict.fromkeys(class_names(), _read)
"""Classes that are named after a SQLSTATE, for those who know an exception by its name alone."""

_PSYCOPG: Table = {
    **_NAMED,
    "Error": _read,
    "InterfaceError": _interface,
    "ConnectionTimeout": _not_sent,
    "ConnectionFailure": _read,
    **rows(
        _SERVER,
        {
            "cancel.run": "Rollback",
            "provider.bad_request": "Warning",
            "internal.bug": "PipelineAborted",
        },
        provider=_SERVER,
    ),
}

TABLES: dict[str, Table] = {
    "psycopg": _PSYCOPG,
    "psycopg2": {
        **_NAMED,
        "Error": _read,
        "InterfaceError": _interface,
        "PoolError": _not_sent,
        **rows(_SERVER, {"provider.bad_request": "Warning"}, provider=_SERVER),
    },
    "psycopg_pool": {
        "PoolTimeout": _not_sent,
        "TooManyRequests": _not_sent,
        "PoolClosed": _not_sent,
    },
    "asyncpg": {
        **{f"{name.removesuffix('Error')}Error": _read for name in (*_NAMED, *_OWN_NAMES.split())},
        "PostgresError": _read,
        "InterfaceError": _interface,
        **rows(_SERVER, {"validation.config_invalid": "ClientConfigurationError"}, provider=_SERVER),
        "TargetServerAttributeNotMatched": _not_sent,
        **rows(
            _SERVER,
            {
                "provider.stream_interrupted": "ProtocolError",
                "tool.busy": "OutdatedSchemaCacheError",
                "internal.bug": "InternalClientError",
            },
            provider=_SERVER,
        ),
    },
}
