"""One call that may be repeated, from before its first attempt to its end.

It stands between the pure loop and the drivers: it asks the loop, and knows the scope, the budget, the
guard and the key. A call that succeeds pays for none of what only a failure needs.
"""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from datetime import timedelta
from os import urandom
from typing import Any

from failwell.decision.breaker import Called
from failwell.decision.budget import NO_BUDGET
from failwell.decision.policy import Policy
from failwell.decision.verdict import Ask, Decision, Evict, Park, Retry
from failwell.fault.classes import Cancellation
from failwell.fault.frozen import frozen
from failwell.report.describe import describe
from failwell.report.ledger import attach, ledger_of
from failwell.report.record import ErrorReport
from failwell.runtime.cancel import CancelScope, current_scope
from failwell.runtime.clock import SYSTEM_CLOCK, Clock, random_jitter
from failwell.runtime.guard import Guard
from failwell.runtime.loop import Allowed, Ended, Loop, Parked, Tried, Watcher, is_watched, notify
from failwell.runtime.shared_budget import (
    BudgetExceeded,
    SharedBudget,
    open_budget,
    reset_open_budget,
    set_open_budget,
)
from failwell.runtime.suppress import record_suppressed, suppressed


class OneKey:
    """The key of one operation; it does not exist before somebody asks."""

    __slots__ = ("around", "pinned", "value")

    def __init__(self, value: str | None = None, around: "OneKey | None" = None) -> None:
        self.value = value
        self.around = around
        self.pinned = value is not None
        """Whether it was brought from outside, so that loops below use it too."""


_key: ContextVar[OneKey | None] = ContextVar("failwell_key", default=None)
current_key = _key.get
set_key = _key.set
reset_key = _key.reset


def idempotency_key() -> str:
    """The key of the operation this runs in: the same in each of its attempts.

    Outside any loop every call makes a new one.
    """
    held = _key.get()
    if held is None:
        return urandom(16).hex()
    if held.value is None:
        held.value = urandom(16).hex()
    return held.value


@contextmanager
def keyed(key: str) -> Generator[None]:
    """Let everything in the block that asks for a key get this one.

    Raises:
        ValueError: the key is empty.
    """
    if not key:
        raise ValueError("an idempotency key must not be empty")
    token = _key.set(OneKey(key, _key.get()))
    try:
        yield
    finally:
        _key.reset(token)


@frozen
class Retrying:
    """How a call is repeated: the policy, and everything that is injected."""

    policy: Policy = Policy()
    layer: str = "call"
    idempotent: bool | None = None
    """Whether a repeat is harmless although the outcome is unknown."""
    keyed: bool = False
    """Whether the call sends `idempotency_key()`: then an unknown outcome may be asked for again, as
    long as the attempt really took the key."""
    provider: str | None = None
    model: str | None = None
    account: str = ""
    evict: Callable[[ErrorReport], bool | Awaitable[bool]] | None = None
    """Frees what the report says is short; `False` when nothing could be freed."""
    reconcile: Callable[[ErrorReport], bool | Awaitable[bool | None] | None] | None = None
    """Says whether work with an unknown outcome was done: `True`, `False`, or `None` for "cannot tell"."""
    guard: Guard | None = None
    budget: SharedBudget | None = None
    watcher: Watcher | None = None
    clock: Clock = SYSTEM_CLOCK
    jitter: Callable[[], float] = random_jitter
    cancel: CancelScope | None = None

    def __post_init__(self) -> None:
        if self.guard is not None and self.provider is None:
            raise ValueError("a guard needs to know the `provider` whose calls it counts")


