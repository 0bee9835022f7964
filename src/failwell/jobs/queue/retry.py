"""What follows from a failed attempt. Pure: a report and a few facts go in, a step comes out."""

from dataclasses import replace
from typing import NamedTuple

from failwell.decision.backoff import Backoff
from failwell.decision.match import Match
from failwell.decision.policy import Policy, Rule, Schedule, Tries, decide
from failwell.decision.verdict import Evict, Park, Retry
from failwell.fault.axes import Category
from failwell.report.record import ErrorReport

_BACKOFF = Backoff(curve="exponential", first=1.0, jitter=0.2)
MOST_UNCHARGED = 20
"""Attempts that may be lost to others (a neighbour's forced end) before a job is given up after all."""

DEFAULT = Policy(
    name="jobs",
    rules=(
        Rule(
            match=Match.of("worker.timeout"),
            retryable=False,
            name="a job that took too long would take as long again",
        ),
    ),
)


class RetryStep(NamedTuple):
    """Another attempt, `after` seconds from now."""

    after: float
    is_charged: bool
    why: str
    frees: bool = False
    """Whether something must be freed first."""
    is_parked: bool = False


class EndStep(NamedTuple):
    """No further attempt."""

    was_cancelled: bool
    why: str


class Facts(NamedTuple):
    """What a decision needs to know beside the report."""

    attempt: int
    charged: int
    most: int | None = None
    """Attempts in all that the job itself allows; `None` leaves it to the policy."""
    was_cancelled: bool = False
    left: float | None = None
    """Seconds until its deadline."""
    idempotent: bool | None = None


def next_step(policy: Policy, report: ErrorReport, facts: Facts, jitter: float) -> RetryStep | EndStep:
    """What to do about `report`."""
    if facts.was_cancelled or report.category is Category.CANCELLED:
        return EndStep(was_cancelled=True, why="it was cancelled")
    innocent = report.details.get("reason")
    if innocent in ("replaced", "stopped", "quarantined") and facts.attempt - facts.charged < MOST_UNCHARGED:
        # Somebody else's end; the job is not to blame, and loses nothing by it.
        wait = 0.0 if report.not_before is None else report.not_before.after
        return _in_time(RetryStep(wait, is_charged=False, why=f"its worker was {innocent}"), facts)
    effective = policy if facts.most is None else _limited(policy, facts.most)
    decision = decide(
        effective,
        report,
        Tries(attempts=facts.charged, idempotent=facts.idempotent, may_evict=True, may_park=True),
        jitter,
    )
    if isinstance(decision, Retry):
        return _in_time(RetryStep(decision.after, is_charged=True, why=decision.why), facts)
    if isinstance(decision, Park):
        return _in_time(RetryStep(decision.after, is_charged=False, why=decision.why, is_parked=True), facts)
    if isinstance(decision, Evict):
        return _in_time(RetryStep(0.0, is_charged=True, why=decision.why, frees=True), facts)
    return EndStep(was_cancelled=False, why=decision.why)


def _in_time(step: RetryStep, facts: Facts) -> RetryStep | EndStep:
    if facts.left is not None and step.after >= facts.left:
        return EndStep(was_cancelled=False, why="the next attempt would come after its deadline")
    return step


def _limited(policy: Policy, most: int) -> Policy:
    """The policy with the job's own number of attempts; what it never repeats it does not repeat now either."""
    if most <= 1:
        rules: tuple[Rule, ...] = (Rule(match=Match(), retryable=False, name="the job is tried once"),)
    else:
        rules = (
            *(
                rule if rule.retryable is False else replace(rule, schedule=_times(most, rule.schedule))
                for rule in policy.rules
            ),
            Rule(match=Match(), schedule=_times(most, None), name="the job's own"),
        )
    return replace(policy, rules=rules)


def _times(most: int, schedule: Schedule | None) -> Schedule:
    return Schedule(max_attempts=most, backoff=_BACKOFF if schedule is None else schedule.backoff)
