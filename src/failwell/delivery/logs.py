"""Failures in the standard `logging`: as fields and a stack, without the text that tracebacks carry.

A traceback ends in `str(exc)`, and that is where SDKs put bodies, prompts and keys. So an
exception that was logged is described, its fields are attached to the record, and its own text is
replaced. Types, files, lines and functions stay: an operator never loses the stack.
"""

import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, cast

from failwell.adapters.printed import items_of, sequence_of
from failwell.adapters.safe_getattr import safe_call
from failwell.delivery.failure_text import render_text
from failwell.delivery.log_values import MESSAGE_CAP, is_exception, is_scalar, printable, safe_member
from failwell.delivery.paging import page_severity
from failwell.delivery.plain_text import json_text, neutral, one_line
from failwell.fault.axes import Blame, Category
from failwell.report.describe import describe
from failwell.report.record import ErrorReport
from failwell.report.redact import TEXT_CAP, redact_text, redact_value
from failwell.report.severity import Severity
from failwell.report.stack import place_in

_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "failwell"}
"""What every record has; anything else was put there by `extra=`."""

_MOST_ARGUMENTS = 200


def log_report(
    logger: logging.Logger,
    report: ErrorReport,
    *,
    level: int | None = None,
    extra: Mapping[str, object] | None = None,
) -> None:
    """Write one record about `report`, with the operator's view as `record.failwell` and `extra` as for `logger.log`.

    Without `level` the severity of the report decides, and repeats of a critical one within an hour are errors. A bug or a failure that nothing classified
    also prints its traceback, with any formatter.
    """
    chosen = level_of(report) if level is None else level
    if not logger.isEnabledFor(chosen):
        return
    if level is None and chosen == logging.CRITICAL:
        chosen = LEVELS[page_severity(report, "logging")]
    path, line, function, _ = logger.findCaller(stacklevel=2)
    fields = {**(extra or {}), "failwell": report.view("operator")}
    record = logger.makeRecord(
        logger.name, chosen, path, line, "%s", (log_line(report),), None, function, fields
    )
    # A formatter prints this text below the line, as it does for a record with an exception.
    record.exc_text = traceback_of(report) if needs_traceback(report) else None
    logger.handle(record)


LEVELS = {
    Severity.INFO: logging.INFO,
    Severity.WARNING: logging.WARNING,
    Severity.ERROR: logging.ERROR,
    Severity.CRITICAL: logging.CRITICAL,
}


def level_of(report: ErrorReport) -> int:
    """The level for the severity of `report`: `CRITICAL` where a person has to act, `INFO` where it was handled."""
    return LEVELS[report.severity]


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
    if report.kind.startswith("http."):
        # An answer with a 5xx that the application chose, often in an `except` block.
        return report.blame is Blame.OURSELVES
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
        if not _is_as_shown(record, message):
            # What was checked is what is printed: an object may print another text the second time.
            record.msg, record.args = message, ()
        if "message" in vars(record):
            # An earlier formatter left its text here.
            record.message = message
        record.exc_info = None
        if report is not None:
            record.failwell = report.view("operator")
            record.exc_text = render_text(report, "operator")
        elif record.exc_text:
            # Printed elsewhere, for example before the record went through a queue.
            record.exc_text = redact_text(record.exc_text, MESSAGE_CAP)
        if record.stack_info:
            record.stack_info = redact_text(record.stack_info, MESSAGE_CAP)
        for name, value in list(vars(record).items()):
            if name not in _ORDINARY:
                setattr(record, name, safe_member(name, value))
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
    message: object = record.msg
    if error is None and is_exception(message):
        error = message
    return None if error is None else describe(error)


def error_in(exc_info: object) -> BaseException | None:
    """The exception in any form of `exc_info`: tuple, exception or `True`."""
    if type(exc_info) is tuple:
        exc_info = cast("tuple[object, ...]", exc_info)[1]
    elif exc_info is True:
        exc_info = sys.exc_info()[1]
    return exc_info if is_exception(exc_info) else None


def message_of(record: logging.LogRecord) -> str:
    """The record's message, redacted; exceptions among its arguments are named, not quoted."""
    return redact_text(_text(record), MESSAGE_CAP)


def _text(record: logging.LogRecord) -> str:
    arguments: Any = record.args
    template = str(printable(record.msg))
    if not arguments:
        return template
    if isinstance(arguments, Mapping):
        pairs = islice(items_of(cast("Mapping[Any, Any]", arguments)), _MOST_ARGUMENTS)
        arguments = {key: safe_member(str(printable(key)), printable(value)) for key, value in pairs}
    else:
        arguments = tuple(printable(value) for value in islice(sequence_of(arguments), _MOST_ARGUMENTS))
    # An argument's number may raise anything, and a log call must not.
    return safe_call(_formatted, template, template, arguments)


def _is_as_shown(record: logging.LogRecord, message: str) -> bool:
    """Whether every formatter prints `message` for the record: only scalars are in it, and no secret."""
    arguments: Any = record.args or ()
    if isinstance(arguments, Mapping):
        if type(cast("object", arguments)) is not dict:
            return False
        arguments = cast("dict[str, Any]", arguments).values()
    if type(record.msg) is not str or not all(map(is_scalar, arguments)):
        return False
    # Nothing foreign is called by this: template and arguments are texts and numbers.
    return message == safe_call(record.getMessage, None)


def _formatted(template: str, arguments: Any) -> str:
    return template % arguments
