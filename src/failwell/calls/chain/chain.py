"""A call with alternatives: entries are tried in order, each with its own attempts, until one succeeds.

Only failures that another provider might not have lead to the next entry; an invalid call stops the chain. No other entry is tried once the caller has seen a part of the answer. Every attempt is in the
ledger with its tokens and its price, and so is every entry that was passed over, with the reason.
"""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable, Iterator
from contextvars import ContextVar
from types import NoneType
from typing import Any, Generic, TypeAlias, TypeVar, Unpack, overload

from failwell.calls.argument_checks import check_type
from failwell.calls.chain.call import Call, CallFailure, ChainCall, Hook, HookAnswer, Step, Wait
from failwell.calls.chain.entry import ChainPolicy, ChainReply, Entry, PassedEntry, ReplySource
from failwell.calls.circuit_breaker import LONGEST_REST, Scope, scope_of
from failwell.calls.cost import Prices
from failwell.calls.guard import Guard
from failwell.calls.retry_options import LoopParameters, merge_options
from failwell.calls.streams.repeat import open_async_source, open_source
from failwell.calls.suppress import catch, catch_async
from failwell.errors.context import Ledger
from failwell.errors.report import ErrorReport

_T = TypeVar("_T")
_R_co = TypeVar("_R_co", covariant=True)
_END: Any = object()
_MOST_RECENT = 8
_Served: TypeAlias = tuple[Entry[Any], list[PassedEntry]]
"""The entry that served a call, and those that were passed over."""
_recent: ContextVar[tuple[tuple[object, Ledger, _Served | None], ...]] = ContextVar(
    "failwell_chain_ledgers", default=()
)
"""The latest ledger of each of the chains that this context called last."""


