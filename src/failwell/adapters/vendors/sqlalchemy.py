"""SQLAlchemy: the driver's exception below it decides. A statement and its parameters are never read."""

from failwell.adapters.classification import Classification
from failwell.adapters.protocols.database_errors import by_class
from failwell.adapters.registry import Table
from failwell.adapters.vendor_tables import carries, cause_of, rows
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import safe_getattr


def _statement(error: BaseException) -> Classification:
    inner = safe_getattr(error, "orig")
    # A driver without an adapter here is read by the class that SQLAlchemy gives its error.
    own = by_class(error, server="database", sdk="sqlalchemy")
    if isinstance(inner, BaseException):
        return carries(inner, f"sqlalchemy.{type(error).__name__}", otherwise=own.kind)
    return own


def _adapted(error: BaseException) -> Classification:
    """The stand-in that SQLAlchemy makes of an asynchronous driver's error; the error itself is its cause."""
    own = by_class(error, server="database", sdk="sqlalchemy")
    return carries(cause_of(error), f"sqlalchemy.{type(error).__name__}", otherwise=own.kind)


TABLES: dict[str, Table] = {
    "sqlalchemy": {
        "StatementError": _statement,
        "EmulatedDBAPIException": _adapted,
        "Error": _adapted,
        # No connection of the pool was free in time.
        **rows(
            "sqlalchemy",
            {"provider.connection": "TimeoutError DisconnectionError InvalidatePoolError"},
            certainty=Certainty.NOT_SENT,
        ),
        **rows(
            "sqlalchemy",
            {
                "validation.input_invalid": "NoResultFound MultipleResultsFound ObjectDeletedError",
                "tool.busy": "StaleDataError",
                "extension.dependency_missing": "NoSuchModuleError NoDBAPILoaded",
                "validation.config_invalid": "NoSuchTableError",
            },
        ),
        # What is left are misuses of the library.
        **rows("sqlalchemy", {"internal.bug": "SQLAlchemyError"}),
    }
}
