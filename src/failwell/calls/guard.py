"""Shared state of many loops: pauses, retry buckets and breakers, by provider, account and model.

A store holds it as values. Times in a store are those of the store. They are translated into the monotonic time of this process when a value is first
read, so that a step of the clock afterwards changes nothing. A rest is never longer than it was when it was written.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from json import dumps, loads
from threading import RLock
from typing import Any, TypeVar, cast

from failwell.calls.circuit_breaker import (
    CLOSED,
    Breaker,
    BreakerPolicy,
    Bucket,
    CallTarget,
    Scope,
    admit,
    after_failure,
    after_release,
    after_success,
    scope_of,
)
from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.calls.shared_limits import LimitSharing, LimitStore
from failwell.errors.axes import Certainty
from failwell.errors.facts import NotBefore
from failwell.errors.fault import Fault
from failwell.errors.frozen import frozen
from failwell.errors.report import ErrorReport

_POSITIONS = ("closed", "open", "half_open")


@frozen
class Pause:
    """A delay that a provider requested: nobody calls there until it is over."""

    until: float
    """Monotonic time."""
    why: str = ""


class GuardValues:
    """Pauses, breakers and buckets by scope: the state of a guard, and what a store last had of it."""

    def __init__(self, bucket: Bucket) -> None:
        self.pauses: dict[Scope, Pause] = {}
        self.breakers: dict[Scope, Breaker] = {}
        self.buckets: dict[Scope, Bucket] = {}
        self._bucket = bucket
        self._texts: dict[str, tuple[str, Any]] = {}
        """Name → the text that a store has, and the value that was read from it."""

    def load(self, values: Mapping[str, str], now: float, monotonic: float, *, merge: bool = False) -> None:
        """Take over what a store has at its time `now`.

        With `merge`, what this process has closed while the store was lost stays closed.
        """
        pauses: dict[Scope, Pause] = {}
        breakers: dict[Scope, Breaker] = {}
        buckets: dict[Scope, Bucket] = {}
        texts: dict[str, tuple[str, Any]] = {}
        tables: dict[str, dict[Scope, Any]] = {"pause": pauses, "breaker": breakers, "bucket": buckets}
        for name, text in values.items():
            kind, scope = _parse_name(name)
            table = tables.get(kind)
            if table is None:
                continue
            known = self._texts.get(name)
            value = (
                known[1] if known is not None and known[0] == text else self._read(kind, text, now, monotonic)
            )
            if value is not None:
                table[scope] = value
                texts[name] = (text, value)
        if merge:
            self._merge(pauses, breakers, buckets, monotonic)
        self.pauses, self.breakers, self.buckets = pauses, breakers, buckets
        self._texts = texts

    def changes(self, now: float, monotonic: float) -> dict[str, str | None]:
        """The values that differ from what a store last had; the store then has them."""
        current = {
            **{
                _name("pause", scope): pause
                for scope, pause in self.pauses.items()
                if pause.until > monotonic
            },
            **{_name("breaker", scope): value for scope, value in self.breakers.items() if value != CLOSED},
            **{
                _name("bucket", scope): value
                for scope, value in self.buckets.items()
                if value.tokens < value.most
            },
        }
        written: dict[str, str | None] = {name: None for name in self._texts if name not in current}
        for name, value in current.items():
            known = self._texts.get(name)
            if known is None or known[1] != value:
                written[name] = _text(value, now, monotonic)
        self._texts = {
            name: (known[0], known[1]) for name, known in self._texts.items() if name in current
        } | {name: (text, current[name]) for name, text in written.items() if text is not None}
        return written

    def _merge(
        self,
        pauses: dict[Scope, Pause],
        breakers: dict[Scope, Breaker],
        buckets: dict[Scope, Bucket],
        monotonic: float,
    ) -> None:
        for scope, pause in self.pauses.items():
            if pause.until > max(monotonic, pauses[scope].until if scope in pauses else monotonic):
                pauses[scope] = pause
        for scope, breaker in self.breakers.items():
            other = breakers.get(scope, CLOSED)
            if breaker.position == "open" and breaker.until > max(monotonic, other.until):
                breakers[scope] = breaker
        for scope, bucket in self.buckets.items():
            if bucket.tokens < buckets.get(scope, self._bucket).tokens:
                buckets[scope] = bucket

    def _read(self, kind: str, text: str, now: float, monotonic: float) -> Any:
        """A value of this process, or `None` if the text is not one that this version writes."""
        try:
            fields: dict[str, Any] = loads(text)
            return _READERS[kind](fields, _local_time(fields, now, monotonic), self._bucket)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


def _name(kind: str, scope: Scope) -> str:
    return dumps([kind, *scope])


def _parse_name(name: str) -> tuple[str, Scope]:
    try:
        parts: object = loads(name)
    except ValueError:
        return "", ()
    if (
        not isinstance(parts, list)
        or not parts
        or not all(isinstance(part, str) for part in cast("list[Any]", parts))
    ):
        return "", ()
    kind, *scope = cast("list[str]", parts)
    return kind, tuple(scope)


def _local_time(fields: Mapping[str, Any], now: float, monotonic: float) -> float:
    """When a value ends, in the monotonic time of this process."""
    until, written = float(fields.get("until", 0.0)), float(fields.get("written", 0.0))
    return monotonic + min(max(0.0, until - now), max(0.0, until - written))


def _text(value: Any, now: float, monotonic: float) -> str:
    if isinstance(value, Bucket):
        return dumps({"tokens": value.tokens})
    fields: dict[str, Any] = {
        "until": now + max(0.0, value.until - monotonic),
        "written": now,
        "why": value.why,
    }
    if isinstance(value, Breaker):
        fields |= {"position": value.position, "failures": value.failures, "probing": value.probing}
    return dumps(fields)


def _pause(fields: Mapping[str, Any], until: float, _bucket: Bucket) -> Pause:
    return Pause(until=until, why=str(fields["why"]))


def _breaker(fields: Mapping[str, Any], until: float, _bucket: Bucket) -> Breaker:
    position = fields["position"]
    if position not in _POSITIONS:
        raise ValueError
    return Breaker(
        position=position,
        failures=int(fields["failures"]),
        until=until if position != "closed" else 0.0,
        probing=int(fields["probing"]),
        why=str(fields["why"]),
    )


def _bucket_of(fields: Mapping[str, Any], _until: float, bucket: Bucket) -> Bucket:
    return replace(bucket, tokens=min(bucket.most, max(0.0, float(fields["tokens"]))))


_READERS: dict[str, Callable[[Mapping[str, Any], float, Bucket], Any]] = {
    "pause": _pause,
    "breaker": _breaker,
    "bucket": _bucket_of,
}


_MOST_KEYS = 10_000
_T = TypeVar("_T")


class CircuitOpen(Fault, kind="provider.unavailable"):
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

    def refuses(self, target: CallTarget) -> CircuitOpen | None:
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

    def closed(self, target: CallTarget) -> CircuitOpen | Paused | None:
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
            scope=_text_call_guard(scope),
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

    def _admitted(self, target: CallTarget) -> tuple[CircuitOpen | None, dict[Scope, Breaker]]:
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

    def _admit(self, target: CallTarget) -> CircuitOpen | None:
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


def _text_call_guard(scope: Scope) -> str:
    return "/".join(part for part in scope if part)


def _closed_off(scope: Scope, breaker: Breaker, now: float) -> CircuitOpen:
    rest = max(0.0, breaker.until - now)
    return CircuitOpen(
        scope=_text_call_guard(scope),
        since=breaker.why,
        certainty=Certainty.NOT_SENT,
        provider=scope[0],
        model=scope[2] if len(scope) > 2 else None,
        not_before=NotBefore(after=rest, source="breaker"),
    )
