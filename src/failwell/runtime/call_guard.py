"""Shared state of many loops: retry buckets and breakers, by provider, account and model.

Thread-safe. The state can be inspected, so that the reason for a refused call can be seen.
"""

from threading import Lock

from failwell.decision.breaker import (
    CLOSED,
    Breaker,
    BreakerPolicy,
    CallTarget,
    Scope,
    admit,
    after_failure,
    after_release,
    after_success,
    scope_of,
)
from failwell.decision.bucket import Bucket
from failwell.fault.axes import Certainty
from failwell.fault.base import Fault
from failwell.fault.facts import NotBefore
from failwell.fault.frozen import frozen
from failwell.report.record import ErrorReport
from failwell.runtime.clock import SYSTEM_CLOCK, Clock

_MOST_KEYS = 10_000


class ClosedOff(Fault, kind="provider.unavailable"):
    """No call is made there for a while, because the last calls failed."""

    scope: str
    since: str
    """The kind of failure that closed it off."""

    def summary(self) -> str:
        return f"{self.scope} is closed off after {self.since}; nothing was sent"


@frozen
class GuardState:
    """One scope's state, for showing."""

    scope: Scope
    breaker: Breaker
    tokens: float


class Guard:
    """Admits calls and retries by how earlier calls ended."""

    def __init__(
        self,
        *,
        bucket: Bucket | None = None,
        breaker: BreakerPolicy | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._bucket = bucket or Bucket()
        self._policy = breaker or BreakerPolicy()
        self._clock = clock
        self._lock = Lock()
        self._buckets: dict[Scope, Bucket] = {}
        self._breakers: dict[Scope, Breaker] = {}

    def refuses(self, target: CallTarget) -> ClosedOff | None:
        """`None` if a call may be made now, whose outcome must then be recorded; else why not."""
        now = self._clock.monotonic()
        updates: dict[Scope, Breaker] = {}
        with self._lock:
            for scope in target.scopes():
                breaker = self._breakers.get(scope)
                if breaker is None:
                    continue
                updated = admit(breaker, self._policy, now)
                if updated is None:
                    # Nothing was written yet, so no wider breaker has lost a probe to this refusal.
                    return _closed_off(scope, breaker, now)
                updates[scope] = updated
            self._breakers.update(updates)
        return None

    def closed(self, target: CallTarget) -> ClosedOff | None:
        """What `refuses` would return, without counting as a probe."""
        now = self._clock.monotonic()
        with self._lock:
            for scope in target.scopes():
                breaker = self._breakers.get(scope)
                if breaker is not None and admit(breaker, self._policy, now) is None:
                    return _closed_off(scope, breaker, now)
        return None

    def may_retry(self, target: CallTarget) -> bool:
        """Take a token for a retry; `False` if the bucket is empty."""
        key = (target.provider, target.account)
        with self._lock:
            bucket = self._buckets.get(key, self._bucket).take()
            if bucket is None:
                return False
            self._buckets[key] = bucket
            return True

    def succeeded(self, target: CallTarget) -> None:
        """Record a call that worked."""
        key = (target.provider, target.account)
        with self._lock:
            bucket = self._buckets.get(key)
            if bucket is not None:
                self._buckets[key] = bucket.give()
            for scope in target.scopes():
                breaker = self._breakers.get(scope)
                if breaker is not None:
                    self._breakers[scope] = after_success(breaker)

    def failed(self, target: CallTarget, report: ErrorReport) -> None:
        """Record a call that failed."""
        blamed_scope = scope_of(report, target)
        now = self._clock.monotonic()
        with self._lock:
            if len(self._breakers) >= _MOST_KEYS:
                self._breakers = {k: b for k, b in self._breakers.items() if b.position != "closed"}
            self._breakers[blamed_scope] = after_failure(
                self._breakers.get(blamed_scope, CLOSED), self._policy, report, now
            )
            for scope in target.scopes():
                if scope != blamed_scope and scope in self._breakers:
                    self._breakers[scope] = after_release(self._breakers[scope])

    def abandoned(self, target: CallTarget) -> None:
        """Record a call that was admitted and whose end says nothing about the service."""
        with self._lock:
            for scope in target.scopes():
                if scope in self._breakers:
                    self._breakers[scope] = after_release(self._breakers[scope])

    def states(self) -> list[GuardState]:
        """Every scope that has a state of its own, ordered by name."""
        with self._lock:
            return [
                GuardState(
                    scope=scope,
                    breaker=self._breakers.get(scope, CLOSED),
                    tokens=self._buckets.get(scope, self._bucket).tokens,
                )
                for scope in sorted({*self._buckets, *self._breakers})
            ]


def _closed_off(scope: Scope, breaker: Breaker, now: float) -> ClosedOff:
    rest = max(0.0, breaker.until - now)
    return ClosedOff(
        scope="/".join(part for part in scope if part),
        since=breaker.why,
        certainty=Certainty.NOT_SENT,
        provider=scope[0],
        model=scope[2] if len(scope) > 2 else None,
        not_before=NotBefore(after=rest, source="breaker"),
    )
