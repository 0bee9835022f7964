"""A call with alternatives: entries in order, each with its own attempts, until one answers.

Only failures that another provider might not have lead onwards; a call that is itself at fault stops
the chain. Nothing is handed over once somebody has seen a part of the answer. Every try is in the
ledger, the skipped ones with their reason.
"""

import random  # noqa: TID251  (the default luck; every caller may bring its own)
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator
from typing import Any, NamedTuple, cast

from failwell.decision.backoff import Backoff
from failwell.fault.axes import Category
from failwell.fault.classes import ProviderCapability
from failwell.fault.frozen import frozen
from failwell.report.describe import describe
from failwell.report.ledger import Ledger, attach
from failwell.report.record import Attempt, ErrorReport
from failwell.runtime.cancel import CancelScope, current_scope
from failwell.runtime.clock import SYSTEM_CLOCK, Clock

_BACKOFF = Backoff(first=0.25, longest=8.0, jitter=0.2)


@frozen
class Entry:
    """One way to make the call: who answers, with which model, and how often to try."""

    provider: str
    model: str
    call: Callable[..., Any]
    """Any callable: a plain function, an async one, or one that returns a stream."""
    attempts: int = 1
    backoff: Backoff = _BACKOFF
    capabilities: frozenset[str] | None = None
    """What this entry can do; `None` when nobody said, which is taken for everything."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"entry {self.provider}/{self.model}: `attempts` must be at least 1")

    def lacks(self, needs: Iterable[str]) -> list[str]:
        """What a call needs and this entry cannot do."""
        return [] if self.capabilities is None else sorted(set(needs) - self.capabilities)


@frozen
class ChainPolicy:
    """How a chain behaves beyond its entries."""

    cooldown: float = 30.0
    """Seconds a rate-limited provider is passed over."""
    idempotent: bool | None = None
    """Whether a repeat is harmless although the outcome is unknown."""
    longest_wait: float = 8.0
    """A longer wait than this is not waited for while there is another entry."""
    refresh: Callable[[str], bool] | None = None
    """Renews a provider's credentials; tried once per provider, `True` if it worked."""
    before: Callable[[Entry], None] | None = None
    """Called before every attempt; raising stops the chain, which is how a budget says no."""


class _Call(NamedTuple):
    entry: Entry


class _Wait(NamedTuple):
    seconds: float


class _Failed(NamedTuple):
    error: Exception
    visible: bool = False


_Step = _Call | _Wait
_Steps = Generator[_Step, _Failed | None, None]


class Chain:
    """Entries in order. One instance serves one line of work: its cool-downs are its memory."""

    def __init__(
        self,
        *entries: Entry,
        policy: ChainPolicy | None = None,
        clock: Clock = SYSTEM_CLOCK,
        luck: Callable[[], float] = random.random,
        cancel: CancelScope | None = None,
    ) -> None:
        if not entries:
            raise ValueError("a chain needs at least one entry")
        self.entries = entries
        self.policy = policy or ChainPolicy()
        self.ledger = Ledger(layer="chain")
        """What the last call did."""
        self.clock = clock
        self.luck = luck
        self.cancel = cancel
        self.cooling: dict[str, float] = {}
        self.refreshed: set[str] = set()

    def call(self, *args: Any, needs: Iterable[str] = (), **kwargs: Any) -> Any:
        """Make the call; what the first entry that works returns."""
        run = _Pass(self, tuple(needs))
        step = run.begin()
        while True:
            if isinstance(step, _Wait):
                run.wait(step.seconds)
                step = run.advance(None)
                continue
            try:
                value = step.entry.call(*args, **kwargs)
            except (
                Exception
            ) as error:  # (the chain decides about every failure and raises what it does not pass on)
                step = run.advance(_Failed(error))
            else:
                run.succeeded(step.entry)
                return value

    async def acall(self, *args: Any, needs: Iterable[str] = (), **kwargs: Any) -> Any:
        """`call`, for entries whose callables are async."""
        run = _Pass(self, tuple(needs))
        step = run.begin()
        while True:
            if isinstance(step, _Wait):
                await run.wait_async(step.seconds)
                step = run.advance(None)
                continue
            try:
                value = await cast("Awaitable[Any]", step.entry.call(*args, **kwargs))
            except Exception as error:  # noqa: BLE001  (see `call`)
                step = run.advance(_Failed(error))
            else:
                run.succeeded(step.entry)
                return value

    def stream(self, *args: Any, needs: Iterable[str] = (), **kwargs: Any) -> Iterator[Any]:
        """Yield the chunks of the first entry that answers; no hand-over after the first chunk."""
        run = _Pass(self, (*needs, "streaming"))
        step = run.begin()
        while True:
            if isinstance(step, _Wait):
                run.wait(step.seconds)
                step = run.advance(None)
                continue
            shown = False
            try:
                for chunk in step.entry.call(*args, **kwargs):
                    shown = True
                    yield chunk
            except Exception as error:  # noqa: BLE001  (see `call`)
                step = run.advance(_Failed(error, visible=shown))
            else:
                run.succeeded(step.entry)
                return

    async def astream(self, *args: Any, needs: Iterable[str] = (), **kwargs: Any) -> AsyncIterator[Any]:
        """`stream`, for entries that return async iterators (or awaitables of them)."""
        from inspect import isawaitable

        run = _Pass(self, (*needs, "streaming"))
        step = run.begin()
        while True:
            if isinstance(step, _Wait):
                await run.wait_async(step.seconds)
                step = run.advance(None)
                continue
            shown = False
            try:
                source = step.entry.call(*args, **kwargs)
                async for chunk in await source if isawaitable(source) else source:
                    shown = True
                    yield chunk
            except Exception as error:  # noqa: BLE001  (see `call`)
                step = run.advance(_Failed(error, visible=shown))
            else:
                run.succeeded(step.entry)
                return


