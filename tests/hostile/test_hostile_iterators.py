"""Containers that never end, or say what is not true, are read within bounds by every way in and out."""

import json
import logging
import urllib.error
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import httpx
import openai
import pytest
import requests

import failwell
from failwell import Fault
from failwell.capability import TracebackPolicy
from failwell.delivery.logging import JsonFormatter, ReportFilter
from failwell.errors.redact import redact_value
from failwell.errors.safe_str import weighs, words_of
from failwell.integrations.structlog import report_exception
from failwell.sentry import before_send
from fuzz.oracle import check_report
from tests.specimens import each

pytestmark = pytest.mark.timeout(20)


class SameKey(Mapping[str, Any]):
    """Yields the same key for ever, with a value that costs nothing."""

    def __init__(self, key: str = "", value: Any = None) -> None:
        self.key, self.value = key, value

    def __getitem__(self, key: str) -> Any:
        return self.value

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        while True:
            yield self.key

    def items(self) -> Any:
        while True:
            yield self.key, self.value


class EndlessDict(dict[str, Any]):
    """A dictionary whose own methods never end."""

    def items(self) -> Any:
        while True:
            yield "endless", None

    def keys(self) -> Any:
        while True:
            yield "endless"

    def values(self) -> Any:
        while True:
            yield "endless"

    def __len__(self) -> int:
        return 1


class EndlessList(list[Any]):
    """A list that never ends when it is iterated."""

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield "endless"

    def __len__(self) -> int:
        return 1


class EndlessTuple(tuple[Any, ...]):
    """A tuple that never ends when it is iterated."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield "endless"


ENDLESS: dict[str, Callable[[], Any]] = {
    "same key": SameKey,
    "same safe header": lambda: SameKey("retry-after", "7"),
    "same name of a secret": lambda: SameKey("password", "x"),
    "dict": lambda: EndlessDict(a="b"),
    "list": lambda: EndlessList(["a"]),
    "tuple": lambda: EndlessTuple(("a",)),
}


def _attributed(name: str, value: Any) -> BaseException:
    cls: Any = type("RateLimitError", (Exception,), {"__module__": "openai"})
    error = cls("said")
    setattr(error, name, value)
    return error


CARRIERS: dict[str, Callable[[Any], BaseException]] = {
    "argument": lambda value: ValueError("said", value),
    "only argument": ValueError,
    "details": lambda value: Fault(kind="tool.failed", details={"it": value}),
    "body": lambda value: _attributed("body", value),
    "headers": lambda value: _attributed("headers", value),
    "messages": lambda value: _attributed("messages", value),
    "response": lambda value: _attributed(
        "response", type("Reply", (), {"headers": value, "status_code": 429})()
    ),
    "notes": lambda value: _attributed("__notes__", value),
}


@each("carrier", CARRIERS)
@each("name", ENDLESS)
def test_what_never_ends_is_described_by_every_policy(name: str, carrier: str) -> None:
    for policy in TracebackPolicy:
        report = failwell.describe(CARRIERS[carrier](ENDLESS[name]()), policy=policy)
        check_report(report, with_panel=False)


@pytest.mark.parametrize("name", ENDLESS)
def test_what_never_ends_is_logged_and_sent(name: str) -> None:
    value = ENDLESS[name]()
    error = ValueError("said", value)
    record = logging.makeLogRecord(
        {"msg": "saw %s", "args": (value,), "it": value, "exc_info": (ValueError, error, None)}
    )
    event: Any = {
        "event_id": "1",
        "extra": {"it": "x"},
        "exception": {"values": [{"type": "X", "value": "said"}]},
    }

    line = JsonFormatter().format(record)
    ReportFilter().filter(record)
    rendered = report_exception(
        None, "error", {"event": "failed", "exc_info": error, "it": redact_value(value)}
    )
    sent = before_send(event, {"exc_info": (ValueError, error, None)})

    assert json.loads(line)["error"]["schema"] == "failwell.error/1"
    assert len(record.getMessage()) < 20_000
    assert len(str(rendered)) < 100_000
    assert len(json.dumps(sent, default=str)) < 100_000


def test_the_methods_of_the_built_in_class_are_used_and_not_those_of_a_subclass() -> None:
    assert redact_value([EndlessDict(a="b"), EndlessList(["c"])]) == [{"a": "b"}, ["c"]]
    assert not weighs(EndlessList(["x"] * 10), 10_000)
    assert weighs(EndlessList(["x" * 100] * 1_000), 10_000)
    assert weighs(EndlessDict({str(number): "x" * 100 for number in range(1_000)}), 10_000)


def a_bush() -> Any:
    """A small object whose text would fill every disk."""
    bush: Any = ["leaf" * 100]
    for _ in range(20):
        bush = [bush] * 20
    return bush


def test_a_text_that_would_be_endless_is_not_produced() -> None:
    assert words_of(ValueError(a_bush())) == "<large list>"
    assert words_of(ValueError("short", [1])) == "('short', [1])"


class Printing(Exception):
    """One whose text is made of what it holds."""

    def __init__(self, content: Any) -> None:
        super().__init__("it failed")
        self.content = content

    def __str__(self) -> str:
        return f"it failed with {self.content}"


class PrintingUnlikeItsLibrary(openai.APIError):
    """A subclass of an SDK's exception by somebody else."""

    def __init__(self, content: Any) -> None:
        super().__init__("it failed", cast("Any", None), body=None)
        self.content = content

    def __str__(self) -> str:
        return f"it failed with {self.content}"


@pytest.mark.parametrize(
    "cls",
    [
        RuntimeError, httpx.ConnectError, requests.ConnectionError, urllib.error.URLError, Printing,
        PrintingUnlikeItsLibrary,
    ],
)  # fmt: skip
def test_an_exception_that_would_print_without_end_is_described_logged_and_sent(
    cls: Callable[[Any], Exception],
) -> None:
    error = cls(a_bush())
    exc_info = (type(error), error, None)
    failed = logging.makeLogRecord({"msg": "saw %s", "args": (error,), "exc_info": exc_info})
    saw = logging.makeLogRecord({"msg": "saw %s", "args": (a_bush(),)})
    event: Any = {"event_id": "1", "exception": {"values": [{"type": "X", "value": "said"}]}}

    for policy in TracebackPolicy:
        check_report(failwell.describe(error, policy=policy), with_panel=False)
    for record in (failed, saw):
        ReportFilter().filter(record)
    sent = before_send(event, {"exc_info": exc_info})

    assert type(error).__name__ in failed.getMessage()
    assert len(saw.getMessage()) < 20_000
    assert len(json.dumps(sent, default=str)) < 100_000


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("way", ["structlog", "filter", "formatter", "sentry", "describe"])
def test_an_interrupt_passes_through_every_way_out(way: str, signal: type[BaseException]) -> None:
    class Interrupted(Fault, kind="tool.failed"):
        def summary(self) -> str:
            raise signal

    fault = Interrupted()
    record = logging.makeLogRecord({"msg": "failed", "exc_info": (Fault, fault, None)})
    ways: dict[str, Callable[[], Any]] = {
        "structlog": lambda: report_exception(None, "error", {"event": "x", "exc_info": fault}),
        "filter": lambda: ReportFilter().filter(record),
        "formatter": lambda: JsonFormatter().format(record),
        "sentry": lambda: before_send({"event_id": "1"}, {"exc_info": (Fault, fault, None)}),
        "describe": lambda: failwell.describe(fault),
    }

    with pytest.raises(signal):
        ways[way]()
