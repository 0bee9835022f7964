"""The exceptions below an exception: all of them, in order, once, and never without end."""

import sys
from itertools import pairwise
from typing import Any

import pytest

import failwell
from failwell import Fault
from failwell.capability import TracebackPolicy
from failwell.testing.builders import make_fault


def chained(*errors: BaseException) -> BaseException:
    """Each raised from the next; the first is the outermost."""
    for above, below in pairwise(errors):
        above.__cause__ = below
    return errors[0]


def a_long_chain(length: int) -> BaseException:
    return chained(*(ValueError(str(number)) for number in range(length)))


def calls_made(action: Any) -> int:
    """How many Python functions `action` enters: a measure of work that no clock disturbs.

    The environment is read again now and then, in the middle of whatever is counted, so the least of three counts.
    """
    return min(_calls_made(action) for _ in range(3))


def _calls_made(action: Any) -> int:
    count = [0]

    def enter(_frame: Any, event: str, _argument: Any) -> None:
        count[0] += event == "call"

    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count[0]


def test_causes_are_listed_from_the_outermost_down_with_their_levels() -> None:
    report = failwell.describe(chained(ValueError(), make_fault(message="slow"), OSError()))

    assert [(c.type, c.kind, c.via, c.level) for c in report.causes] == [
        ("Fault", "provider.rate_limited", "cause", 1),
        ("OSError", "internal.io_error", "cause", 2),
    ]


def test_an_exception_without_a_cause_has_none() -> None:
    assert failwell.describe(ValueError()).causes == ()


def test_an_implicit_context_is_listed_as_one() -> None:
    try:
        try:
            raise KeyError("first")
        except KeyError:
            raise ValueError("second")
    except ValueError as error:
        report = failwell.describe(error)

    assert [(c.type, c.via) for c in report.causes] == [("KeyError", "context")]


def test_a_suppressed_context_is_not_listed() -> None:
    try:
        try:
            raise KeyError("first")
        except KeyError:
            raise ValueError("second") from None
    except ValueError as error:
        report = failwell.describe(error)

    assert report.causes == ()


def test_members_of_a_group_come_before_its_cause_and_are_marked() -> None:
    inner = BaseExceptionGroup("inner", [KeyError(), chained(ValueError(), OSError())])
    report = failwell.describe(chained(BaseExceptionGroup("outer", [inner, TypeError()]), EOFError()))

    assert [(c.type, c.via, c.level) for c in report.causes] == [
        ("ExceptionGroup", "member", 1),
        ("KeyError", "member", 2),
        ("ValueError", "member", 2),
        ("OSError", "cause", 3),
        ("TypeError", "member", 1),
        ("EOFError", "cause", 1),
    ]


@pytest.mark.acceptance("pipelex 7", "stud-cli 6")
def test_a_circular_chain_is_reported_once_and_without_recursion() -> None:
    first, second, third = Fault(message="1"), ValueError("2"), Fault(message="3")
    chained(first, second, third, first)

    report = failwell.describe(first)

    assert [c.type for c in report.causes] == ["ValueError", "Fault"]
    assert calls_made(lambda: failwell.describe(first)) < 500


@pytest.mark.acceptance("pipelex 7")
def test_faults_that_cause_each_other_are_reported_without_recursion() -> None:
    first, second = Fault(message="first"), Fault(message="second", provider="acme")
    chained(first, second, first)

    report = failwell.describe(first)

    assert (report.kind, report.provider) == ("internal.unknown", "acme")
    assert [c.message for c in report.causes] == ["second"]


def test_an_exception_that_is_its_own_context_is_reported_without_recursion() -> None:
    error = ValueError("x")
    error.__cause__ = error

    assert failwell.describe(error).causes == ()


def test_a_long_chain_is_cut_visibly() -> None:
    report = failwell.describe(a_long_chain(200))

    assert len(report.causes) == 13
    assert (report.causes[-1].type, report.causes[-1].message) == ("…", "[more causes cut]")


def test_a_chain_of_ten_thousand_costs_no_more_than_one_of_a_hundred() -> None:
    short, long = a_long_chain(100), a_long_chain(10_000)
    failwell.describe(short)  # (what is loaded on first use is not what this is about)

    assert calls_made(lambda: failwell.describe(long)) <= calls_made(lambda: failwell.describe(short)) + 20


