"""Whatever the policy and whatever fails: what no loop may ever do."""

import asyncio
from itertools import pairwise
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from failwell.adapters.describe import describe
from failwell.calls.attempt_loop import Parked
from failwell.calls.backoff import Backoff
from failwell.calls.budget import Budget
from failwell.calls.cancel import CancelScope
from failwell.calls.chain.chain import Chain, ChainPolicy, Entry
from failwell.calls.policy import SCHEDULES, Match, Policy, Rule, Schedule, default_schedule
from failwell.calls.retry import retry
from failwell.calls.shared_budget import BudgetExceeded, SharedBudget
from failwell.errors.axes import Category
from failwell.errors.context import ledger_of
from failwell.errors.facts import NotBefore
from failwell.errors.fault import Fault
from failwell.errors.kind_registry import kinds
from failwell.testing.clock import FakeClock

KINDS = sorted(kind.name for kind in kinds() if not kind.name.startswith("cancel."))

backoffs = st.builds(
    Backoff,
    curve=st.sampled_from(["fixed", "linear", "exponential"]),
    first=st.floats(0, 100),
    longest=st.floats(0, 500),
    jitter=st.floats(0, 1),
)
schedules = st.builds(Schedule, max_attempts=st.integers(1, 8), backoff=backoffs)
matches = st.one_of(
    st.just(Match()),
    st.sampled_from(KINDS).map(Match.of),
    st.sampled_from(["provider.", "tool.", "worker."]).map(Match.of),
    st.sampled_from([*Category]).map(lambda category: Match.of(category=category)),
)
rules = st.builds(
    Rule, match=matches, schedule=st.none() | schedules, retryable=st.sampled_from([None, True, False])
)
budgets = st.builds(
    Budget, attempts=st.none() | st.integers(1, 6), seconds=st.none() | st.floats(0, 1000), usd=st.none()
)
policies = st.builds(
    Policy, rules=st.lists(rules, max_size=4).map(tuple), budget=budgets, in_process_limit=st.floats(0, 200)
)


class Failure(NamedTuple):
    """One scripted failure: its kind, the wait it tells, and how long the call took."""

    kind: str
    told: float | None
    took: float

    def fault(self) -> Fault:
        wait = None if self.told is None else NotBefore(after=self.told, source="retry-after")
        return Fault(kind=self.kind, not_before=wait)


failures = st.lists(
    st.builds(
        Failure,
        kind=st.sampled_from(KINDS),
        told=st.none() | st.floats(0, 400),
        took=st.floats(0, 50),
    ),
    min_size=1,
    max_size=12,
)


class World:
    """Runs one loop over a script, and writes down when each call was made."""

    def __init__(self, script: list[Failure], cancel_at: int | None = None) -> None:
        self.script = script
        self.clock = FakeClock()
        self.scope = CancelScope("run")
        self.cancel_at = cancel_at
        self.began: list[float] = []
        self.ended: list[float] = []
        self.raised: Exception | None = None

    def call(self) -> str:
        number = len(self.began)
        self.began.append(self.clock.monotonic())
        if number >= len(self.script):
            return "done"
        failure = self.script[number]
        self.clock.advance(failure.took)
        self.ended.append(self.clock.monotonic())
        if self.cancel_at == number:
            self.scope.cancel()
        raise failure.fault()

    def run(self, policy: Policy, **wishes: Any) -> None:
        try:
            retry(policy=policy, clock=self.clock, cancel=self.scope, **wishes)(self.call)()
        except Exception as error:
            self.raised = error

    @property
    def calls(self) -> int:
        return len(self.began)

    def repeated(self) -> list[Failure]:
        """The failures after which another call was made."""
        return self.script[: self.calls - 1]


def schedule_for(policy: Policy, failure: Failure) -> Schedule:
    report = describe(failure.fault())
    rule = next((rule for rule in policy.rules if rule.match.fits(report)), None)
    own = None if rule is None else rule.schedule
    return SCHEDULES[default_schedule(report)] if own is None else own


@given(policies, failures)
def test_there_are_never_more_calls_than_the_schedule_and_the_budget_allow(
    policy: Policy, script: list[Failure]
) -> None:
    world = World(script)

    world.run(policy)

    if policy.budget.attempts is not None:
        assert world.calls <= policy.budget.attempts
    for number, failure in enumerate(world.repeated(), start=1):
        assert number < schedule_for(policy, failure).max_attempts


@given(policies, failures)
def test_no_call_is_made_before_the_time_that_was_told(policy: Policy, script: list[Failure]) -> None:
    world = World(script)

    world.run(policy)

    for failure, ended, began in zip(world.repeated(), world.ended, world.began[1:], strict=False):
        if failure.told is not None:
            # To the microsecond: adding up two floats is not always exact.
            assert began >= ended + failure.told - 1e-6
            assert failure.told <= policy.in_process_limit


@given(policies, failures)
def test_no_wait_passes_the_deadline(policy: Policy, script: list[Failure]) -> None:
    world = World(script)

    world.run(policy)

    if policy.budget.seconds is not None:
        assert all(began <= policy.budget.seconds for began in world.began)


