"""celery with kombu and billiard: its own signals, the broker, and what became of a worker's process."""

from failwell.adapters.classification import Classification
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import text_of
from failwell.adapters.vendor_tables import carries, envelopes, inner_of, rows
from failwell.adapters.vendors.process import read_exit
from failwell.errors.facts import NotBefore
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.lazy_regex import lazy_regex


def _again(error: BaseException) -> Classification:
    """A task that asked to be run again: the failure that it did so for, and the wait that it asked for."""
    held, when = safe_getattr(error, "exc"), safe_getattr(error, "when")
    inner = held if isinstance(held, BaseException) else inner_of(error)
    has_delay = isinstance(when, int | float) and not isinstance(when, bool) and 0 <= when < float("inf")
    wait = NotBefore(after=float(when), source="celery.Retry") if has_delay else None
    return carries(inner, "celery.Retry", otherwise="worker.transient", saw="Retry", not_before=wait)


_SIGNAL = lazy_regex(r"\bsignal (\d{1,2})\b|\bexitcode (\d{1,3})\b")


def _lost(error: BaseException) -> Classification:
    """A worker's process that ended: the message names the signal or the exit code."""
    ended = _SIGNAL.search(text_of(error))
    if ended is None or ended[2] == "0":
        return Classification.from_rule(
            kind="worker.crashed", rule="billiard.WorkerLostError", saw="WorkerLostError"
        )
    return read_exit(-int(ended[1]) if ended[1] else int(ended[2]))


_POOL: Table = {
    "WorkerLostError": _lost,
    **rows("billiard", {
        "worker.timeout": "TimeLimitExceeded SoftTimeLimitExceeded",
        "cancel.job": "Terminated",
    }),
}  # fmt: skip
"""What celery shows under its own name too."""

TABLES: dict[str, Table] = {
    "celery": {
        "Retry": _again,
        **_POOL,
        **envelopes("celery", {
            "retry.exhausted": "MaxRetriesExceededError",
            "internal.unknown": "CeleryError TaskError TaskPredicate ChordError",
            "session.store_unavailable": "BackendError BackendGetMetaError BackendStoreError",
        }),
        **rows("celery", {
            "worker.timeout": "TimeoutError",
            "worker.not_loaded": "NotRegistered",
            "cancel.job": "TaskRevokedError Ignore Reject",
            "validation.config_invalid": "ImproperlyConfigured QueueNotFound AlreadyRegistered CeleryCommandException",
            "validation.input_invalid": "InvalidTaskError",
            "provider.stream_interrupted": "IncompleteStream",
            "tool.denied": "SecurityError",
        }),
    },
    "kombu": {
        **envelopes("kombu", {
            "provider.connection": "OperationalError",
            "provider.outcome_unknown": "BatchPublishError",
            "provider.unknown": "KombuError HttpError",
        }),
        **rows("kombu", {
            "internal.bug": "NotBoundError MessageStateError",
            "validation.shape_invalid": "SerializationError EncodeError DecodeError",
            "tool.busy": "LimitExceeded ConnectionLimitExceeded ChannelLimitExceeded",
            "extension.dependency_missing": "SerializerNotInstalled",
            "validation.contract_version_mismatch": "VersionMismatch",
            "tool.denied": "ContentDisallowed",
            "session.store_corrupt": "InconsistencyError",
            "provider.permission": "AccessDeniedQueueException",
            "provider.rejected": "DoesNotExistQueueException UndefinedQueueException UndefinedExchangeException "
                                 "InvalidQueueException UnableToSubscribeQueueToTopicException "
                                 "UnableToUnsubscribeQueueFromTopicException",
        }),
    },
    "billiard": {**_POOL, **rows("billiard", {
        "worker.timeout": "TimeoutError",
        "worker.crashed": "ProcessError",
        "worker.fatal": "RestartFreqExceeded",
        "provider.auth": "AuthenticationError",
        "internal.bug": "BufferTooShort CoroStop",
    })},
}  # fmt: skip
