"""Shared state of many loops: retry buckets and breakers, by provider, account and model.

Thread-safe and cheap. The state can be looked at, so nobody has to guess why a call was not made.
"""

from threading import Lock

from failwell.decision.breaker import CLOSED, Breaker, BreakerPolicy, admit, failed, scope_of, succeeded
from failwell.decision.bucket import Bucket
from failwell.fault.frozen import frozen
from failwell.report.record import ErrorReport
from failwell.runtime.clock import SYSTEM_CLOCK, Clock

Key = tuple[str, ...]
_MOST_KEYS = 10_000


@frozen
class GuardState:
    """One scope's state, for showing."""

    scope: Key
    breaker: Breaker
    tokens: float


class Guard:
    """Admits calls and grants retries; told how each ended."""

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
        self._buckets: dict[Key, Bucket] = {}
        self._breakers: dict[Key, Breaker] = {}

    def may_call(self, provider: str, model: str | None = None) -> str | None:
        """`None` if a call may be made now, else why not."""
        now = self._clock.monotonic()
        with self._lock:
            for key in _scopes(provider, model):
                breaker = self._breakers.get(key, CLOSED)
                if breaker is CLOSED:
                    continue
                admitted, after = admit(breaker, self._policy, now)
                self._breakers[key] = after
                if not admitted:
                    return f"{'/'.join(key)} is closed off for {max(0.0, breaker.until - now):.1f} s ({breaker.why})"
        return None

    def may_retry(self, provider: str) -> bool:
        """Take a token for a retry; `False` when retries have run dry."""
        with self._lock:
            after = self._buckets.get((provider,), self._bucket).take()
            if after is None:
                return False
            self._buckets[provider,] = after
            return True

    def succeeded(self, provider: str, model: str | None = None) -> None:
        """Take note of a call that worked."""
        with self._lock:
            bucket = self._buckets.get((provider,))
            if bucket is not None:
                self._buckets[provider,] = bucket.give()
            for key in _scopes(provider, model):
                if key in self._breakers:
                    self._breakers[key] = succeeded(self._breakers[key])

    def failed(self, report: ErrorReport) -> None:
        """Take note of a call that failed."""
        key = scope_of(report)
        now = self._clock.monotonic()
        with self._lock:
            if len(self._breakers) >= _MOST_KEYS:
                self._breakers = {k: b for k, b in self._breakers.items() if b.position != "closed"}
            self._breakers[key] = failed(self._breakers.get(key, CLOSED), self._policy, report, now)

    def states(self) -> list[GuardState]:
        """Every scope that has a state of its own, ordered by name."""
        with self._lock:
            keys = sorted({*self._buckets, *self._breakers})
            return [
                GuardState(
                    scope=key,
                    breaker=self._breakers.get(key, CLOSED),
                    tokens=self._buckets.get(key, self._bucket).tokens,
                )
                for key in keys
            ]


def _scopes(provider: str, model: str | None) -> tuple[Key, ...]:
    return ((provider,),) if model is None else ((provider,), (provider, model))