@given(policies, failures, st.integers(0, 11))
def test_after_a_cancel_nothing_is_called(policy: Policy, script: list[Failure], cancel_at: int) -> None:
    world = World(script, cancel_at)

    world.run(policy)

    if world.scope.cancelled:
        assert world.calls == cancel_at + 1
        assert describe(world.raised or AssertionError()).kind == "cancel.run"


@given(failures)
def test_without_rules_nothing_is_called_after_a_failure_that_a_repeat_does_not_cure(
    script: list[Failure],
) -> None:
    world = World(script)

    world.run(Policy())

    assert all(describe(failure.fault()).retryable for failure in world.repeated())


@given(policies, failures)
def test_an_unknown_outcome_is_never_replayed_without_permission(
    policy: Policy, script: list[Failure]
) -> None:
    world = World(script)

    world.run(policy)

    replayed = [describe(failure.fault()).category for failure in world.repeated()]
    assert Category.AMBIGUOUS not in replayed


@given(policies, failures)
def test_a_call_declared_not_idempotent_is_repeated_only_where_nothing_was_done(
    policy: Policy, script: list[Failure]
) -> None:
    world = World(script)

    world.run(policy, idempotent=False)

    certainties = {describe(failure.fault()).certainty for failure in world.repeated()}
    assert certainties <= {"not_sent", "rejected"}


@given(policies, failures)
def test_the_ledger_shows_every_call_and_its_waits_add_up(policy: Policy, script: list[Failure]) -> None:
    world = World(script)

    world.run(policy)

    if world.raised is not None and not isinstance(world.raised, BudgetExceeded):
        ledger = ledger_of(world.raised)
        assert ledger is not None
        assert [row.number for row in ledger.attempts] == list(range(1, world.calls + 1))
        assert [row.wait for row in ledger.attempts if row.wait] == [one for one in world.clock.slept if one]
        assert ledger.stopped


@given(policies, failures)
def test_sync_and_async_loops_decide_alike(policy: Policy, script: list[Failure]) -> None:
    plain, on_loop = World(script), World(script)

    plain.run(policy, jitter=lambda: 0.25)

    async def call() -> str:
        return on_loop.call()

    async def run() -> None:
        try:
            await retry(policy=policy, clock=on_loop.clock, cancel=on_loop.scope, jitter=lambda: 0.25)(call)()
        except Exception as error:
            on_loop.raised = error

    asyncio.run(run())

    assert on_loop.calls == plain.calls
    assert type(on_loop.raised) is type(plain.raised)
    assert on_loop.clock.slept == plain.clock.slept


class Line(NamedTuple):
    """One entry of a chain and what its calls do."""

    attempts: int
    script: list[Failure]


lines = st.lists(st.builds(Line, attempts=st.integers(1, 4), script=failures), min_size=1, max_size=4)


@given(lines, st.sampled_from([None, True, False]))
def test_a_chain_never_does_what_no_loop_may_do(plan: list[Line], idempotent: bool | None) -> None:
    clock = FakeClock()
    made: list[tuple[int, Failure | None]] = []

    def entry(place: int, line: Line) -> Entry[Any]:
        script = iter(line.script)

        def call() -> str:
            failure = next(script, None)
            made.append((place, failure))
            if failure is None:
                return "done"
            raise failure.fault()

        return Entry(provider=f"P{place}", model="m", call=call, attempts=line.attempts)

    chain = Chain(
        *(entry(place, line) for place, line in enumerate(plan)),
        clock=clock,
        policy=ChainPolicy(idempotent=idempotent),
    )
    raised: Exception | None = None
    try:
        chain.call()
    except Exception as error:
        raised = error

    places = [place for place, _ in made]
    assert places == sorted(places)
    assert all(places.count(place) <= line.attempts for place, line in enumerate(plan))
    for (_, failure), _ in pairwise(made):
        assert failure is not None
        report = describe(failure.fault(), idempotent=idempotent)
        assert report.category in (
            Category.TRANSIENT,
            Category.CAPACITY,
            Category.RESOURCE,
            *([Category.AMBIGUOUS] if idempotent else []),
        )
        assert idempotent is not False or report.certainty in ("not_sent", "rejected")
    assert len(chain.ledger.attempts) == len(made)
    assert raised is None or isinstance(raised, Fault | Parked)


def test_a_thousand_loops_side_by_side_never_make_more_calls_than_they_share() -> None:
    calls: list[int] = []
    budget = SharedBudget(Budget(attempts=500), clock=FakeClock())

    async def fails(number: int) -> None:
        calls.append(number)
        await asyncio.sleep(0)
        raise Fault(kind="provider.overloaded")

    async def loop(number: int) -> None:
        patient = Backoff(curve="fixed", first=0.0)
        try:
            await retry(budget=budget, attempts=4, backoff=patient)(fails)(number)
        except Fault:
            return

    async def everybody() -> None:
        await asyncio.gather(*(loop(number) for number in range(1000)))

    asyncio.run(everybody())

    assert len(calls) == 500
    assert budget.spent.attempts == 500
