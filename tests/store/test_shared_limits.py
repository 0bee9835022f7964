"""Guards and budgets over a SQLite store: what one process learns, all know, and without the store each goes on alone."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import failwell
from failwell import Budget
from failwell.calls import BudgetExceeded, CircuitOpen, Guard, Paused, RetryOptions, SharedBudget, observe
from failwell.calls.circuit_breaker import BreakerPolicy, Bucket, CallTarget
from failwell.calls.suppress import Suppressed
from failwell.delivery import PageWindow
from failwell.errors import NotBefore
from failwell.store import SqliteLimits
from failwell.testing.builders import make_report
from failwell.testing.clock import FakeClock

ACME = CallTarget("acme", "team", "large")


def rate_limit(after: float = 30.0) -> failwell.ErrorReport:
    return make_report(
        kind="provider.rate_limited", not_before=NotBefore(after=after, source="header retry-after")
    )


class SteppedClock(FakeClock):
    """A clock whose time of day can be set, as an operator or NTP does."""

    offset = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.offset

    def step(self, seconds: float) -> None:
        self.offset += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


class Stores:
    """One store for each process that the test plays."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        self._folder = folder
        self._clock = clock
        self.open: list[SqliteLimits] = []

    def new(self) -> SqliteLimits:
        self.open.append(SqliteLimits(self._folder, clock=self._clock))
        return self.open[-1]

    def guard(self, **options: Any) -> Guard:
        return Guard(store=self.new(), clock=self._clock, **options)


@pytest.fixture
def stores(tmp_path: Path, clock: FakeClock) -> Iterator[Stores]:
    stores = Stores(tmp_path, clock)
    yield stores
    for store in stores.open:
        store.close()


def seconds_of(paused: Paused | None) -> float | None:
    return None if paused is None or paused.not_before is None else paused.not_before.after


# ---------------------------------------------------------------- pauses


def test_one_rate_limit_pauses_the_guards_of_all_processes(stores: Stores, clock: FakeClock) -> None:
    first, *others = (stores.guard() for _ in range(4))
    assert all(other.paused(ACME) is None for other in others)

    first.failed(ACME, rate_limit(after=30))

    assert [seconds_of(guard.paused(ACME)) for guard in (first, *others)] == [30.0] * 4
    assert others[0].paused(CallTarget("acme", "another team")) is None
    clock.advance(30)
    assert all(guard.paused(ACME) is None for guard in (first, *others))


def test_a_call_waits_until_the_pause_of_another_process_is_over(stores: Stores, clock: FakeClock) -> None:
    stores.guard().failed(ACME, rate_limit(after=7))
    calls: list[float] = []

    @failwell.retry(provider="acme", account="team", guard=stores.guard(), clock=clock)
    def ask() -> str:
        calls.append(clock.monotonic())
        return "an answer"

    assert ask() == "an answer"
    assert clock.slept == [7.0]
    assert len(calls) == 1


def test_every_kind_of_loop_waits_for_the_pause(stores: Stores, clock: FakeClock) -> None:
    options = RetryOptions(provider="acme", account="team", guard=stores.guard(), clock=clock)

    @failwell.retry(options=options)
    async def ask() -> str:
        return "async"

    @failwell.retry(options=options)
    def parts() -> Iterator[str]:
        yield "generator"

    @failwell.retry(options=options)
    async def async_parts() -> AsyncIterator[str]:
        yield "async generator"

    async def from_async_parts() -> list[str]:
        return [part async for part in async_parts()]

    async def from_async_loop() -> str:
        async for attempt in failwell.retrying(options=options):
            async with attempt:
                return "async loop"
        raise AssertionError

    def from_loop() -> str:
        for attempt in failwell.retrying(options=options):
            with attempt:
                return "loop"
        raise AssertionError

    calls: list[Callable[[], object]] = [
        lambda: asyncio.run(ask()),
        lambda: list(parts()),
        lambda: asyncio.run(from_async_parts()),
        lambda: asyncio.run(from_async_loop()),
        from_loop,
    ]
    limited = stores.guard()
    for number, call in enumerate(calls, start=1):
        limited.failed(ACME, rate_limit(after=number))
        call()

    assert clock.slept == pytest.approx([1.0, 2.0, 3.0, 4.0, 5.0])


