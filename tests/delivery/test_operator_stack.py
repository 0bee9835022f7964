"""Operators never lose the stack: every log path shows type, file, line and function, and no foreign text."""

import asyncio
import json
import logging
from collections.abc import Callable
from io import StringIO
from logging.handlers import QueueHandler
from queue import SimpleQueue
from typing import Any

import pytest
import structlog
from fastapi import FastAPI
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from failwell import Fault, describe
from failwell.errors.report import ENVIRONMENT_VARIABLE
from failwell.http import FailwellMiddleware, problem
from failwell.integrations.starlette import install
from failwell.integrations.structlog import report_exception
from failwell.logging import JsonFormatter, ReportFilter, log_report
from failwell.otel import emit
from failwell.sentry import before_send

WORDS = "the patient is called Ada"


class OrderLost(Exception):
    """What no rule knows."""


def look_up() -> None:
    raise KeyError(WORDS)


def unclassified() -> None:
    raise OrderLost(WORDS)


def chained() -> None:
    try:
        look_up()
    except KeyError as error:
        raise OrderLost(WORDS) from error


def grouped() -> None:
    errors: list[Exception] = []
    for fail in (look_up, unclassified):
        try:
            fail()
        except Exception as error:
            errors.append(error)
    raise ExceptionGroup(WORDS, errors)


def declared() -> None:
    raise Fault(kind="internal.bug", message="the ledger does not add up")


FAILURES: dict[Callable[[], None], list[tuple[str, Callable[[], None]]]] = {
    look_up: [("KeyError", look_up)],
    unclassified: [("OrderLost", unclassified)],
    chained: [("KeyError", look_up), ("OrderLost", chained)],
    grouped: [("KeyError", look_up), ("OrderLost", unclassified), ("ExceptionGroup", grouped)],
    declared: [("Fault", declared)],
}
"""A failure → the exceptions in it, each with the function that raised it."""


def handler_for(out: StringIO, formatter: logging.Formatter, *filters: logging.Filter) -> logging.Logger:
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter)
    for checked in filters:
        handler.addFilter(checked)
    logger = logging.Logger("app")  # noqa: LOG001  (one that nobody else can hear)
    logger.addHandler(handler)
    return logger


def plain_logging(error: Exception) -> str:
    out = StringIO()
    handler_for(out, logging.Formatter("%(message)s"), ReportFilter()).error("failed", exc_info=error)
    return out.getvalue()


def json_logging(error: Exception) -> str:
    out = StringIO()
    handler_for(out, JsonFormatter()).error("failed", exc_info=error)
    return json.loads(out.getvalue())["error"]["internal"]["traceback"]


def reported(error: Exception) -> str:
    out = StringIO()
    log_report(handler_for(out, logging.Formatter("%(message)s")), describe(error))
    return out.getvalue()


def reported_through_the_filter(error: Exception) -> str:
    out = StringIO()
    log_report(handler_for(out, logging.Formatter("%(message)s"), ReportFilter()), describe(error))
    return out.getvalue()


def through_a_queue(error: Exception) -> str:
    out = StringIO()
    logger = handler_for(out, logging.Formatter("%(message)s"))
    queue: SimpleQueue[logging.LogRecord] = SimpleQueue()
    sender = QueueHandler(queue)
    sender.addFilter(ReportFilter())
    sent = logging.Logger("sent")  # noqa: LOG001  (one that nobody else can hear)
    sent.addHandler(sender)
    sent.error("failed", exc_info=error)
    log_report(sent, describe(error))
    first, second = queue.get(), queue.get()
    logger.handle(first)
    assert "Traceback (most recent call last):" in second.getMessage()
    return out.getvalue()


def reported_as_json(error: Exception) -> str:
    out = StringIO()
    log_report(handler_for(out, JsonFormatter()), describe(error))
    return json.loads(out.getvalue())["error"]["internal"]["traceback"]


def through_structlog(error: Exception) -> str:
    out = StringIO()
    logger = structlog.wrap_logger(
        structlog.PrintLogger(out), processors=[report_exception, structlog.processors.JSONRenderer()]
    )
    logger.error("failed", exc_info=error)
    return json.loads(out.getvalue())["error"]["internal"]["traceback"]


def otel_record(error: Exception) -> str:
    exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    emit(describe(error), logger_provider=provider)
    (finished,) = exporter.get_finished_logs()
    return str((finished.log_record.attributes or {})["exception.stacktrace"])


