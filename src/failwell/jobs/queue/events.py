"""Events of the queue: every subscriber has its own buffer, so a slow one loses only its own events.

What has a number was written down first and can be read again from the store. Progress and worker
output have none (0): they are for those who watch.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Self
from weakref import ref

from failwell.errors.fault import Fault
from failwell.jobs.store.rows import delete_files
from failwell.store.event import JOB_TERMINAL, Event

ROOM = 16
"""Items that are buffered; the worker waits with further ones."""


class Items:
    """A bounded async iterator over the items that a job streams."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._moved = asyncio.Event()
        self._is_closed = False

    async def put(self, item: Any) -> None:
        """Add an item once there is room for it. After `close` it is dropped."""
        while len(self._items) >= ROOM and not self._is_closed:
            await self._wait()
        if self._is_closed:
            delete_files(item)
            return
        self._items.append(item)
        self._moved.set()

    def close(self) -> None:
        """End the stream. Buffered items can still be read."""
        self._is_closed = True
        self._moved.set()

    def leave(self) -> None:
        """End the stream and drop the buffered items."""
        self.close()
        delete_files(list(self._items))
        self._items.clear()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        while not self._items:
            if self._is_closed:
                raise StopAsyncIteration
            await self._wait()
        self._moved.set()
        return self._items.popleft()

    async def _wait(self) -> None:
        self._moved.clear()
        await self._moved.wait()


BUFFER = 100
_PAGE = 256

Read = Callable[[int, str | None, int], list[Event]]
"""Reads the events after a number: (after, job, limit)."""


class Subscription:
    """An async iterator over events. One for a single job ends with that job."""

    def __init__(
        self, hub: "Hub", job: str | None, after: int | None, buffer: int, *, live: bool, is_over: bool
    ) -> None:
        self._hub = hub
        self._job = job
        self._live = live
        self._room = buffer
        self._waiting: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._is_closed = False
        self._is_over = is_over
        self.cursor = hub.last if after is None else after
        """The number of the last event that was delivered; continue from here after a loss."""
        self.dropped = 0
        """Events that were dropped because the buffer was full."""
        self._replay = after is not None
        self._pages: deque[Event] = deque()
        self._is_last_page = False

    def offer(self, event: Event) -> None:
        """Add an event to the buffer."""
        if (self._job is not None and event.job != self._job) or (event.seq == 0 and not self._live):
            return
        is_read_later = self._replay and not self._is_last_page
        if event.seq and (is_read_later or event.seq <= self.cursor):
            # It is in the store and is read from there, or was already.
            return
        if len(self._waiting) >= self._room:
            self.dropped += 1
        else:
            self._waiting.append(event)
        self._is_over = self._is_over or (self._job is not None and event.type in JOB_TERMINAL)
        self._wake.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while True:
            if self._replay:
                event = self._past()
                if event is not None:
                    return event
            if self._waiting:
                event = self._waiting.popleft()
                self.cursor = event.seq or self.cursor
                return event
            if self._is_closed or self._is_over:
                self.close()
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()

    def _past(self) -> Event | None:
        if not self._pages and not self._is_last_page:
            self._pages.extend(self._hub.read(self.cursor, self._job, _PAGE))
            # What is recorded from now on is offered.
            self._is_last_page = len(self._pages) < _PAGE
        if not self._pages:
            self._replay = False
            return None
        event = self._pages.popleft()
        self.cursor = event.seq
        self._is_over = self._is_over or (self._job is not None and event.type in JOB_TERMINAL)
        return event

    def end(self) -> None:
        """End the subscription; buffered events are still delivered."""
        self._is_closed = True
        self._wake.set()

    def close(self) -> None:
        """Unsubscribe."""
        self._is_closed = True
        self._hub.leave(self)
        self._wake.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Hub:
    """Delivers the events of the queue to subscribers."""

    def __init__(self, read: Read, last: int) -> None:
        self.read = read
        self.last = last
        """The number of the latest event."""
        self._listening: set[ref[Subscription]] = set()
        """Weak references: a subscriber that leaves its loop need not unsubscribe."""

    def subscribe(
        self, job: str | None, after: int | None, buffer: int, *, live: bool, is_over: bool = False
    ) -> Subscription:
        """Subscribe from now on; with `after`, first read the events since that number."""
        subscription = Subscription(self, job, after, buffer, live=live, is_over=is_over)
        self._listening.add(ref(subscription, self._listening.discard))
        return subscription

    def leave(self, subscription: Subscription) -> None:
        """Remove a subscription."""
        self._listening.discard(ref(subscription))

    @property
    def has_subscribers(self) -> bool:
        """Whether there are subscribers."""
        return bool(self._listening)

    def _subscriptions(self) -> list[Subscription]:
        return [subscription for item in list(self._listening) if (subscription := item()) is not None]

    def publish(self, events: list[Event]) -> None:
        """Deliver events to every subscriber."""
        for subscription in self._subscriptions():
            for event in events:
                subscription.offer(event)
        self.last = max([self.last, *(event.seq for event in events)])

    def catch_up(self, until: int | None = None) -> None:
        """Deliver what other processes have stored, up to the event with this number."""
        while self._listening and (until is None or self.last < until):
            limit = _PAGE if until is None else min(_PAGE, until - self.last)
            try:
                events = self.read(self.last, None, limit)
            except Fault:
                # The store is unavailable for a moment.
                return
            if not events:
                return
            self.publish(events)

    def end(self) -> None:
        """End all subscriptions."""
        for subscription in self._subscriptions():
            subscription.end()