def test_a_pause_that_is_too_long_to_sleep_parks_the_call(stores: Stores, clock: FakeClock) -> None:
    stores.guard().failed(ACME, rate_limit(after=600))

    @failwell.retry(provider="acme", account="team", guard=stores.guard(), clock=clock)
    def ask() -> None:
        raise AssertionError("nothing is sent")

    with pytest.raises(failwell.Parked) as caught:
        ask()

    report = failwell.describe(caught.value)
    assert (report.kind, report.certainty) == ("provider.rate_limited", "not_sent")
    assert (caught.value.resume_at - clock.now()).total_seconds() == 600


def test_a_pause_that_would_exceed_the_timeout_is_not_waited_for(stores: Stores, clock: FakeClock) -> None:
    stores.guard().failed(ACME, rate_limit(after=30))

    @failwell.retry(timeout=10, provider="acme", account="team", guard=stores.guard(), clock=clock)
    def ask() -> None:
        raise AssertionError("nothing is sent")

    with pytest.raises(Paused):
        ask()

    assert clock.slept == []


def test_a_chain_goes_to_its_next_entry_while_one_is_paused(stores: Stores, clock: FakeClock) -> None:
    stores.guard().failed(CallTarget("acme"), rate_limit())
    chain = failwell.Chain(
        failwell.Entry(provider="acme", model="large", call=lambda: "acme"),
        failwell.Entry(provider="globex", model="small", call=lambda: "globex"),
        guard=stores.guard(),
        clock=clock,
    )

    assert chain.call() == "globex"


def test_a_guard_without_a_store_pauses_the_calls_of_its_process(clock: FakeClock) -> None:
    guard = Guard(clock=clock)

    guard.failed(ACME, rate_limit(after=5))
    guard.failed(ACME, rate_limit(after=2))

    assert seconds_of(guard.paused(ACME)) == 5.0
    assert [(state.scope, state.paused) for state in guard.states() if state.paused] == [
        (("acme", "team"), 5.0)
    ]


def test_a_step_of_the_clock_neither_lengthens_a_pause_nor_ends_it(
    stores: Stores, clock: SteppedClock
) -> None:
    early, late = stores.guard(), stores.guard()
    stores.guard().failed(ACME, rate_limit(after=30))
    assert seconds_of(early.paused(ACME)) == 30.0

    clock.step(-3600)

    assert seconds_of(early.paused(ACME)) == 30.0
    assert seconds_of(late.paused(ACME)) == 30.0
    clock.step(7200)
    assert seconds_of(early.paused(ACME)) == 30.0
    clock.advance(30)
    assert early.paused(ACME) is None
    assert late.paused(ACME) is None


# ---------------------------------------------------------------- breakers and buckets


def test_failures_of_all_processes_open_one_breaker_and_one_probe_closes_it(
    stores: Stores, clock: FakeClock
) -> None:
    guards = [stores.guard(breaker=BreakerPolicy(failures=3, rest=30.0)) for _ in range(3)]
    for guard in guards:
        guard.failed(ACME, make_report(kind="provider.overloaded"))

    assert all(isinstance(guard.refuses(ACME), CircuitOpen) for guard in guards)

    clock.advance(30)
    assert [guard.refuses(ACME) is None for guard in guards] == [True, False, False]
    guards[0].succeeded(ACME)
    assert all(guard.refuses(ACME) is None for guard in guards)


def test_retries_of_all_processes_take_from_one_bucket(stores: Stores) -> None:
    one, two = (stores.guard(bucket=Bucket(tokens=3, most=3)) for _ in range(2))

    assert [one.may_retry(ACME), two.may_retry(ACME), one.may_retry(ACME), two.may_retry(ACME)] == [
        True,
        True,
        True,
        False,
    ]

    for _ in range(11):
        one.succeeded(ACME)
    assert two.may_retry(ACME)


def test_a_call_that_is_allowed_reads_no_file(stores: Stores, clock: FakeClock) -> None:
    guard = stores.guard()
    guard.refuses(ACME)
    database = stores.open[0]._opened()[0]  # pyright: ignore[reportPrivateUsage]
    statements: list[str] = []
    database.connection.set_trace_callback(statements.append)

    for _ in range(100):
        assert guard.refuses(ACME) is None
        assert guard.paused(ACME) is None
        guard.succeeded(ACME)

    assert statements == []


# ---------------------------------------------------------------- the store is lost


