"""temporalio: failures that crossed a workflow, an activity or the service.

A report that travelled in an `ApplicationError` is the answer, whole. Without one, the type name that
Temporal recorded of the original class is read, and then the cause.
"""

import builtins
from collections.abc import Mapping
from datetime import timedelta
from itertools import islice
from typing import Any, cast

from failwell.adapters.classification import Classification
from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts
from failwell.adapters.protocols.rpc import read_rpc
from failwell.adapters.registry import Table, find
from failwell.adapters.replies import take
from failwell.adapters.vendor_tables import cause_of, rows
from failwell.errors.axes import Certainty
from failwell.errors.facts import NotBefore
from failwell.errors.foreign_objects import safe_getattr, str_attr
from failwell.errors.safe_str import as_dict, sequence_of

_SCHEMA = "failwell.error/"
MODEL_ERROR = "pydantic_ai_model_error"
"""The key under which pydantic-ai encodes the exception of a model call in the details."""
_HOME = "pydantic_ai.exceptions"
_FIELDS = ("body", "headers", "provider_error_code", "provider_error_type", "retry_after", "in_stream")
_StandIn = type("ModelAPIError", (Exception,), {"__module__": _HOME})
"""The adapter of pydantic-ai knows exceptions by the names of their classes."""
_TIMEOUTS: dict[str, tuple[str, Certainty | None]] = {
    "START_TO_CLOSE": ("worker.timeout", None),
    "HEARTBEAT": ("worker.stalled", None),
    # No worker took it in time, so nothing ran.
    "SCHEDULE_TO_START": ("worker.timeout", Certainty.NOT_SENT),
    "SCHEDULE_TO_CLOSE": ("limit.run_timeout", None),
}


def _application(error: BaseException) -> Classification:
    details = safe_getattr(error, "details")
    recorded = report_in(details)
    encoded = None if recorded is not None else _model_error(details)
    name = str_attr(error, "type")
    known = _by_name(name)
    veto = False if safe_getattr(error, "non_retryable") is True else None
    wait = safe_getattr(error, "next_retry_delay")
    has_delay = isinstance(wait, timedelta) and wait >= timedelta(0)
    return Classification.from_rule(
        kind=str(recorded["kind"]) if recorded is not None else known or "internal.unknown",
        rule="temporalio.ApplicationError",
        basis="declared" if recorded is not None else "code" if known else "type",
        saw="report" if recorded is not None else name or "ApplicationError",
        retryable=veto,
        not_before=NotBefore(after=wait.total_seconds(), source="next_retry_delay") if has_delay else None,
        inner=encoded or (None if recorded is not None or known else cause_of(error)),
        recorded=recorded,
    )


def report_in(details: object) -> Mapping[str, Any] | None:
    """The report among an error's details, if one of them is a report."""
    for detail in islice(sequence_of(details), 8):
        mapping = as_dict(detail)
        if mapping is not None:
            schema = mapping.get("schema")
            if type(schema) is str and schema.startswith(_SCHEMA) and isinstance(mapping.get("kind"), str):
                return mapping
    return None


def _model_error(details: object) -> BaseException | None:
    """The exception of a model call that pydantic-ai encodes in the first detail: a stand-in of the same name."""
    first = cast("list[object]", details)[0] if isinstance(details, list | tuple) and details else None
    encoded = take(first, MODEL_ERROR)
    args, state, name = take(encoded, "args"), take(encoded, "state"), take(encoded, "qualname")
    if not isinstance(args, list) or type(name) is not str or not name.isidentifier():
        return None
    stand_in = type(name, (_StandIn,), {"__module__": _HOME})()
    fields = {name: value for name in _FIELDS if (value := take(state, name)) is not None}
    # `ModelHTTPError(status, model, body)`; every other one is `(model, message)`.
    values = cast("list[object]", args)
    if values and type(values[0]) is int:
        fields |= dict(zip(("status_code", "model_name", "body"), values, strict=False))
    stand_in.__dict__.update(fields)
    return stand_in


def _by_name(name: str | None) -> str | None:
    """The kind for the class name that Temporal recorded: one of Python's own, or one that the rules know."""
    if name is None:
        return None
    if isinstance(getattr(builtins, name, None), type):
        entry = find("builtins", name)
        return entry.kind if isinstance(entry, Classification) else None
    by_class = classify(Facts(names=(name.lower(),), exception_type=name)).kind
    return None if by_class == "provider.unknown" else by_class


def _timeout(error: BaseException) -> Classification:
    word = str_attr(safe_getattr(error, "type"), "name") or ""
    kind, certainty = _TIMEOUTS.get(word, ("worker.timeout", None))
    return Classification.from_rule(
        kind=kind, rule="temporalio.TimeoutError", basis="code" if word else "type", saw=word or "TimeoutError",
        certainty=certainty,
    )  # fmt: skip


def _server(error: BaseException) -> Classification:
    veto = False if safe_getattr(error, "non_retryable") is True else None
    return Classification.from_rule(
        kind="worker.transient", rule="temporalio.ServerError", saw="ServerError", retryable=veto
    )


def _rpc(error: BaseException) -> Classification:
    word = str_attr(safe_getattr(error, "status"), "name") or "UNKNOWN"
    text = str_attr(error, "message", limit=4_000) or ""
    packed = safe_getattr(error, "raw_grpc_status")
    return read_rpc(
        word, text, sdk="temporalio", name=type(error).__name__, provider="temporal",
        details=packed if isinstance(packed, bytes) else b"",
    )  # fmt: skip


def _carried(otherwise: str) -> Any:
    def read(error: BaseException) -> Classification:
        name = type(error).__name__
        return Classification.from_rule(
            kind=otherwise, rule=f"temporalio.{name}", saw=name, inner=cause_of(error)
        )

    return read


TABLES: dict[str, Table] = {
    "temporalio": {
        "ApplicationError": _application,
        "TimeoutError": _timeout,
        "ServerError": _server,
        "RPCError": _rpc,
        "ActivityError": _carried("internal.unknown"),
        "ActivityFailureError": _carried("internal.unknown"),
        "ChildWorkflowError": _carried("subworkflow.failed"),
        "NexusOperationError": _carried("subworkflow.failed"),
        "NexusOperationFailureError": _carried("subworkflow.failed"),
        "WorkflowFailureError": _carried("subworkflow.failed"),
        "WorkflowUpdateFailedError": _carried("subworkflow.failed"),
        "FailureError": _carried("internal.unknown"),
        "TemporalError": _carried("internal.unknown"),
        **rows(
            "temporalio",
            {
                "cancel.run": "CancelledError AsyncActivityCancelledError",
                "subworkflow.terminated": "TerminatedError",
                "validation.input_invalid": (
                    "WorkflowAlreadyStartedError ActivityAlreadyStartedError "
                    "NexusOperationAlreadyStartedError ScheduleAlreadyRunningError "
                    "WorkflowQueryRejectedError InvalidVersioningOverrideError"
                ),
                "provider.outcome_unknown": "WorkflowUpdateRPCTimeoutOrCancelledError RPCTimeoutOrCancelledError",
                "internal.bug": "NondeterminismError ReadOnlyContextError WorkflowContinuedAsNewError",
                "tool.failed": "WorkflowQueryFailedError",
            },
        ),
    }
}