def test_a_chain_of_a_thousand_faults_is_bounded_too() -> None:
    report = failwell.describe(chained(*(Fault(message=str(number)) for number in range(1_000))))

    assert (report.kind, len(report.causes)) == ("internal.unknown", 13)


def test_a_wide_group_is_cut_visibly() -> None:
    report = failwell.describe(ExceptionGroup("many", [KeyError(n) for n in range(100)]))

    assert len(report.causes) == 25
    assert report.causes[-1].message == "[more causes cut]"


def test_foreign_words_stay_out_of_causes_and_our_own_stay_in() -> None:
    error = chained(make_fault(message="outer"), make_fault(message="inner"), OSError("hunter2"))
    error.add_note("hunter2")

    report = failwell.describe(error)

    assert [c.message for c in report.causes] == ["inner", None]
    assert "hunter2" not in report.to_json()


def test_notes_are_recorded_where_the_policy_keeps_words() -> None:
    below = ValueError("inner")
    below.add_note("while reading page 3")
    below.add_note("of the second copy")

    report = failwell.describe(chained(KeyError("outer"), below), policy=TracebackPolicy.REPR_ONLY)

    assert report.causes[0].notes == ("while reading page 3", "of the second copy")
    assert report.causes[0].message == "inner"


def test_notes_are_bounded_and_masked() -> None:
    below = ValueError("inner")
    for number in range(50):
        below.add_note(f"note {number} " + "x" * 1_000)
    below.__notes__[0] = "password=hunter2hunter2"
    below.__notes__[1] = 7  # pyright: ignore[reportArgumentType, reportCallIssue]

    notes = failwell.describe(chained(KeyError(), below), policy="repr_only").causes[0].notes

    assert notes[0] == "password=[redacted]"
    assert len(notes) == 3
    assert all(len(note) <= 300 for note in notes)


class Shadowed(ValueError):
    """An exception that lies about its own slots."""

    @property
    def __cause__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        raise RuntimeError("no")

    @property
    def __traceback__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        raise RuntimeError("no")


def test_an_exception_that_lies_about_its_slots_is_read_all_the_same() -> None:
    report = failwell.describe(Shadowed("x"))

    assert (report.kind, report.error_type, report.causes) == ("internal.bug", "Shadowed", ())


class Wrapper(Exception):
    """A class of a program, of which no rule knows anything."""


def wrapped(outer: Exception, inner: BaseException) -> failwell.ErrorReport:
    outer.__cause__ = inner
    return failwell.describe(outer)


@pytest.mark.parametrize("cls", [Wrapper, RuntimeError, Exception])
def test_an_exception_that_says_nothing_is_the_failure_that_it_was_raised_from(cls: type[Exception]) -> None:
    report = wrapped(cls("could not fetch"), ConnectionRefusedError("x"))

    assert (report.kind, report.retryable, report.certainty) == ("provider.connection", True, "not_sent")
    assert report.error_type == cls.__name__
    assert report.evidence[-1].basis == "cause"


@pytest.mark.parametrize("cause", [KeyError("a"), ValueError("a"), Wrapper("a")])
def test_a_programs_own_mistake_below_it_does_not_say_what_an_unknown_exception_is(cause: Exception) -> None:
    assert wrapped(Wrapper("order 17"), cause).kind == "internal.unknown"


def test_a_class_that_is_known_is_not_overruled_by_what_it_was_raised_from() -> None:
    assert wrapped(KeyError("a"), ConnectionRefusedError("x")).kind == "internal.bug"


def test_the_context_of_an_unknown_exception_does_not_say_what_it_is() -> None:
    error = Wrapper("while cleaning up")
    error.__context__ = ConnectionRefusedError("x")

    assert failwell.describe(error).kind == "internal.unknown"


def test_a_chain_of_unknown_exceptions_is_the_first_failure_that_is_known() -> None:
    inner = Wrapper("inner")
    inner.__cause__ = TimeoutError()

    assert wrapped(RuntimeError("outer"), inner).kind == "provider.outcome_unknown"


def test_a_very_long_chain_of_unknown_exceptions_ends() -> None:
    error: BaseException = ConnectionRefusedError("x")
    for _ in range(5_000):
        outer = Wrapper("again")
        outer.__cause__ = error
        error = outer

    assert failwell.describe(error).kind == "internal.unknown"
