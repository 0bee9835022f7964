"""Failures in the standard `logging`: as fields and a stack, without the text that tracebacks carry.

A traceback ends in `str(exc)`, and that is where SDKs put bodies, prompts and keys. So an
exception that was logged is described, its fields are attached to the record, and its own text is
replaced. Types, files, lines and functions stay: an operator never loses the stack.
"""

import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeGuard, cast

from failwell.adapters.safe_getattr import safe_call
from failwell.delivery.failure_text import render_text
from failwell.delivery.plain_text import bounded_str, is_large, json_text, neutral, one_line
from failwell.fault.axes import Category, Domain
from failwell.report.describe import describe
from failwell.report.exception_text import place_in
from failwell.report.record import ErrorReport
from failwell.report.redact import TEXT_CAP, redact_text, redact_value

_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "failwell"}
"""What every record has; anything else was put there by `extra=`."""

MESSAGE_CAP = 16_000
"""Characters of a log message; the texts inside a report have their own, smaller cap."""


def log_report(
    logger: logging.Logger,
    report: ErrorReport,
    *,
    level: int | None = None,
    extra: Mapping[str, object] | None = None,
) -> None:
    """Write one record about `report`, with the operator's view as `record.failwell` and `extra` as for `logger.log`.

    The caller's mistakes are warnings; everything else is an error. A bug or a failure that nothing classified
    also prints its traceback, with any formatter.
    """
    chosen = level_of(report) if level is None else level
    if not logger.isEnabledFor(chosen):
        return
    path, line, function, _ = logger.findCaller(stacklevel=2)
    fields = {**(extra or {}), "failwell": report.view("operator")}
    record = logger.makeRecord(
        logger.name, chosen, path, line, "%s", (log_line(report),), None, function, fields
    )
    # A formatter prints this text below the line, as it does for a record with an exception.
    record.exc_text = traceback_of(report) if needs_traceback(report) else None
    logger.handle(record)


def level_of(report: ErrorReport) -> int:
    """`WARNING` when the caller can put it right, else `ERROR`."""
    return logging.WARNING if report.domain is Domain.INPUT else logging.ERROR


def log_line(report: ErrorReport) -> str:
    """The line that a log shows for `report`: what happened, its id, where a bug was raised, and the advice."""
    place = None
    if needs_traceback(report) and (trace := traceback_of(report)) is not None:
        place = place_in(trace)
    raised = "" if place is None else f" {report.error_type} at {place}"
    advice = f" hint: {report.user_action.detail}" if report.user_action.detail else ""
    return one_line(f"{report.kind}: {report.message} [{report.id}]{raised}{advice}", TEXT_CAP)


def needs_traceback(report: ErrorReport) -> bool:
    """Whether an operator cannot do without the stack: a bug, or a failure that nothing classified for certain."""
    if report.kind.startswith("validation."):
        # A plain `ValueError` or `KeyError`: nobody said that the caller is at fault.
        return not report.caller_facing
    return report.kind.startswith("internal.") or report.category in (Category.FATAL, Category.UNKNOWN)


def traceback_of(report: ErrorReport) -> str | None:
    """The recorded traceback as safe text, or `None` if nothing was raised."""
    trace = None if report.internal is None else report.internal.traceback
    return None if trace is None else neutral(trace).rstrip("\n")


class ReportFilter(logging.Filter):
    """Puts a report with its stack where an exception was logged; for a handler or a logger.

    It changes the record itself, so that no handler after it prints the exception's own text.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        report = report_of(record)
        message = message_of(record)
        if _must_be_replaced(record, message):
            record.msg, record.args = message, ()
        record.exc_info = None
        if report is not None:
            record.failwell = report.view("operator")
            record.exc_text = render_text(report, "operator")
        return True


class JsonFormatter(logging.Formatter):
    """One JSON object per line: when, level, logger, message, what `extra=` gave, and the error."""

    def format(self, record: logging.LogRecord) -> str:
        extra = {key: value for key, value in vars(record).items() if key not in _ORDINARY}
        line: dict[str, Any] = {
            **redact_value(extra),
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message_of(record),
        }
        attached = getattr(record, "failwell", None)
        if isinstance(attached, Mapping):
            line["error"] = attached
        elif (report := report_of(record)) is not None:
            line["error"] = report.view("operator")
        return json_text(line)


def report_of(record: logging.LogRecord) -> ErrorReport | None:
    """The report of the exception that was logged with `record`, if there is one."""
    error = error_in(record.exc_info)
    if error is None and is_exception(cast("object", record.msg)):
        error = cast("BaseException", record.msg)
    return None if error is None else describe(error)


def error_in(exc_info: object) -> BaseException | None:
    """The exception in any form of `exc_info`: tuple, exception or `True`."""
    if type(exc_info) is tuple:
        exc_info = cast("tuple[object, ...]", exc_info)[1]
    elif exc_info is True:
        exc_info = sys.exc_info()[1]
    return exc_info if is_exception(exc_info) else None


def is_exception(value: object) -> TypeGuard[BaseException]:
    """Whether `value` really is an exception. `isinstance` asks the object, which may lie, or raise."""
    return issubclass(type(value), BaseException)


def message_of(record: logging.LogRecord) -> str:
    """The record's message, redacted; exceptions among its arguments are named, not quoted."""
    arguments: Any = record.args
    if isinstance(arguments, Mapping):
        arguments = {key: named(value) for key, value in cast("Mapping[str, Any]", arguments).items()}
    elif arguments:
        arguments = tuple(named(value) for value in arguments)
    template = bounded_str(named(record.msg))
    # An argument's own `__str__` may raise anything, and a log call must not.
    text = safe_call(_formatted, template, template, arguments) if arguments else template
    return redact_text(text, MESSAGE_CAP)


def _must_be_replaced(record: logging.LogRecord, message: str) -> bool:
    """Whether the record's own message says more than `message`, or cannot be formatted."""
    arguments: Any = record.args or ()
    values = cast("Mapping[str, Any]", arguments).values() if isinstance(arguments, Mapping) else arguments
    # The text of an exception is never produced, not even to compare it.
    quotes = any(is_exception(value) or is_large(value) for value in (record.msg, *values))
    return quotes or message != safe_call(record.getMessage, None)


def _formatted(template: str, arguments: Any) -> str:
    return template % arguments


def named(value: object) -> object:
    """`value`; for an exception its type and kind in place of its text, for a large container its type."""
    if is_exception(value):
        report = describe(value)
        return f"{report.error_type} ({report.kind})"
    return bounded_str(value) if is_large(value) else value
