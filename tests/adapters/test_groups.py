"""A group is as bad as its worst member, and no worse."""

import asyncio
from itertools import pairwise
from typing import cast

import pytest

import failwell
from failwell import Fault, errors
from failwell.errors.axes import Category
from failwell.testing.builders import make_fault

BY_SEVERITY = [
    "cancel.run",
    "provider.rate_limited",
    "resource.disk",
    "provider.outcome_unknown",
    "provider.quota_exhausted",
    "limit.visits",
    "provider.content_refused",
    "validation.input_invalid",
    "tool.denied",
    "provider.auth",
    "internal.unknown",
    "internal.bug",
]


def a_group(*members: BaseException) -> BaseException:
    return BaseExceptionGroup("several", members)


def nested(depth: int, width: int, leaf: BaseException) -> BaseException:
    group = leaf
    for _ in range(depth):
        group = a_group(*[group] * width)
    return group


def test_the_list_of_severities_names_every_category_once() -> None:
    assert sorted(errors.kind(name).category for name in BY_SEVERITY) == sorted(Category)


@pytest.mark.parametrize(("milder", "worse"), list(pairwise(BY_SEVERITY)), ids=lambda kind: kind)
def test_the_less_a_repeat_can_do_the_worse(milder: str, worse: str) -> None:
    one, other = make_fault(kind=milder), make_fault(kind=worse)

    assert failwell.describe(a_group(one, other)).kind == worse
    assert failwell.describe(a_group(other, one)).kind == worse


def test_a_group_of_what_may_be_repeated_may_be_repeated() -> None:
    report = failwell.describe(a_group(make_fault(), make_fault(kind="provider.connection")))

    assert (report.category, report.retryable) == ("transient", True)


def test_one_veto_stops_the_whole_group() -> None:
    milder = make_fault(kind="cancel.run", retryable=False)

    assert not failwell.describe(a_group(make_fault(), make_fault(retryable=False))).retryable
    assert not failwell.describe(a_group(make_fault(), milder)).retryable
    assert failwell.describe(a_group(make_fault(), make_fault(kind="cancel.run"))).retryable


def test_a_group_of_which_some_may_have_run_may_have_run() -> None:
    sent = make_fault(kind="provider.overloaded")
    unsent = make_fault(kind="provider.connection")

    assert failwell.describe(a_group(unsent, unsent)).certainty == "not_sent"
    assert failwell.describe(a_group(unsent, sent)).certainty == "unknown"


def test_evidence_names_the_group_and_what_its_worst_member_went_by() -> None:
    report = failwell.describe(a_group(KeyError("x"), OSError("x")))

    assert [(e.rule, e.saw) for e in report.evidence] == [
        ("group.worst_member", "2 members"),
        ("origin.code", "KeyError"),
        ("python.KeyError", "validation.input_invalid"),
    ]
    assert report.details == {"members": 2}
    assert not report.caller_facing


def test_a_members_own_words_do_not_speak_for_the_group() -> None:
    report = failwell.describe(a_group(make_fault(message="only mine"), make_fault()))

    assert report.message == errors.kind("provider.rate_limited").summary


def test_a_fault_around_a_group_inherits_from_its_worst_member() -> None:
    wrapper = Fault.wrap(a_group(make_fault(provider="acme", model="large"), OSError("x")), "batch failed")

    report = failwell.describe(wrapper)

    assert (report.kind, report.message, report.provider) == (
        "provider.rate_limited",
        "batch failed",
        "acme",
    )


def test_a_group_in_a_group_is_looked_into() -> None:
    assert failwell.describe(nested(5, 1, make_fault(kind="provider.auth"))).kind == "provider.auth"


def test_a_task_groups_failure_is_its_tasks_failure() -> None:
    async def fail() -> None:
        raise make_fault(kind="provider.overloaded", message="no room")

    async def work() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail())
            tasks.create_task(asyncio.Event().wait())

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(work())
    report = failwell.describe(cast("BaseException", caught.value))

    assert (report.kind, report.retryable) == ("provider.overloaded", True)
    assert [(c.type, c.message) for c in report.causes] == [("Fault", "no room")]


def test_a_thousand_members_are_all_looked_at() -> None:
    many = [OSError(n) for n in range(1_000)]

    assert failwell.describe(a_group(*many)).kind == "internal.io_error"
    assert failwell.describe(a_group(*many, AssertionError())).kind == "internal.bug"


def test_members_beyond_the_limit_may_be_anything_so_nothing_is_repeated() -> None:
    report = failwell.describe(a_group(*[make_fault() for _ in range(2_000)]))

    assert (report.kind, report.retryable) == ("internal.unknown", False)


def test_the_same_failure_many_times_over_is_one_failure() -> None:
    assert failwell.describe(nested(12, 50, OSError("x"))).kind == "internal.io_error"


def test_groups_below_groups_below_groups_end() -> None:
    assert failwell.describe(nested(900, 1, OSError("x"))).error_type == "ExceptionGroup"


def test_a_cancelled_member_does_not_hide_a_failure() -> None:
    report = failwell.describe(a_group(asyncio.CancelledError(), ValueError("x")))

    assert report.kind == "internal.bug"
