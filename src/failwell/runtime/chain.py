"""A call with alternatives: entries in order, each with its own attempts, until one answers.

Only failures that another provider might not have lead onwards; a call that is itself at fault stops
the chain. Nothing is handed over once somebody has seen a part of the answer. Every attempt is in the
ledger with its tokens and its price, and so is every entry that was passed over, with the reason.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any, cast

from failwell.decision.breaker import Scope, scope_of
from failwell.report.ledger import Ledger
from failwell.report.record import ErrorReport
from failwell.runtime.cancel import CancelScope
from failwell.runtime.chain_call import Answered, Call, Failed, Hook, Pass, Step, Wait
from failwell.runtime.chain_entry import ChainPolicy, Entry
from failwell.runtime.clock import SYSTEM_CLOCK, Clock, random_jitter
from failwell.runtime.cost import Prices
from failwell.runtime.guard import Guard
from failwell.runtime.loop import Watcher
from failwell.runtime.operation import Retrying
from failwell.runtime.shared_budget import SharedBudget

_END: Any = object()


class Chain:
    """Entries in order. One instance serves one line of work: its cool-downs are its memory."""

    def __init__(
        self,
        *entries: Entry,
        policy: ChainPolicy | None = None,
        prices: Prices | None = None,
        guard: Guard | None = None,
        budget: SharedBudget | None = None,
        watcher: Watcher | None = None,
        clock: Clock = SYSTEM_CLOCK,
        jitter: Callable[[], float] = random_jitter,
        cancel: CancelScope | None = None,
    ) -> None:
        if not entries:
            raise ValueError("a chain needs at least one entry")
        self.entries = entries
        self.policy = policy or ChainPolicy()
        self.prices = prices or Prices()
        self.guard = guard
        self.how = Retrying(
            layer="chain", clock=clock, jitter=jitter, cancel=cancel, budget=budget, watcher=watcher
        )
        self.plans = [(entry.policy(self.policy.longest_wait), entry.policy()) for entry in entries]
        """Each entry's policy while there is another entry, and when there is none."""
        self.ledger = Ledger(layer="chain")
        """What the latest call did. Calls that run side by side find theirs on what they raised."""
        self.cooling: dict[Scope, float] = {}
        self.refreshed: set[str] = set()
        self.last_provider: str | None = None

    def call(self, *args: Any, needs: Iterable[str] = (), **kwargs: Any) -> Any:
        """Make the call; what the first entry that works returns."""
        run = Pass(self, tuple(needs), args, kwargs)
        run.operation.enter()
        try:
            step = run.advance()
            while True:
                if not isinstance(step, Call):
                    step = _carry_out(run, step)
                    continue
                try:
                    value = step()
                except Exception as error:  # noqa: BLE001  (the chain decides about every failure, and raises what it does not pass on)
                    step = run.advance(Failed(error))
                else:
                    run.succeeded(step.entry, run.usage_of(value))
                    return value
        finally:
            run.close()
            run.operation.leave()

    async def acall(self, *args: Any, needs: Iterable[str] = (), **kwargs: Any) -> Any:
        """`call`, for entries whose callables are async."""
        run = Pass(self, tuple(needs), args, kwargs)
        run.operation.enter()
        try:
            step = run.advance()
            while True:
                if not isinstance(step, Call):
                    step = await _carry_out_async(run, step)
                    continue
                try:
                    value = await cast("Awaitable[Any]", step())
                except Exception as error:  # noqa: BLE001  (see `call`: decided by the chain)
                    step = run.advance(Failed(error))
                else:
                    run.succeeded(step.entry, run.usage_of(value))
                    return value
        finally:
            run.close()
            run.operation.leave()

    def stream(self, *args: Any, needs: Iterable[str] = (), **kwargs: Any) -> Iterator[Any]:
        """Yield the chunks of the first entry that answers; no hand-over after the first chunk."""
        run = Pass(self, (*needs, "streaming"), args, kwargs)
        try:
            step = run.advance()
            while True:
                if not isinstance(step, Call):
                    step = _carry_out(run, step)
                    continue
                shown, usage = False, dict[str, int]()
                try:
                    # Entered for the first chunk only: a generator's context is whoever asks for the next one.
                    run.operation.enter()
                    try:
                        source = iter(step())
                        chunk = next(source, _END)
                    finally:
                        run.operation.leave()
                    while chunk is not _END:
                        usage.update(run.usage_of(chunk))
                        shown = True
                        yield chunk
                        chunk = next(source, _END)
                except Exception as error:  # noqa: BLE001  (see `call`: decided by the chain)
                    step = run.advance(Failed(error, shown, usage))
                else:
                    run.succeeded(step.entry, usage)
                    return
        finally:
            run.close()

    async def astream(self, *args: Any, needs: Iterable[str] = (), **kwargs: Any) -> AsyncIterator[Any]:
        """`stream`, for entries that return async iterators (or awaitables of them)."""
        run = Pass(self, (*needs, "streaming"), args, kwargs)
        try:
            step = run.advance()
            while True:
                if not isinstance(step, Call):
                    step = await _carry_out_async(run, step)
                    continue
                shown, usage = False, dict[str, int]()
                source: Any = None
                try:
                    # See `stream`: entered for the first chunk only.
                    run.operation.enter()
                    try:
                        source = step()
                        source = aiter(await source if hasattr(source, "__await__") else source)
                        chunk = await anext(source, _END)
                    finally:
                        run.operation.leave()
                    while chunk is not _END:
                        usage.update(run.usage_of(chunk))
                        shown = True
                        yield chunk
                        chunk = await anext(source, _END)
                except Exception as error:  # noqa: BLE001  (see `call`: decided by the chain)
                    step = run.advance(Failed(error, shown, usage))
                else:
                    run.succeeded(step.entry, usage)
                    return
                finally:
                    if hasattr(source, "aclose"):
                        # Left to itself it would be closed some time later, its connection open until then.
                        await source.aclose()
        finally:
            run.close()

    def skips(self, entry: Entry, needs: Iterable[str]) -> str | None:
        """Why `entry` is not called now, or `None`."""
        if self.cooling:
            now = self.how.clock.monotonic()
            for scope in entry.called.scopes():
                cooling = self.cooling.get(scope)
                if cooling is not None and now < cooling:
                    return f"{'/'.join(filter(None, scope))} cools down for {cooling - now:.1f} s"
        lacking = entry.lacks(needs)
        if lacking:
            return f"cannot do {', '.join(lacking)}"
        closed = None if self.guard is None else self.guard.closed(entry.called)
        return None if closed is None else str(closed)

    def cool(self, entry: Entry, report: ErrorReport) -> None:
        """Pass over whoever is to blame for a rate limit, for a while."""
        if report.kind == "provider.rate_limited":
            told = 0.0 if report.not_before is None else report.not_before.after
            until = self.how.clock.monotonic() + max(self.policy.cooldown, told)
            self.cooling[scope_of(report, entry.called)] = until


def _carry_out(run: Pass, step: Wait | Hook) -> Step:
    if isinstance(step, Wait):
        run.operation.wait(step.seconds)
        return run.advance()
    try:
        answer = step.ask()
    except Exception as error:  # noqa: BLE001  (the chain decides what a hook that fails means)
        return run.advance(Failed(error))
    return run.advance(Answered(answer))


async def _carry_out_async(run: Pass, step: Wait | Hook) -> Step:
    if isinstance(step, Wait):
        await run.operation.wait_async(step.seconds)
        return run.advance()
    try:
        answer = step.ask()
        if hasattr(answer, "__await__"):
            answer = await answer
    except Exception as error:  # noqa: BLE001  (the chain decides what a hook that fails means)
        return run.advance(Failed(error))
    return run.advance(Answered(answer))


__all__ = ["Chain", "ChainPolicy", "Entry"]