def test_a_locked_store_leaves_the_limits_of_the_process_and_is_recorded_once(
    stores: Stores, clock: FakeClock, tmp_path: Path
) -> None:
    guard, other = stores.guard(), stores.guard()
    guard.refuses(ACME)
    other.refuses(ACME)
    blocker = sqlite3.connect(tmp_path / "limits.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    events: list[Suppressed] = []

    with observe(events.append):
        guard.failed(ACME, rate_limit(after=30))
        assert seconds_of(guard.paused(ACME)) == 30.0
        clock.advance(2)
        guard.failed(ACME, make_report(kind="provider.overloaded"))
    assert [event.report.kind for event in events] == ["session.store_unavailable"]
    assert other.paused(ACME) is None

    blocker.execute("ROLLBACK")
    blocker.close()
    clock.advance(2)
    guard.failed(ACME, make_report(kind="provider.overloaded"))
    assert seconds_of(other.paused(ACME)) == 26.0


def test_a_folder_that_cannot_be_used_is_recorded_and_the_guard_works(
    tmp_path: Path, clock: FakeClock
) -> None:
    (tmp_path / "state").write_text("a file")
    guard = Guard(store=SqliteLimits(tmp_path / "state"), clock=clock)
    events: list[Suppressed] = []

    with observe(events.append):
        assert guard.refuses(ACME) is None
        guard.failed(ACME, rate_limit(after=3))

    assert seconds_of(guard.paused(ACME)) == 3.0
    assert len(events) == 1


def test_values_that_are_not_ours_are_passed_over(stores: Stores) -> None:
    stores.new().change(
        lambda _now, _values: {
            "nonsense": "{",
            '["pause", "acme", "team"]': "[]",
            '["breaker", "acme"]': '{"position": "ajar", "failures": 1, "probing": 0, "why": "", "until": 9e9}',
            '["bucket", "acme", "team"]': '{"tokens": null}',
        }
    )

    guard = stores.guard()

    assert guard.refuses(ACME) is None
    assert guard.paused(ACME) is None
    assert guard.may_retry(ACME)


# ---------------------------------------------------------------- budgets


def test_a_budget_is_spent_by_all_processes_together(stores: Stores, clock: FakeClock) -> None:
    limit = Budget(attempts=5, usd=1.0, seconds=60)
    one, two = (SharedBudget(limit, store=stores.new(), name="day", clock=clock) for _ in range(2))

    assert [budget.take() for budget in (one, two, one, two, one)] == [None] * 5
    assert one.take() is not None
    assert two.take() is not None

    reserved = one.reserve(usd=0.75)
    with pytest.raises(BudgetExceeded):
        two.reserve(usd=0.5)
    reserved.settle(usd=0.25)
    two.reserve(usd=0.5).keep()
    assert (one.spent.attempts, one.spent.usd) == (5, 0.75)

    clock.advance(61)
    assert "the deadline of 60 s" in str(
        SharedBudget(Budget(seconds=60), store=stores.new(), name="day", clock=clock).take()
    )


def test_threads_of_two_processes_never_overspend(stores: Stores) -> None:
    budgets = [SharedBudget(Budget(attempts=40), store=stores.new(), name="day") for _ in range(2)]
    taken: list[bool] = []

    def spend(budget: SharedBudget) -> None:
        taken.extend(budget.take() is None for _ in range(15))

    threads = [threading.Thread(target=spend, args=(budgets[index % 2],)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert taken.count(True) == 40


def test_what_is_spent_while_the_store_is_lost_is_added_when_it_is_back(
    stores: Stores, clock: FakeClock, tmp_path: Path
) -> None:
    budget, other = (
        SharedBudget(Budget(attempts=4), store=stores.new(), name="day", clock=clock) for _ in range(2)
    )
    assert budget.take() is None
    assert other.take() is None
    blocker = sqlite3.connect(tmp_path / "limits.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")

    assert budget.take() is None

    blocker.execute("ROLLBACK")
    blocker.close()
    clock.advance(2)
    assert budget.take() is None
    assert other.spent.attempts == 4
    assert other.take() is not None


@pytest.mark.parametrize("options", [{"name": "day"}, {"store": True}])
def test_a_shared_budget_has_a_name(stores: Stores, options: dict[str, Any]) -> None:
    if "store" in options:
        options = {"store": stores.new()}

    with pytest.raises(ValueError, match="needs a `"):
        SharedBudget(Budget(attempts=1), **options)


# ---------------------------------------------------------------- pages


def test_processes_that_share_a_window_page_once(stores: Stores, clock: FakeClock) -> None:
    windows = [PageWindow(60, store=stores.new(), monotonic=clock.monotonic) for _ in range(3)]
    report = make_report(kind="provider.auth")

    assert [window.severity(report) for window in windows] == ["critical", "error", "error"]

    clock.advance(61)
    assert windows[2].severity(report) == "critical"
