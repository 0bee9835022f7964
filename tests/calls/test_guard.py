"""Shared state of many loops: breakers scoped by blame, and retries that run dry."""

import pytest

import failwell
from failwell.calls.circuit_breaker import BreakerPolicy, Bucket, CallTarget
from failwell.calls.guard import CircuitOpen, Guard
from failwell.calls.retry import retry
from failwell.errors.facts import NotBefore
from failwell.testing.builders import make_fault, make_report
from failwell.testing.clock import FakeClock
from tests.calls.acting import Scripted, caught, ledger, overloaded, told

OPENAI = CallTarget("openai", "team-1", "gpt")


def a_guard(clock: FakeClock, **changes: float) -> Guard:
    return Guard(breaker=BreakerPolicy(**{"failures": 2, "rest": 30.0, **changes}), clock=clock)  # pyright: ignore[reportArgumentType]


def test_a_breaker_opens_after_enough_failures_in_a_row() -> None:
    guard = a_guard(FakeClock())

    guard.failed(OPENAI, make_report(kind="provider.overloaded"))
    assert guard.refuses(OPENAI) is None
    guard.failed(OPENAI, make_report(kind="provider.overloaded"))

    refusal = guard.refuses(OPENAI)
    assert isinstance(refusal, CircuitOpen)
    report = failwell.describe(refusal)
    assert (report.kind, report.certainty) == ("provider.unavailable", "not_sent")
    assert report.not_before is not None
    assert report.not_before.after == 30.0


def test_no_provider_keeps_a_breaker_open_for_longer_than_its_own_limit() -> None:
    clock = FakeClock()
    guard = a_guard(clock, failures=1, longest_rest=600.0)

    guard.failed(OPENAI, make_report(kind="provider.overloaded", not_before=NotBefore(after=366 * 86_400.0)))

    assert guard.refuses(OPENAI) is not None
    clock.advance(600)
    assert guard.refuses(OPENAI) is None


def test_a_success_in_between_starts_the_count_again() -> None:
    guard = a_guard(FakeClock())

    guard.failed(OPENAI, make_report(kind="provider.overloaded"))
    guard.succeeded(OPENAI)
    guard.failed(OPENAI, make_report(kind="provider.overloaded"))

    assert guard.refuses(OPENAI) is None


def test_one_probe_is_let_through_after_the_rest_and_decides() -> None:
    clock = FakeClock()
    guard = a_guard(clock, failures=1)
    guard.failed(OPENAI, make_report(kind="provider.overloaded"))

    clock.advance(30)
    assert guard.refuses(OPENAI) is None
    assert guard.refuses(OPENAI) is not None
    guard.succeeded(OPENAI)
    assert guard.refuses(OPENAI) is None
    assert guard.refuses(OPENAI) is None


def test_a_probe_that_fails_opens_it_again() -> None:
    clock = FakeClock()
    guard = a_guard(clock, failures=1)
    guard.failed(OPENAI, make_report(kind="provider.overloaded"))

    clock.advance(30)
    assert guard.refuses(OPENAI) is None
    guard.failed(OPENAI, make_report(kind="provider.overloaded"))

    assert guard.refuses(OPENAI) is not None


def test_a_failure_of_somebody_else_gives_the_probe_back() -> None:
    clock = FakeClock()
    guard = a_guard(clock, failures=1)
    guard.failed(OPENAI, make_report(kind="provider.overloaded"))

    clock.advance(30)
    assert guard.refuses(OPENAI) is None
    guard.failed(OPENAI, make_report(kind="provider.bad_request"))

    assert guard.refuses(OPENAI) is None


def test_a_probe_of_a_model_is_given_back_when_its_provider_fails() -> None:
    clock = FakeClock()
    guard = a_guard(clock, failures=1, rest=30.0)
    guard.failed(OPENAI, make_report(kind="provider.model_not_found"))
    clock.advance(30)
    assert guard.refuses(OPENAI) is None

    guard.failed(OPENAI, make_report(kind="provider.overloaded"))

    states = {state.scope: state.breaker for state in guard.states()}
    assert states["openai", "team-1", "gpt"].probing == 0
    assert states["openai",].position == "open"


def test_a_probe_that_never_reports_does_not_close_it_for_ever() -> None:
    clock = FakeClock()
    guard = a_guard(clock, failures=1)
    guard.failed(OPENAI, make_report(kind="provider.overloaded"))

    clock.advance(30)
    assert guard.refuses(OPENAI) is None
    assert guard.refuses(OPENAI) is not None
    clock.advance(30)

    assert guard.refuses(OPENAI) is None


