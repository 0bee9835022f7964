"""A structlog processor that turns exceptions into fields. Needs nothing from structlog to load.

Example:
    >>> from failwell.integrations.structlog import report_exception
    >>> event = {"event": "failed", "exc_info": ConnectionRefusedError(111, "Connection refused")}
    >>> report_exception(None, "error", event)["error"]["kind"]
    'provider.connection'
"""

import sys
from collections.abc import MutableMapping
from typing import Any

from failwell.adapters.describe import describe
from failwell.delivery.logging import error_in
from failwell.delivery.logging_values import is_exception, rendered_member
from failwell.errors.report import ErrorReport

__all__ = ["report_exception"]


_TOO_LATE = (
    "the exception was rendered before; put `report_exception` before the steps that render tracebacks"
)


def report_exception(
    logger: object, name: str, event_dict: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Put the operator's view under `error` in place of `report`, `exc_info` or `exception`.

    Place it before any step that renders tracebacks. A traceback that was already rendered is
    replaced, because it ends in the exception's own text. Exceptions among the other values are
    named, not quoted, and secrets in texts and in what holds texts are masked.
    """
    del logger, name
    report = _report(event_dict.pop("report", None), event_dict.pop("exc_info", None))
    rendered = event_dict.pop("exception", None)
    if report is None and rendered is not None:
        # Rendered by an earlier step: in an `except` block the exception itself is still at hand.
        error = rendered if is_exception(rendered) else sys.exc_info()[1]
        report = None if error is None else describe(error)
        if report is None:
            event_dict["error"] = {"hint": _TOO_LATE}
    for key, value in list(event_dict.items()):
        # Names with an underscore in front are structlog's own: the record, the logger.
        if not key.startswith("_"):
            event_dict[key] = rendered_member(key, value)
    if report is not None:
        event_dict["error"] = report.view("operator")
    return event_dict


def _report(value: object, exc_info: object) -> ErrorReport | None:
    """The report of the failure that an entry of structlog is about, if it is about one."""
    if isinstance(value, ErrorReport):
        return value
    error = value if is_exception(value) else error_in(exc_info)
    return None if error is None else describe(error)
