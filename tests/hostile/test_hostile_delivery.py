"""What fights back is logged, answered and sent on all the same."""

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from failwell.delivery.http.caller_report import report_for_caller
from failwell.delivery.http.request import Border
from failwell.delivery.http.wsgi import FailwellWSGIMiddleware
from failwell.delivery.logging import JsonFormatter, ReportFilter
from failwell.errors.report import ErrorReport
from failwell.integrations.structlog import report_exception
from failwell.sentry import before_send
from fuzz.oracle import check_report
from fuzz.zoo import specimens
from tests.specimens import failures

pytestmark = pytest.mark.timeout(120)

ZOO = {
    name: make for name, make in specimens().items() if " is value " not in name and " are value " not in name
}


def a_record(error: BaseException) -> logging.LogRecord:
    """As logging would make it, without asking the exception anything."""
    record = logging.makeLogRecord({"levelname": "ERROR", "levelno": logging.ERROR, "name": "app"})
    record.msg = "failed: %s"
    record.args = (error,)
    record.exc_info = (type(error), error, None)
    return record


def is_logged(name: str) -> None:
    record = a_record(ZOO[name]())
    whole = a_record(ZOO[name]())

    line = json.loads(JsonFormatter().format(record))
    passes = ReportFilter().filter(whole)

    assert line["error"]["schema"] == "failwell.error/1"
    assert passes
    assert whole.exc_info is None


def goes_through_structlog(name: str) -> None:
    event: dict[str, Any] = {"event": "failed", "exc_info": ZOO[name](), "why": ZOO[name]()}

    json.dumps(report_exception(None, "error", event), allow_nan=False)

    assert event["error"]["schema"] == "failwell.error/1"


def goes_to_sentry(name: str) -> None:
    error = ZOO[name]()
    event: Any = {
        "exception": {"values": [{"type": "X", "value": "said"}]},
        "extra": {"a": "b"},
        "event_id": "1",
    }

    sent = before_send(event, {"exc_info": (type(error), error, None)})

    assert sent["event_id"] == "1"
    json.dumps(sent, allow_nan=False, default=str)


def is_answered(name: str) -> None:
    check_report(report_for_caller(ZOO[name]()), with_panel=False)


def passes_the_border(name: str) -> None:
    reports: list[ErrorReport] = []
    border = Border(on_report=reports.append)
    exchange = border.open("/work")
    error = raised(ZOO[name]())

    reply = border.reply(exchange, border.report(exchange, error))
    border.report(exchange, error)
    event = border.last_event(exchange, reports[0], b"data: 1")

    assert json.loads(reply.body)["status"] == reply.status >= 400
    assert json.loads(event.partition(b"data: ")[2])["id"] == reports[0].id
    assert len(reports) == 1
    assert str(border.interrupt(exchange)).endswith(f"[{reports[0].id}]")


def ends_a_stream(name: str) -> None:
    error = raised(ZOO[name]())

    def app(environ: Any, start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", [("content-type", "text/event-stream")])
        yield b"data: 1\n\n"
        raise error

    middleware = FailwellWSGIMiddleware(app, on_report=lambda report: None)
    pieces = iter(middleware({"PATH_INFO": "/"}, lambda *_: lambda _: None))
    assert next(pieces) == b"data: 1\n\n"
    if issubclass(type(error), Exception):
        assert next(pieces).startswith(b"event: error\ndata: {")


def raised(error: BaseException) -> BaseException:
    """The exception with a traceback, as far as it lets itself be raised."""
    try:
        raise error
    except BaseException as caught:
        return caught


@pytest.mark.slow
@pytest.mark.parametrize(
    "check",
    [is_logged, goes_through_structlog, goes_to_sentry, is_answered, passes_the_border, ends_a_stream],
)
def test_it_leaves_by_every_door(check: Callable[[str], None]) -> None:
    assert failures(ZOO, check) == []
