"""The one way to ignore an error: with a reason, and on the record."""

import logging
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from datetime import datetime
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast, overload

from failwell.fault.frozen import frozen
from failwell.report.describe import describe
from failwell.report.record import ErrorReport

_log = logging.getLogger("failwell")


@frozen
class Suppressed:
    """An error was ignored on purpose, and this is the record of it."""

    reason: str
    cause: str
    """What was ignored, in words that hold no secret: its type and its kind."""
    report: ErrorReport
    at: datetime
    type: str = "suppressed"


Event = Suppressed
Observer = Callable[[Event], None]

_observers: list[Observer] = []


@contextmanager
def observe(observer: Observer) -> Generator[None]:
    """Tell `observer` of every event while the block runs."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def record_suppressed(event: Event) -> None:
    """Tell every observer; what none of them hears goes to the log, so it is never lost."""
    told = list(_observers)
    heard = False
    for observer in told:
        try:
            observer(event)
            heard = True
        except Exception as problem:  # noqa: BLE001  (an observer must not break what it observes)
            _record_failed_observer(observer, problem, told)
    if not heard:
        _log.info("suppressed %s: %s", event.cause, event.reason)


def suppressed(error: BaseException, reason: str) -> Suppressed:
    """The event for an error that is being ignored."""
    report = describe(error)
    return Suppressed(
        reason=reason, cause=f"{report.error_type} ({report.kind})", report=report, at=report.occurred_at
    )


def _record_failed_observer(broken: Observer, problem: Exception, told: list[Observer]) -> None:
    event = suppressed(problem, "an observer failed and was passed over")
    others = [observer for observer in told if observer is not broken]
    if not others:
        _log.warning("suppressed %s: %s", event.cause, event.reason)
    for observer in others:
        try:
            observer(event)
        except Exception:  # noqa: BLE001  (telling of a failed observer is not told of again)
            _log.warning("an observer failed while it was told of another one's failure")


_P = ParamSpec("_P")
_R = TypeVar("_R")


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

    Raises:
        TypeError: no type was named, or one that is not an `Exception`: a cancellation is not an
            error that could be ignored.
        ValueError: the reason is empty.
    """
    if not types:
        raise TypeError("name the exception types to suppress")
    for one in cast("tuple[object, ...]", types):
        if not (isinstance(one, type) and issubclass(one, Exception)):
            raise TypeError(f"{one!r} cannot be suppressed: only subclasses of Exception can")
    if not reason.strip():
        raise ValueError("say why the error may be ignored: `reason` is empty")
    return _Suppression(types, reason)
