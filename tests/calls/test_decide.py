"""What to do about a failure: the same question always has the same answer."""

import pytest

from failwell.calls.backoff import Backoff
from failwell.calls.budget import Budget, Spent
from failwell.calls.policy import (
    SCHEDULES,
    AskPerson,
    Decision,
    Evict,
    Fallback,
    GiveUp,
    Match,
    Park,
    Policy,
    PredicateFailed,
    Preemption,
    Retry,
    RetryState,
    Rule,
    Schedule,
    decide,
    decision_text,
    exhausted_inside,
    reason,
)
from failwell.errors.axes import Blame, Category, Certainty
from failwell.errors.facts import NotBefore, ProviderMetadata, ResourceShortfall
from failwell.errors.kind_registry import kinds
from failwell.errors.report import Attempt, ErrorReport
from failwell.testing.builders import make_report
from tests.specimens import each


def after(attempts: int = 1, **able: bool) -> RetryState:
    return RetryState(attempts, **able)  # pyright: ignore[reportArgumentType]


def told(seconds: float) -> NotBefore:
    return NotBefore(after=seconds, source="retry-after")


def test_every_kind_has_a_default_that_exists() -> None:
    assert [kind.name for kind in kinds() if kind.policy not in SCHEDULES] == []


@each("kind", [kind.name for kind in kinds()])
def test_without_hooks_only_what_may_be_repeated_is_repeated(kind: str) -> None:
    report = make_report(kind=kind)

    decision = decide(Policy(), report, after())

    repeats = report.category is Category.TRANSIENT and SCHEDULES["none"] is not _schedule(report)
    assert isinstance(decision, Retry) == repeats


def _schedule(report: ErrorReport) -> Schedule:
    return SCHEDULES[next(kind.policy for kind in kinds() if kind.name == report.kind)]


def test_a_kind_of_somebody_elses_is_repeated_as_its_category_says() -> None:
    foreign = make_report(kind="provider.unavailable")

    decision = decide(Policy(), foreign, after(3))

    assert decision == GiveUp(why="all 3 attempts are spent", exhausted=True)


def test_the_first_rule_that_fits_speaks_and_the_others_are_named() -> None:
    fast = Schedule(max_attempts=2, backoff=Backoff(curve="fixed", first=0.5))
    policy = Policy(
        rules=(
            Rule(match=Match.of("tool."), name="tools"),
            Rule(match=Match.of("provider.rate_limited"), schedule=fast, name="limits"),
            Rule(match=Match.of("provider."), retryable=False),
        )
    )

    reasoned = reason(policy, make_report(), after())

    assert reasoned.decision == Retry(after=0.5, why="after a back-off")
    assert reasoned.rule == "limits"
    assert reasoned.others == ("provider.*", "default `rate_limit`")


def test_a_rule_may_forbid_what_the_category_allows() -> None:
    policy = Policy(rules=(Rule(match=Match(), retryable=False),))

    assert decide(policy, make_report(), after()) == GiveUp(why="the policy does not repeat it")


def test_a_rule_may_allow_what_the_category_does_not() -> None:
    stubborn = Rule(match=Match.of("internal.bug"), retryable=True, schedule=SCHEDULES["server"])

    decision = decide(Policy(rules=(stubborn,)), make_report(kind="internal.bug"), after())

    assert isinstance(decision, Retry)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [("cancel.turn", {}), ("provider.outcome_unknown", {}), ("provider.stream_interrupted", {})],
)
def test_no_rule_allows_what_is_never_safe(kind: str, changes: dict[str, object]) -> None:
    stubborn = Rule(match=Match(), retryable=True, schedule=SCHEDULES["rate_limit"])

    decision = decide(Policy(rules=(stubborn,)), make_report(kind=kind, **changes), after())

    assert isinstance(decision, GiveUp)


def test_what_somebody_has_seen_is_not_repeated_whatever_it_is() -> None:
    decision = decide(Policy(), make_report(), after(visible=True, may_fall_back=True))

    assert isinstance(decision, GiveUp)


def test_cancelled_work_is_given_up_whatever_failed() -> None:
    crashed, stopped = make_report(kind="worker.crashed"), make_report(kind="cancel.job")

    assert decide(Policy(), crashed, RetryState(1, cancelled=True)) == GiveUp(
        why="it was cancelled", cancelled=True
    )
    assert decide(Policy(), stopped, RetryState(1)) == GiveUp(why="it was cancelled", cancelled=True)


