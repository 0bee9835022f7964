"""One call on its way: sent, not yet answered, perhaps already asked to stop."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

from failwell.fault.capability import CapabilityError

Wish = Literal["cancel", "timeout", "stop"]


class Flight:
    """What the host knows of a call in a worker."""

    __slots__ = ("answer", "failed", "items", "job", "seconds", "timer", "told", "wake", "wish")

    def __init__(self, job: str, answer: "asyncio.Future[Any]", *, streams: bool = False) -> None:
        self.job = job
        self.answer = answer
        self.wish: Wish | None = None
        """Why it was asked to stop. It decides how the call ends, whatever the worker answers; only a call that
        was stopped along with its process may still end well."""
        self.failed: CapabilityError | None = None
        """What went wrong on our side while it ran; it ends by this, whatever was wished."""
        self.seconds = 0.0
        """The time limit that ran out, if one did."""
        self.timer: asyncio.TimerHandle | None = None
        self.told: Callable[[asyncio.Future[Any]], None] | None = None
        """Called with the answer in the moment it comes, for those who do not await it."""
        self.items: deque[Any] | None = deque() if streams else None
        self.wake: asyncio.Event | None = asyncio.Event() if streams else None

    def arrived(self, item: Any) -> None:
        """One item of a stream came."""
        if self.items is not None and self.wake is not None:
            self.items.append(item)
            self.wake.set()

    def set_timer(self, timer: "asyncio.TimerHandle | None") -> None:
        """Have this timer instead of the one there was."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = timer

    def settle(self, value: Any = None, error: BaseException | None = None) -> None:
        """Answer the call, once."""
        self.set_timer(None)
        if self.answer.done():
            return
        if error is None:
            self.answer.set_result(value)
        else:
            self.answer.set_exception(error)
            # A caller that went away must not make the loop complain of an error nobody fetched.
            self.answer.exception()
        if self.wake is not None:
            self.wake.set()
        if self.told is not None:
            self.told(self.answer)
