"""Two thin drivers around one loop: they call, describe, ask, wait, and call again.

A call that succeeds pays for one `try`. Everything else (loop, report, ledger) begins with the first
failure. What finally comes out is the caller's own exception, with the ledger on it.
"""

import random  # noqa: TID251  (the default luck; every caller may bring its own)
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, overload

from failwell.decision.backoff import Backoff
from failwell.decision.match import Match
from failwell.decision.policy import Policy, Rule, Schedule
from failwell.decision.verdict import Ask, Decision, Evict, Park, Retry
from failwell.fault.frozen import frozen
from failwell.report.describe import describe
from failwell.report.ledger import attach, ledger_of
from failwell.report.record import ErrorReport
from failwell.runtime.cancel import CancelScope, current_scope
from failwell.runtime.clock import SYSTEM_CLOCK, Clock
from failwell.runtime.loop import Allowed, Loop
from failwell.runtime.parked import Parked

_P = ParamSpec("_P")
_R = TypeVar("_R")

DEFAULT = Policy()


@frozen
class Retrying:
    """How a call is repeated: the policy, and everything that is injected."""

    policy: Policy = DEFAULT
    layer: str = "call"
    idempotent: bool | None = None
    """Whether a repeat is harmless although the outcome is unknown."""
    provider: str | None = None
    model: str | None = None
    evict: Callable[[ErrorReport], bool] | None = None
    """Frees what the report says is short; `False` when nothing could be freed."""
    reconcile: Callable[[ErrorReport], bool | None] | None = None
    """Says whether work with an unknown outcome was done: `True`, `False`, or `None` for "cannot tell"."""
    clock: Clock = SYSTEM_CLOCK
    luck: Callable[[], float] = random.random
    cancel: CancelScope | None = None

    def begin(self) -> "_Run":
        """The state of one operation from its first failure on."""
        return _Run(self)


class _Run:
    """One operation that has failed at least once."""

    def __init__(self, how: Retrying) -> None:
        self.how = how
        self.loop = Loop(
            how.policy,
            layer=how.layer,
            allowed=Allowed(
                idempotent=how.idempotent,
                evict=how.evict is not None,
                ask=how.reconcile is not None,
            ),
        )
        self.began = how.clock.monotonic()
        self.scope = how.cancel or current_scope()

    def decide(self, error: BaseException, *, visible: bool = False) -> float | None:
        """Seconds to wait before the next attempt, or `None` when `error` has to be raised.

        Raises:
            Parked: the wait is too long to sleep.
            Cancellation: the scope around this was stopped, which beats every other outcome.
        """
        how = self.how
        if self.scope is not None and self.scope.cancelled:
            raise self.scope.fault() from error
        report = describe(error, provider=how.provider, model=how.model, idempotent=how.idempotent)
        elapsed = how.clock.monotonic() - self.began
        decision = self.loop.failed(
            report, elapsed=elapsed, luck=how.luck(), visible=visible, inner=ledger_of(error)
        )
        wait = self._act(decision, report)
        if wait is not None:
            return wait
        attach(error, self.loop.ledger())
        if isinstance(decision, Park):
            at = how.clock.now() + timedelta(seconds=decision.after)
            parked = Parked(resume_at=at, waits_for=decision.why, caller_facing=True)
            attach(parked, self.loop.ledger())
            raise parked from error
        return None

    def _act(self, decision: Decision, report: ErrorReport) -> float | None:
        if isinstance(decision, Retry):
            return decision.after
        if isinstance(decision, Evict) and self.how.evict is not None:
            return 0.0 if self.how.evict(report) else None
        if isinstance(decision, Ask) and self.how.reconcile is not None:
            # Only a clear "it was not done" makes a repeat safe.
            return 0.0 if self.how.reconcile(report) is False else None
        return None

    def wait(self, seconds: float) -> None:
        """Wait, unless the scope is stopped first."""
        if self.scope is not None:
            self.scope.wait(seconds, self.how.clock)
        elif seconds > 0:
            self.how.clock.sleep(seconds)

    async def wait_async(self, seconds: float) -> None:
        """Wait without blocking the event loop, unless the scope is stopped first."""
        if self.scope is not None:
            await self.scope.wait_async(seconds, self.how.clock)
        elif seconds > 0:
            await self.how.clock.asleep(seconds)


