"""PyMySQL, mysqlclient, aiomysql and MySQL's own connector: the number decides, then the SQLSTATE."""

from failwell.adapters.classification import Classification
from failwell.adapters.protocols.database_errors import by_class, client_error, server_error
from failwell.adapters.protocols.sql import condition_of, kind_of_mysql, kind_of_sqlstate
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import text_of
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import int_attr, plain_int, safe_getattr, str_attr

_SERVER = "mysql"
_CLOSED = ("already closed", "not connected", "connection not available")


def _read(error: BaseException) -> Classification:
    sdk = type(error).__module__.partition(".")[0]
    number = _number(error)
    state = str_attr(error, "sqlstate")
    kind = kind_of_mysql(number, state)
    if number is not None and kind is not None:
        return server_error(error, kind, server=_SERVER, sdk=sdk, code=str(number), label="error")
    kind = kind_of_sqlstate(state)
    if state is not None and kind is not None:
        return server_error(
            error, kind, server=_SERVER, sdk=sdk, code=state, label="SQLSTATE", name=condition_of(state)
        )
    # PyMySQL raises `InterfaceError(0, "")` for a connection that was closed before.
    if number == 0 or any(words in text_of(error).lower() for words in _CLOSED):
        return client_error(
            error, "provider.connection", server=_SERVER, sdk=sdk, certainty=Certainty.NOT_SENT
        )
    return by_class(error, server=_SERVER, sdk=sdk)


def _number(error: BaseException) -> int | None:
    """The error number: an attribute of the connector's, the first argument of the others."""
    number = int_attr(error, "errno")
    if number is not None:
        return number
    args = safe_getattr(error, "args")
    return plain_int(args[0]) if type(args) is tuple and args else None


_TABLE: Table = {"Error": _read, "MySQLError": _read}

TABLES: dict[str, Table] = {"pymysql": _TABLE, "MySQLdb": _TABLE, "mysql": _TABLE, "asyncmy": _TABLE}
