"""The ways to write a loop down: decorators, rounds by hand, async and not; they decide alike."""

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import failwell
from failwell.calls.attempt_loop import AttemptEvent, NestedRetries, OperationEnded, watch
from failwell.calls.backoff import Backoff
from failwell.calls.budget import Budget
from failwell.calls.policy import Match, Policy, Rule
from failwell.calls.retry import retry, retrying
from failwell.calls.shared_budget import BudgetExceeded, SharedBudget, open_budget
from failwell.calls.suppress import Suppressed, observe
from failwell.errors.fault import Fault
from failwell.testing.builders import make_fault
from failwell.testing.clock import FakeClock
from tests.calls.acting import Scripted, caught, even, ledger, overloaded

AT_ONCE = Backoff(curve="fixed", first=0.0)


def test_a_decorated_function_keeps_its_name_and_its_arguments() -> None:
    @retry
    def add(one: int, two: int = 2) -> int:
        """Add."""
        return one + two

    assert add(1, two=4) == 5
    assert (add.__name__, add.__doc__) == ("add", "Add.")


def test_rounds_by_hand_go_on_until_one_works() -> None:
    clock = FakeClock()
    call = Scripted(overloaded(), overloaded(), "answer")
    answers: list[Any] = []

    for attempt in retrying(clock=clock, jitter=even):
        with attempt:
            answers.append((attempt.number, call()))

    assert answers == [(3, "answer")]
    assert clock.slept == [1.0, 2.0]


def test_rounds_by_hand_raise_what_is_not_repeated() -> None:
    original = make_fault(kind="provider.auth")
    rounds = 0

    with pytest.raises(Fault) as raised:
        for attempt in retrying(clock=FakeClock()):
            with attempt:
                rounds += 1
                raise original

    assert raised.value is original
    assert rounds == 1


def test_the_same_rounds_can_be_gone_through_twice() -> None:
    rounds = retrying(clock=FakeClock())
    done: list[int] = []

    for _ in range(2):
        for attempt in rounds:
            with attempt:
                done.append(attempt.number)

    assert done == [1, 1]


def test_a_round_that_is_left_early_is_the_last_one() -> None:
    done: list[int] = []

    for attempt in retrying(clock=FakeClock()):
        with attempt:
            done.append(attempt.number)
            break

    assert done == [1]


def test_rounds_on_a_loop() -> None:
    clock = FakeClock()
    call = Scripted(overloaded(), "answer")

    async def ask() -> Any:
        async for attempt in retrying(clock=clock, jitter=even):
            async with attempt:
                return await call.on_loop()
        raise AssertionError("unreachable")

    assert asyncio.run(ask()) == "answer"
    assert clock.slept == [1.0]


def test_a_cancelled_task_is_not_repeated() -> None:
    began: list[int] = []

    @retry(attempts=5, backoff=AT_ONCE)
    async def work() -> None:
        began.append(1)
        await asyncio.Event().wait()

    async def run() -> None:
        task = asyncio.ensure_future(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())

    assert began == [1]


def test_an_interrupt_is_not_repeated() -> None:
    call = Scripted(KeyboardInterrupt)

    with pytest.raises(KeyboardInterrupt):
        retry(call)()

    assert call.count == 1


def test_a_watcher_of_the_whole_process_hears_every_loop() -> None:
    seen: list[AttemptEvent] = []

    with watch(seen.append):
        retry(clock=FakeClock(), name="one")(Scripted(overloaded(), "answer"))()
        caught(retry(clock=FakeClock(), name="two")(Scripted(make_fault(kind="provider.auth"))))
    retry(clock=FakeClock(), name="three")(Scripted(overloaded(), "answer"))()

    assert [(one.ledger.layer, one.succeeded) for one in seen if isinstance(one, OperationEnded)] == [
        ("one", True),
        ("two", False),
    ]


def test_a_watcher_that_fails_breaks_nothing_and_is_on_record() -> None:
    heard: list[Suppressed] = []

    def broken(event: AttemptEvent) -> None:
        raise KeyError("x")

    with observe(heard.append):
        answer = retry(clock=FakeClock(), watcher=broken)(Scripted(overloaded(), "answer"))()

    assert answer == "answer"
    assert {event.report.error_type for event in heard} == {"KeyError"}


def test_a_call_that_works_tells_nobody_anything() -> None:
    seen: list[AttemptEvent] = []

    with watch(seen.append):
        retry(Scripted("answer"))()

    assert seen == []


def test_an_open_budget_is_shared_by_every_loop_below_it() -> None:
    calls = Scripted(overloaded())
    looped = retry(attempts=10, backoff=AT_ONCE)(calls)

    with SharedBudget(Budget(attempts=4), clock=FakeClock()):
        first = caught(looped)
        second = caught(looped)

    assert calls.count == 4
    assert "all 4 attempts are spent" in ledger(first).stopped
    assert isinstance(second, BudgetExceeded)
    assert failwell.describe(second).kind == "limit.budget_exceeded"


def test_tasks_and_threads_may_open_the_same_budget_at_once() -> None:
    budget = SharedBudget(Budget(attempts=100), clock=FakeClock())
    other = SharedBudget(Budget(attempts=100), clock=FakeClock())

    def spend() -> None:
        caught(retry(attempts=2, backoff=AT_ONCE)(Scripted(overloaded())))

    async def tasks() -> None:
        entered, left = asyncio.Event(), asyncio.Event()

        async def first() -> None:
            with budget:
                await entered.wait()
                spend()
            assert open_budget() is None
            left.set()

        async def second() -> None:
            with budget:
                entered.set()
                await left.wait()
                spend()
            assert open_budget() is None

        await asyncio.gather(first(), second())

    # Whoever entered first leaves first, while the other is inside.
    inside, entered, left = threading.Event(), threading.Event(), threading.Event()

    def first_thread() -> None:
        with other, budget, budget:
            inside.set()
            assert entered.wait(10)
            spend()
        assert open_budget() is None
        left.set()

    def second_thread() -> None:
        assert inside.wait(10)
        with other, budget, budget:
            entered.set()
            assert left.wait(10)
            spend()
        assert open_budget() is None

    asyncio.run(tasks())
    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(first_thread), pool.submit(second_thread)]:
            future.result()

    assert (budget.spent.attempts, other.spent.attempts) == (8, 0)
    assert open_budget() is None


