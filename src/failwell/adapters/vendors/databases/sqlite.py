"""SQLite's errors, read by their symbolic code; the message may quote a statement."""

from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table
from failwell.adapters.safe_getattr import str_attr

_BY_CODE = {
    "SQLITE_BUSY": "tool.busy",
    "SQLITE_LOCKED": "tool.busy",
    "SQLITE_FULL": "resource.disk",
    "SQLITE_NOMEM": "resource.system_memory",
    "SQLITE_IOERR": "session.store_unavailable",
    "SQLITE_CANTOPEN": "session.store_unavailable",
    "SQLITE_PROTOCOL": "session.store_unavailable",
    "SQLITE_READONLY": "validation.path_denied",
    "SQLITE_PERM": "validation.path_denied",
    "SQLITE_AUTH": "validation.path_denied",
    "SQLITE_CORRUPT": "session.store_corrupt",
    "SQLITE_NOTADB": "session.store_corrupt",
    "SQLITE_CONSTRAINT": "validation.input_invalid",
    "SQLITE_MISMATCH": "validation.input_invalid",
    "SQLITE_TOOBIG": "validation.input_invalid",
    "SQLITE_SCHEMA": "tool.busy",
    "SQLITE_INTERRUPT": "cancel.run",
}


def _read(error: BaseException) -> Reading:
    code = str_attr(error, "sqlite_errorname")
    if code is not None:
        # Extended codes refine a primary one: SQLITE_BUSY_SNAPSHOT is a kind of SQLITE_BUSY.
        primary = "_".join(code.split("_")[:2])
        kind = _BY_CODE.get(primary)
        if kind is not None:
            return Reading.from_rule(
                kind=kind, rule=f"sqlite.{primary}", basis="code", saw=code, details={"sqlite_code": code}
            )
    saw = code or type(error).__name__
    return Reading.from_rule(kind="internal.bug", rule=f"sqlite.{type(error).__name__}", saw=saw)


TABLES: dict[str, Table] = {"sqlite3": {"Error": _read, "Warning": _read}}
