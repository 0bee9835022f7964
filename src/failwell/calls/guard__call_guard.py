"""Shared state of many loops: pauses, retry buckets and breakers, by provider, account and model.

Thread-safe, and shared between processes if there is a store. The state can be inspected, so that the reason for a
refused call can be seen.
"""

from collections.abc import Callable, Mapping
from functools import partial
from threading import RLock
from typing import TypeVar

from failwell.calls.circuit_breaker import (
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
from failwell.calls.circuit_breaker__bucket import Bucket
from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.calls.guard import GuardValues, Pause
from failwell.calls.shared_limits__sharing import LimitSharing, LimitStore
from failwell.errors.axes import Certainty
from failwell.errors.facts import NotBefore
from failwell.errors.fault import Fault
from failwell.errors.frozen import frozen
from failwell.errors.report import ErrorReport

_MOST_KEYS = 10_000
_T = TypeVar("_T")


class ClosedOff(Fault, kind="provider.unavailable"):
    """No call is made there for a while, because the last calls failed."""

    scope: str
    since: str
    """The kind of failure that closed it off."""

    def summary(self) -> str:
        return f"{self.scope} is closed off after {self.since}; nothing was sent"


class Paused(Fault, kind="provider.rate_limited"):
    """The provider requested a delay, maybe from another process, and it is not over."""

    scope: str

    def summary(self) -> str:
        return f"{self.scope} is paused because the provider requested a delay; nothing was sent"


@frozen
class GuardState:
    """One scope's state, for showing."""

    scope: Scope
    breaker: Breaker
    tokens: float
    paused: float = 0.0
    """Seconds until calls are made there again, because the provider requested a delay."""


class Guard:
    """Admits calls and retries by how earlier calls ended."""

    def __init__(
        self,
        *,
        bucket: Bucket | None = None,
        breaker: BreakerPolicy | None = None,
        store: LimitStore | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Nothing is closed yet.

        Args:
            bucket: How many retries a provider's account may take.
            breaker: When breakers open, and for how long.
            store: Shares everything with the other guards that use it, in this process and others.
            clock: Tells the time.
        """
        self._bucket = bucket or Bucket()
        self._policy = breaker or BreakerPolicy()
        self._clock = clock
        self._lock = RLock()
        self._values = GuardValues(self._bucket)
        self._sharing = None if store is None else LimitSharing(store, clock)

    # -------------------------------------------------------------- asking

    def refuses(self, target: CallTarget) -> ClosedOff | None:
        """`None` if a call may be made now, whose outcome must then be recorded; else why not."""
        if self._sharing is not None:
            self._sync(self._sharing)
        with self._lock:
            if not self._values.breakers:
                return None
            refusal, updates = self._admitted(target)
            if not updates:
                return refusal
            return self._change(partial(self._admit, target))

    def closed(self, target: CallTarget) -> ClosedOff | Paused | None:
        """Why a call would not be made now, without counting as a probe."""
        if self._sharing is not None:
            self._sync(self._sharing)
        now = self._clock.monotonic()
        with self._lock:
            for scope in target.scopes():
                breaker = self._values.breakers.get(scope)
                if breaker is not None and admit(breaker, self._policy, now) is None:
                    return _closed_off(scope, breaker, now)
        return self.paused(target)

    def paused(self, target: CallTarget) -> Paused | None:
        """The delay that the provider has requested and that is not over, or `None`."""
        if self._sharing is not None:
            self._sync(self._sharing)
        pauses = self._values.pauses
        if not pauses:
            return None
        now = self._clock.monotonic()
        longest: tuple[float, Scope] | None = None
        for scope in target.scopes():
            pause = pauses.get(scope)
            if pause is not None and pause.until > now and (longest is None or pause.until > longest[0]):
                longest = pause.until, scope
        if longest is None:
            return None
        until, scope = longest
        return Paused(
            scope=_text(scope),
            certainty=Certainty.NOT_SENT,
            provider=scope[0],
            model=scope[2] if len(scope) > 2 else None,
            not_before=NotBefore(after=until - now, source="pause of the guard"),
        )

    # -------------------------------------------------------------- recording

    def may_retry(self, target: CallTarget) -> bool:
        """Take a token for a retry; `False` if the bucket is empty."""
        with self._lock:
            return self._change(partial(self._take, (target.provider, target.account)))

    def succeeded(self, target: CallTarget) -> None:
        """Record a call that worked."""
        if self._sharing is not None:
            self._sync(self._sharing)
        with self._lock:
            values = self._values
            if not values.buckets and not values.breakers:
                return
            bucket = values.buckets.get((target.provider, target.account))
            has_changed = bucket is not None and bucket.give() is not bucket
            if has_changed or any(
                (breaker := values.breakers.get(scope)) is not None and after_success(breaker) != breaker
                for scope in target.scopes()
            ):
                self._change(partial(self._succeed, target))

    def failed(self, target: CallTarget, report: ErrorReport) -> None:
        """Record a call that failed."""
        with self._lock:
            self._change(partial(self._fail, target, report))

    def abandoned(self, target: CallTarget) -> None:
        """Record a call that was admitted and whose end says nothing about the service."""
        with self._lock:
            breakers = self._values.breakers
            if any(scope in breakers and breakers[scope].probing for scope in target.scopes()):
                self._change(partial(self._release, target))

    def states(self) -> list[GuardState]:
        """Every scope that has a state of its own, ordered by name."""
        if self._sharing is not None:
            self._sync(self._sharing)
        now = self._clock.monotonic()
        with self._lock:
            values = self._values
            paused = {scope: pause.until - now for scope, pause in values.pauses.items() if pause.until > now}
            return [
                GuardState(
                    scope=scope,
                    breaker=values.breakers.get(scope, CLOSED),
                    tokens=values.buckets.get(scope, self._bucket).tokens,
                    paused=paused.get(scope, 0.0),
                )
                for scope in sorted({*values.buckets, *values.breakers, *paused})
            ]

    # -------------------------------------------------------------- changes, under the lock

    def _admitted(self, target: CallTarget) -> tuple[ClosedOff | None, dict[Scope, Breaker]]:
        """Why a call is refused, or the breakers that letting it through changes."""
        now = self._clock.monotonic()
        updates: dict[Scope, Breaker] = {}
        for scope in target.scopes():
            breaker = self._values.breakers.get(scope)
            if breaker is None:
                continue
            updated = admit(breaker, self._policy, now)
            if updated is None:
                # Nothing was written yet, so no wider breaker has lost a probe to this refusal.
                return _closed_off(scope, breaker, now), {}
            if updated is not breaker:
                updates[scope] = updated
        return None, updates

    def _admit(self, target: CallTarget) -> ClosedOff | None:
        refusal, updates = self._admitted(target)
        self._values.breakers.update(updates)
        return refusal

    def _take(self, key: Scope) -> bool:
        bucket = self._values.buckets.get(key, self._bucket).take()
        if bucket is None:
            return False
        self._values.buckets[key] = bucket
        return True

    def _succeed(self, target: CallTarget) -> None:
        values = self._values
        key = (target.provider, target.account)
        bucket = values.buckets.get(key)
        if bucket is not None:
            values.buckets[key] = bucket.give()
        for scope in target.scopes():
            breaker = values.breakers.get(scope)
            if breaker is not None:
                values.breakers[scope] = after_success(breaker)

    def _fail(self, target: CallTarget, report: ErrorReport) -> None:
        blamed_scope = scope_of(report, target)
        now = self._clock.monotonic()
        values = self._values
        if len(values.breakers) >= _MOST_KEYS:
            values.breakers = {k: b for k, b in values.breakers.items() if b.position != "closed"}
        values.breakers[blamed_scope] = after_failure(
            values.breakers.get(blamed_scope, CLOSED), self._policy, report, now
        )
        for scope in target.scopes():
            if scope != blamed_scope and scope in values.breakers:
                values.breakers[scope] = after_release(values.breakers[scope])
        if report.kind == "provider.rate_limited" and report.not_before is not None:
            self._pause(blamed_scope, report.not_before.after, now)

    def _pause(self, scope: Scope, seconds: float, now: float) -> None:
        pauses = self._values.pauses
        until = now + min(seconds, self._policy.longest_rest)
        known = pauses.get(scope)
        if seconds > 0 and (known is None or until > known.until):
            if len(pauses) >= _MOST_KEYS:
                pauses = {key: pause for key, pause in pauses.items() if pause.until > now}
            # Another dictionary, because `paused` reads it without the lock.
            self._values.pauses = {**pauses, scope: Pause(until=until, why="provider.rate_limited")}

    def _release(self, target: CallTarget) -> None:
        breakers = self._values.breakers
        for scope in target.scopes():
            if scope in breakers:
                breakers[scope] = after_release(breakers[scope])

    # -------------------------------------------------------------- sharing

    def _sync(self, sharing: LimitSharing) -> None:
        """Take over what others have changed. Costs next to nothing if nobody has."""
        limits = sharing.changed()
        if limits is None:
            return
        with self._lock:
            if sharing.is_lost:
                # It is back, and hears what this process has closed meanwhile.
                self._change(_nothing)
            else:
                self._values.load(limits.values, limits.now, self._clock.monotonic())

    def _change(self, change: Callable[[], _T]) -> _T:
        """Change the values, in the store too if there is one. Without it they are this process's own."""
        sharing = self._sharing
        if sharing is None:
            return change()
        results: list[_T] = []

        def change_shared(now: float, shared: Mapping[str, str]) -> Mapping[str, str | None]:
            monotonic = self._clock.monotonic()
            self._values.load(shared, now, monotonic, merge=sharing.is_lost)
            results[:] = [change()]
            return self._values.changes(now, monotonic)

        sharing.change(change_shared)
        return results[0] if results else change()


def _nothing() -> None:
    return None


def _text(scope: Scope) -> str:
    return "/".join(part for part in scope if part)


def _closed_off(scope: Scope, breaker: Breaker, now: float) -> ClosedOff:
    rest = max(0.0, breaker.until - now)
    return ClosedOff(
        scope=_text(scope),
        since=breaker.why,
        certainty=Certainty.NOT_SENT,
        provider=scope[0],
        model=scope[2] if len(scope) > 2 else None,
        not_before=NotBefore(after=rest, source="breaker"),
    )