def test_an_interrupted_probe_gives_its_place_back() -> None:
    clock = FakeClock()
    guard = a_guard(clock, failures=1)
    guard.failed(CallTarget("openai"), make_report(kind="provider.overloaded"))
    clock.advance(30)

    with pytest.raises(KeyboardInterrupt):
        retry(guard=guard, provider="openai", clock=clock)(Scripted(KeyboardInterrupt))()

    assert guard.refuses(CallTarget("openai")) is None


@pytest.mark.parametrize(
    ("kind", "shut", "open_"),
    [
        ("provider.model_not_found", ["gpt"], ["other model", "other account"]),
        ("provider.quota_exhausted", ["gpt", "other model"], ["other account"]),
        ("provider.overloaded", ["gpt", "other model", "other account"], ["other provider"]),
    ],
)
def test_what_is_closed_off_reaches_as_far_as_the_blame(kind: str, shut: list[str], open_: list[str]) -> None:
    guard = a_guard(FakeClock(), failures=1)
    calls = {
        "gpt": OPENAI,
        "other model": CallTarget("openai", "team-1", "mini"),
        "other account": CallTarget("openai", "team-2", "gpt"),
        "other provider": CallTarget("anthropic", "team-1", "gpt"),
    }

    guard.failed(OPENAI, make_report(kind=kind))

    assert [name for name in shut if guard.closed(calls[name]) is None] == []
    assert [name for name in open_ if guard.closed(calls[name]) is not None] == []


def test_a_used_up_quota_closes_the_account_at_once_and_until_the_reset() -> None:
    clock = FakeClock()
    guard = a_guard(clock)

    guard.failed(OPENAI, make_report(kind="provider.quota_exhausted", not_before=told(3600)))
    clock.advance(3599)

    assert guard.closed(OPENAI) is not None


def test_the_state_can_be_looked_at() -> None:
    guard = a_guard(FakeClock(), failures=1)

    guard.failed(OPENAI, make_report(kind="provider.overloaded"))
    guard.may_retry(OPENAI)

    states = {"/".join(state.scope): state for state in guard.states()}
    assert states["openai"].breaker.position == "open"
    assert states["openai"].breaker.why == "provider.overloaded"
    assert states["openai/team-1"].tokens == 9.0


def test_in_an_outage_retries_run_dry_and_successes_earn_them_back() -> None:
    guard = Guard(bucket=Bucket(tokens=2, most=2, earned=0.5), breaker=BreakerPolicy(failures=10_000))

    assert [guard.may_retry(OPENAI) for _ in range(3)] == [True, True, False]
    guard.succeeded(OPENAI)
    assert not guard.may_retry(OPENAI)
    guard.succeeded(OPENAI)
    assert guard.may_retry(OPENAI)


def test_a_loop_stops_when_retries_have_run_dry() -> None:
    guard = Guard(bucket=Bucket(tokens=1, most=1), breaker=BreakerPolicy(failures=10_000))
    call = Scripted(overloaded())

    error = caught(retry(guard=guard, provider="openai", clock=FakeClock())(call))

    assert call.count == 2
    assert "retry bucket of this provider is empty" in ledger(error).stopped


def test_a_loop_does_not_call_what_is_closed_off() -> None:
    clock = FakeClock()
    guard = a_guard(clock, failures=1)
    call = Scripted(overloaded())
    looped = retry(guard=guard, provider="openai", clock=clock)(call)

    first = caught(looped)
    second = caught(looped)

    assert call.count == 1
    assert "closed off" in ledger(first).stopped
    assert isinstance(second, CircuitOpen)


def test_a_guard_without_a_provider_is_refused() -> None:
    with pytest.raises(ValueError, match="provider"):
        retry(guard=Guard())


def test_a_late_success_does_not_close_a_breaker_that_opened_meanwhile() -> None:
    guard = a_guard(FakeClock(), failures=1)
    guard.failed(OPENAI, make_report(kind="provider.overloaded"))

    guard.succeeded(OPENAI)

    assert guard.closed(OPENAI) is not None


def test_an_unclassified_failure_says_nothing_about_the_provider() -> None:
    guard = a_guard(FakeClock(), failures=1)

    guard.failed(OPENAI, failwell.describe(make_fault(kind="internal.bug")))

    assert guard.closed(OPENAI) is None