class Chain(Generic[_R_co]):
    """Entries in order, tried until one answers.

    A chain may be shared: it remembers which accounts and models cool down after a rate limit. It also remembers the
    provider that was called last and removes reasoning from the messages when the provider changes, so a conversation
    whose reasoning must be kept needs a chain of its own.

    Args:
        entries: The providers to try, in order of preference.
        policy: How the chain behaves beyond its entries.
        prices: What the models cost; the public list by default, where `genai-prices` is installed.
        parameters: As in `retry`: `name`, `guard`, `budget`, `watcher`, `cancel`, `clock` and `jitter`.

    Raises:
        TypeError: a parameter has the wrong type.
        ValueError: there is no entry.
    """

    def __init__(
        self,
        *entries: Entry[_R_co],
        policy: ChainPolicy | None = None,
        prices: Prices | None = None,
        **parameters: Unpack[LoopParameters],
    ) -> None:
        if not entries:
            raise ValueError("a chain needs at least one entry")
        for entry in entries:
            check_type("entries", entry, Entry, "entries, each an `Entry(provider=…, model=…, call=…)`")
        check_type("policy", policy, (ChainPolicy, NoneType), "a `ChainPolicy`")
        check_type("prices", prices, (Prices, NoneType), "`Prices`")
        self.entries = entries
        self.policy = policy or ChainPolicy()
        self.prices = prices or Prices()
        # Each entry is guarded for itself, by its provider.
        self.guard = parameters.pop("guard", None)
        check_type("guard", self.guard, (Guard, NoneType), "a `Guard`")
        self.options = merge_options({"name": "chain"}, **parameters)
        repeats = self.policy.repeat_exhausted
        self.plans = [
            (
                entry.policy(self.policy.longest_wait, repeat_exhausted=repeats),
                entry.policy(repeat_exhausted=repeats),
            )
            for entry in entries
        ]
        """Each entry's policy while there is another entry, and when there is none."""
        self.most = sum(entry.attempts for entry in entries)
        """Calls that one call of the chain makes at most."""
        self._identity = object()
        self.cooling: dict[Scope, float] = {}
        self.refreshed: set[str] = set()
        self.last_provider: str | None = None

    @property
    def ledger(self) -> Ledger:
        """What the latest call in this task or thread did.

        Calls that run at the same time do not see each other's. What a failed call did is also on its exception
        (`ledger_of`), and `collect_ledgers` collects the ledgers of all calls in a block.
        """
        for identity, ledger, _ in _recent.get():
            if identity is self._identity:
                return ledger
        return Ledger(layer=self.options.name or "chain")

    @property
    def source(self) -> ReplySource | None:
        """Who served the latest call in this task or thread; `None` if none was made or it failed.

        Use it after `stream` and `astream`; `reply` returns it with the value.
        """
        served = next((served for identity, _, served in _recent.get() if identity is self._identity), None)
        if served is None:
            return None
        entry, passed_over = served
        return ReplySource(
            provider=entry.provider,
            model=entry.model,
            is_primary=entry is self.entries[0],
            passed_over=tuple(passed_over),
        )

    def keep_ledger(self, ledger: Ledger, served: _Served | None = None) -> None:
        """Remember what the latest call in this context did, and who served it."""
        recent = _recent.get()
        latest = (self._identity, ledger, served)
        if not recent or (recent[0][0] is self._identity and len(recent) == 1):
            _recent.set((latest,))
        else:
            others = [call for call in recent if call[0] is not self._identity]
            _recent.set((latest, *others[: _MOST_RECENT - 1]))

    def call(self, *args: Any, needs: Iterable[str] = (), **kwargs: Any) -> _R_co:
        """Make the call; what the first entry that works returns.

        Args:
            args: Passed to the entry's callable.
            needs: Capabilities that an entry must have to be called.
            kwargs: Passed to the entry's callable.

        Raises:
            Exception: what the last entry raised, with the ledger on it.
            Parked: the only wait left is too long to sleep.
            BudgetExceeded: the budget is used up.
        """
        error: Exception | None = None
        run = ChainCall(self, tuple(needs), args, kwargs)
        run.operation.enter()
        try:
            step = run.advance()
            while not isinstance(step, Call):
                step = _carry_out(run, step)
            while True:
                value, error = catch(step)
                if error is None:
                    run.succeeded(step.entry, run.usage_of(value))
                    return value
                step = run.advance(CallFailure(error))
                while not isinstance(step, Call):
                    step = _carry_out(run, step)
        finally:
            error = None  # it is on its way out; kept here it would form a cycle with its traceback
            run.close()
            run.operation.detach()

    async def acall(self: "Chain[Awaitable[_T]]", *args: Any, needs: Iterable[str] = (), **kwargs: Any) -> _T:
        """`call`, for entries whose callables are async."""
        error: Exception | None = None
        run = ChainCall(self, tuple(needs), args, kwargs)
        run.operation.enter()
        try:
            step = run.advance()
            while True:
                if not isinstance(step, Call):
                    step = await _carry_out_async(run, step)
                    continue
                value, error = await catch_async(step)
                if error is None:
                    run.succeeded(step.entry, run.usage_of(value))
                    return value
                step = run.advance(CallFailure(error))
        finally:
            error = None  # it is on its way out; kept here it would form a cycle with its traceback
            run.close()
            run.operation.detach()

    def reply(self, *args: Any, needs: Iterable[str] = (), **kwargs: Any) -> "ChainReply[_R_co]":
        """`call`, with who served it: the entry, and those that were passed over with their failures.

        The next call begins with the first entry again.
        """
        value = self.call(*args, needs=needs, **kwargs)
        return ChainReply(value=value, source=self._served())

    async def areply(
        self: "Chain[Awaitable[_T]]", *args: Any, needs: Iterable[str] = (), **kwargs: Any
    ) -> "ChainReply[_T]":
        """`reply`, for entries whose callables are async."""
        value = await self.acall(*args, needs=needs, **kwargs)
        return ChainReply(value=value, source=self._served())

    def _served(self) -> ReplySource:
        source = self.source
        assert source is not None  # (a call that returns was served)
        return source

    def stream(
        self: "Chain[Iterable[_T]]", *args: Any, needs: Iterable[str] = (), **kwargs: Any
    ) -> Iterator[_T]:
        """Yield the chunks of the first entry that answers; no other entry is tried after the first chunk."""
        error: Exception | None = None
        run = ChainCall(self, (*needs, "streaming"), args, kwargs)
        try:
            step = run.advance()
            while True:
                if not isinstance(step, Call):
                    step = _carry_out(run, step)
                    continue
                # Entered for the first chunk only: from then on the context of a generator is the caller's.
                run.operation.enter()
                sources: list[Any] = []
                try:
                    try:
                        chunk, error = catch(self._open, step, sources)
                    finally:
                        run.operation.detach()
                    while error is None and chunk is not _END:
                        run.show(chunk)
                        yield chunk
                        chunk, error = catch(next, sources[-1], _END)
                finally:
                    for source in sources[-1:]:
                        if hasattr(source, "close"):
                            source.close()
                if error is None:
                    run.succeeded(step.entry, run.usage)
                    return
                step = run.advance(CallFailure(error, run.is_visible, run.usage))
        finally:
            error = None  # see `call`
            run.close()

    @overload
    def astream(
        self: "Chain[Awaitable[AsyncIterable[_T]]]", *args: Any, needs: Iterable[str] = (), **kwargs: Any
    ) -> AsyncIterator[_T]: ...

    @overload
    def astream(
        self: "Chain[AsyncIterable[_T]]", *args: Any, needs: Iterable[str] = (), **kwargs: Any
    ) -> AsyncIterator[_T]: ...

    async def astream(
        self: "Chain[Any]", *args: Any, needs: Iterable[str] = (), **kwargs: Any
    ) -> AsyncIterator[Any]:
        """`stream`, for entries that return async iterators (or awaitables of them)."""
        error: Exception | None = None
        run = ChainCall(self, (*needs, "streaming"), args, kwargs)
        try:
            step = run.advance()
            while True:
                if not isinstance(step, Call):
                    step = await _carry_out_async(run, step)
                    continue
                sources: list[Any] = []
                try:
                    # See `stream`: entered for the first chunk only.
                    run.operation.enter()
                    try:
                        chunk, error = await catch_async(self._open_async, step, sources)
                    finally:
                        run.operation.detach()
                    while error is None and chunk is not _END:
                        run.show(chunk)
                        yield chunk
                        chunk, error = await catch_async(anext, sources[-1], _END)
                finally:
                    for source in sources[-1:]:
                        if hasattr(source, "aclose"):
                            # Otherwise it would be closed some time later, with its connection open until then.
                            await source.aclose()
                if error is None:
                    run.succeeded(step.entry, run.usage)
                    return
                step = run.advance(CallFailure(error, run.is_visible, run.usage))
        finally:
            error = None  # see `call`
            run.close()

    def _open(self, step: Call, sources: list[Any]) -> Any:
        """The first chunk of a call's stream; the stream is left in `sources`, to be closed even if this fails."""
        timeouts = step.entry.stream or self.policy.stream
        sources.append(iter(open_source(step, timeouts, self.options.clock)))
        return next(sources[-1], _END)

    async def _open_async(self, step: Call, sources: list[Any]) -> Any:
        """`_open` for an async stream, or for the awaitable of one."""
        timeouts = step.entry.stream or self.policy.stream
        source = open_async_source(step, timeouts, self.options.clock)
        sources.append(source)
        if hasattr(source, "__await__"):
            source = await source
        sources[:] = [aiter(source)]
        return await anext(sources[0], _END)

    def skips(self, entry: Entry[Any], needs: Iterable[str]) -> str | None:
        """Why `entry` is not called now, or `None`."""
        if self.cooling:
            now = self.options.clock.monotonic()
            for scope in entry.called.scopes():
                cooling = self.cooling.get(scope)
                if cooling is not None and now < cooling:
                    return f"{'/'.join(filter(None, scope))} cools down for {cooling - now:.1f} s"
        lacking = entry.lacks(needs)
        if lacking:
            return f"cannot do {', '.join(lacking)}"
        closed = None if self.guard is None else self.guard.closed(entry.called)
        return None if closed is None else str(closed)

    def cool(self, entry: Entry[Any], report: ErrorReport) -> None:
        """Skip the account or model that a rate limit is about for a while."""
        if report.kind == "provider.rate_limited":
            requested = 0.0 if report.not_before is None else report.not_before.after
            rest = max(self.policy.cooldown, min(requested, LONGEST_REST))
            until = self.options.clock.monotonic() + rest
            self.cooling[scope_of(report, entry.called)] = until


def _carry_out(run: ChainCall, step: Wait | Hook) -> Step:
    if isinstance(step, Wait):
        run.operation.wait(step.seconds)
        return run.advance()
    value, error = catch(step)
    return run.advance(HookAnswer(value) if error is None else CallFailure(error))


async def _carry_out_async(run: ChainCall, step: Wait | Hook) -> Step:
    if isinstance(step, Wait):
        await run.operation.wait_async(step.seconds)
        return run.advance()
    value, error = await catch_async(step)
    return run.advance(HookAnswer(value) if error is None else CallFailure(error))


__all__ = ["Chain", "ChainPolicy", "Entry"]
