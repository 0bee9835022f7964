"""The one way to ignore an error: with a reason, and on the record."""

from collections.abc import Callable, Coroutine
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast, overload

from failwell.runtime.observer import suppressed, tell

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
            tell(suppressed(error, self._reason))
            return True
        if isinstance(error, BaseExceptionGroup):
            return self._part(cast("BaseExceptionGroup[BaseException]", error))
        return False

    def _part(self, group: BaseExceptionGroup[BaseException]) -> bool:
        ignored, rest = group.split(self._types)
        if ignored is None:
            return False
        tell(suppressed(ignored, self._reason))
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
