"""An exception that fights back is described, classified and delivered like any other."""

import sys
from collections.abc import Callable
from itertools import count
from typing import Any, cast

import pytest

import failwell
from failwell import Fault, adapters, errors
from failwell.capability import CapabilityInputError, classify_exception, map_bare_exception_to_job_error
from failwell.errors import Certainty
from failwell.errors.report import TracebackPolicy
from fuzz.oracle import check_exception, check_report
from fuzz.zoo import (
    ESCAPES,
    BitingMapping,
    EndlessMapping,
    Guarded,
    Slotted,
    a_class,
    biting,
    made,
    specimens,
)
from tests.specimens import failures, parts

pytestmark = pytest.mark.timeout(10)

ZOO = specimens()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "names",
    # Every sixth specimen is tried each time, all of them where there is time.
    [
        pytest.param(part, marks=[pytest.mark.slow] if n else [], id=str(n))
        for n, part in enumerate(parts(ZOO, 6))
    ],
)
def test_it_is_described_by_every_policy_and_leaves_by_every_door(names: list[str]) -> None:
    assert failures(names, lambda name: check_exception(ZOO[name]())) == []


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_or_an_exit_passes_through_wherever_it_comes(signal: type[BaseException]) -> None:
    from_openai = made(a_class("OpenAIError", status_code=property(biting(signal)), __module__="openai"))
    summing: Any = type("Summing", (Fault,), {"summary": biting(signal)}, kind="provider.auth")

    for error in (from_openai, summing()):
        with pytest.raises(signal):
            failwell.describe(error)


def test_the_zoo_is_not_empty_and_no_two_specimens_share_a_name() -> None:
    assert len(ZOO) > 1_400


@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.__name__)
def test_a_fault_whose_words_and_details_bite_keeps_its_kind(escape: type[BaseException]) -> None:
    cls: Any = type(
        "Grumpy", (Fault,), {"summary": biting(escape), "own_fields": biting(escape)}, kind="provider.auth"
    )
    fault = cls(details=BitingMapping(escape), provider="acme")

    report = failwell.describe(fault)

    assert (report.kind, report.category, report.provider) == ("provider.auth", "configuration", "acme")
    assert report.message == errors.kind("provider.auth").summary
    assert classify_exception(fault) == "user_input"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("certainty", "nonsense"),
        ("blame", 5),
        ("user_action", "resubmit"),
        ("not_before", 7.5),
        ("provider_metadata", {"status_code": 429}),
        ("fields_invalid", "name"),
        ("resource_shortfall", (1, 2)),
        ("details", [1, 2]),
        ("retryable", "no"),
        ("provider", b"acme"),
    ],
)
def test_a_field_that_holds_the_wrong_thing_costs_only_itself(field: str, value: Any) -> None:
    fault = Fault(kind="provider.rate_limited", model="large")
    setattr(fault, field, value)

    report = failwell.describe(fault)

    assert report == failwell.describe(
        Fault(kind="provider.rate_limited", model="large"), at=report.occurred_at
    ) or (
        report.kind,
        report.model,
        report.certainty,
        report.retryable,
    ) == ("provider.rate_limited", "large", "rejected", True)
    assert report.evidence[0].rule == "declared"


def test_a_word_that_names_a_member_of_an_axis_is_that_member() -> None:
    fault = Fault(kind="provider.rate_limited")
    fault.certainty = cast("Any", "partial")

    assert failwell.describe(fault).certainty is Certainty.PARTIAL


def test_a_mapping_of_an_unknown_author_in_the_place_of_details_is_named() -> None:
    report = failwell.describe(Fault(kind="tool.failed", details=EndlessMapping()))

    assert report.kind == "tool.failed"
    assert report.details == {"…": "<EndlessMapping>"}


def test_an_exception_that_claims_to_be_a_fault_is_not_believed() -> None:
    liar = made(a_class("Liar", ValueError, type, __class__=Fault))

    report = failwell.describe(liar)

    assert (report.error_type, report.kind) == ("Liar", "internal.bug")


def test_a_capability_error_with_a_category_of_its_own_invention_is_read_by_its_kind() -> None:
    cls: Any = type("Odd", (CapabilityInputError,), {"category": "whatever", "default_retriable": "perhaps"})
    error = cls("said")

    job = map_bare_exception_to_job_error(error)

    assert classify_exception(error) == "user_input"
    assert job.category == "user_input"


@pytest.mark.parametrize("make", [lambda: Slotted("x"), lambda: Guarded("x")], ids=["slots", "frozen"])
def test_it_takes_its_place_along_out_of_a_scene(make: Callable[[], Exception]) -> None:
    with pytest.raises(Exception) as caught, errors.scene(run="r1", node="n1"):
        raise make()

    report = failwell.describe(caught.value)

    assert (report.scene.run, report.scene.node) == ("r1", "n1")
    check_report(report)


def test_a_frozen_fault_can_be_translated() -> None:
    def refuse(_self: Any, name: str, _value: Any) -> None:
        raise AttributeError(name)

    fault = Fault(kind="tool.failed")
    fault.__class__ = cast("Any", type("Frozen", (Fault,), {"__setattr__": refuse, "__delattr__": refuse}))

    assert adapters.translate(fault, provider="acme", model="large") is fault


@pytest.mark.parametrize("policy", TracebackPolicy)
def test_the_error_path_works_where_the_stack_has_run_out(policy: TracebackPolicy) -> None:
    described: list[str] = []
    heights = count()
    failwell.describe(ValueError("loaded"), policy=policy)

    def dive() -> None:
        try:
            dive()
        except RecursionError as error:
            above = next(heights)
            # At every depth on the way up, beginning where there is no room for a single call more. A describe
            # takes fewer than 200 calls: above that, a sample does.
            if above < 200 or above % 25 == 0:
                described.append(failwell.describe(error, policy=policy).error_type)
            raise

    with pytest.raises(RecursionError):
        dive()

    assert set(described) == {"RecursionError"}
    assert len(described) > 200
    assert next(heights) > sys.getrecursionlimit() // 2


def test_whoever_is_no_exception_at_all_is_described_too() -> None:
    report = failwell.describe(cast("Any", "a text"))

    assert (report.kind, report.error_type, report.evidence[0].rule) == (
        "internal.unknown",
        "str",
        "describe_failed",
    )
