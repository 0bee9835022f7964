"""Circuit breakers: after enough failures no call is made for a while, then a probe is.

A breaker is scoped by blame: a missing model closes that model off, an exhausted quota the
account. The state is a value, and the time is passed in.

A retry budget that successes refill: when a provider is down, retries stop instead of piling up.
"""

from dataclasses import replace
from typing import Literal, NamedTuple

from failwell.calls.argument_checks import check_count, check_number
from failwell.errors.axes import Blame, Category
from failwell.errors.frozen import frozen
from failwell.errors.report import ErrorReport

Position = Literal["closed", "open", "half_open"]
Scope = tuple[str, ...]
"""What a breaker covers: a provider, one account there, or one model of that account."""

LONGEST_REST = 3600.0
"""Seconds for which nobody calls, at most, because a provider requested a delay. A probe then finds out."""


class CallTarget(NamedTuple):
    """The target of a call, as far as the caller knows it."""

    provider: str
    account: str = ""
    model: str | None = None

    def scopes(self) -> tuple[Scope, ...]:
        """The breakers that this call passes, the widest first."""
        scopes = ((self.provider,), (self.provider, self.account))
        return scopes if self.model is None else (*scopes, (self.provider, self.account, self.model))


@frozen
class BreakerPolicy:
    """When a breaker opens and for how long."""

    failures: int = 5
    """Failures in a row that open it."""
    rest: float = 30.0
    """Seconds it stays open when the provider named no time."""
    longest_rest: float = LONGEST_REST
    """Seconds that it stays open at most, whatever delay a provider requests; never less than `rest`."""
    probes: int = 1
    """Calls let through at once to find out whether it works again."""

    def __post_init__(self) -> None:
        check_count("failures", self.failures)
        check_number("rest", self.rest)
        check_number("longest_rest", self.longest_rest)
        check_count("probes", self.probes)


@frozen
class Breaker:
    """One breaker's state."""

    position: Position = "closed"
    failures: int = 0
    until: float = 0.0
    """Monotonic time at which an open breaker lets a probe through, and a half-open one stops waiting
    for its probe: a call that was abandoned never reports."""
    probing: int = 0
    why: str = ""


CLOSED = Breaker()


def admit(breaker: Breaker, policy: BreakerPolicy, now: float) -> Breaker | None:
    """The breaker after a call was admitted, or `None` if the call is refused."""
    if breaker.position == "closed":
        return breaker
    if now >= breaker.until:
        return replace(breaker, position="half_open", probing=1, until=now + policy.rest)
    if breaker.position == "half_open" and breaker.probing < policy.probes:
        return replace(breaker, probing=breaker.probing + 1)
    return None


def after_success(breaker: Breaker) -> Breaker:
    """The breaker after a call that worked."""
    # A late answer to a call from before it opened says nothing about now.
    return breaker if breaker.position == "open" else CLOSED


def after_failure(breaker: Breaker, policy: BreakerPolicy, report: ErrorReport, now: float) -> Breaker:
    """The breaker after a call that failed with `report`."""
    if not counts(report):
        return after_release(breaker)
    failures = breaker.failures + 1
    at_once = report.category is Category.CAPACITY
    if breaker.position != "closed" or at_once or failures >= policy.failures:
        requested = 0.0 if report.not_before is None else report.not_before.after
        rest = max(policy.rest, min(requested, policy.longest_rest))
        until = max(now + rest, breaker.until if breaker.position == "open" else 0.0)
        return Breaker(position="open", failures=failures, until=until, why=report.kind)
    return Breaker(failures=failures, why=report.kind)


def after_release(breaker: Breaker) -> Breaker:
    """The breaker after a call that says nothing about the service: another probe may be made."""
    return replace(breaker, probing=breaker.probing - 1) if breaker.probing else breaker


def counts(report: ErrorReport) -> bool:
    """Whether a failure counts against the service when a breaker decides."""
    return report.category in _AGAINST or report.kind == "provider.model_not_found"


_AGAINST = (Category.TRANSIENT, Category.CAPACITY, Category.AMBIGUOUS)


def scope_of(report: ErrorReport, target: CallTarget) -> Scope:
    """Which breaker a failure belongs to: as far as the blame reaches."""
    if report.blame in (Blame.MODEL, Blame.DEPLOYMENT):
        model = target.model or report.model
        return (
            (target.provider, target.account) if model is None else (target.provider, target.account, model)
        )
    return (target.provider, target.account) if report.blame is Blame.ACCOUNT else (target.provider,)


@frozen
class Bucket:
    """How many retries may still be made. A value: taking and giving back make a new one."""

    tokens: float = 10.0
    most: float = 10.0
    earned: float = 0.1
    """Tokens that one success gives back."""

    def __post_init__(self) -> None:
        check_number("most", self.most)
        check_number("tokens", self.tokens, most=self.most)
        check_number("earned", self.earned)

    def take(self) -> "Bucket | None":
        """The bucket after one retry, or `None` if it is empty."""
        if self.tokens < 1:
            return None
        return Bucket(tokens=self.tokens - 1, most=self.most, earned=self.earned)

    def give(self) -> "Bucket":
        """The bucket after one success."""
        if self.tokens >= self.most:
            return self
        return Bucket(tokens=min(self.most, self.tokens + self.earned), most=self.most, earned=self.earned)