def test_an_attempt_lost_through_no_fault_of_the_work_is_repeated_and_not_charged() -> None:
    never = Policy(rules=(Rule(match=Match(), retryable=False),))
    lost = Preemption("its worker was replaced")

    for kind in ("worker.crashed", "cancel.job"):
        decision = decide(never, make_report(kind=kind), RetryState(1, lost=lost))
        assert decision == Retry(after=0.0, why="its worker was replaced", charged=False)
    waiting = make_report(kind="worker.crashed", not_before=told(30.0))
    assert decide(never, waiting, RetryState(1, lost=lost, elapsed=10.0)) == Retry(
        after=20.0, why=lost.why, charged=False
    )


def test_a_lost_attempt_is_not_repeated_for_ever_nor_after_a_cancel_a_result_or_a_deadline() -> None:
    never = Policy(rules=(Rule(match=Match(), retryable=False),))
    report = make_report(kind="worker.crashed")
    lost, spent = Preemption("its worker was replaced"), Preemption("its worker was replaced", before=20)
    late = ((Budget(seconds=1.0), Spent(seconds=1.1)),)

    for tries in (
        RetryState(1, lost=spent),
        RetryState(1, lost=lost, cancelled=True),
        RetryState(1, lost=lost, visible=True),
        RetryState(1, lost=lost, budgets=late),
    ):
        assert isinstance(decide(never, report, tries), GiveUp)


def test_work_may_allow_itself_another_number_of_attempts() -> None:
    report = make_report(kind="worker.crashed")
    once = Rule(match=Match(), schedule=Schedule(max_attempts=1, backoff=Backoff(curve="fixed", first=7.0)))

    assert decide(Policy(), report, RetryState(4, max_attempts=5)) == Retry(after=8.0, why="after a back-off")
    assert decide(Policy(), report, RetryState(5, max_attempts=5)) == GiveUp(
        why="all 5 attempts are spent", exhausted=True
    )
    assert decide(Policy(), report, RetryState(1, max_attempts=1)) == GiveUp(why="it is tried once only")
    assert decide(Policy(rules=(once,)), report, RetryState(2, max_attempts=3)) == Retry(
        after=7.0, why="after a back-off"
    )


def test_a_veto_of_whoever_raised_it_is_kept() -> None:
    assert decide(Policy(), make_report(retryable=False), after()) == GiveUp(
        why="its exception forbids a repeat"
    )


@pytest.mark.parametrize(
    ("seconds", "able", "expected"),
    [
        (60.0, {}, Retry),
        (60.5, {}, Park),
        (60.5, {"may_park": False}, GiveUp),
        (60.5, {"may_fall_back": True}, Fallback),
    ],
)
def test_a_told_wait_beyond_a_minute_is_not_slept(
    seconds: float, able: dict[str, bool], expected: type[Decision]
) -> None:
    decision = decide(Policy(), make_report(not_before=told(seconds)), after(**able))

    assert isinstance(decision, expected)


def test_a_long_back_off_that_nobody_told_is_slept() -> None:
    decision = decide(Policy(), make_report(), after(5), jitter=0.5)

    assert decision == Retry(after=80.0, why="after a back-off")


def test_a_used_up_quota_is_parked_until_it_renews_or_left_to_another_entry() -> None:
    renews = make_report(kind="provider.quota_exhausted", not_before=told(10))

    assert decide(Policy(), renews, after()) == Park(after=10, why="the quota renews then")
    assert isinstance(decide(Policy(), renews, after(may_fall_back=True)), Fallback)
    assert isinstance(decide(Policy(), make_report(kind="provider.quota_exhausted"), after()), GiveUp)


def test_a_resource_is_freed_if_somebody_can() -> None:
    short = make_report(
        kind="resource.gpu_memory", resource_shortfall=ResourceShortfall("gpu_vram_mb", 8000, 100)
    )

    assert decide(Policy(), short, after(may_evict=True)) == Evict(
        resource="gpu_vram_mb", why="it is used up"
    )
    assert isinstance(decide(Policy(), short, after()), GiveUp)
    assert isinstance(decide(Policy(), short, after(2, may_evict=True)), GiveUp)


def test_an_unknown_outcome_is_asked_about_as_often_as_the_schedule_allows() -> None:
    lost = make_report(kind="provider.outcome_unknown")

    asked = decide(Policy(), lost, after(may_ask=True))

    assert isinstance(asked, AskPerson)
    assert asked.after == 1.0
    assert isinstance(decide(Policy(), lost, after(3, may_ask=True)), GiveUp)


