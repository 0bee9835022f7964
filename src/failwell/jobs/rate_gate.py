"""Lets jobs of a capability start no more often than its rate limit allows. A job that has to wait holds no lane."""

import asyncio
from datetime import UTC, datetime

from failwell.errors.fault import Fault
from failwell.jobs.queue.entry import Entry
from failwell.jobs.queue.order import Instance
from failwell.jobs.queue.state import QueueState
from failwell.jobs.rate_limit import RateLimit

_REFUSED = 0.05
"""Seconds after which a store that refused to answer is asked again."""


class RateGate:
    """The rate limits of one queue. The store counts the starts of all hosts."""

    def __init__(self, state: QueueState) -> None:
        self._state = state
        self._closed: dict[str, tuple[RateLimit, float]] = {}
        """Capability → its limit, and when its next start is allowed, by the monotonic clock."""
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def close(self) -> None:
        """Cancel the timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def wait_for(self, entry: Entry, instance: Instance) -> str | None:
        """`None` if the job may start, which is counted then; else why it waits."""
        limit = instance.rate_limit
        if limit is None:
            return None
        name = instance.manifest.name
        known, until = self._closed.get(name, (limit, 0.0))
        # A limit that was changed is asked for again.
        if known == limit and until > self._state.loop.time():
            return self._reason(entry, limit.text)
        now = self._state.now()
        try:
            grant = self._state.store.take_tokens(name, limit, 1, now)
        except Fault:
            # Another process writes. A start that is not counted must not happen.
            self._close(name, limit, _REFUSED)
            return self._reason(entry, limit.text)
        if grant.granted:
            return None
        entry.due = grant.next_at
        self._close(name, limit, grant.next_at - now)
        return self._reason(entry, limit.text)

    def _reason(self, entry: Entry, limit: str) -> str:
        when = ""
        if entry.due is not None:
            when = f"; next start {datetime.fromtimestamp(entry.due, UTC):%Y-%m-%d %H:%M:%S}Z"
        return f"`rate_limit` of its capability is {limit}{when}"

    def _close(self, capability: str, limit: RateLimit, seconds: float) -> None:
        if self._state.is_stopping:
            return
        timer = self._timers.pop(capability, None)
        if timer is not None:
            timer.cancel()
        self._closed[capability] = limit, self._state.loop.time() + seconds
        self._timers[capability] = self._state.loop.call_later(seconds, self._open, capability)

    def _open(self, capability: str) -> None:
        del self._timers[capability]
        self._closed.pop(capability, None)
        self._state.wake()