def otel_event(error: Exception) -> str:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("test").start_as_current_span("call"):
        emit(describe(error), signal="span")
    (span,) = exporter.get_finished_spans()
    return str((span.events[0].attributes or {})["exception.stacktrace"])


def sentry(error: Exception) -> str:
    event = before_send({"event_id": "1"}, {"exc_info": (type(error), error, error.__traceback__)})
    return event["contexts"]["failwell"]["internal"]["traceback"]


def served(app: Any) -> str:
    out = StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("failwell.http")
    logger.addHandler(handler)
    try:
        asyncio.run(
            app(
                {"type": "http", "method": "GET", "path": "/fail", "query_string": b"", "headers": []},
                _receive,
                _send,
            )
        )
    finally:
        logger.removeHandler(handler)
    return out.getvalue()


async def _receive() -> Any:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _send(message: Any) -> None: ...


def middleware(error: Exception) -> str:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise error

    return served(FailwellMiddleware(app))


def installed(error: Exception) -> str:
    app = FastAPI()
    install(app)

    @app.get("/fail")
    async def fail() -> None:
        raise error

    return served(app)


PATHS: dict[str, Callable[[Exception], str]] = {
    "plain logging with ReportFilter": plain_logging,
    "JsonFormatter": json_logging,
    "log_report, plain formatter": reported,
    "log_report, ReportFilter, plain formatter": reported_through_the_filter,
    "QueueHandler with ReportFilter": through_a_queue,
    "log_report, JsonFormatter": reported_as_json,
    "structlog": through_structlog,
    "OTel log record": otel_record,
    "OTel span event": otel_event,
    "Sentry": sentry,
    "FailwellMiddleware, plain formatter": middleware,
    "install(app), plain formatter": installed,
}


def caught(fail: Callable[[], None]) -> Exception:
    try:
        fail()
    except Exception as error:
        return error
    raise AssertionError


def place(raiser: Callable[[], None], text: str) -> bool:
    code = raiser.__code__
    return any(
        f'File "{code.co_filename}", line {number}, in {code.co_name}' in text
        for number in range(code.co_firstlineno, code.co_firstlineno + 12)
    )


@pytest.mark.parametrize("path", PATHS)
def test_every_log_path_shows_types_and_places_and_no_foreign_text(path: str) -> None:
    for fail, parts in FAILURES.items():
        text = PATHS[path](caught(fail))

        assert "Traceback (most recent call last):" in text, fail
        for name, raiser in parts:
            assert f"{name}: " in text, (fail, name)
            assert place(raiser, text), (fail, name)
        assert WORDS not in text


@pytest.mark.parametrize("path", PATHS)
def test_foreign_text_is_recorded_when_the_policy_says_so(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "full")

    for fail in (look_up, chained, grouped):
        assert WORDS in PATHS[path](caught(fail))


def test_callers_users_and_models_see_no_stack() -> None:
    for fail in FAILURES:
        report = describe(caught(fail))
        for shown in (report.view("user"), report.view("model"), problem(report, disclosure="verbose")):
            assert "File" not in str(shown)
            assert fail.__name__ not in str(shown)


def test_the_line_of_a_bug_names_type_and_place() -> None:
    out = StringIO()
    log_report(handler_for(out, logging.Formatter("%(message)s")), describe(caught(unclassified)))

    first = out.getvalue().splitlines()[0]
    line = unclassified.__code__.co_firstlineno + 1
    assert f" OrderLost at {__file__}:{line} in unclassified " in first


def test_the_plain_text_says_how_to_see_what_is_withheld() -> None:
    assert "[withheld]: set FAILWELL_TRACEBACK=full" in plain_logging(caught(unclassified))


def test_a_known_failure_takes_one_line_and_keeps_its_stack_in_the_fields() -> None:
    error = caught(lambda: (_ for _ in ()).throw(ConnectionRefusedError(111, WORDS)))

    assert len(reported(error).splitlines()) == 1
    assert "in <genexpr>" in reported_as_json(error)


def test_the_line_names_the_applications_own_place_and_not_a_librarys() -> None:
    def parse() -> None:
        json.loads("{")

    text = reported(caught(parse))

    assert f" at {__file__}:" in text.splitlines()[0]
    assert text.splitlines()[-2].endswith(", in raw_decode")