@pytest.mark.parametrize(
    ("budget", "spent", "said"),
    [
        (Budget(attempts=4), Spent(attempts=4), "all 4 attempts are spent"),
        (Budget(seconds=10), Spent(seconds=8), "waiting 5.0 s would pass the deadline of 10 s"),
        (Budget(usd=0.5), Spent(cost=50_000_000), "the budget of $0.5 is spent"),
    ],
)
def test_every_budget_around_a_call_can_stop_it(budget: Budget, spent: Spent, said: str) -> None:
    tries = RetryState(1, ((Budget(), Spent()), (budget, spent)))

    assert decide(Policy(), make_report(), tries) == GiveUp(why=said, exhausted=True)


def test_a_spent_budget_leaves_nothing_for_another_entry() -> None:
    spent = ((Budget(attempts=1), Spent(attempts=1)),)

    assert isinstance(decide(Policy(), make_report(), RetryState(1, spent, may_fall_back=True)), GiveUp)


def test_a_wait_that_is_too_long_still_leaves_another_entry() -> None:
    hurried = ((Budget(seconds=3), Spent(seconds=0)),)

    assert isinstance(decide(Policy(), make_report(), RetryState(1, hurried, may_fall_back=True)), Fallback)


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        (Match(), True),
        (Match.of("provider.rate_limited"), True),
        (Match.of("provider."), True),
        (Match.of("tool."), False),
        (Match.of(category="transient"), True),
        (Match.of(category=Category.FATAL), False),
        (Match.of(certainty=Certainty.REJECTED), True),
        (Match.of(blame=Blame.MODEL), False),
        (Match.of(status=429), True),
        (Match.of(status=500), False),
        (Match.of("provider.", status=500), False),
        (Match.of(when=lambda report: report.retryable), True),
    ],
    ids=str,
)
def test_a_match_holds_if_everything_it_says_holds(match: Match, fits: bool) -> None:
    report = make_report(provider_metadata=ProviderMetadata(status_code=429))

    assert match.fits(report) is fits


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [
        (Backoff(curve="fixed", first=2), [2, 2, 2, 2]),
        (Backoff(curve="linear", first=2), [2, 4, 6, 8]),
        (Backoff(first=5), [5, 10, 20, 40]),
        (Backoff(first=5, longest=12), [5, 10, 12, 12]),
    ],
    ids=["fixed", "linear", "exponential", "capped"],
)
def test_waits_grow_as_their_curve_says(backoff: Backoff, waits: list[float]) -> None:
    assert [backoff.wait(step) for step in (1, 2, 3, 4)] == waits


def test_a_wait_far_down_the_curve_does_not_overflow() -> None:
    assert Backoff(first=1, longest=300).wait(100_000) == 300


@pytest.mark.parametrize(
    "wrong", [{"first": -1}, {"longest": -1}, {"jitter": 1.5}, {"curve": "wavy"}, {"first": float("nan")}]
)
def test_a_back_off_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="`"):
        Backoff(**wrong)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (Retry(after=0, why="at last"), "retrying at once, at last"),
        (Retry(after=1.25, why="after a back-off"), "retrying in 1.2 s, after a back-off"),
        (Fallback(why="it is full"), "falling back, it is full"),
        (Evict(resource="disk_mb", why="it is used up"), "freeing disk_mb, it is used up"),
        (Park(after=90, why="as told"), "parked for 90 s, as told"),
        (AskPerson(question="was it done?", why="it is unknown"), "asking: was it done? it is unknown"),
        (GiveUp(why="enough"), "giving up, enough"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_decision_can_be_said(decision: Decision, said: str) -> None:
    assert decision_text(decision) == said


def broken(report: ErrorReport) -> bool:
    raise KeyError(report.kind)


def test_a_predicate_that_raises_is_an_error_and_not_a_mismatch() -> None:
    policy = Policy(rules=(Rule(match=Match.of("tool.")), Rule(match=Match.of(when=broken), name="mine")))

    for choose in (decide, reason):
        with pytest.raises(
            PredicateFailed, match="cannot be applied: the predicate of rule `mine` raised KeyError"
        ) as failed:
            choose(policy, make_report(), after())
        assert isinstance(failed.value.__cause__, KeyError)


def test_what_a_loop_inside_has_exhausted_is_repeated_only_if_the_policy_says_so() -> None:
    row = Attempt(number=3, kind="provider.rate_limited", layer="ask", exhausted=True)
    report = make_report(attempts=(row,))
    tries = RetryState(1, exhausted=exhausted_inside(report))

    assert decide(Policy(), report, tries) == GiveUp(why="`ask` has already tried it 3 times", exhausted=True)
    assert decide(Policy(), report, tries._replace(may_fall_back=True)) == Fallback(
        why="`ask` has already tried it 3 times"
    )
    assert isinstance(decide(Policy(repeat_exhausted=True), report, tries), Retry)
    assert exhausted_inside(make_report(attempts=(Attempt(number=3),))) is None