def test_a_budget_that_is_closed_in_another_context_breaks_nothing() -> None:
    budget = SharedBudget(Budget(attempts=100), clock=FakeClock())

    contextvars.copy_context().run(budget.__enter__)
    contextvars.copy_context().run(budget.__exit__, None, None, None)

    assert open_budget() is None


def test_an_attempt_around_an_attempt_is_paid_once() -> None:
    calls = Scripted(overloaded())
    inner = retry(attempts=3, backoff=AT_ONCE, name="inner")(calls)
    outer = retry(attempts=3, backoff=AT_ONCE, name="outer", repeat_exhausted=True)(inner)
    budget = SharedBudget(Budget(attempts=100), clock=FakeClock())

    with budget, pytest.warns(NestedRetries, match="3 × 3 = up to 9 calls"):
        caught(outer)

    assert calls.count == 9
    assert budget.spent.attempts == 9


def test_a_budget_of_an_outer_loop_counts_the_calls_of_the_inner_one() -> None:
    calls = Scripted(overloaded())
    inner = retry(attempts=3, backoff=AT_ONCE)(calls)
    policy = failwell.Policy(budget=Budget(attempts=5), repeat_exhausted=True)

    with pytest.warns(NestedRetries):
        caught(retry(attempts=3, backoff=AT_ONCE, policy=policy)(inner))

    assert calls.count == 5


def test_a_description_of_a_wrapper_finds_the_attempts_below_it() -> None:
    def work() -> None:
        try:
            retry(clock=FakeClock())(Scripted(overloaded()))()
        except Fault as error:
            raise RuntimeError("the step failed") from error

    report = failwell.describe(caught(work))

    assert [row.number for row in report.attempts] == [1, 2, 3]
    assert failwell.ErrorReport.from_json(report.to_json()).attempts == report.attempts


def test_the_ledger_prints_as_a_table() -> None:
    error = caught(
        retry(clock=FakeClock(), jitter=even, provider="acme", model="m1")(
            Scripted(overloaded(), make_fault(kind="provider.outcome_unknown"))
        )
    )

    stopped = "giving up, the outcome is unknown, and a repeat might do the work twice"
    assert ledger(error).table().splitlines() == [
        "#  kind                      provider  model  waited  cost",
        "1  provider.overloaded       acme      m1     1.0 s         retrying in 1.0 s, after a back-off",
        f"2  provider.outcome_unknown  acme      m1                   {stopped}",
        f"stopped: {stopped}",
        "may have been billed: 1 without a known outcome",
    ]


def test_a_long_loop_keeps_its_last_rows() -> None:
    error = caught(retry(attempts=100, backoff=AT_ONCE)(Scripted(overloaded())))

    rows = ledger(error).attempts
    assert (len(rows), rows[0].number, rows[-1].number) == (64, 37, 100)


def test_an_exception_that_can_hold_nothing_is_still_raised_as_it_is() -> None:
    class Sealed(Exception):
        __slots__ = ()

        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)

    original = Sealed()

    assert caught(retry(clock=FakeClock())(Scripted(original))) is original


def test_a_predicate_that_raises_is_an_event_and_an_error() -> None:
    def broken(report: failwell.ErrorReport) -> bool:
        raise KeyError(report.kind)

    policy = Policy(rules=(Rule(match=Match.of(when=broken), name="mine"),))

    async def fails() -> None:
        raise overloaded()

    for run in (
        retry(policy=policy, name="ask")(Scripted(overloaded())),
        lambda: asyncio.run(retry(policy=policy, name="ask")(fails)()),
        retry(on=Match.of(when=broken), name="ask")(Scripted(overloaded())),
    ):
        seen: list[AttemptEvent] = []
        with watch(seen.append):
            error = caught(run)

        report = failwell.describe(error)
        assert (report.kind, report.retryable) == ("validation.config_invalid", False)
        assert "raised KeyError" in report.message
        assert [cause.type for cause in report.causes] == ["KeyError", "Fault"]
        assert [event.type for event in seen] == ["tried", "ended"]
        assert [row.kind for row in report.attempts] == ["provider.overloaded"]
        assert "raised KeyError" in (report.attempts[0].reason or "")


def test_the_provider_and_the_model_reach_the_report() -> None:
    refused = ConnectionRefusedError(111, "refused")
    looped = retry(provider="acme", model="large", clock=FakeClock())

    report = failwell.describe(caught(looped(Scripted(refused))))
    own = failwell.describe(caught(looped(Scripted(overloaded(provider="globex")))))
    foreign = failwell.describe(
        caught(lambda: raise_from(RuntimeError("mine"), caught(looped(Scripted(ValueError("x"))))))
    )

    assert (report.provider, report.model) == ("acme", "large")
    assert own.provider == "globex"
    assert foreign.provider is None


def raise_from(error: Exception, cause: Exception) -> None:
    raise error from cause


def test_a_budget_that_is_spent_names_the_provider() -> None:
    with SharedBudget(Budget(attempts=0)):
        error = caught(retry(provider="acme")(Scripted("answer")))

    assert failwell.describe(error).provider == "acme"
