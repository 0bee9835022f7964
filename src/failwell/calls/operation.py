"""One call that may be repeated, from before its first attempt to its end.

An `Operation` connects the pure loop with the call around it: cancel scope, shared budget, guard and
idempotency key. It is a context manager that is entered once for each attempt. A call that succeeds pays
for none of what only a failure needs.
"""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from datetime import timedelta
from threading import Lock
from types import TracebackType
from typing import Any, Self

from failwell.adapters.describe import describe
from failwell.calls.attempt_loop import (
    Allowed,
    AttemptFailed,
    Loop,
    OperationEnded,
    Parked,
    is_watched,
    notify,
    with_attempt,
)
from failwell.calls.budget import NO_BUDGET
from failwell.calls.cancel import current_scope
from failwell.calls.circuit_breaker import CallTarget
from failwell.calls.idempotency import KeyHolder, current_key, reset_key, set_key
from failwell.calls.policy import AskPerson, Decision, Evict, Park, Retry, Shrink
from failwell.calls.retry_options import RetryOptions
from failwell.calls.shared_budget import (
    BudgetExceeded,
    SharedBudget,
    Unpriced,
    open_budget,
    reset_open_budget,
    set_open_budget,
)
from failwell.calls.suppress import call_hook, call_hook_async
from failwell.errors.axes import Certainty
from failwell.errors.context import Ledger, attach, ledgers_attached
from failwell.errors.faults import Cancellation
from failwell.errors.report import ErrorReport

_SHORTEST_PAUSE = 0.001
"""Seconds: what is left of a pause because of rounding is not waited for."""
_HOOK_FAILED = "a hook of a retry loop failed and counts as no answer"


class _Collector:
    """What `collect_ledgers` fills: the ledgers of the outermost loops in its block."""

    __slots__ = ("ledgers", "outer")

    def __init__(self, outer: "Operation | None") -> None:
        self.outer = outer
        self.ledgers: list[Ledger] = []


_collector: ContextVar[_Collector | None] = ContextVar("failwell_ledgers", default=None)
_LOCK = Lock()


@contextmanager
def collect_ledgers() -> Generator[list[Ledger]]:
    """Collect the ledgers of the calls in the block, in the order in which they end.

    Each call of a chain has one, and each retry loop in which something failed. Loops inside other loops are in
    the ledger of the outermost. Tasks and threads that copy the context, as `gather` does, are part of the block.
    """
    collector = _Collector(current_operation())
    token = _collector.set(collector)
    try:
        yield collector.ledgers
    finally:
        _collector.reset(token)


