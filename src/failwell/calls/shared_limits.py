"""Limits that several processes share: what a store of them offers, and how a guard or a budget uses one.

One user of a store of limits: reads it when it has changed, and does without it while it is lost.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from failwell.calls.clock import Clock
from failwell.calls.suppress import record_suppressed, suppressed
from failwell.errors.fault import Fault

LOST = -1
"""The version of a store that cannot be used at the moment."""
_PAUSE = 1.0
_RECORDED = "the store of shared limits cannot be used, so the limits of this process apply until it can be"

Change = Callable[[float, Mapping[str, str]], Mapping[str, str | None]]
"""The store's time and its values → the values to write; `None` deletes one. It may be called more than once."""


class Limits(NamedTuple):
    """What a store holds at one moment."""

    version: int
    now: float
    """The time of the store, in seconds. It is the same for everybody who uses the store."""
    values: Mapping[str, str]


class LimitStore(Protocol):
    """Where limits are shared: `SqliteLimits` or `RedisLimits`. `read` and `change` raise a `Fault` if they fail."""

    def version(self) -> int:
        """A number that every change changes, read without I/O; `LOST` if the store is known to be lost."""
        ...

    def read(self) -> Limits:
        """All values."""
        ...

    def change(self, change: Change) -> int:
        """Write what `change` returns, all of it or nothing, and return the new version."""
        ...


class LimitSharing:
    """What one guard or one budget has read of a store, and whether the store can be used."""

    def __init__(self, store: LimitStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._version: int | None = None
        self._next_try = 0.0
        self.is_lost = False

    def changed(self) -> Limits | None:
        """The values, if somebody has changed them since they were read; `None` if not, or if the store is lost."""
        if self.is_lost and self._clock.monotonic() < self._next_try:
            return None
        try:
            version = self._store.version()
            if version == self._version and not self.is_lost:
                return None
            if version == LOST:
                raise _no_connection()
            limits = self._store.read()
        except Fault as fault:
            self._lose(fault)
            return None
        self._version = limits.version
        return limits

    def change(self, change: Change) -> bool:
        """Change the values; `False` if the store is lost."""
        if self.is_lost and self._clock.monotonic() < self._next_try:
            return False
        try:
            if self._store.version() == LOST:
                raise _no_connection()
            self._version = self._store.change(change)
        except Fault as fault:
            self._lose(fault)
            return False
        self.is_lost = False
        return True

    def _lose(self, fault: Fault) -> None:
        self._next_try = self._clock.monotonic() + _PAUSE
        if not self.is_lost:
            self.is_lost = True
            record_suppressed(suppressed(fault, _RECORDED))


def _no_connection() -> Fault:
    return Fault(kind="session.store_unavailable", message="the store of shared limits has no connection")
