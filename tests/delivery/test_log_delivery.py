"""Failures in the standard log: fields instead of text that nobody checked."""

import json
import logging
from io import StringIO
from typing import Any

import pytest

from failwell.delivery.logging import JsonFormatter, ReportFilter, log_report, message_of
from tests.delivery.builders import a_full_report, make_report

Captured = tuple[logging.Logger, StringIO]


def a_logger(*, formatter: logging.Formatter | None = None, filters: bool = False) -> Captured:
    out = StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter or JsonFormatter())
    if filters:
        handler.addFilter(ReportFilter())
    logger = logging.Logger("app")  # noqa: LOG001  (one that nobody else can hear)
    logger.addHandler(handler)
    return logger, out


def lines(out: StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.fixture(params=["json", "json and filter"])
def captured(request: pytest.FixtureRequest) -> Captured:
    return a_logger(filters=request.param == "json and filter")


def test_a_report_is_logged_as_one_line_with_its_fields(captured: Captured) -> None:
    logger, out = captured
    report = a_full_report()

    log_report(logger, report)

    (line,) = lines(out)
    assert line["level"] == "error"
    assert line["logger"] == "app"
    assert line["message"] == (
        "provider.rate_limited: The provider turned the call away because a short usage window is full. [err_1] "
        "hint: Wait 8 s, then repeat the call."
    )
    assert line["error"] == report.view("operator")


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        ("validation.input_invalid", "warning"),
        ("provider.content_refused", "warning"),
        ("tool.denied", "warning"),
        ("provider.auth", "critical"),
        ("provider.rate_limited", "error"),
        ("internal.bug", "critical"),
    ],
)
def test_the_severity_is_the_level(kind: str, level: str) -> None:
    logger, out = a_logger()

    log_report(logger, make_report(kind))

    assert lines(out)[0]["level"] == level


def test_the_level_can_be_chosen_and_the_caller_is_named() -> None:
    logger, out = a_logger(formatter=logging.Formatter("%(levelname)s %(funcName)s"))

    log_report(logger, make_report(), level=logging.INFO)

    assert out.getvalue() == "INFO test_the_level_can_be_chosen_and_the_caller_is_named\n"


def test_a_logged_exception_becomes_fields_without_its_text(captured: Captured) -> None:
    logger, out = captured

    try:
        raise OSError(28, "secret words")
    except OSError:
        logger.exception("could not save %s", "page 3")

    (line,) = lines(out)
    assert line["message"] == "could not save page 3"
    assert line["error"]["kind"] == "resource.disk"
    assert "secret words" not in out.getvalue()
    assert line["error"]["internal"]["traceback"].endswith("\nOSError: [withheld]\n")


def test_behind_the_filter_an_ordinary_formatter_prints_no_exception_text() -> None:
    logger, out = a_logger(formatter=logging.Formatter("%(message)s"), filters=True)

    try:
        raise RuntimeError("secret words")
    except RuntimeError:
        logger.exception("it failed")

    assert out.getvalue().startswith("it failed\nerror: The program did something it was not written for.\n")
    assert "  kind: internal.bug" in out.getvalue()
    assert "secret words" not in out.getvalue()


def test_behind_the_filter_nobody_finds_the_exception_again() -> None:
    error = RuntimeError("secret words")
    record = logging.LogRecord(
        "app", logging.ERROR, "f.py", 1, "failed: %s", (error,), (type(error), error, None)
    )

    ReportFilter().filter(record)

    assert record.exc_info is None
    assert record.getMessage() == "failed: RuntimeError (internal.bug)"
    assert "secret words" not in str(vars(record))


def test_exceptions_among_the_arguments_are_named_and_not_quoted(captured: Captured) -> None:
    logger, out = captured
    error = RuntimeError("secret words")

    logger.error("failed: %s", error)
    logger.error("failed: %(why)s", {"why": error})
    logger.error(error)
    logger.error("failed", exc_info=error)

    assert [line["message"] for line in lines(out)] == [
        "failed: RuntimeError (internal.bug)",
        "failed: RuntimeError (internal.bug)",
        "RuntimeError (internal.bug)",
        "failed",
    ]
    assert "secret words" not in out.getvalue()


def test_what_extra_gave_is_kept_and_masked(captured: Captured) -> None:
    logger, out = captured

    logger.warning(
        "note", extra={"order": 17, "api_key": "abcdef123456", "odd": object(), "ratio": float("nan")}
    )

    (line,) = lines(out)
    assert line["order"] == 17
    assert line["api_key"] == "[redacted]"
    assert line["odd"] == "<object>"
    assert line["ratio"] == "nan"


def test_secrets_in_a_message_are_masked(captured: Captured) -> None:
    logger, out = captured
    key = "sk-" + "q1w2e3r4t5y6u7i8o9"

    logger.info("using %s", key)

    assert lines(out)[0]["message"] == "using [redacted]"


class Stubborn:
    def __str__(self) -> str:
        raise ZeroDivisionError("secret words")


@pytest.mark.parametrize("arguments", [(1, 2), (Stubborn(),), ({"a": 1},)])
def test_a_log_call_that_cannot_be_formatted_is_still_logged(
    arguments: tuple[object, ...], captured: Captured, capsys: pytest.CaptureFixture[str]
) -> None:
    logger, out = captured

    logger.error("%d items", *arguments)

    assert lines(out)[0]["message"] == "%d items"
    assert capsys.readouterr().err == ""


def test_ordinary_records_pass_the_filter_unchanged() -> None:
    record = logging.LogRecord("app", logging.INFO, "f.py", 1, "done with %s", ("it",), None)

    assert ReportFilter().filter(record)

    assert (record.msg, record.args, record.exc_text) == ("done with %s", ("it",), None)
    assert not hasattr(record, "failwell")


def test_fields_that_another_filter_attached_cannot_break_the_line() -> None:
    logger, out = a_logger()

    logger.error("failed", extra={"failwell": {"kind": "a.b", "odd": object(), "ratio": float("inf")}})

    assert lines(out)[0]["error"] == {"kind": "a.b", "odd": "<object>", "ratio": None}


def test_every_line_is_one_line(captured: Captured) -> None:
    logger, out = captured

    logger.error("first\nsecond\r\x1b[2J")

    assert len(out.getvalue().splitlines()) == 1
    assert "\x1b" not in out.getvalue()


def test_a_large_argument_is_named_and_not_written_out() -> None:
    record = logging.makeLogRecord({"msg": "%s and %s", "args": (list(range(100_000)), "more")})

    assert message_of(record) == "<large list> and more"
    assert ReportFilter().filter(record)
    assert (record.msg, record.args) == ("<large list> and more", ())


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_while_a_message_is_formatted_passes(stop: type[BaseException]) -> None:
    class Interrupted:
        def __str__(self) -> str:
            raise stop

    with pytest.raises(stop):
        message_of(logging.makeLogRecord({"msg": "%s", "args": (Interrupted(),)}))
