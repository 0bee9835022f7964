"""Failures that no rule knew are counted, so that a missing rule shows itself."""

from collections.abc import Iterator
from datetime import UTC, datetime
from threading import Thread

import pytest

import failwell
from failwell import errors
from failwell.errors.identity import Unclassified


class Unheard(Exception):
    """Of a library that nobody here knows."""


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    errors.unclassified(forget=True)
    yield
    errors.unclassified(forget=True)


def meet(error: Exception, times: int = 1, hour: int = 0) -> None:
    for _ in range(times):
        failwell.describe(error, at=datetime(2026, 3, 1, hour, tzinfo=UTC))


def test_the_same_failure_is_counted_once_a_time_and_named_without_its_words() -> None:
    meet(Unheard("my diagnosis"), 2, hour=1)
    meet(Unheard("another diagnosis"), 1, hour=3)

    (met,) = errors.unclassified()

    assert met == Unclassified(
        fingerprint=failwell.describe(Unheard()).fingerprint,
        error_type=f"{__name__}.Unheard",
        kind="internal.unknown",
        provider=None,
        count=3,
        first=datetime(2026, 3, 1, 1, tzinfo=UTC),
        last=datetime(2026, 3, 1, 3, tzinfo=UTC),
    )


def test_the_most_frequent_comes_first() -> None:
    meet(Unheard(), 1)
    meet(type("Rare", (Exception,), {})(), 2)

    assert [met.count for met in errors.unclassified()] == [2, 1]


def test_what_a_rule_knows_is_not_counted() -> None:
    meet(ValueError("x"))
    meet(failwell.Fault(kind="tool.failed"))

    assert errors.unclassified() == []


def test_forgetting_begins_anew() -> None:
    meet(Unheard())

    assert len(errors.unclassified(forget=True)) == 1
    assert errors.unclassified() == []


def test_a_program_that_makes_classes_on_the_fly_does_not_fill_the_memory() -> None:
    for number in range(400):
        # Digits are left out of a fingerprint, so the names differ in letters.
        name = "".join(chr(97 + int(digit)) for digit in f"{number:03}")
        meet(type(name, (Exception,), {})())

    assert len(errors.unclassified()) == 256


def test_threads_do_not_lose_counts() -> None:
    threads = [Thread(target=meet, args=(Unheard(), 50)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors.unclassified()[0].count == 200