class _Pass:
    """One call through the chain: a generator says the next step, the driver carries it out."""

    def __init__(self, chain: Chain, needs: tuple[str, ...]) -> None:
        self.chain = chain
        self.needs = needs
        self.rows: list[Attempt] = []
        self.last: Exception | None = None
        self.scope = chain.cancel or current_scope()
        self._steps = self._go()

    def begin(self) -> _Step:
        """The first step."""
        return self.advance(None)

    def advance(self, outcome: _Failed | None) -> _Step:
        """The next step after `outcome`; raises what the caller has to see when there is none."""
        try:
            return self._steps.send(outcome)
        except StopIteration:
            raise self._exhausted() from self.last

    def succeeded(self, entry: Entry) -> None:
        """Close the books on a call that worked."""
        self._row(entry, None, "answered")
        self._close("answered")
        self._steps.close()

    def wait(self, seconds: float) -> None:
        """Wait, unless the scope is stopped first."""
        clock = self.chain.clock
        if self.scope is not None:
            self.scope.wait(seconds, clock)
        else:
            clock.sleep(seconds)

    async def wait_async(self, seconds: float) -> None:
        """Wait without blocking the event loop, unless the scope is stopped first."""
        clock = self.chain.clock
        if self.scope is not None:
            await self.scope.wait_async(seconds, clock)
        else:
            await clock.asleep(seconds)

    def _go(self) -> _Steps:
        chain = self.chain
        for place, entry in enumerate(chain.entries):
            self._check()
            skipped = self._skip(entry)
            if skipped is not None:
                self._row(entry, None, f"skipped: {skipped}")
                continue
            left = entry.attempts
            tries = 0
            while left > 0:
                self._check()
                if chain.policy.before is not None:
                    chain.policy.before(entry)
                tries += 1
                left -= 1
                failed = yield _Call(entry)
                assert failed is not None  # (the driver sends the outcome of every call)
                report = self._judge(failed, entry)
                verdict, wait = self._verdict(
                    failed, report, entry, tries, left, is_last=place == len(chain.entries) - 1
                )
                self._row(entry, report, verdict)
                if verdict == "refreshed":
                    left += 1
                elif verdict == "onwards":
                    break
                elif verdict != "again":
                    self._close(verdict)
                    attach(failed.error, chain.ledger)
                    raise failed.error
                elif left > 0 and wait > 0:
                    yield _Wait(wait)

    def _judge(self, failed: _Failed, entry: Entry) -> ErrorReport:
        self.last = failed.error
        if self.scope is not None and self.scope.cancelled:
            # A cancelled call often comes back as a broken connection; it was cancelled all the same.
            self._close("it was cancelled")
            raise self.scope.fault() from failed.error
        return describe(
            failed.error, provider=entry.provider, model=entry.model, idempotent=self.chain.policy.idempotent
        )

    def _verdict(
        self, failed: _Failed, report: ErrorReport, entry: Entry, tries: int, left: int, *, is_last: bool
    ) -> tuple[str, float]:
        if failed.visible:
            return "part of the answer has already been seen", 0.0
        if report.kind == "provider.auth":
            return (
                ("refreshed", 0.0) if self._refresh(entry.provider) else ("the credentials were refused", 0.0)
            )
        if report.kind == "provider.rate_limited":
            told = 0.0 if report.not_before is None else report.not_before.after
            until = self.chain.clock.monotonic() + max(self.chain.policy.cooldown, told)
            self.chain.cooling[entry.provider] = until
        if report.category is Category.CAPACITY:
            return "onwards", 0.0
        if not report.retryable:
            return f"a {report.category} failure stops the chain", 0.0
        if left == 0:
            return "onwards", 0.0
        wait = entry.backoff.wait(tries, self.chain.luck())
        if report.not_before is not None:
            wait = report.not_before.after
        if wait > self.chain.policy.longest_wait and not is_last:
            return "onwards", 0.0
        return "again", wait

    def _skip(self, entry: Entry) -> str | None:
        cooling = self.chain.cooling.get(entry.provider)
        now = self.chain.clock.monotonic()
        if cooling is not None and now < cooling:
            return f"{entry.provider} cools down for {cooling - now:.1f} s"
        lacking = entry.lacks(self.needs)
        return f"cannot do {', '.join(lacking)}" if lacking else None

    def _refresh(self, provider: str) -> bool:
        hook = self.chain.policy.refresh
        if hook is None or provider in self.chain.refreshed:
            return False
        self.chain.refreshed.add(provider)
        try:
            return hook(provider) is True
        except Exception:  # noqa: BLE001  (a refresh that fails is a refresh that did not work; it may carry a secret)
            return False

    def _check(self) -> None:
        if self.scope is not None and self.scope.cancelled:
            self._close("it was cancelled")
            raise self.scope.fault()

    def _row(self, entry: Entry, report: ErrorReport | None, reason: str) -> None:
        self.rows.append(
            Attempt(
                number=len(self.rows) + 1,
                kind=None if report is None else report.kind,
                certainty=None if report is None else report.certainty,
                provider=entry.provider,
                model=entry.model,
                reason=reason,
            )
        )

    def _close(self, why: str) -> None:
        self.chain.ledger = Ledger(layer="chain", attempts=tuple(self.rows), stopped=why)

    def _exhausted(self) -> Exception:
        self._close("every entry was tried")
        if self.last is None:
            self._close("every entry was passed over")
            made: Exception = ProviderCapability(
                kind="provider.unknown", message="every entry of the chain was passed over; nobody was called"
            )
        else:
            made = self.last
        attach(made, self.chain.ledger)
        return made
