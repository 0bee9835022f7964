"""Which failures call a person: exhausted ones once for each fingerprint and window, handled ones never."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

import failwell
from failwell import Category
from failwell.calls import AttemptFailed, observe, watch
from failwell.delivery import PageWindow, set_page_window
from failwell.errors import NotBefore, Severity, kinds
from failwell.errors.report import Attempt, severity_of
from failwell.logging import level_of, log_report
from failwell.testing.builders import make_report
from failwell.testing.clock import FakeClock

CRITICAL = Severity.CRITICAL


class Levels(logging.Handler):
    """Counts records by level."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.counts[record.levelname] = self.counts.get(record.levelname, 0) + 1


@pytest.fixture
def clock() -> Iterator[FakeClock]:
    """The time of a fresh window of this process."""
    clock = FakeClock()
    before = set_page_window(PageWindow(3600, monotonic=clock.monotonic))
    yield clock
    set_page_window(before)


@pytest.fixture
def levels() -> Iterator[Levels]:
    handler = Levels()
    logger = logging.getLogger("tests.paging")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def log(event: Any) -> None:
    if isinstance(event, AttemptFailed):
        log_report(logging.getLogger("tests.paging"), event.report)


def rate_limited() -> failwell.Fault:
    return failwell.Fault(
        kind="provider.rate_limited", not_before=NotBefore(after=1, source="header retry-after")
    )


# ---------------------------------------------------------------- the decision


def test_the_category_says_who_acts() -> None:
    severities = {category: severity_of("external.any", category) for category in Category}

    assert severities == {
        Category.TRANSIENT: "error",
        Category.RESOURCE: "error",
        Category.AMBIGUOUS: "critical",
        Category.CAPACITY: "critical",
        Category.CONFIGURATION: "critical",
        Category.CONTENT: "warning",
        Category.USER_INPUT: "warning",
        Category.DENIED: "warning",
        Category.LIMIT: "error",
        Category.CANCELLED: "info",
        Category.FATAL: "critical",
        Category.UNKNOWN: "critical",
    }


def test_what_is_handled_calls_nobody_and_what_is_exhausted_does() -> None:
    for kind in kinds():
        assert severity_of(kind.name, kind.category, handled=True, exhausted=True) == "info"
    assert severity_of("provider.rate_limited", Category.TRANSIENT, exhausted=True) == "critical"
    assert severity_of("provider.exhausted", Category.TRANSIENT) == "critical"
    assert severity_of("cancel.run", Category.CANCELLED, exhausted=True) == "info"


def test_a_report_reads_it_from_its_attempts() -> None:
    assert make_report(kind="provider.rate_limited").severity == "error"
    assert (
        make_report(kind="provider.rate_limited", attempts=(Attempt(number=6, exhausted=True),)).severity
        == "critical"
    )
    assert make_report(kind="provider.auth", handled=True).severity == "info"


# ---------------------------------------------------------------- loops


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_handled_rate_limits_page_nobody(clock: FakeClock, levels: Levels, count: int) -> None:
    calls = 0

    @failwell.retry(clock=clock)
    def flaky() -> int:
        nonlocal calls
        calls += 1
        if calls % 2:
            raise rate_limited()
        return calls

    with watch(log):
        for _ in range(count):
            flaky()

    assert calls == 2 * count
    assert levels.counts == {"INFO": count}


def test_exhaustion_pages_once_for_each_fingerprint_and_window(clock: FakeClock, levels: Levels) -> None:
    @failwell.retry(attempts=2, clock=clock)
    def down(kind: str) -> None:
        raise failwell.Fault(kind=kind)

    def fail(kind: str) -> None:
        with pytest.raises(failwell.Fault):
            down(kind)

    with watch(log):
        for _ in range(50):
            fail("provider.overloaded")
        assert levels.counts == {"INFO": 50, "CRITICAL": 1, "ERROR": 49}

        fail("provider.unavailable")
        assert levels.counts["CRITICAL"] == 2

        clock.advance(3600)
        fail("provider.overloaded")
        assert levels.counts["CRITICAL"] == 3


def test_a_provider_that_another_one_stands_in_for_pages_nobody(clock: FakeClock, levels: Levels) -> None:
    def broken() -> str:
        raise failwell.Fault(kind="provider.overloaded")

    chain = failwell.Chain(
        failwell.Entry(provider="acme", model="large", call=broken, attempts=2),
        failwell.Entry(provider="globex", model="small", call=lambda: "an answer"),
        clock=clock,
    )

    with watch(log):
        assert chain.call() == "an answer"

    assert levels.counts == {"INFO": 2}


def test_an_inner_loop_leaves_the_decision_to_the_outer_one(clock: FakeClock, levels: Levels) -> None:
    @failwell.retry(attempts=2, clock=clock, name="inner")
    def inner() -> None:
        raise failwell.Fault(kind="provider.overloaded")

    @failwell.retry(attempts=2, clock=clock, name="outer")
    def outer() -> None:
        inner()

    with watch(log), pytest.warns(UserWarning, match="retries inside retries"), pytest.raises(failwell.Fault):
        outer()

    assert levels.counts == {"INFO": 2, "CRITICAL": 1}


def test_what_is_suppressed_was_handled() -> None:
    events: list[Any] = []

    with observe(events.append), failwell.suppress(ValueError, reason="it does not matter"):
        raise ValueError

    assert events[0].report.severity == "info"


# ---------------------------------------------------------------- the window


def test_a_window_remembers_a_bounded_number_of_failures() -> None:
    clock = FakeClock()
    window = PageWindow(60, most=2, monotonic=clock.monotonic)
    first, second, third = (
        make_report(kind="provider.auth", fingerprint=name) for name in ("f1", "f2", "f3")
    )

    assert [window.severity(each) for each in (first, second, first, second)] == [
        CRITICAL,
        CRITICAL,
        "error",
        "error",
    ]
    assert window.severity(third) == CRITICAL
    assert window.severity(first) == CRITICAL
    assert window.severity(third, "another channel") == CRITICAL


@pytest.mark.parametrize("options", [{"seconds": 0}, {"most": 0}])
def test_a_window_without_room_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        PageWindow(**options)


def test_level_of_is_the_same_each_time() -> None:
    report = make_report(kind="provider.auth")

    assert level_of(report) == level_of(report) == logging.CRITICAL
