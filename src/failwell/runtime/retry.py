"""Thin drivers around one loop: they call, hand over what failed, wait, and call again.

What finally comes out is the caller's own exception, with the ledger on it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, Self, TypedDict, TypeVar, Unpack, overload

from failwell.decision.backoff import Backoff
from failwell.decision.match import Match
from failwell.decision.policy import Policy, Rule, Schedule
from failwell.report.record import ErrorReport
from failwell.runtime.cancel import CancelScope
from failwell.runtime.clock import Clock
from failwell.runtime.guard import Guard
from failwell.runtime.loop import Watcher
from failwell.runtime.operation import Operation, Retrying
from failwell.runtime.shared_budget import SharedBudget

_P = ParamSpec("_P")
_R = TypeVar("_R")
_END = object()


class Wishes(TypedDict, total=False):
    """What `retry` and `retrying` take; everything may be left out."""

    attempts: int
    """Calls in all, the first included."""
    backoff: Backoff
    on: Match | str
    """Repeat only these failures: a `Match`, a kind, or the beginning of one with its dot."""
    policy: Policy
    timeout: float
    """Seconds over all attempts and waits."""
    how: Retrying
    """A whole `Retrying`, to which the rest is added."""
    layer: str
    idempotent: bool | None
    keyed: bool
    provider: str | None
    model: str | None
    account: str
    evict: Callable[[ErrorReport], bool | Awaitable[bool]] | None
    reconcile: Callable[[ErrorReport], bool | Awaitable[bool | None] | None] | None
    guard: Guard | None
    budget: SharedBudget | None
    watcher: Watcher | None
    clock: Clock
    jitter: Callable[[], float]
    cancel: CancelScope | None


@overload
def retry(function: Callable[_P, _R], /) -> Callable[_P, _R]: ...


@overload
def retry(**wishes: Unpack[Wishes]) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...


def retry(function: Any = None, /, **wishes: Unpack[Wishes]) -> Any:
    """Repeat a function as its failures allow; plain, async, generator and async generator functions.

    Without arguments each kind's own default applies: six calls for a rate limit, three for a server
    failure, none for anything that a repeat does not cure. Generators are repeated only before they
    have yielded anything.

    Args:
        function: The function to repeat, when used without parentheses.
        wishes: See `Wishes`; those of `Retrying` can be given as well.
    """
    how = settle(**wishes)
    if function is not None:
        return _decorate(function, how)

    def decorate(one: Any) -> Any:
        return _decorate(one, how)

    return decorate


def settle(**wishes: Unpack[Wishes]) -> Retrying:
    """The `Retrying` that a few brief wishes stand for.

    Raises:
        ValueError: a number makes no sense: no attempt at all, a negative time.
    """
    given: dict[str, Any] = dict(wishes)
    base: Retrying = given.pop("how", None) or Retrying()
    policy: Policy = given.pop("policy", None) or base.policy
    attempts, backoff = given.pop("attempts", None), given.pop("backoff", None)
    on, timeout = given.pop("on", None), given.pop("timeout", None)
    rules = policy.rules
    fits = Match.of(on) if isinstance(on, str) else on
    if attempts is not None or backoff is not None:
        schedule = Schedule(
            max_attempts=3 if attempts is None else attempts, backoff=backoff or Backoff(jitter=0.2)
        )
        rules = (Rule(match=fits or _REPEATABLE, schedule=schedule, name="given here"), *rules)
    if fits is not None:
        other = Rule(match=Match.of(when=_none_of(fits)), retryable=False, name="not asked for")
        rules = (other, *rules)
    if timeout is not None:
        policy = replace(policy, budget=replace(policy.budget, seconds=timeout))
    return replace(base, policy=replace(policy, rules=rules), **given)


def _is_repeatable(report: ErrorReport) -> bool:
    return report.retryable


_REPEATABLE = Match.of(when=_is_repeatable)


def _none_of(fits: Match) -> Callable[[ErrorReport], bool]:
    return lambda report: not fits.fits(report)


def run(how: Retrying, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Call `function` as often as `how` allows."""
    operation = Operation(how)
    operation.enter()
    try:
        while True:
            try:
                value = function(*args, **kwargs)
            except (
                Exception
            ) as error:  # (the loop decides about every failure, and what it does not repeat is raised)
                wait = operation.failed(error)
                if wait is None:
                    raise
            else:
                operation.succeeded()
                return value
            operation.wait(wait)
    except BaseException as stop:  # (a probe's place must be given back, whatever ended the call)
        if not isinstance(stop, Exception):
            operation.abandoned()
        raise
    finally:
        operation.leave()


async def run_async(
    how: Retrying, function: Callable[_P, Awaitable[_R]], *args: _P.args, **kwargs: _P.kwargs
) -> _R:
    """Await `function(...)` as often as `how` allows."""
    operation = Operation(how)
    operation.enter()
    try:
        while True:
            try:
                value = await function(*args, **kwargs)
            except Exception as error:  # (see `run`: decided by the loop)
                wait = await operation.failed_async(error)
                if wait is None:
                    raise
            else:
                operation.succeeded()
                return value
            await operation.wait_async(wait)
    except BaseException as stop:  # (see `run`: a probe's place must be given back)
        if not isinstance(stop, Exception):
            operation.abandoned()
        raise
    finally:
        operation.leave()