class Operation(OneKey):
    """One call through `how`. Made before the first attempt; one object for all of them."""

    __slots__ = ("_tokens", "budget", "how", "loop", "plain", "scope", "spare")

    def __init__(self, how: Retrying) -> None:
        self.how = how
        self.around = around = current_key()
        if around is not None and around.pinned:
            self.value, self.pinned = around.value, True
        else:
            self.value, self.pinned = None, False
        self.loop: Loop | None = None
        self.scope = scope = how.cancel or current_scope()
        self.budget = how.budget or open_budget()
        self.plain = scope is None and how.guard is None
        """Whether a success has nothing to be checked or noted, as long as nothing has failed."""
        if self.budget is not None or not self.plain or how.policy.budget is not NO_BUDGET:
            self._prepare()

    def _prepare(self) -> None:
        how = self.how
        self.spare: list[bool] = []
        if how.policy.budget is not NO_BUDGET:
            self.budget = SharedBudget(how.policy.budget, clock=how.clock, parent=self.budget)
        if self.scope is not None:
            self.scope.check()
        if self.budget is not None:
            refused = self.take()
            if refused is not None:
                raise BudgetExceeded(why=refused)
        if how.guard is not None:
            closed = how.guard.refuses(self.called)
            if closed is not None:
                raise closed

    @property
    def called(self) -> Called:
        """Who is called, for the guard."""
        how = self.how
        return Called(how.provider or "", how.account, how.model)

    def enter(self) -> None:
        """Let everything that runs now find this operation around it."""
        self._tokens: tuple[Token[Any], Token[Any] | None] = (
            set_key(self),
            None if self.budget is None else set_open_budget(self.budget),
        )

    def leave(self) -> None:
        """Take back what `enter` did."""
        key, paid = self._tokens
        reset_key(key)
        if paid is not None:
            reset_open_budget(paid)

    def succeeded(self) -> None:
        """Take note of a call that worked.

        Raises:
            Cancellation: the scope was stopped meanwhile, which beats every other outcome.
        """
        loop = self.loop
        if self.plain and loop is None:
            return
        if self.how.guard is not None:
            self.how.guard.succeeded(self.called)
        if self.scope is not None and self.scope.cancelled:
            raise self.stopped()
        if loop is not None:
            loop.record(None, None, called=(self.how.provider, self.how.model))
            if is_watched(self.how.watcher):
                notify(Ended(ledger=loop.ledger(), succeeded=True), self.how.watcher)

    def abandoned(self) -> None:
        """Take note of a call that ended in something that is no failure, such as an interrupt."""
        if self.how.guard is not None:
            self.how.guard.abandoned(self.called)

    def failed(self, error: Exception, *, visible: bool = False) -> float | None:
        """Seconds to wait before the next attempt, or `None` when `error` has to be raised.

        Raises:
            Parked: the wait is too long to sleep.
            Cancellation: the scope around this was stopped, which beats every other outcome.
        """
        decision, report = self._judge(error, visible=visible)
        answer = self._ask(decision, report)
        return self._settle(error, decision, report, answer)

    async def failed_async(self, error: Exception, *, visible: bool = False) -> float | None:
        """`failed`, with hooks that may be async."""
        decision, report = self._judge(error, visible=visible)
        answer = self._ask(decision, report)
        if answer is not None and hasattr(answer, "__await__"):
            try:
                answer = await answer
            except Exception as problem:  # noqa: BLE001  (see `_ask`: a hook that fails has no answer)
                answer = _no_answer(problem)
            if self.scope is not None and self.scope.cancelled:
                raise self.stopped() from error
        return self._settle(error, decision, report, answer)

    def wait(self, seconds: float) -> None:
        """Wait, unless the scope is stopped first."""
        if self.scope is None:
            if seconds > 0:
                self.how.clock.sleep(seconds)
            return
        try:
            self.scope.wait(seconds, self.how.clock)
        except Cancellation:
            raise self.stopped() from None

    async def wait_async(self, seconds: float) -> None:
        """Wait without blocking the event loop, unless the scope is stopped first."""
        if self.scope is None:
            if seconds > 0:
                await self.how.clock.asleep(seconds)
            return
        try:
            await self.scope.wait_async(seconds, self.how.clock)
        except Cancellation:
            raise self.stopped() from None

    def _judge(self, error: Exception, *, visible: bool) -> tuple[Decision, ErrorReport]:
        how = self.how
        idempotent = True if how.keyed and self.value is not None else how.idempotent
        loop = self.loop
        if loop is None:
            able = Allowed(idempotent, evict=how.evict is not None, park=True, ask=how.reconcile is not None)
            loop = self.loop = Loop(how.policy, layer=how.layer, allowed=able)
        elif idempotent is not loop.allowed.idempotent:
            loop.allowed = loop.allowed._replace(idempotent=idempotent)
        if self.scope is not None and self.scope.cancelled:
            raise self.stopped() from error
        report = describe(error, provider=how.provider, model=how.model, idempotent=idempotent)
        if how.guard is not None:
            how.guard.failed(self.called, report)
        budgets = () if self.budget is None else self.budget.lines()
        decision = loop.failed(
            report, jitter=how.jitter(), budgets=budgets, visible=visible, inner=ledger_of(error)
        )
        return decision, report

    def _ask(self, decision: Decision, report: ErrorReport) -> Any:
        """What the hook that the decision needs answers; hooks that fail have no answer."""
        hook: Callable[[ErrorReport], Any] | None = None
        if isinstance(decision, Evict):
            hook = self.how.evict
        elif isinstance(decision, Ask):
            hook = self.how.reconcile
        if hook is None:
            return None
        try:
            return hook(report)
        except Exception as problem:  # noqa: BLE001  (the failure at hand is the one to raise, not the hook's)
            return _no_answer(problem)

    def _settle(self, error: Exception, decision: Decision, report: ErrorReport, answer: Any) -> float | None:
        loop = self.loop
        assert loop is not None  # (`_judge` made it)
        wait, refused = _wait_of(decision, answer)
        if isinstance(error, Parked):
            # Whoever parked it below has decided; parking it again would only hide the ledger.
            wait, refused = None, "it is parked"
        if wait is not None:
            refused = self._refused()
            wait = wait if refused is None else None
        how = self.how
        row = loop.record(report, decision, wait=wait, refused=refused, called=(how.provider, how.model))
        watched = is_watched(how.watcher)
        if watched:
            notify(Tried(layer=how.layer, attempt=row, report=report), how.watcher)
        if wait is not None:
            return wait
        ledger = loop.ledger()
        attach(error, ledger)
        if watched:
            notify(Ended(ledger=ledger, succeeded=False), how.watcher)
        if isinstance(decision, Park) and refused is None:
            at = how.clock.now() + timedelta(seconds=decision.after)
            parked = Parked(resume_at=at, waits_for=decision.why, caller_facing=True)
            attach(parked, ledger)
            raise parked from error
        return None

    def _refused(self) -> str | None:
        """Why there is no further attempt although the policy allows one."""
        guard = self.how.guard
        if guard is not None:
            if not guard.may_retry(self.called):
                return "retries to this provider have run dry"
            closed = guard.refuses(self.called)
            if closed is not None:
                return str(closed)
        return None if self.budget is None else self.take()

    def take(self) -> str | None:
        """Take an attempt from the budget. The first of a nested loop was paid by the attempt around it."""
        assert self.budget is not None  # (asked only then)
        outer = self.around
        while outer is not None and not isinstance(outer, Operation):
            outer = outer.around
        below = None
        if outer is not None and outer.budget is not None and outer.spare:
            outer.spare.pop()
            below = outer.budget
        refused = self.budget.take(below=below)
        if refused is None:
            self.spare[:] = [True]
        return refused

    def stopped(self) -> Cancellation:
        """The fault that says the scope was stopped, with what had been tried until then."""
        assert self.scope is not None  # (only a scope can be stopped)
        made = self.scope.fault()
        if self.loop is not None:
            self.loop.stopped = "it was cancelled"
            attach(made, self.loop.ledger())
        return made


def _wait_of(decision: Decision, answer: Any) -> tuple[float | None, str | None]:
    """The wait that a decision allows, given what a hook answered; or why it allows none."""
    if isinstance(decision, Retry):
        return decision.after, None
    if isinstance(decision, Evict):
        return (0.0, None) if answer is True else (None, "nothing could be freed")
    if isinstance(decision, Ask):
        # Only a clear "it was not done" makes a repeat safe.
        if answer is False:
            return decision.after, None
        return None, "the work was done" if answer is True else "nobody could say whether the work was done"
    return None, None


def _no_answer(problem: Exception) -> None:
    record_suppressed(suppressed(problem, "a hook of a loop failed and counts as no answer"))