class Operation(KeyHolder):
    """One call under `options`, entered once for each attempt: `with operation: …`, then `operation.wait()`.

    A failure that may be repeated is swallowed and `delay` is set. Any other leaves the block with the ledger
    attached to it.
    """

    __slots__ = (
        "_budget_token", "_cover", "_key_token", "budget", "delay", "loop", "options", "plain", "scope", "shorten",
        "since", "visible",
    )  # fmt: skip

    def __init__(self, options: RetryOptions) -> None:
        self.options = options
        self.outer = outer = current_key()
        if outer is not None and outer.pinned:
            self.value, self.pinned = outer.value, True
        else:
            self.value, self.pinned = None, False
        self.loop: Loop | None = None
        self.since = ledgers_attached[0]
        """Ledgers that were attached before this attempt: none of them is from a loop inside it."""
        self.shorten: Callable[[], bool | Awaitable[bool]] | None = None
        """Shortens the messages of the call and returns whether it could; called once, if they are too long."""
        self.visible = False
        """Whether the caller has seen a part of the result, which rules a repeat out."""
        self.scope = scope = options.cancel or current_scope()
        self.budget = options.budget or open_budget()
        self.plain = True
        """Whether a success has nothing to check or record, as long as nothing has failed."""
        if scope is not None or self.budget is not None or options.has_limits:
            self.plain = scope is None and options.guard is None
            self._prepare()

    delay: float | None
    """Seconds from the latest failure to the next attempt; `None` when there is none."""

    def _prepare(self) -> None:
        options = self.options
        self._cover: list[bool] = []
        """Holds one item while the first attempt of an inner loop is covered by the attempt taken last."""
        if options.policy.budget is not NO_BUDGET:
            self.budget = SharedBudget(options.policy.budget, clock=options.clock, parent=self.budget)
        if self.scope is not None:
            self.scope.check()
        if self.budget is not None:
            if options.model is not None and self.budget.refuses_unpriced:
                raise Unpriced(
                    target=f"{options.provider}/{options.model}" if options.provider else options.model,
                    advice="A retry loop reads no prices: call the model through a `Chain`",
                    provider=options.provider,
                    model=options.model,
                    certainty=Certainty.NOT_SENT,
                )
            refusal = self.take()
            if refusal is not None:
                raise BudgetExceeded(why=refusal, provider=options.provider, model=options.model)
        if options.guard is not None:
            closed = options.guard.refuses(self.called)
            if closed is not None:
                raise closed

    @property
    def called(self) -> CallTarget:
        """Who is called, for the guard."""
        options = self.options
        return CallTarget(options.provider or "", options.account, options.model)

    def enter(self) -> Self:
        """Make this the operation of the running context; `detach` takes it out again."""
        self._key_token: Token[KeyHolder | None] | None = set_key(self)
        if self.budget is not None:
            self._budget_token: Token[SharedBudget | None] = set_open_budget(self.budget)
        return self

    __enter__ = enter

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        if error is None and self.loop is None and self.plain:
            # The common case, written out because each call counts here.
            token = self._key_token
            if token is not None:
                reset_key(token)
                if self.budget is not None:
                    reset_open_budget(self._budget_token)
            if self.outer is not None:
                self._report_success()
            return False
        try:
            if error is None:
                self.succeeded()
            elif isinstance(error, Exception):
                return self._is_swallowed(error)
            else:
                self.abandoned()
        finally:
            self.detach()
        return False

    def _is_swallowed(self, error: Exception) -> bool:
        # Hooks run inside the operation, so that they see its key.
        self.delay = self.failed(error)
        return self.delay is not None

    async def __aenter__(self) -> Self:
        if self.options.guard is not None:
            await self.hold_async()
        return self.enter()

    async def __aexit__(
        self, cls: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return self.__exit__(cls, error, trace)
        try:
            self.delay = await self.failed_async(error)
            return self.delay is not None
        finally:
            self.detach()

    def detach(self) -> None:
        """Take the operation out of the running context. Harmless twice."""
        token = self._key_token
        if token is not None:
            self._key_token = None
            reset_key(token)
            if self.budget is not None:
                reset_open_budget(self._budget_token)

    def succeeded(self) -> None:
        """Record a call that worked.

        Raises:
            Cancellation: the scope was stopped meanwhile, which beats every other outcome.
        """
        loop = self.loop
        options = self.options
        if options.guard is not None:
            options.guard.succeeded(self.called)
        if self.scope is not None and self.scope.cancelled:
            raise self.stopped()
        if loop is None:
            self._report_success()
            return
        if not loop.tries:
            # Only loops inside it have failed; a loop around it may need their ledgers.
            for ledger in loop.inner:
                self.report_ledger(ledger)
            self._report_success()
            return
        loop.record(None, None, called=(options.provider, options.model))
        watched = is_watched(options.watcher)
        if not watched and self.outer is None and _collector.get() is None:
            return
        ledger = loop.ledger()
        self.report_ledger(ledger)
        if watched:
            notify(OperationEnded(ledger=ledger, succeeded=True), options.watcher)

    def abandoned(self) -> None:
        """Record a call that ended in something that is no failure, such as an interrupt or a closed stream."""
        guard = self.options.guard
        if guard is not None:
            # A stream that was closed early has answered.
            (guard.succeeded if self.visible else guard.abandoned)(self.called)

    def failed(self, error: Exception) -> float | None:
        """Seconds to wait before the next attempt, or `None` when `error` has to be raised.

        Raises:
            Parked: the wait is too long to sleep.
            Cancellation: the scope around this was stopped, which beats every other outcome.
        """
        decision, report = self._decide(error)
        hook = self._hook(decision)
        answer = None if hook is None else call_hook(hook, report, reason=_HOOK_FAILED)
        return self._conclude(error, decision, report, answer)

    async def failed_async(self, error: Exception) -> float | None:
        """`failed`, with hooks that may be async."""
        decision, report = self._decide(error)
        hook = self._hook(decision)
        answer = None
        if hook is not None:
            answer = await call_hook_async(hook, report, reason=_HOOK_FAILED)
            if self.scope is not None and self.scope.cancelled:
                raise self.stopped() from error
        return self._conclude(error, decision, report, answer)

    def wait(self, seconds: float | None = None) -> None:
        """Wait for `delay`, or for `seconds`, unless the scope is stopped first."""
        self._sleep((self.delay or 0.0) if seconds is None else seconds)
        if self.options.guard is not None:
            self.hold()

    def hold(self) -> None:
        """Wait until the delay is over that the provider requested from somebody else who uses the guard.

        Raises:
            Parked: the wait is too long to sleep.
            Cancellation: the scope was stopped meanwhile.
        """
        while (seconds := self._pause()) is not None:
            self._sleep(seconds)

    async def hold_async(self) -> None:
        """`hold` without blocking the event loop."""
        while (seconds := self._pause()) is not None:
            await self._sleep_async(seconds)

    def _pause(self) -> float | None:
        """Seconds until the guard lets calls through again; `None` if it does."""
        guard = self.options.guard
        paused = None if guard is None else guard.paused(self.called)
        if guard is None or paused is None or paused.not_before is None:
            return None
        seconds = paused.not_before.after
        if seconds < _SHORTEST_PAUSE:
            return None
        options = self.options
        budgets = () if self.budget is None else self.budget.lines()
        is_late = any(
            budget.seconds is not None and spent.seconds + seconds > budget.seconds
            for budget, spent in budgets
        )
        if not is_late and seconds <= options.policy.in_process_limit:
            return seconds
        # Nothing was sent, so a probe that was admitted is free again.
        guard.abandoned(self.called)
        if is_late:
            raise paused
        at = options.clock.now() + timedelta(seconds=seconds)
        raise Parked(resume_at=at, waits_for="the provider requested a delay", caller_facing=True) from paused

    def _sleep(self, seconds: float) -> None:
        if self.scope is None:
            if seconds > 0:
                self.options.clock.sleep(seconds)
            return
        try:
            self.scope.wait(seconds, self.options.clock)
        except Cancellation:
            raise self.stopped() from None

    async def wait_async(self, seconds: float | None = None) -> None:
        """`wait` without blocking the event loop."""
        await self._sleep_async((self.delay or 0.0) if seconds is None else seconds)
        if self.options.guard is not None:
            await self.hold_async()

    async def _sleep_async(self, seconds: float) -> None:
        if self.scope is None:
            if seconds > 0:
                await self.options.clock.asleep(seconds)
            return
        try:
            await self.scope.wait_async(seconds, self.options.clock)
        except Cancellation:
            raise self.stopped() from None

    def _decide(self, error: Exception) -> tuple[Decision, ErrorReport]:
        options = self.options
        idempotent = True if options.keyed and self.value is not None else options.idempotent
        loop = self.failing_loop()
        can_shrink = self.shorten is not None
        if idempotent is not loop.allowed.idempotent or can_shrink is not loop.allowed.shrink:
            loop.allowed = loop.allowed._replace(idempotent=idempotent, shrink=can_shrink)
        if self.scope is not None and self.scope.cancelled:
            raise self.stopped() from error
        report = describe(
            error, provider=options.provider, model=options.model, origin="call", idempotent=idempotent
        )
        if options.guard is not None:
            options.guard.failed(self.called, report)
        decision, report = loop.failed(
            report,
            error,
            since=self.since,
            called=(options.provider, options.model),
            jitter=options.jitter(),
            budgets=() if self.budget is None else self.budget.lines(),
            visible=self.visible,
        )
        self.since = ledgers_attached[0]
        return decision, report

    def failing_loop(self) -> Loop:
        """The loop of this operation, which exists from the first failure in it on."""
        with _LOCK:
            if self.loop is None:
                options = self.options
                allowed = Allowed(
                    options.idempotent,
                    evict=options.evict is not None,
                    park=True,
                    ask=options.reconcile is not None,
                )
                self.loop = Loop(options.policy, name=options.name or "call", allowed=allowed)
            return self.loop

    def report_ledger(self, ledger: Ledger) -> None:
        """Pass the ledger of a loop that has ended to the loop around this one, and to `collect_ledgers`."""
        outer = None if self.outer is None else self._outer_operation()
        if outer is not None:
            outer.failing_loop().ended_inside(ledger)
        collector = _collector.get()
        if collector is not None and collector.outer is outer:
            collector.ledgers.append(ledger)

    def _report_success(self) -> None:
        """Tell the loop around this one that something inside it has succeeded."""
        outer = self._outer_operation()
        if outer is not None and outer.loop is not None:
            outer.loop.failed_inside = None

    @property
    def is_nested(self) -> bool:
        """Whether a loop around this one decides about a failure that leaves it."""
        return self._outer_operation() is not None

    def _outer_operation(self) -> "Operation | None":
        outer = self.outer
        while outer is not None and not isinstance(outer, Operation):
            outer = outer.outer
        return outer

    def _hook(self, decision: Decision) -> Callable[[ErrorReport], Any] | None:
        """The hook whose answer the decision depends on."""
        if isinstance(decision, Evict):
            return self.options.evict
        if isinstance(decision, Shrink):
            return self._shorten
        return self.options.reconcile if isinstance(decision, AskPerson) else None

    def _shorten(self, _report: ErrorReport) -> Any:
        assert self.loop is not None  # (`_decide` creates it)
        assert self.shorten is not None  # (only then it is decided so)
        self.loop.shrink()
        return self.shorten()

    def _conclude(
        self, error: Exception, decision: Decision, report: ErrorReport, answer: Any
    ) -> float | None:
        loop = self.loop
        assert loop is not None  # (`_decide` creates it)
        wait, refusal = _wait_of(decision, answer)
        is_exhausted = False
        if isinstance(error, Parked):
            # An inner loop has parked it; parking it again would only hide the ledger.
            wait, refusal = None, "it is parked"
        if wait is not None:
            refusal = self._refusal()
            is_exhausted = refusal is not None
            wait = wait if refusal is None else None
        options = self.options
        row = loop.record(
            report,
            decision,
            wait=wait,
            refused=refusal,
            exhausted=is_exhausted,
            called=(options.provider, options.model),
        )
        watched = is_watched(options.watcher)
        if watched:
            # A loop around this one decides about a failure that leaves it.
            is_handled = wait is not None or self.is_nested
            notified = with_attempt(report, row, handled=is_handled)
            notify(AttemptFailed(layer=loop.name, attempt=row, report=notified), options.watcher)
        if wait is not None:
            # What failed in a hook or a watcher is not the failure of the next attempt.
            loop.failed_inside = None
            return wait
        ledger = loop.ledger()
        attach(error, ledger)
        self.report_ledger(ledger)
        if watched:
            notify(OperationEnded(ledger=ledger, succeeded=False), options.watcher)
        if loop.broken is not None:
            attach(loop.broken, ledger)
            raise _with_failure(loop.broken, error)
        if isinstance(decision, Park) and refusal is None:
            at = options.clock.now() + timedelta(seconds=decision.after)
            parked = Parked(resume_at=at, waits_for=decision.why, caller_facing=True)
            attach(parked, ledger)
            raise parked from error
        return None

    def _refusal(self) -> str | None:
        """Why there is no further attempt although the policy allows one."""
        guard = self.options.guard
        if guard is not None:
            if not guard.may_retry(self.called):
                return "the retry bucket of this provider is empty"
            closed = guard.refuses(self.called)
            if closed is not None:
                return str(closed)
        return None if self.budget is None else self.take()

    def take(self) -> str | None:
        """Take an attempt from the budget; `None`, or why there is none left.

        The first attempt of an inner loop is covered by the attempt around it.
        """
        assert self.budget is not None  # (called only then)
        outer = self._outer_operation()
        covered_by = None
        if outer is not None and outer.budget is not None and outer._claim_cover():  # noqa: SLF001  (the same class)
            covered_by = outer.budget
        refusal = self.budget.take(below=covered_by)
        if refusal is None:
            self._cover[:] = [True]
        return refusal

    def _claim_cover(self) -> bool:
        try:
            # One step, so that of several threads only one is covered.
            return self._cover.pop()
        except IndexError:
            return False

    def stopped(self) -> Cancellation:
        """The fault that says the scope was stopped, with the attempts so far."""
        assert self.scope is not None  # (only a scope can be stopped)
        fault = self.scope.fault()
        if self.loop is not None:
            self.loop.stopped = "it was cancelled"
            ledger = self.loop.ledger()
            attach(fault, ledger)
            self.report_ledger(ledger)
        return fault


def current_operation() -> Operation | None:
    """The innermost operation that this runs in."""
    holder = current_key()
    while holder is not None and not isinstance(holder, Operation):
        holder = holder.outer
    return holder


class AsyncOperation(Operation):
    """An operation whose failures are decided about in `conclude`, because hooks may be async.

    A call that works then costs no coroutine beside its own.
    """

    __slots__ = ("_failure",)

    def _is_swallowed(self, error: Exception) -> bool:
        self._failure: Exception | None = error
        return True

    async def conclude(self) -> None:
        """Wait for the next attempt, or raise the failure if there is none."""
        error, self._failure = self._failure, None
        assert error is not None  # (only a failure leads here)
        self.enter()
        try:
            self.delay = await self.failed_async(error)
            if self.delay is None:
                raise error
        finally:
            self.detach()
            del error  # kept here it would form a cycle with its traceback
        await self.wait_async()


class StreamOperation(Operation):
    """The operation of a generator. What the caller throws into it is no failure of the call."""

    __slots__ = ("thrown",)

    def __init__(self, options: RetryOptions) -> None:
        super().__init__(options)
        self.thrown: BaseException | None = None
        """What the caller threw in last."""

    def _is_swallowed(self, error: Exception) -> bool:
        if error is self.thrown:
            self.abandoned()
            return False
        return super()._is_swallowed(error)

    async def failed_async(self, error: Exception) -> float | None:
        """`Operation.failed_async`, unless the caller threw `error` in."""
        if error is self.thrown:
            self.abandoned()
            return None
        return await super().failed_async(error)


def _with_failure(broken: Exception, failure: Exception) -> Exception:
    """The error of a policy, with the failure that it could not be applied to at the end of its causes."""
    cause = broken.__cause__
    if cause is not None and cause is not failure and cause.__context__ is None:
        cause.__context__ = failure
    return broken


def _wait_of(decision: Decision, answer: Any) -> tuple[float | None, str | None]:
    """The wait that a decision allows, after a hook's answer, or why it allows none."""
    if isinstance(decision, Retry):
        return decision.after, None
    if isinstance(decision, Evict):
        return (0.0, None) if answer is True else (None, "nothing could be freed")
    if isinstance(decision, Shrink):
        return (0.0, None) if answer is True else (None, "the messages could not be shortened")
    if isinstance(decision, AskPerson):
        # Only a clear "it was not done" makes a repeat safe.
        if answer is False:
            return decision.after, None
        return None, "the work was done" if answer is True else "it is unknown whether the work was done"
    return None, None
