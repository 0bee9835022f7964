"""Stopping on purpose: scopes that cancel their children first and never their parents.

A scope can be cancelled from any thread. Waiting through a scope ends the moment it is cancelled,
in a thread and on an event loop alike, so no back-off outlives the work it belongs to.
"""

import sys
from collections.abc import Callable
from contextvars import ContextVar
from threading import Condition
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.calls.suppress import call_hook
from failwell.errors.faults import Cancellation

if TYPE_CHECKING:
    from asyncio import Task

Level = Literal["session", "turn", "stage", "tool", "job", "run"]
Reason = Literal["user", "parent", "cap", "deadline"]

_current: ContextVar["CancelScope | None"] = ContextVar("failwell_cancel_scope", default=None)


class CancelScope:
    """One level of work that can be stopped as a whole."""

    def __init__(self, level: Level = "run", *, name: str = "", parent: "CancelScope | None" = None) -> None:
        self.level: Level = level
        self.name = name
        self.parent = parent
        self.reason: Reason | None = None
        self._changed = Condition()
        self._children: list[CancelScope] = []
        self._callbacks: list[Callable[[], object]] = []
        if parent is not None:
            parent._adopt(self)  # noqa: SLF001  (the same class)

    def child(self, level: Level, *, name: str = "") -> "CancelScope":
        """A scope below this one; cancelled from the start if this one is."""
        return CancelScope(level, name=name, parent=self)

    @property
    def cancelled(self) -> bool:
        """Whether this scope was stopped."""
        return self.reason is not None

    def cancel(self, reason: Reason = "user") -> None:
        """Stop everything below, in the order it was made, then this scope. Twice is harmless."""
        while True:
            with self._changed:
                if self.reason is not None:
                    return
                below = [child for child in self._children if child.reason is None]
                if not below:
                    # Decided under the lock, so no child can be added in between and be missed.
                    self.reason = reason
                    callbacks = list(self._callbacks)
                    self._callbacks.clear()
                    self._changed.notify_all()
                    break
            for child in below:
                child.cancel("parent")
        for callback in callbacks:
            call_hook(callback, reason="a callback failed while its scope was being cancelled")

    def check(self) -> None:
        """Raise if this scope was stopped. To be called after every wait."""
        if self.reason is not None:
            raise self.fault()

    def fault(self) -> Cancellation:
        """The fault that says this scope was stopped."""
        return Cancellation(kind=f"cancel.{self.level}", details={"reason": self.reason or "user"})

    def close(self) -> None:
        """Let the parent forget this scope, so that a long session does not collect them."""
        if self.parent is not None:
            self.parent._forget(self)  # noqa: SLF001  (the same class)

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call `callback` once when this scope is stopped; at once if it already is. Returns an undo."""
        with self._changed:
            if self.reason is None:
                self._callbacks.append(callback)
                return lambda: self._drop(callback)
        callback()
        return lambda: None

    def wait(self, seconds: float, clock: Clock = SYSTEM_CLOCK) -> None:
        """Let `seconds` pass in this thread, or raise the moment the scope is stopped."""
        self.check()
        if clock is not SYSTEM_CLOCK:
            clock.sleep(seconds)
        elif seconds > 0:
            with self._changed:
                self._changed.wait_for(lambda: self.reason is not None, timeout=seconds)
        self.check()

    async def wait_async(self, seconds: float, clock: Clock = SYSTEM_CLOCK) -> None:
        """Let `seconds` pass in this task, or raise the moment the scope is stopped."""
        import asyncio

        self.check()
        if clock is not SYSTEM_CLOCK:
            await clock.asleep(seconds)
        elif seconds > 0:
            loop = asyncio.get_running_loop()
            stopped = asyncio.Event()
            undo = self.on_cancel(lambda: loop.call_soon_threadsafe(stopped.set))
            try:
                await asyncio.wait_for(stopped.wait(), seconds)
            except TimeoutError:
                # The time has passed and the scope was not stopped.
                return
            finally:
                undo()
        self.check()

    def _adopt(self, below: "CancelScope") -> None:
        with self._changed:
            self._children.append(below)
            stopped = self.reason is not None
        if stopped:
            below.cancel("parent")

    def _forget(self, below: "CancelScope") -> None:
        with self._changed:
            if below in self._children:
                self._children.remove(below)

    def _drop(self, callback: Callable[[], object]) -> None:
        with self._changed:
            if callback in self._callbacks:
                self._callbacks.remove(callback)


current_scope = _current.get
"""The scope that the running task works in, if any."""


def cancel_scope(level: Level = "run", *, name: str = "") -> "ScopeBlock":
    """A scope for a `with` block, below the one around it.

    Inside an asyncio task, stopping the scope also interrupts whatever the block is awaiting. A thread
    cannot be interrupted; there a stopped scope ends waits and keeps new calls from being made.

    Args:
        level: What the scope stands for; it names the kind of the cancellation.
        name: A name for the scope.

    Raises:
        Cancellation: the scope was stopped while the block awaited something.
    """
    return ScopeBlock(level, name)


class ScopeBlock:
    """The block of a `cancel_scope`. It ends what the running task awaits, as `asyncio.timeout` does for time."""

    def __init__(self, level: Level, name: str, parent: CancelScope | None = None) -> None:
        self._level: Level = level
        self._name = name
        self._parent = parent
        self._inside = False
        self._interrupted = False

    def __enter__(self) -> CancelScope:
        parent = _current.get() if self._parent is None else self._parent
        self._scope = scope = CancelScope(self._level, name=self._name, parent=parent)
        self._token = _current.set(scope)
        self._task = task = _running_task()
        self._cancels_before = 0 if task is None else task.cancelling()
        self._inside = True
        self._undo = None if task is None else scope.on_cancel(self._interrupt_from_any_thread)
        return scope

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        # A stop that comes later is not about this block.
        is_ours = self._undo_interruption(error)
        self._inside = False
        if self._undo is not None:
            self._undo()
        _current.reset(self._token)
        self._scope.close()
        if is_ours:
            raise self._scope.fault() from None

    def _interrupt_from_any_thread(self) -> None:
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._interrupt)

    def _interrupt(self) -> None:
        # On the loop's own thread the task is suspended now: inside the block, or already out of it.
        if self._inside and self._task is not None:
            self._interrupted = True
            self._task.cancel()

    def _undo_interruption(self, error: BaseException | None) -> bool:
        """Take back the cancel of the task; whether `error` is that cancel, and no other came with it."""
        if not self._interrupted or self._task is None:
            return False
        # Also where the block swallowed it: a cancel that still counted would break the next timeout in this task.
        is_alone = self._task.uncancel() <= self._cancels_before
        return is_alone and type(error).__name__ == "CancelledError"


def _running_task() -> "Task[Any] | None":
    # Where asyncio was never loaded, no task is running.
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
