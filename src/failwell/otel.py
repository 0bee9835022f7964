"""One failure as OpenTelemetry: a log record, or a span event for backends that know only those.

Attributes hold names, numbers and the stack. `exception.message` is left out, and so is every message in the
stack unless `FAILWELL_TRACEBACK=full`: they would carry what foreign exceptions say about themselves.

Example:
    >>> from failwell import describe
    >>> from failwell.otel import attributes, emit
    >>> report = describe(ConnectionRefusedError(111, "Connection refused"))
    >>> attributes(report)["error.type"]
    'provider.connection'
    >>> emit(report)
"""

import os
from typing import TYPE_CHECKING, Literal

from failwell._version import __version__
from failwell.delivery.paging import page_severity
from failwell.errors.kind_registry import find_kind
from failwell.errors.missing_extra import need
from failwell.errors.report import ErrorReport, Severity

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider

__all__ = ["attributes", "emit"]

Signal = Literal["logs", "span", "both"]
Attributes = dict[str, str | bool | int | float]

OPT_IN = "OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN"
EVENT = "failwell.error"
PROVIDER_EVENT = "gen_ai.client.operation.exception"
_SEVERITIES = {
    Severity.INFO: "INFO",
    Severity.WARNING: "WARN",
    Severity.ERROR: "ERROR",
    Severity.CRITICAL: "FATAL",
}


def emit(
    report: ErrorReport, *, signal: Signal | None = None, logger_provider: "LoggerProvider | None" = None
) -> None:
    """Send `report` to OpenTelemetry: the log pipeline, the current span, or both.

    Without `signal` the environment decides: `logs/dup` sends both, anything else a log record.
    Without `logger_provider` the global one is used.

    Raises:
        MissingExtra: `opentelemetry` is not installed.
    """
    need("opentelemetry._logs", "otel")
    chosen = _opted() if signal is None else signal
    if chosen != "span":
        _emit_log(report, logger_provider)
    if chosen != "logs":
        _emit_span_event(report)


def attributes(report: ErrorReport) -> Attributes:
    """The OpenTelemetry attributes of `report`."""
    reply = report.provider_metadata
    scene = report.scene
    values = {
        "error.type": report.kind,
        "exception.type": report.error_type,
        "exception.stacktrace": None if report.internal is None else report.internal.traceback,
        "gen_ai.provider.name": report.provider,
        "gen_ai.request.model": report.model,
        "http.response.status_code": reply.status_code if reply else None,
        "failwell.id": report.id,
        "failwell.category": report.category.value,
        "failwell.domain": report.domain.value,
        "failwell.certainty": report.certainty.value,
        "failwell.blame": report.blame.value,
        "failwell.retryable": report.retryable,
        "failwell.severity": report.severity.value,
        "failwell.fingerprint": report.fingerprint,
        "failwell.wait": report.not_before.after if report.not_before else None,
        "failwell.provider.code": reply.code if reply else None,
        "failwell.provider.request_id": reply.request_id if reply else None,
        "failwell.run": scene.run,
        "failwell.workflows": scene.workflow,
        "failwell.node": scene.node,
        "failwell.job": scene.job,
        "failwell.session": scene.session,
        "failwell.tool": scene.tool,
        "failwell.attempt": scene.attempt,
    }
    return {name: value for name, value in values.items() if value is not None}


def _opted() -> Signal:
    return "both" if "logs/dup" in os.environ.get(OPT_IN, "").replace(" ", "").split(",") else "logs"


def _emit_log(report: ErrorReport, logger_provider: "LoggerProvider | None") -> None:
    from opentelemetry._logs import LogRecord, SeverityNumber, get_logger

    of_provider = report.kind.startswith("provider.")
    severity = page_severity(report, "otel")
    if of_provider and severity is Severity.ERROR:
        # The convention for model calls asks for a warning: whether the operation failed with the
        # call is for its caller to say.
        severity = Severity.WARNING
    text = _SEVERITIES[severity]
    known = find_kind(report.kind)
    record = LogRecord(
        timestamp=int(report.occurred_at.timestamp() * 1_000_000_000),
        severity_number=SeverityNumber[text],
        severity_text=text,
        body=report.kind if known is None else known.summary,
        attributes=attributes(report),
        event_name=PROVIDER_EVENT if of_provider else EVENT,
    )
    get_logger("failwell", __version__, logger_provider).emit(record)


def _emit_span_event(report: ErrorReport) -> None:
    from opentelemetry.trace import Status, StatusCode, get_current_span

    span = get_current_span()
    if not span.is_recording():
        return
    span.add_event("exception", attributes(report))
    span.set_attribute("error.type", report.kind)
    span.set_status(Status(StatusCode.ERROR, report.kind))
