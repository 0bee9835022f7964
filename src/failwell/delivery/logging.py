"""Failures in the standard `logging`: as fields and a stack, without the text that tracebacks carry.

A traceback ends in `str(exc)`, and that is where SDKs put bodies, prompts and keys. So an
exception that was logged is described, its fields are attached to the record, and its own text is
replaced. Types, files, lines and functions stay: an operator never loses the stack.
"""

import logging
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Any, cast

from failwell.adapters.describe import describe
from failwell.adapters.stack import place_in
from failwell.delivery.logging_values import (
    MESSAGE_CAP,
    DeferredText,
    MappedArguments,
    is_exception,
    is_scalar,
    needs_unknown_code,
    printable,
    safe_member,
)
from failwell.delivery.paging import page_severity
from failwell.delivery.plain_text import json_text, neutral, one_line
from failwell.delivery.terminal import render_text
from failwell.errors.axes import Blame, Category
from failwell.errors.foreign_objects import safe_call
from failwell.errors.redact import TEXT_CAP, redact_text, redact_value
from failwell.errors.report import ErrorReport, Severity
from failwell.errors.safe_str import is_mapping, items_of, sequence_of

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
        message = _safe_message(record)
        if not _is_as_shown(record, message):
            # What was checked is what is printed: an object may print another text the second time.
            record.msg, record.args = message, ()
        if "message" in vars(record):
            # An earlier formatter left its text here.
            record.message = cast("str", message)
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
    return _message(record.msg, record.args)


def _safe_message(record: logging.LogRecord) -> str | DeferredText:
    """`message_of`, or a text that becomes it when it is printed, if code of an unknown author has to run for it."""
    template: object = record.msg
    arguments: Any = record.args
    if type(template) is DeferredText and _is_empty(arguments):
        # Another filter was here before.
        return template
    if any(map(needs_unknown_code, (template, *islice(_values(arguments), _MOST_ARGUMENTS)))):
        return DeferredText(lambda: _message(template, arguments))
    return _message(template, arguments)


def _values(arguments: Any) -> Iterable[Any]:
    """What a message is formatted with. A mapping that cannot be read stands for its values."""
    if not issubclass(type(arguments), Mapping):
        return sequence_of(arguments)
    return chain.from_iterable(items_of(arguments)) if is_mapping(arguments) else (arguments,)


def _is_empty(arguments: Any) -> bool:
    return arguments is None or ((type(arguments) is tuple or type(arguments) is dict) and not arguments)


def _message(template: object, arguments: Any) -> str:
    return redact_text(_text(template, arguments), MESSAGE_CAP)


def _text(message: object, arguments: Any) -> str:
    template = str(printable(message))
    if _is_empty(arguments):
        return template
    if issubclass(type(arguments), dict):
        pairs = islice(items_of(arguments), _MOST_ARGUMENTS)
        arguments = {key: safe_member(str(printable(key)), printable(value)) for key, value in pairs}
    elif isinstance(arguments, Mapping):
        arguments = MappedArguments(cast("Mapping[str, Any]", arguments))
    else:
        arguments = tuple(printable(value) for value in islice(sequence_of(arguments), _MOST_ARGUMENTS))
    # An argument's number may raise anything, and a log call must not.
    return safe_call(_formatted, template, template, arguments)


def _is_as_shown(record: logging.LogRecord, message: str | DeferredText) -> bool:
    """Whether every formatter prints `message` for the record: only scalars are in it, and no secret."""
    arguments: Any = () if record.args is None else record.args
    kind = cast("type[Any]", type(arguments))
    if kind is not dict and kind is not tuple:
        return False
    values = arguments.values() if kind is dict else arguments
    if type(message) is not str or type(record.msg) is not str or not all(map(is_scalar, values)):
        return False
    # Nothing foreign is called by this: template and arguments are texts and numbers.
    return message == safe_call(record.getMessage, None)


def _formatted(template: str, arguments: Any) -> str:
    return template % arguments
