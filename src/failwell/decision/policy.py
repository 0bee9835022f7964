"""Pure choice: a report and the tries so far in, a decision out.

Nothing here sleeps, reads a clock or draws a random number, so the same policy may run inside a
replayed workflow. Rules are tried in order and the first that fits speaks; after them the kind's
own default policy does.
"""

from typing import NamedTuple

from failwell.decision.backoff import Backoff
from failwell.decision.budget import Budget, Spent, over
from failwell.decision.match import Match
from failwell.decision.verdict import Ask, Decision, Evict, Fallback, GiveUp, Park, Retry
from failwell.fault.axes import Category, Repeat
from failwell.fault.frozen import frozen
from failwell.fault.registry import find_kind
from failwell.report.record import ErrorReport

IN_PROCESS_LIMIT = 60.0
"""Seconds; a longer wait is not slept but parked."""


@frozen
class Schedule:
    """How often, and with which waits."""

    max_attempts: int
    """Calls in all, the first included."""
    backoff: Backoff

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError("`max_attempts` counts the first call, so it is at least 1")


ONCE = Schedule(max_attempts=1, backoff=Backoff(curve="fixed", first=0.0))

SCHEDULES: dict[str, Schedule] = {
    "rate_limit": Schedule(max_attempts=6, backoff=Backoff(curve="exponential", first=5.0, jitter=0.2)),
    "server": Schedule(max_attempts=3, backoff=Backoff(curve="exponential", first=1.0, jitter=0.2)),
    "store": Schedule(max_attempts=3, backoff=Backoff(curve="linear", first=2.0)),
    "evict": Schedule(max_attempts=2, backoff=Backoff(curve="fixed", first=0.0)),
    "none": ONCE,
    "park": ONCE,
    "refresh_auth": ONCE,
    "reconcile": ONCE,
}
"""The named default policies; each kind names one of them."""


@frozen
class Rule:
    """What to do about the failures that `match` is about."""

    match: Match
    schedule: Schedule | None = None
    """`None` keeps the kind's own."""
    retryable: bool | None = None
    """`False` never repeats these; `True` repeats them although their category would not."""
    name: str = ""


@frozen
class Policy:
    """Ordered rules, a budget over everything, and how long a wait may be slept."""

    rules: tuple[Rule, ...] = ()
    budget: Budget = Budget()
    in_process_limit: float = IN_PROCESS_LIMIT
    name: str = "default"


class Tries(NamedTuple):
    """What the loop knows when it asks: how often it tried, what it spent, what it may do."""

    spent: Spent
    idempotent: bool | None = None
    """Whether the call may be repeated although its outcome is unknown."""
    may_fall_back: bool = False
    may_evict: bool = False
    may_park: bool = True
    may_ask: bool = False
    visible: bool = False
    """Whether somebody has already seen part of the result; then nothing is repeated."""


class Reasoned(NamedTuple):
    """A decision with the rule that it follows from, and the rules that fitted as well."""

    decision: Decision
    rule: str
    others: tuple[str, ...] = ()


def decide(policy: Policy, report: ErrorReport, tries: Tries, luck: float = 0.5) -> Decision:
    """What to do about `report`; `luck` in [0, 1) is drawn by the caller."""
    return reason(policy, report, tries, luck).decision


def reason(policy: Policy, report: ErrorReport, tries: Tries, luck: float = 0.5) -> Reasoned:
    """`decide`, with the rule that spoke and those that would have spoken next."""
    fitting = [rule for rule in policy.rules if rule.match.fits(report)]
    rule = fitting[0] if fitting else None
    others = tuple(_named(one) for one in fitting[1:])
    default = _default(report)
    name = _named(rule) if rule is not None else f"default `{default}`"
    schedule = (rule.schedule if rule is not None else None) or SCHEDULES[default]
    allowed = None if rule is None else rule.retryable
    decision = _choose(policy, report, tries, schedule, allowed, luck)
    return Reasoned(decision, name, others)


def _choose(
    policy: Policy, report: ErrorReport, tries: Tries, schedule: Schedule, allowed: bool | None, luck: float
) -> Decision:
    if report.category is Category.CANCELLED:
        return GiveUp(why="it was cancelled")
    if tries.visible:
        return GiveUp(why="part of the result has already been seen")
    barred = _barred(report, tries, allowed)
    if barred is not None:
        return _elsewhere(tries, barred, report)
    if report.category is Category.RESOURCE:
        return _free(report, tries, schedule)
    if tries.spent.attempts >= schedule.max_attempts:
        return _elsewhere(tries, GiveUp(why=f"all {schedule.max_attempts} attempts are spent"), report)
    return _wait(policy, report, tries, schedule.backoff.wait(tries.spent.attempts, luck))


def _barred(report: ErrorReport, tries: Tries, allowed: bool | None) -> Decision | None:
    """Why the same call may not be made again, if it may not."""
    if allowed is False:
        return GiveUp(why="the policy does not repeat it")
    if report.category is Category.AMBIGUOUS and not tries.idempotent and allowed is not True:
        if tries.may_ask:
            return Ask(question="was the work done?", why="the outcome is unknown")
        return GiveUp(why="the outcome is unknown, and a repeat might do the work twice")
    if report.category.repeat is Repeat.AFTER_FREEING or allowed is True:
        return None
    if report.category is Category.AMBIGUOUS:
        return None
    if report.category is Category.CAPACITY and report.not_before is not None and tries.may_park:
        return Park(after=report.not_before.after, why="the quota renews then")
    if not report.retryable:
        return GiveUp(why=f"a {report.category} failure does not go away by itself")
    return None


def _elsewhere(tries: Tries, otherwise: Decision, report: ErrorReport) -> Decision:
    if tries.may_fall_back and isinstance(otherwise, GiveUp) and falls_through(report):
        return Fallback(why=otherwise.why)
    return otherwise


def falls_through(report: ErrorReport) -> bool:
    """Whether another provider may succeed where this one failed: only where the call was sound."""
    return report.retryable or report.category in (Category.RESOURCE, Category.CAPACITY)


def _free(report: ErrorReport, tries: Tries, schedule: Schedule) -> Decision:
    if not tries.may_evict:
        return _elsewhere(tries, GiveUp(why="nothing here can free the resource"), report)
    if tries.spent.attempts >= schedule.max_attempts:
        return _elsewhere(tries, GiveUp(why=f"all {schedule.max_attempts} attempts are spent"), report)
    short = report.resource_shortfall
    return Evict(resource=short.resource if short is not None else report.kind, why="it is used up")


def _wait(policy: Policy, report: ErrorReport, tries: Tries, backoff: float) -> Decision:
    told = report.not_before
    # What the provider says is kept exactly: no jitter, not a moment less.
    wait = backoff if told is None else told.after
    spent = over(policy.budget, tries.spent, wait=wait)
    if spent is not None:
        return _elsewhere(tries, GiveUp(why=spent), report)
    if told is not None and wait > policy.in_process_limit:
        if tries.may_fall_back:
            return Fallback(why=f"the wait of {wait:.0f} s is longer than may be slept")
        return Park(after=wait, why=f"as {told.source} says")
    return Retry(after=wait, why=f"as {told.source} says" if told is not None else "after a back-off")


def _default(report: ErrorReport) -> str:
    known = find_kind(report.kind)
    if known is not None:
        return known.policy if known.policy in SCHEDULES else "none"
    return "server" if report.retryable else "none"


def _named(rule: Rule) -> str:
    return rule.name or str(rule.match)
