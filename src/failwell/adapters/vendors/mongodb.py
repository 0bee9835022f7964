"""pymongo, motor, bson and gridfs: the server's code decides, then its labels, then how far the call got."""

from typing import Any, cast

from failwell.adapters.classification import Classification
from failwell.adapters.protocols.database_errors import client_error, server_error
from failwell.adapters.protocols.stores import kind_of_mongodb
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import text_of, transport
from failwell.adapters.vendor_tables import rows
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import int_attr, safe_getattr

_SERVER, _SDK = "mongodb", "pymongo"
_MOST = 16


def _failed(error: BaseException) -> Classification:
    """An answer of the server with a code, labels, or the errors of single writes."""
    code = int_attr(error, "code") or _write_code(safe_getattr(error, "details"))
    labels = _labels(error)
    kind = kind_of_mongodb(code, labels)
    if code == 8000 and "auth" in text_of(error).lower():
        # Atlas has one code for all that it adds, and a failed login is one of them.
        kind = "provider.auth"
    if kind is None:
        return client_error(error, "provider.unknown", server=_SERVER, sdk=_SDK)
    if code is None:
        # A label alone is the server's word too, and says that nothing was written.
        certainty = None if kind == "provider.outcome_unknown" else Certainty.REJECTED
        return client_error(error, kind, server=_SERVER, sdk=_SDK, certainty=certainty)
    return server_error(error, kind, server=_SERVER, sdk=_SDK, code=str(code), label="code")


def _labels(error: BaseException) -> list[str]:
    labels: Any = safe_getattr(error, "_error_labels")
    if not isinstance(labels, set | frozenset | list | tuple):
        return []
    return [label for label in list(cast("list[object]", labels))[:_MOST] if isinstance(label, str)]


def _write_code(details: Any) -> int | None:
    """The first code in the errors of a bulk write, or of its write concern."""
    if not isinstance(details, dict):
        return None
    record = cast("dict[str, Any]", details)
    for key in ("writeErrors", "writeConcernErrors"):
        rows = record.get(key)
        if isinstance(rows, list):
            for row in cast("list[Any]", rows)[:1]:
                code: Any = (
                    cast("dict[str, Any]", row).get("code")
                    if isinstance(row, dict)
                    else safe_getattr(row, "code")
                )
                if isinstance(code, int):
                    return code
    return None


def _reconnect(error: BaseException) -> Classification:
    """A connection that failed. Before a command was sent nothing happened; after it nobody knows."""
    name = type(error).__name__
    if name == "NotPrimaryError":
        return client_error(
            error, "provider.unavailable", server=_SERVER, sdk=_SDK, certainty=Certainty.REJECTED
        )
    text = text_of(error)
    if "certificate verify failed" in text.lower():
        return client_error(error, "provider.tls_failed", server=_SERVER, sdk=_SDK)
    phase = transport(error)[0]
    not_sent = name in ("ServerSelectionTimeoutError", "WaitQueueTimeoutError") or phase in ("dns", "connect")
    if not_sent or "connection refused" in text.lower():
        return client_error(
            error, "provider.connection", server=_SERVER, sdk=_SDK, certainty=Certainty.NOT_SENT
        )
    kind = "provider.outcome_unknown"
    return client_error(error, kind, server=_SERVER, sdk=_SDK)


_TABLE: Table = {
    "OperationFailure": _failed,
    # By name as well, because a log shows the class and not its bases.
    **dict.fromkeys(
        (
            "ConnectionFailure",
            "AutoReconnect",
            "NetworkTimeout",
            "NotPrimaryError",
            "ServerSelectionTimeoutError",
            "WaitQueueTimeoutError",
        ),
        _reconnect,
    ),
    # The write was done on the primary, and its replicas did not confirm it in time.
    **rows(
        "pymongo",
        {
            "provider.outcome_unknown": "WTimeoutError",
            "validation.config_invalid": "ConfigurationError InvalidURI",
            "validation.input_invalid": (
                "InvalidName CollectionInvalid InvalidDocument DocumentTooLarge EncryptionError "
                "EncryptedCollectionError"
            ),
            "internal.bug": "InvalidOperation",
            "provider.output_invalid": "ProtocolError",
            "provider.unknown": "PyMongoError",
        },
        provider=_SERVER,
    ),
}
TABLES: dict[str, Table] = {
    "pymongo": _TABLE,
    "bson": rows(
        "pymongo",
        {"validation.input_invalid": "BSONError InvalidBSON InvalidDocument InvalidId InvalidStringData"},
        provider=_SERVER,
    ),
    "gridfs": {
        **rows(
            "pymongo",
            {
                "validation.input_invalid": "NoFile FileExists",
                "session.store_corrupt": "CorruptGridFile",
                "provider.unknown": "GridFSError",
            },
            provider=_SERVER,
        ),
    },
}
