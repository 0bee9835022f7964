"""Work that may have been done is not done again, unless somebody makes that safe."""

import pytest

import failwell
from failwell.calls.backoff import Backoff
from failwell.calls.idempotency import idempotency_key, keyed
from failwell.calls.policy import Match, Policy, Rule, Schedule
from failwell.calls.retry import retry
from failwell.errors.report import ErrorReport
from failwell.testing.builders import make_fault
from failwell.testing.clock import FakeClock
from tests.calls.acting import Scripted, caught, ledger


def lost() -> TimeoutError:
    return TimeoutError("the read operation timed out")


def unknown() -> failwell.Fault:
    return make_fault(kind="provider.outcome_unknown")


@pytest.mark.acceptance("pipelex 49")
def test_an_unknown_outcome_is_not_replayed() -> None:
    call = Scripted(unknown())

    error = caught(retry(clock=FakeClock())(call))

    assert call.count == 1
    assert "outcome is unknown" in ledger(error).stopped


def test_no_rule_of_a_policy_can_allow_the_replay_of_an_unknown_outcome() -> None:
    careless = Rule(
        match=Match(), retryable=True, schedule=Schedule(max_attempts=5, backoff=Backoff(first=0.0))
    )
    call = Scripted(unknown())

    caught(retry(clock=FakeClock(), policy=Policy(rules=(careless,)))(call))

    assert call.count == 1


def test_a_call_declared_idempotent_is_repeated() -> None:
    call = Scripted(make_fault(kind="tool.timeout"), "answer")

    assert retry(clock=FakeClock(), idempotent=True)(call)() == "answer"


@pytest.mark.parametrize("kind", ["session.store_unavailable", "provider.timeout"])
def test_a_call_declared_not_idempotent_is_not_repeated_where_the_work_may_be_done(kind: str) -> None:
    call = Scripted(make_fault(kind=kind))

    caught(retry(clock=FakeClock(), idempotent=False)(call))

    assert call.count == 1


@pytest.mark.acceptance("pipelex 49")
@pytest.mark.parametrize("kind", ["provider.rate_limited", "provider.connection"])
def test_a_call_declared_not_idempotent_is_repeated_where_nothing_was_done(kind: str) -> None:
    call = Scripted(make_fault(kind=kind), "answer")

    assert retry(clock=FakeClock(), idempotent=False)(call)() == "answer"


def test_every_attempt_sends_the_same_key_and_the_next_operation_another() -> None:
    keys: list[str] = []

    @retry(clock=FakeClock(), keyed=True)
    def order(fails: int) -> str:
        keys.append(idempotency_key())
        if len(keys) <= fails:
            raise unknown()
        return "ordered"

    assert order(2) == "ordered"
    assert len(set(keys)) == 1
    assert len(keys) == 3
    order(0)
    assert keys[3] != keys[0]


def test_a_key_that_no_attempt_took_protects_nothing() -> None:
    call = Scripted(unknown())

    caught(retry(clock=FakeClock(), keyed=True)(call))

    assert call.count == 1


def test_a_key_from_outside_holds_in_every_loop_below() -> None:
    keys: list[str] = []
    order = retry(clock=FakeClock())(lambda: keys.append(idempotency_key()))

    with keyed("order-17"):
        order()
        order()

    assert keys == ["order-17", "order-17"]


def test_outside_of_any_loop_a_key_is_new_each_time() -> None:
    assert idempotency_key() != idempotency_key()


def test_a_reconcile_hook_that_finds_nothing_done_allows_the_repeat() -> None:
    asked: list[ErrorReport] = []

    def was_it_done(report: ErrorReport) -> bool:
        asked.append(report)
        return False

    call = Scripted(unknown(), "answer")

    assert retry(clock=FakeClock(), reconcile=was_it_done)(call)() == "answer"
    assert [report.kind for report in asked] == ["provider.outcome_unknown"]


@pytest.mark.parametrize(
    ("answer", "said"), [(True, "the work was done"), (None, "it is unknown whether the work was done")]
)
def test_a_reconcile_hook_that_does_not_rule_it_out_forbids_the_repeat(
    answer: bool | None, said: str
) -> None:
    call = Scripted(unknown())

    error = caught(retry(clock=FakeClock(), reconcile=lambda report: answer)(call))

    assert call.count == 1
    assert said in ledger(error).stopped


def test_a_reconcile_hook_does_not_make_a_loop_endless() -> None:
    call = Scripted(unknown())

    caught(retry(clock=FakeClock(), reconcile=lambda report: False)(call))

    assert call.count == 3


def test_a_reconcile_hook_that_fails_counts_as_no_answer_and_hides_nothing() -> None:
    def broken(report: ErrorReport) -> bool:
        raise KeyError("no such order")

    original = unknown()

    error = caught(retry(clock=FakeClock(), reconcile=broken)(Scripted(original)))

    assert error is original


def test_an_async_hook_is_awaited() -> None:
    import asyncio

    async def was_it_done(report: ErrorReport) -> bool:
        await asyncio.sleep(0)
        return False

    call = Scripted(unknown(), "answer")

    @retry(clock=FakeClock(), reconcile=was_it_done)
    async def order() -> object:
        return call()

    assert asyncio.run(order()) == "answer"


def test_something_freed_allows_one_more_call() -> None:
    freed: list[str] = []
    call = Scripted(make_fault(kind="resource.gpu_memory"))

    def free(report: ErrorReport) -> bool:
        freed.append(report.kind)
        return True

    caught(retry(clock=FakeClock(), evict=free)(call))

    assert freed == ["resource.gpu_memory"]
    assert call.count == 2


def test_nothing_freed_means_no_further_call() -> None:
    call = Scripted(make_fault(kind="resource.gpu_memory"))

    error = caught(retry(clock=FakeClock(), evict=lambda report: False)(call))

    assert call.count == 1
    assert ledger(error).stopped == "nothing could be freed"
