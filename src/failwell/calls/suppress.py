"""The one way to ignore an error: with a reason, and on the record.

`suppress` is for users. The other functions call code that is not ours (hooks, observers, callbacks) and keep
its failures from breaking the work at hand.

A block that notes how it ends: what it raises is passed to a callback and goes on.
"""

import logging
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, cast, overload

from failwell.adapters.describe import describe
from failwell.errors.frozen import frozen
from failwell.errors.report import ErrorReport

_log = logging.getLogger("failwell")


_P = ParamSpec("_P")
_R = TypeVar("_R")


@frozen
class Suppressed:
    """The record of an error that was ignored on purpose."""

    reason: str
    cause: str
    """What was ignored: its type and its kind, never its text."""
    report: ErrorReport
    at: datetime
    type: str = "suppressed"


Observer = Callable[[Suppressed], None]

_observers: list[Observer] = []
scoped_observer: ContextVar[Observer | None] = ContextVar("failwell_scoped_observer", default=None)
"""Called for what is suppressed in this context and in the tasks that it starts: a run records what it ignores itself."""
_running: ContextVar[tuple[Callable[..., object], ...]] = ContextVar("failwell_callbacks", default=())
"""The observers and watchers that this context is inside of."""


class Subscription:
    """A callback that is called for each suppressed failure from now on, until `close()` or the end of its `with` block."""

    __slots__ = ("_callback", "_callbacks", "_is_open")

    def __init__(self, callback: Callable[[Any], object], callbacks: list[Any]) -> None:
        if not callable(callback):
            raise TypeError(f"pass a function that is called with each event, not {type(callback).__name__}")
        self._callback = callback
        self._callbacks = callbacks
        self._is_open = False
        self._open()

    def close(self) -> None:
        """Call it no more. Harmless twice."""
        if self._is_open:
            self._is_open = False
            self._callbacks.remove(self._callback)

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> None:
        if not self._is_open:
            self._is_open = True
            self._callbacks.append(self._callback)


def observe(observer: Observer) -> Subscription:
    """Call `observer` with every suppressed error, from now on or while a `with` block runs.

    An observer is not called for what it suppresses itself.

    Args:
        observer: Called with each `Suppressed` event. If it raises, it is passed over.

    Returns:
        A subscription: a context manager, or an object to `close()`.

    Raises:
        TypeError: the observer cannot be called.
    """
    return Subscription(observer, _observers)


def call_back(callback: Callable[[Any], object], event: object) -> tuple[bool, Exception | None]:
    """Call `callback` unless this runs inside it already: whether it was called, and what it raised."""
    running = _running.get()
    if callback in running:
        return False, None
    token = _running.set((*running, callback))
    try:
        return True, catch(callback, event)[1]
    finally:
        _running.reset(token)


def catch(function: Callable[..., Any], *args: Any) -> tuple[Any, Exception | None]:
    """Call `function(*args)`; its value, or the exception that it raised.

    For callers that decide about every failure themselves. Interrupts and cancellations pass through.
    """
    try:
        return function(*args), None
    except Exception as error:  # noqa: BLE001  (the caller decides about it)
        return None, error


async def catch_async(function: Callable[..., Any], *args: Any) -> tuple[Any, Exception | None]:
    """`catch` for a function whose value may have to be awaited."""
    try:
        value = function(*args)
        if hasattr(value, "__await__"):
            value = await value
        return value, None
    except Exception as error:  # noqa: BLE001  (the caller decides about it)
        return None, error


def call_hook(hook: Callable[..., Any], *args: Any, reason: str) -> Any:
    """What `hook(*args)` returns; `None` if it raises, which is recorded as suppressed for `reason`."""
    value, error = catch(hook, *args)
    if error is not None:
        record_suppressed(suppressed(error, reason))
    return value


async def call_hook_async(hook: Callable[..., Any], *args: Any, reason: str) -> Any:
    """`call_hook` for a hook that may be async."""
    value, error = await catch_async(hook, *args)
    if error is not None:
        record_suppressed(suppressed(error, reason))
    return value


