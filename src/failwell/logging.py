"""Failures in the standard `logging`: as fields, without the text that tracebacks carry.

Example:
    >>> import logging
    >>> from failwell.logging import JsonFormatter
    >>> record = logging.makeLogRecord({"msg": "hello", "levelname": "INFO", "name": "app"})
    >>> JsonFormatter().format(record)
    '{"at": "...", "level": "info", "logger": "app", "message": "hello"}'
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.delivery.logging import JsonFormatter as JsonFormatter
    from failwell.delivery.logging import ReportFilter as ReportFilter
    from failwell.delivery.logging import level_of as level_of
    from failwell.delivery.logging import log_report as log_report
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "failwell.delivery.logging": "JsonFormatter ReportFilter level_of log_report",
        },
    )