def _decorate(function: Any, how: Retrying) -> Any:
    from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction

    if iscoroutinefunction(function):

        @wraps(function)
        async def repeated_async(*args: Any, **kwargs: Any) -> Any:
            return await run_async(how, function, *args, **kwargs)

        return repeated_async
    if isasyncgenfunction(function):
        return _async_stream(function, how)
    if isgeneratorfunction(function):
        return _stream(function, how)

    @wraps(function)
    def repeated(*args: Any, **kwargs: Any) -> Any:
        return run(how, function, *args, **kwargs)

    return repeated


def _stream(function: Callable[..., Iterator[Any]], how: Retrying) -> Callable[..., Iterator[Any]]:
    @wraps(function)
    def repeated(*args: Any, **kwargs: Any) -> Iterator[Any]:
        operation = Operation(how)
        while True:
            shown = False
            try:
                source = function(*args, **kwargs)
                # Entered for the first item only: a generator's context is whoever asks for the next one.
                operation.enter()
                try:
                    item = next(source, _END)
                finally:
                    operation.leave()
                if item is not _END:
                    shown = True
                    yield item
                    yield from source
            except Exception as error:  # (see `run`: decided by the loop)
                wait = operation.failed(error, visible=shown)
                if wait is None:
                    raise
                operation.wait(wait)
            else:
                operation.succeeded()
                return

    return repeated


def _async_stream(
    function: Callable[..., AsyncIterator[Any]], how: Retrying
) -> Callable[..., AsyncIterator[Any]]:
    @wraps(function)
    async def repeated(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        operation = Operation(how)
        while True:
            shown = False
            source: Any = function(*args, **kwargs)
            try:
                # See `_stream`: entered for the first item only.
                operation.enter()
                try:
                    item = await anext(source, _END)
                finally:
                    operation.leave()
                if item is not _END:
                    shown = True
                    yield item
                    async for item in source:
                        yield item
            except Exception as error:  # (see `run`: decided by the loop)
                wait = await operation.failed_async(error, visible=shown)
                if wait is None:
                    raise
                await operation.wait_async(wait)
            else:
                operation.succeeded()
                return
            finally:
                # Left to itself it would be closed some time later, with its connection open until then.
                await source.aclose()

    return repeated


class TryOnce:
    """One round of `for attempt in retrying(): with attempt: …`."""

    def __init__(self, rounds: "_Rounds", number: int) -> None:
        self._rounds = rounds
        self.number = number

    def __enter__(self) -> Self:
        self._rounds.operation.enter()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        self._rounds.operation.leave()
        return self._rounds.ended(error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        self._rounds.operation.leave()
        return await self._rounds.ended_async(error)


class _Rounds:
    """The rounds of one loop that is written out by hand."""

    def __init__(self, how: Retrying) -> None:
        self.operation = Operation(how)
        self.wait: float | None = 0.0
        self.number = 0

    def ended(self, error: BaseException | None) -> bool:
        """Take note of how a round ended; whether its failure is swallowed for another round."""
        if isinstance(error, Exception):
            self.wait = self.operation.failed(error)
            return self.wait is not None
        return self._over(error)

    async def ended_async(self, error: BaseException | None) -> bool:
        """`ended`, with hooks that may be async."""
        if isinstance(error, Exception):
            self.wait = await self.operation.failed_async(error)
            return self.wait is not None
        return self._over(error)

    def next(self) -> TryOnce:
        """The next round; without its `with` block it is the last one."""
        self.number += 1
        self.wait = None
        return TryOnce(self, self.number)

    def _over(self, error: BaseException | None) -> bool:
        self.wait = None
        if error is None:
            self.operation.succeeded()
        else:
            self.operation.abandoned()
        return False


class Rounds:
    """What `retrying` returns: iterated over, it gives one round after the other."""

    def __init__(self, how: Retrying) -> None:
        self._how = how

    def __iter__(self) -> Iterator[TryOnce]:
        rounds = _Rounds(self._how)
        while rounds.wait is not None:
            if rounds.number:
                rounds.operation.wait(rounds.wait)
            yield rounds.next()

    async def __aiter__(self) -> AsyncIterator[TryOnce]:
        rounds = _Rounds(self._how)
        while rounds.wait is not None:
            if rounds.number:
                await rounds.operation.wait_async(rounds.wait)
            yield rounds.next()


def retrying(**wishes: Unpack[Wishes]) -> Rounds:
    """Repeat what stands in a loop that is written out by hand.

    Write `for attempt in retrying():` and, inside it, `with attempt:`.

    Takes what `retry` takes, and works with `async for` and `async with` as well.
    """
    return Rounds(settle(**wishes))