def record_suppressed(event: Suppressed) -> None:
    """Pass the event to every observer, or to the log if no observer accepts it."""
    observers = list(_observers)
    scoped = scoped_observer.get()
    if scoped is not None:
        observers.append(scoped)
    accepted = False
    for observer in observers:
        was_called, error = call_back(observer, event)
        if error is None:
            accepted = accepted or was_called
        else:
            _record_failed_observer(observer, error, observers)
    if not accepted:
        _write_log(logging.INFO, "suppressed %s: %s", event.cause, event.reason)


def suppressed(error: BaseException, reason: str) -> Suppressed:
    """The event for an error that is being ignored."""
    report = replace(describe(error), handled=True)
    return Suppressed(
        reason=reason, cause=f"{report.error_type} ({report.kind})", report=report, at=report.occurred_at
    )


def _record_failed_observer(failed: Observer, error: Exception, observers: list[Observer]) -> None:
    event = suppressed(error, "an observer failed and was passed over")
    others = [observer for observer in observers if observer is not failed]
    if not others:
        _write_log(logging.WARNING, "suppressed %s: %s", event.cause, event.reason)
    for observer in others:
        # A second failure is only logged; recording it could go on for ever.
        if call_back(observer, event)[1] is not None:
            _write_log(
                logging.WARNING, "an observer failed while it was notified of another observer's failure"
            )


def _write_log(level: int, text: str, *args: object) -> None:
    """Log it. A handler that raises is passed over: nothing is left that could be told."""
    catch(_log.log, level, text, *args)


class _Suppression:
    """One `suppress(...)`: a context manager, and a decorator for plain and async functions."""

    def __init__(self, types: tuple[type[Exception], ...], reason: str) -> None:
        self._types = types
        self._reason = reason

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        if error is None:
            return False
        if isinstance(error, self._types):
            record_suppressed(suppressed(error, self._reason))
            return True
        if isinstance(error, BaseExceptionGroup):
            return self._part(cast("BaseExceptionGroup[BaseException]", error))
        return False

    def _part(self, group: BaseExceptionGroup[BaseException]) -> bool:
        ignored, rest = group.split(self._types)
        if ignored is None:
            return False
        record_suppressed(suppressed(ignored, self._reason))
        if rest is not None:
            raise rest
        return True

    @overload
    def __call__(
        self, function: Callable[_P, Coroutine[Any, Any, _R]]
    ) -> Callable[_P, Coroutine[Any, Any, _R | None]]: ...

    @overload
    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R | None]: ...

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        from inspect import iscoroutinefunction

        if iscoroutinefunction(function):

            @wraps(function)
            async def guarded_async(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

            return guarded_async

        @wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)
            return None

        return guarded


def suppress(*types: type[Exception], reason: str) -> _Suppression:
    """Ignore errors of these types in the block or function, and record each as `suppressed`.

    Args:
        types: The exception types to ignore, subclasses included.
        reason: Why they may be ignored; it is part of the record.

    Raises:
        TypeError: no type was named, or one that is not an `Exception`: a cancellation is not an
            error that could be ignored.
        ValueError: the reason is empty.
    """
    if not types:
        raise TypeError("name the exception types to suppress")
    for cls in cast("tuple[object, ...]", types):
        if not (isinstance(cls, type) and issubclass(cls, Exception)):
            raise TypeError(f"{cls!r} cannot be suppressed: only subclasses of Exception can")
    if not reason.strip():
        raise ValueError("say why the error may be ignored: `reason` is empty")
    return _Suppression(types, reason)


def _ignore(_error: BaseException) -> None:
    return


class OnRaise:
    """A context manager that calls back with what its block raises, and never keeps it.

    Args:
        failed: Called with an exception. In an `async with` block, what it returns is awaited.
        abandoned: Called with what is no failure: an interrupt, an exit, a cancellation or a closed generator.
    """

    __slots__ = ("_abandoned", "_failed")

    def __init__(
        self,
        failed: Callable[[Exception], Any] = _ignore,
        *,
        abandoned: Callable[[BaseException], object] = _ignore,
    ) -> None:
        self._failed = failed
        self._abandoned = abandoned

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            self._failed(error)
        elif error is not None:
            self._abandoned(error)

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            await self._failed(error)
        elif error is not None:
            self._abandoned(error)
