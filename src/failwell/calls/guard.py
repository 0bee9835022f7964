"""The state of a guard as the values of a store, and back.

Times in a store are those of the store. They are translated into the monotonic time of this process when a value is first
read, so that a step of the clock afterwards changes nothing. A rest is never longer than it was when it was written.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from json import dumps, loads
from typing import Any, cast

from failwell.calls.circuit_breaker import CLOSED, Breaker, Scope
from failwell.calls.circuit_breaker__bucket import Bucket
from failwell.errors.frozen import frozen

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
