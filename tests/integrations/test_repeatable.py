"""What every engine is told about a failure."""

import asyncio

import pytest

import failwell
from failwell import errors
from failwell.calls.policy import IN_PROCESS_LIMIT
from failwell.calls.retry import retry
from failwell.calls.task_calls import repeatable
from failwell.errors.axes import Category
from failwell.integrations import langgraph, stamina
from failwell.testing.builders import make_fault
from failwell.testing.clock import FakeClock
from tests.calls.acting import Scripted, caught, told
from tests.specimens import each

STOPS = [asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(1), GeneratorExit()]


@each("kind", sorted(kind.name for kind in errors.kinds()))
def test_a_kind_is_repeatable_if_and_only_if_its_category_is(kind: str) -> None:
    report = repeatable(make_fault(kind=kind))

    assert (report is not None) is errors.kind(kind).category.retryable


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: type(stop).__name__)
def test_whoever_stops_the_program_is_obeyed(stop: BaseException) -> None:
    assert repeatable(stop, idempotent=True) is None


@pytest.mark.parametrize(
    "kind", [kind.name for kind in errors.kinds() if kind.category is Category.CANCELLED]
)
def test_a_cancel_is_not_repeated_even_if_it_says_it_may_be(kind: str) -> None:
    assert repeatable(make_fault(kind=kind, retryable=True), idempotent=True) is None


def test_an_unknown_outcome_is_repeated_only_where_that_is_declared_harmless() -> None:
    lost = TimeoutError("the read operation timed out")

    undeclared = repeatable(lost)
    declared = repeatable(lost, idempotent=True)

    assert undeclared is None
    assert declared is not None
    assert declared.category is Category.TRANSIENT


@pytest.mark.parametrize(("wait", "may"), [(IN_PROCESS_LIMIT, True), (IN_PROCESS_LIMIT + 0.1, False)])
def test_a_wait_that_is_too_long_to_sleep_is_no_repeat(wait: float, may: bool) -> None:
    assert (repeatable(make_fault(not_before=told(wait))) is not None) is may


def test_what_a_loop_below_has_parked_is_left_parked() -> None:
    call = Scripted(make_fault(not_before=told(30)))
    impatient = failwell.Policy(in_process_limit=5)

    parked = caught(retry(clock=FakeClock(), policy=impatient)(call))

    assert isinstance(parked, failwell.Parked)
    assert repeatable(parked) is None


def test_what_a_loop_below_has_exhausted_is_repeated_only_on_request() -> None:
    @failwell.retry(attempts=2, backoff=failwell.Backoff(first=0.0))
    def ask() -> None:
        raise failwell.Fault(kind="provider.overloaded")

    with pytest.raises(failwell.Fault) as raised:
        ask()

    for may_repeat in (stamina.retry_on, langgraph.retry_on):
        assert may_repeat(raised.value) is False
        assert may_repeat(raised.value, repeat_exhausted=True) is True
