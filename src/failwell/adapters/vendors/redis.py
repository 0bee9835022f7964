"""redis and valkey: an error reply begins with its code; redis-py turns some of the codes into classes."""

from failwell.adapters.classification import Classification
from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts
from failwell.adapters.protocols.database_errors import client_error, server_error
from failwell.adapters.protocols.stores import is_redis_prefix, kind_of_redis
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import gather, text_of
from failwell.adapters.vendor_tables import rows
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import str_attr

_SERVER = "redis"
_PREFIXES: dict[str, str] = {
    "OutOfMemoryError": "OOM",
    "ExecAbortError": "EXECABORT",
    "BusyLoadingError": "LOADING",
    "NoScriptError": "NOSCRIPT",
    "ReadOnlyError": "READONLY",
    "NoPermissionError": "NOPERM",
    "AskError": "ASK",
    "TryAgainError": "TRYAGAIN",
    "MovedError": "MOVED",
    "ClusterDownError": "CLUSTERDOWN",
    "ClusterCrossSlotError": "CROSSSLOT",
    "MasterDownError": "MASTERDOWN",
}
"""Classes of redis-py that stand for a code, which it then takes off the text."""


def _read(error: BaseException) -> Classification:
    text = text_of(error)
    word = str_attr(error, "status_code") or _PREFIXES.get(type(error).__name__)
    if word is not None and is_redis_prefix(word) and not text.startswith(word):
        text = f"{word} {text}"
    kind = kind_of_redis(text)
    if kind is None:
        # A proxy in front of the server answers in its own words.
        said = classify(Facts(message=text)).kind
        kind = said if said in ("provider.permission", "provider.auth") else "provider.bad_request"
        return client_error(error, kind, server=_SERVER, sdk=_SERVER)
    return server_error(error, kind, server=_SERVER, sdk=_SERVER, code=text.partition(" ")[0], label="code")


def _authentication(error: BaseException) -> Classification:
    return client_error(error, "provider.auth", server=_SERVER, sdk=_SERVER, certainty=Certainty.NOT_SENT)


def _connection(error: BaseException) -> Classification:
    """A connection that failed: its causes tell how far the command got."""
    text = text_of(error)
    # The server answers a connection too many with a reply like any other.
    kind = kind_of_redis(text) or kind_of_redis(f"ERR {text}")
    if kind not in (None, "provider.bad_request"):
        return server_error(error, kind or "", server=_SERVER, sdk=_SERVER, code="ERR", label="code")
    facts: Facts = gather(error, _SERVER, _SERVER)
    if text.startswith("Error ") and " connecting to " in text:
        facts.phase = "connect" if facts.phase in (None, "closed", "read") else facts.phase
    elif facts.phase is None:
        facts.phase = "read" if "Timeout" in type(error).__name__ or "imeout" in text else "closed"
    facts.message = ""
    return classify(facts)


_TABLE: Table = {
    "ResponseError": _read,
    **dict.fromkeys(_PREFIXES, _read),
    "AuthenticationError": _authentication,
    "AuthorizationError": _authentication,
    "ExternalAuthProviderError": _authentication,
    "ConnectionError": _connection,
    "TimeoutError": _connection,
    **rows(
        "redis",
        {"provider.connection": "MaxConnectionsError"},
        provider=_SERVER,
        certainty=Certainty.NOT_SENT,
    ),
    # Another client changed what was watched, or holds the lock.
    **rows(
        "redis",
        {
            "tool.busy": "WatchError LockError LockNotOwnedError",
            "provider.unavailable": (
                "ClusterError SlotNotCoveredError TemporaryUnavailableException "
                "NoValidDatabaseException UnhealthyDatabaseException InitialHealthCheckFailedError"
            ),
            "validation.input_invalid": "DataError CrossSlotTransactionError",
            "provider.output_invalid": "InvalidResponse",
            "validation.config_invalid": "RedisClusterException IncorrectPolicyType",
            "internal.bug": "PubSubError ChildDeadlockedError InvalidPipelineStack",
            "provider.unknown": "RedisError",
        },
        provider=_SERVER,
    ),
}

TABLES: dict[str, Table] = {"redis": _TABLE, "valkey": _TABLE}
