"""celery with kombu and billiard: its own signals, the broker, and what became of a worker's process."""

from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table
from failwell.adapters.safe_getattr import safe_getattr
from failwell.adapters.vendors.rows import envelopes, inner_of, rows
from failwell.adapters.vendors.wrapper import carries
from failwell.fault.facts import NotBefore


def _again(error: BaseException) -> Reading:
    """A task that asked to be run again: the failure that it did so for, and the wait that it asked for."""
    held, when = safe_getattr(error, "exc"), safe_getattr(error, "when")
    inner = held if isinstance(held, BaseException) else inner_of(error)
    has_delay = isinstance(when, int | float) and not isinstance(when, bool) and 0 <= when < float("inf")
    wait = NotBefore(after=float(when), source="celery.Retry") if has_delay else None
    return carries(inner, "celery.Retry", otherwise="worker.transient", saw="Retry", not_before=wait)


TABLES: dict[str, Table] = {
    "celery": {
        "Retry": _again,
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
    "billiard": rows("billiard", {
        "worker.timeout": "TimeLimitExceeded SoftTimeLimitExceeded TimeoutError",
        "worker.crashed": "WorkerLostError ProcessError",
        "worker.fatal": "RestartFreqExceeded",
        "cancel.job": "Terminated",
        "provider.auth": "AuthenticationError",
        "internal.bug": "BufferTooShort CoroStop",
    }),
}  # fmt: skip
