"""No secret reaches a log by any part of a record, and nothing foreign is read without a bound."""

import json
import logging
import logging.handlers
import queue
from dataclasses import dataclass
from io import StringIO
from typing import Any

import pytest
import structlog

import failwell
from failwell.delivery.logging import JsonFormatter, ReportFilter
from failwell.errors.redact import MARK
from failwell.integrations.structlog import report_exception

SECRET = "x9Kq2Lm4Zr8Tb1Vc7Wd5"
"""Known by nobody but the one who registered it."""


@pytest.fixture(autouse=True)
def _registered() -> None:
    failwell.register_secret(SECRET)


@dataclass
class Settings:
    """As programs have them."""

    host: str
    credential: str


class Lines(list[Any]):
    """Never ends."""

    def __iter__(self) -> Any:
        while True:
            yield "line"


class Fields(dict[str, Any]):
    """Never ends, and has the same key again and again."""

    def items(self) -> Any:
        while True:
            yield "", None

    __iter__ = items


class Harmless(str):
    """Says of itself what is not true."""

    __slots__ = ()

    def __str__(self) -> str:
        return "harmless"


class Speaker:
    """Counts how often it is printed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.times = 0

    def __str__(self) -> str:
        self.times += 1
        return self.text


def logged(*arguments: Any, form: str = "%(message)s", **options: Any) -> str:
    """What a plain formatter and the JSON formatter write of one call."""
    out = StringIO()
    logger = logging.Logger("app")  # noqa: LOG001  (a logger of its own, that no other test hears)
    for formatter in (logging.Formatter(form), JsonFormatter()):
        handler = logging.StreamHandler(out)
        handler.setFormatter(formatter)
        handler.addFilter(ReportFilter())
        logger.addHandler(handler)
    logger.error(*arguments, **options)
    return out.getvalue()


ARGUMENTS: dict[str, Any] = {
    "list": [1, SECRET],
    "tuple": (1, (SECRET,)),
    "set": {SECRET},
    "frozenset": frozenset({SECRET}),
    "dict": {"a": {"b": SECRET}},
    "bytes": SECRET.encode(),
    "bytearray": bytearray(SECRET.encode()),
    "dataclass": Settings("db", SECRET),
    "object": Speaker(f"said {SECRET}"),
    "hex": SECRET.encode().hex(),
    "named": {"password": "swordfish"},
    "list under a name": {"api_keys": ["aB3dE5fG7hI9jK1lM3nO5pQ7"]},
    "pairs": [("authorization", "Bearer aB3dE5fG7hI9jK1lM3nO5pQ7")],
    "query": "https://acme.test/?access_token=aB3dE5fG7hI9jK1lM3nO5pQ7",
    "text subclass": Harmless(SECRET),
}


def leaks(text: str) -> list[str]:
    traces = (SECRET[:8], SECRET[-8:], SECRET.encode().hex()[:16], "swordfish", "aB3dE5fG", "3nO5pQ7")
    return [trace for trace in traces if trace in text]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_secret_in_any_argument_or_extra_is_masked_with_any_formatter(name: str) -> None:
    value = ARGUMENTS[name]

    written = logged("failed with %s", value)
    written += logged("failed with %(it)s", {"it": value})
    # An object that is no data belongs to the handlers that know it, such as Django's request; it is not printed here.
    extra = None if name == "object" else value
    written += logged("failed", extra={"it": extra}, form="%(message)s %(it)s")

    assert leaks(written) == []
    assert written.count("failed") >= 6


def test_an_extra_under_the_name_of_a_secret_is_masked() -> None:
    written = logged("failed", extra={"db_password": "swordfish"}, form="%(message)s %(db_password)s")

    assert leaks(written) == []
    assert MARK in written


def test_what_holds_no_secret_is_printed_and_kept_as_it_is() -> None:
    payload = {"a": [1, 2.5, None], "b": ("x", {3}), "c": b"bytes"}
    record = logging.makeLogRecord({"msg": "got %s of %d", "args": (payload, 3), "order": payload})

    ReportFilter().filter(record)

    assert record.getMessage() == f"got {payload} of 3"
    assert vars(record)["order"] is payload


def test_texts_and_numbers_keep_the_template_of_the_record() -> None:
    record = logging.makeLogRecord({"msg": "got %s of %.1f", "args": ("few", 3.25)})

    ReportFilter().filter(record)

    assert (record.msg, record.args, record.getMessage()) == (
        "got %s of %.1f",
        ("few", 3.25),
        "got few of 3.2",
    )


def test_a_record_that_goes_through_a_queue_carries_no_secret() -> None:
    waiting: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    handler = logging.handlers.QueueHandler(waiting)
    handler.addFilter(ReportFilter())
    logger = logging.Logger("app")  # noqa: LOG001  (a logger of its own, that no other test hears)
    logger.addHandler(handler)

    logger.error(
        "failed with %s", [SECRET], exc_info=ValueError(SECRET), extra={"it": {SECRET}}, stack_info=True
    )
    record = waiting.get_nowait()

    assert leaks(str(vars(record))) == []
    assert "failed with" in record.getMessage()


def test_a_record_that_was_printed_before_the_queue_is_masked_behind_it() -> None:
    waiting: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    logger = logging.Logger("app")  # noqa: LOG001  (a logger of its own, that no other test hears)
    logger.addHandler(logging.handlers.QueueHandler(waiting))
    logger.error("failed with %s", SECRET, exc_info=ValueError(f"token {SECRET}"))
    record = waiting.get_nowait()

    ReportFilter().filter(record)

    assert leaks(str(vars(record))) == []


def test_a_stack_and_a_traceback_that_were_printed_already_are_masked() -> None:
    record = logging.makeLogRecord(
        {"msg": "failed", "exc_text": f"ValueError: {SECRET}", "stack_info": f"x = {SECRET!r}"}
    )

    ReportFilter().filter(record)

    assert leaks(logging.Formatter().format(record)) == []


def test_an_object_is_printed_once_and_its_text_is_the_one_that_was_checked() -> None:
    speaker = Speaker("harmless")
    record = logging.makeLogRecord({"msg": "saw %s", "args": (speaker,)})

    ReportFilter().filter(record)
    first = record.getMessage()
    speaker.text = SECRET

    assert (first, record.getMessage()) == ("saw harmless", "saw harmless")
    assert speaker.times == 1


@pytest.mark.parametrize("endless", [Lines(["x"]), Fields({"a": 1})], ids=["list", "dict"])
def test_containers_that_never_end_are_read_by_the_methods_of_the_built_in_class(endless: Any) -> None:
    written = logged("saw %s", endless, extra={"it": endless})

    assert "saw " in written
    assert "line" not in written


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_the_text_of_an_argument_passes_through(signal: type[BaseException]) -> None:
    def interrupted(_: object) -> str:
        raise signal

    speaker = type("Interrupted", (), {"__str__": interrupted})()
    record = logging.makeLogRecord({"msg": "saw %s", "args": (speaker,)})

    ReportFilter().filter(record)

    with pytest.raises(signal):
        record.getMessage()


def test_an_argument_that_cannot_be_printed_is_named() -> None:
    def refuse(_: object) -> str:
        raise RuntimeError

    refusing: Any = type("Refusing", (), {"__str__": refuse})()

    assert "saw <Refusing> now" in logged("saw %s now", refusing)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_structlog_renders_no_secret(name: str) -> None:
    out = StringIO()
    steps: list[Any] = [report_exception, structlog.processors.JSONRenderer(default=repr)]
    logger: Any = structlog.wrap_logger(structlog.PrintLogger(out), processors=steps)

    logger.error("failed", it=ARGUMENTS[name], db_password="swordfish", count=3)

    assert leaks(out.getvalue()) == []
    assert json.loads(out.getvalue())["count"] == 3
