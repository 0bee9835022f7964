"""dbos: what became of a durable workflow. A step that was tried too often is what its last try was."""

from typing import Any, cast

from failwell.adapters.classification import Classification
from failwell.adapters.registry import Table
from failwell.adapters.vendor_tables import carries, envelopes, inner_of, rows
from failwell.errors.foreign_objects import safe_getattr


def _tried(error: BaseException) -> Classification:
    errors: Any = safe_getattr(error, "errors")
    last = cast("list[object]", errors)[-1] if isinstance(errors, list) and errors else None
    inner = last if isinstance(last, BaseException) else inner_of(error)
    return carries(inner, "dbos.DBOSMaxStepRetriesExceeded", otherwise="retry.exhausted")


TABLES: dict[str, Table] = {
    "dbos": {
        "DBOSMaxStepRetriesExceeded": _tried,
        **envelopes("dbos", {
            "internal.unknown": "DBOSException DBOSBaseException DBOSRecoveryError PortableWorkflowError",
        }),
        **rows("dbos", {
            "limit.step_timeout": "DBOSStepTimeoutError",
            "worker.timeout": "DBOSQueryTimeoutError DBOSStreamTimeoutError",
            "worker.start_failed": "DBOSInitializationError",
            "worker.not_loaded": "DBOSWorkflowFunctionNotFoundError",
            "retry.exhausted": "MaxRecoveryAttemptsExceededError DBOSAwaitedWorkflowMaxRecoveryAttemptsExceeded",
            "cancel.run": "DBOSWorkflowCancelledError DBOSAwaitedWorkflowCancelledError",
            "tool.denied": "DBOSNotAuthorizedError",
            "session.no_snapshot": "DBOSNonExistentWorkflowError",
            "session.resume_mismatch": "DBOSUnexpectedStepError DBOSStepNondeterminismError "
                                       "DBOSPatchNondeterminismError DBOSStreamNondeterminismError",
            "validation.input_invalid": "DBOSConflictingWorkflowError DBOSQueueDeduplicatedError "
                                        "DBOSWorkflowIDInUseError DBOSWorkflowConflictIDError",
        }),
    }
}  # fmt: skip