def run(how: Retrying, function: Callable[[], _R]) -> _R:
    """Call `function` as often as `how` allows."""
    state: _Run | None = None
    while True:
        try:
            return function()
        except (
            Exception
        ) as error:  # (the loop decides about every failure, and raises what it does not repeat)
            state = state or how.begin()
            wait = state.decide(error)
            if wait is None:
                raise
        state.wait(wait)


async def run_async(how: Retrying, function: Callable[[], Awaitable[_R]]) -> _R:
    """Await `function()` as often as `how` allows."""
    state: _Run | None = None
    while True:
        try:
            return await function()
        except (
            Exception
        ) as error:  # (the loop decides about every failure, and raises what it does not repeat)
            state = state or how.begin()
            wait = state.decide(error)
            if wait is None:
                raise
        await state.wait_async(wait)


@overload
def retry(function: Callable[_P, _R], /) -> Callable[_P, _R]: ...


@overload
def retry(
    *,
    attempts: int | None = None,
    backoff: Backoff | None = None,
    on: Match | None = None,
    policy: Policy | None = None,
    timeout: float | None = None,
    how: Retrying | None = None,
    **injected: Any,
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...


def retry(function: Any = None, /, **wishes: Any) -> Any:
    """Repeat a function as its failures allow; plain, async, generator and async generator functions.

    Without arguments each kind's own default applies: six calls for a rate limit, three for a server
    failure, none for anything that a repeat does not cure. Generators are repeated only before they
    have yielded anything.

    Args:
        function: The function to repeat, when used without parentheses.
        wishes: `attempts` and `backoff` for failures that may be repeated, `on` to limit them to some,
            `timeout` over all attempts and waits, a whole `policy`, or a whole `how`; and what is
            injected: `idempotent`, `provider`, `model`, `evict`, `reconcile`, `clock`, `luck`, `cancel`.
    """
    how = settle(**wishes)
    if function is not None:
        return _decorate(function, how)

    def decorate(one: Any) -> Any:
        return _decorate(one, how)

    return decorate


def settle(
    *,
    attempts: int | None = None,
    backoff: Backoff | None = None,
    on: Match | None = None,
    policy: Policy | None = None,
    timeout: float | None = None,
    how: Retrying | None = None,
    **injected: Any,
) -> Retrying:
    """The `Retrying` that a few brief wishes stand for."""
    base = how or Retrying()
    chosen = policy or base.policy
    if attempts is not None or backoff is not None:
        schedule = Schedule(max_attempts=attempts or 3, backoff=backoff or Backoff(jitter=0.2))
        fits = on or Match.of(when=lambda report: report.retryable)
        chosen = replace(
            chosen, rules=(Rule(match=fits, schedule=schedule, name="given here"), *chosen.rules)
        )
    elif on is not None:
        other = Rule(
            match=Match.of(when=lambda report: not on.fits(report)), retryable=False, name="not asked for"
        )
        chosen = replace(chosen, rules=(other, *chosen.rules))
    if timeout is not None:
        chosen = replace(chosen, budget=replace(chosen.budget, seconds=timeout))
    return replace(base, policy=chosen, **injected)


def _decorate(function: Any, how: Retrying) -> Any:
    from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction

    if iscoroutinefunction(function):
        return _async(function, how)
    if isasyncgenfunction(function):
        return _async_stream(function, how)
    if isgeneratorfunction(function):
        return _stream(function, how)
    return _sync(function, how)


def _sync(function: Callable[..., Any], how: Retrying) -> Callable[..., Any]:
    @wraps(function)
    def repeated(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # (see `run`)
            state = how.begin()
            wait = state.decide(error)
            if wait is None:
                raise
        while True:
            state.wait(wait)
            try:
                return function(*args, **kwargs)
            except Exception as error:  # (see `run`)
                wait = state.decide(error)
                if wait is None:
                    raise

    return repeated


def _async(function: Callable[..., Awaitable[Any]], how: Retrying) -> Callable[..., Awaitable[Any]]:
    @wraps(function)
    async def repeated(*args: Any, **kwargs: Any) -> Any:
        try:
            return await function(*args, **kwargs)
        except Exception as error:  # (see `run`)
            state = how.begin()
            wait = state.decide(error)
            if wait is None:
                raise
        while True:
            await state.wait_async(wait)
            try:
                return await function(*args, **kwargs)
            except Exception as error:  # (see `run`)
                wait = state.decide(error)
                if wait is None:
                    raise

    return repeated


def _stream(function: Callable[..., Iterator[Any]], how: Retrying) -> Callable[..., Iterator[Any]]:
    @wraps(function)
    def repeated(*args: Any, **kwargs: Any) -> Iterator[Any]:
        state: _Run | None = None
        while True:
            shown = False
            try:
                for item in function(*args, **kwargs):
                    shown = True
                    yield item
            except Exception as error:  # (see `run`)
                state = state or how.begin()
                wait = state.decide(error, visible=shown)
                if wait is None:
                    raise
                state.wait(wait)
            else:
                return

    return repeated


def _async_stream(
    function: Callable[..., AsyncIterator[Any]], how: Retrying
) -> Callable[..., AsyncIterator[Any]]:
    @wraps(function)
    async def repeated(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        state: _Run | None = None
        while True:
            shown = False
            try:
                async for item in function(*args, **kwargs):
                    shown = True
                    yield item
            except Exception as error:  # (see `run`)
                state = state or how.begin()
                wait = state.decide(error, visible=shown)
                if wait is None:
                    raise
                await state.wait_async(wait)
            else:
                return

    return repeated


class TryOnce:
    """One round of `for attempt in retrying(): with attempt: …`."""

    def __init__(self, rounds: "_Rounds", number: int) -> None:
        self._rounds = rounds
        self.number = number

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        return self._rounds.ended(error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        return self._rounds.ended(error)


class _Rounds:
    """The rounds of a loop that is written out by hand."""

    def __init__(self, how: Retrying) -> None:
        self._how = how
        self._state: _Run | None = None
        self._wait: float | None = 0.0
        self._number = 0

    def ended(self, error: BaseException | None) -> bool:
        """Take note of how a round ended; whether its failure is swallowed for another round."""
        if not isinstance(error, Exception):
            self._wait = None
            return False
        self._state = self._state or self._how.begin()
        self._wait = self._state.decide(error)
        return self._wait is not None

    def __iter__(self) -> Iterator[TryOnce]:
        while self._wait is not None:
            if self._state is not None:
                self._state.wait(self._wait)
            self._number += 1
            self._wait = None
            yield TryOnce(self, self._number)

    async def __aiter__(self) -> AsyncIterator[TryOnce]:
        while self._wait is not None:
            if self._state is not None:
                await self._state.wait_async(self._wait)
            self._number += 1
            self._wait = None
            yield TryOnce(self, self._number)


def retrying(**wishes: Any) -> _Rounds:
    """Repeat what stands in a loop that is written out by hand.

    Write `for attempt in retrying():` and, inside it, `with attempt:`.

    Takes what `retry` takes, and works with `async for` and `async with` as well.
    """
    return _Rounds(settle(**wishes))


__all__ = ["DEFAULT", "Retrying", "TryOnce", "retry", "retrying", "run", "run_async", "settle"]
