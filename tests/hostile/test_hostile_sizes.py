"""However much an exception holds, what is made of it is small, and is made at once."""

import tracemalloc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

import failwell
from failwell import Fault
from failwell.capability import TracebackPolicy
from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from fuzz.oracle import check_report
from fuzz.zoo import a_crowd, answering, groups_in_groups, linked, nested
from tests.specimens import each

pytestmark = pytest.mark.timeout(10)

HUGE = 100_000_000


class Peak:
    """What a block took at most, in bytes."""

    taken = 0


@contextmanager
def measured() -> Generator[Peak]:
    peak = Peak()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    try:
        yield peak
        peak.taken = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def attributed(name: str, value: Any) -> BaseException:
    error = ValueError("said")
    setattr(error, name, value)
    return error


def noted(note: str) -> BaseException:
    error = ValueError("said")
    error.add_note(note)
    return error


def caused(cause: BaseException) -> BaseException:
    error = RuntimeError("above")
    error.__cause__ = cause
    return error


HOLDERS: dict[str, Callable[[Any], BaseException]] = {
    "message": ValueError,
    "second argument": lambda huge: ValueError("said", huge),
    "nested argument": lambda huge: ValueError({"a": [huge]}),
    "key": KeyError,
    "file name": lambda huge: OSError(2, "gone", huge),
    "body": lambda huge: attributed("body", huge),
    "prompt in messages": lambda huge: attributed("messages", [{"role": "user", "content": huge}]),
    "note": lambda huge: noted(huge if isinstance(huge, str) else "x"),
    "cause": lambda huge: caused(ValueError(huge)),
    "member": lambda huge: ExceptionGroup("g", [ValueError(huge)]),
    "message of a fault": lambda huge: Fault(
        kind="tool.failed", message=huge if isinstance(huge, str) else "x"
    ),
    "details of a fault": lambda huge: Fault(kind="tool.failed", details={"a": huge, "b": [huge]}),
    "advice of a fault": lambda huge: Fault(
        kind="tool.failed", user_action=UserAction(ActionKind.DECIDE, huge)
    ),
    "invalid fields of a fault": lambda huge: Fault(kind="tool.failed", fields_invalid=[huge]),
    "provider of a fault": lambda huge: Fault(kind="tool.failed", provider=huge, model=huge),
}


@pytest.fixture(scope="module", params=["text", "bytes", "wide text"])
def huge(request: pytest.FixtureRequest) -> str | bytes:
    return {"text": "x" * HUGE, "bytes": b"\xff" * HUGE, "wide text": "é" * (HUGE // 2)}[request.param]


@each("where", HOLDERS)
def test_a_hundred_megabytes_anywhere_take_no_more_memory(huge: str | bytes, where: str) -> None:
    error = HOLDERS[where](huge)
    for policy in TracebackPolicy:
        failwell.describe(ValueError("loaded"), policy=policy)

    with measured() as peak:
        reports = [failwell.describe(error, policy=policy) for policy in TracebackPolicy]

    assert peak.taken < 20_000_000
    for report in reports:
        check_report(report, with_panel=False)


def test_a_fault_that_says_a_hundred_megabytes_is_cut() -> None:
    talker: Any = type("Talker", (Fault,), {"summary": answering("x" * HUGE)}, kind="tool.failed")
    error = talker()

    with measured() as peak:
        report = failwell.describe(error, policy="repr_only")

    assert peak.taken < 20_000_000
    assert report.message.endswith("more characters cut]")
    assert len(report.message) <= 2_000


@pytest.mark.parametrize(
    ("error", "links"),
    [
        (linked(10_000, "__cause__"), 12),
        (linked(10_000, "__context__"), 12),
        (linked(10_000, "__cause__", lambda _: Fault()), 12),
        (lambda: a_crowd(10_000), 24),
        (lambda: groups_in_groups(1_000), 12),
    ],
    ids=["causes", "contexts", "faults", "members", "groups"],
)
def test_what_is_left_out_of_a_long_chain_is_said(error: Callable[[], BaseException], links: int) -> None:
    report = failwell.describe(error(), policy="full")

    assert len(report.causes) == links + 1
    assert report.causes[-1].message == "[more causes cut]"


def test_the_innermost_of_a_thousand_groups_still_says_what_it_is() -> None:
    assert failwell.describe(groups_in_groups(1_000)).kind == "resource.disk"


def test_details_that_repeat_themselves_are_cut_before_they_are_copied() -> None:
    leaf: Any = "w" * 4_000
    for _ in range(4):
        leaf = [leaf] * 100
    fault = Fault(kind="tool.failed", details={f"k{number}": leaf for number in range(100)})

    with measured() as peak:
        report = failwell.describe(fault, policy="full")

    assert peak.taken < 5_000_000
    assert "cut]" in str(report.details)


def test_what_fits_of_large_details_is_kept() -> None:
    fault = Fault(
        kind="tool.failed", details={"first": 1, "deep": nested(1_000), "many": ["x" * 500] * 1_000}
    )

    report = failwell.describe(fault)

    assert report.details["first"] == 1
    assert report.details["many"][0] == "x" * 500


def test_a_source_that_never_ends_is_not_read() -> None:
    # A traceback quotes the source, and this one claims to come from a file of endless zeros.
    scope: dict[str, Any] = {}
    exec(compile("def fail():\n    raise ValueError('x')\n", "/dev/zero", "exec"), scope)

    with pytest.raises(ValueError) as caught:
        scope["fail"]()
    report = failwell.describe(caught.value, policy="full")

    assert report.internal is not None
    assert 'File "/dev/zero", line 2, in fail' in (report.internal.traceback or "")
