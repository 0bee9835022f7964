"""Breakers: after enough failures nobody calls for a while, then one probe finds out.

A breaker is scoped by blame: a missing model closes off that model, a used-up quota the account.
The state is a value, and the time comes in as an argument.
"""

from typing import Literal

from failwell.fault.axes import Blame, Category
from failwell.fault.frozen import frozen
from failwell.report.record import ErrorReport

Position = Literal["closed", "open", "half_open"]


@frozen
class BreakerPolicy:
    """When a breaker opens and for how long."""

    failures: int = 5
    """Failures in a row that open it."""
    rest: float = 30.0
    """Seconds it stays open when the provider named no time."""
    probes: int = 1
    """Calls let through at once to find out whether it works again."""


@frozen
class Breaker:
    """One breaker's state."""

    position: Position = "closed"
    failures: int = 0
    until: float = 0.0
    """Monotonic time at which an open breaker lets a probe through."""
    probing: int = 0
    why: str = ""


def admit(breaker: Breaker, policy: BreakerPolicy, now: float) -> tuple[bool, Breaker]:
    """Whether a call may be made now, and the breaker afterwards."""
    if breaker.position == "closed":
        return True, breaker
    if breaker.position == "open":
        if now < breaker.until:
            return False, breaker
        return True, Breaker(position="half_open", failures=breaker.failures, probing=1, why=breaker.why)
    if breaker.probing < policy.probes:
        return True, Breaker(
            position="half_open", failures=breaker.failures, probing=breaker.probing + 1, why=breaker.why
        )
    return False, breaker


def succeeded(breaker: Breaker) -> Breaker:
    """The breaker after a call that worked."""
    return breaker if breaker == CLOSED else CLOSED


def failed(breaker: Breaker, policy: BreakerPolicy, report: ErrorReport, now: float) -> Breaker:
    """The breaker after a call that failed with `report`."""
    if not counts(report):
        # Somebody else's mistake says nothing about the service; a probe's place is given back.
        probing = max(0, breaker.probing - 1)
        return Breaker(
            position=breaker.position,
            failures=breaker.failures,
            until=breaker.until,
            probing=probing,
            why=breaker.why,
        )
    failures = breaker.failures + 1
    at_once = report.category is Category.CAPACITY
    if breaker.position == "half_open" or at_once or failures >= policy.failures:
        rest = policy.rest if report.not_before is None else max(policy.rest, report.not_before.after)
        return Breaker(position="open", failures=failures, until=now + rest, why=report.kind)
    return Breaker(position="closed", failures=failures, why=report.kind)


def counts(report: ErrorReport) -> bool:
    """Whether a failure speaks against whoever was called."""
    return report.category in (Category.TRANSIENT, Category.CAPACITY, Category.AMBIGUOUS)


def scope_of(report: ErrorReport) -> tuple[str, ...]:
    """Which breaker a failure belongs to: the provider, and as much more as the blame says."""
    provider = report.provider or "?"
    if report.blame in (Blame.MODEL, Blame.DEPLOYMENT):
        return (provider, report.model or "?")
    return (provider,)


CLOSED = Breaker()
