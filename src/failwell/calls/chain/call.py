"""One call through a chain: a generator yields the next step, a driver carries it out.

The steps are values, so plain and async callers, whole replies and streams share every decision.
"""

from collections.abc import Callable, Generator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from failwell.adapters.describe import describe
from failwell.adapters.replies import read_usage
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
from failwell.calls.chain.entry import Entry, PassedEntry, ShortenedCall
from failwell.calls.cost import estimate, usage_in
from failwell.calls.operation import Operation
from failwell.calls.policy import Decision, Fallback, GiveUp, Park, Retry, Shrink
from failwell.calls.shared_budget import BudgetExceeded, Reservation, Unpriced
from failwell.calls.suppress import call_hook, catch
from failwell.errors.axes import Certainty
from failwell.errors.context import Ledger, attach, ledgers_attached
from failwell.errors.faults import ProviderCapability
from failwell.errors.report import ErrorReport

if TYPE_CHECKING:
    from failwell.calls.chain.chain import Chain


class Call(NamedTuple):
    """Make this call."""

    entry: Entry[Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def __call__(self) -> Any:
        """Make it."""
        return self.entry.call(*self.args, **self.kwargs)


class Wait(NamedTuple):
    """Let some seconds pass."""

    seconds: float


class Hook(NamedTuple):
    """Call a hook; what it returns may have to be awaited."""

    function: Callable[[], Any]

    def __call__(self) -> Any:
        """Call it."""
        return self.function()


class CallFailure(NamedTuple):
    """A call or a hook raised."""

    error: Exception
    visible: bool = False
    usage: Mapping[str, int] = {}


class HookAnswer(NamedTuple):
    """A hook returned."""

    value: Any


Step = Call | Wait | Hook
Outcome = CallFailure | HookAnswer | None


class ChainCall:
    """One call through the chain, from the first entry to an answer or the last failure."""

    def __init__(
        self, chain: "Chain[Any]", needs: tuple[str, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        self.chain = chain
        self.needs = needs
        self.args = args
        self.kwargs = kwargs
        self.last: Exception | None = None
        self.operation = Operation(chain.options)
        self.loop = self.operation.loop = Loop(chain.plans[0][0], name=chain.options.name or "chain")
        self.loop.most = chain.most
        self.reserved: Reservation | None = None
        self.calling: Entry[Any] | None = None
        self.is_visible = False
        """Whether the caller has seen a part of the current attempt's answer."""
        self.usage: dict[str, int] = {}
        """The tokens that the current attempt's chunks reported."""
        self.passed_over: list[PassedEntry] = []
        self._calls = 0
        self._steps = self._walk_entries()

    def advance(self, outcome: Outcome = None) -> Step:
        """The next step after `outcome`; raises what the caller has to see when there is none."""
        try:
            return self._steps.send(outcome)
        except StopIteration:
            pass
        raise self._exhausted()

    def succeeded(self, entry: Entry[Any], usage: Mapping[str, int]) -> None:
        """Record a call that succeeded."""
        chain = self.chain
        cost = self._settle(entry, usage, None)
        self.calling = None
        if chain.guard is not None:
            chain.guard.succeeded(entry.called)
        chain.refreshed.discard(entry.provider)
        chain.last_provider = entry.provider
        self.loop.record(None, None, called=(entry.provider, entry.model), usage=usage, cost=cost)
        scope = self.operation.scope
        if scope is not None and scope.cancelled:
            raise self._cancelled()
        ledger = self._finished_ledger(entry)
        if is_watched(chain.options.watcher) and self.loop.calls > 1:
            notify(OperationEnded(ledger=ledger, succeeded=True), chain.options.watcher)

    def close(self) -> None:
        """Settle the call, however it ended: what is still reserved may have been billed."""
        if self.reserved is not None:
            self.reserved.keep()
        entry, guard = self.calling, self.chain.guard
        if entry is not None and guard is not None:
            # A stream that was closed early has answered.
            (guard.succeeded if self.is_visible else guard.abandoned)(entry.called)
        if entry is not None and self.is_visible:
            reason = "the caller closed the stream"
            self.loop.record(
                None, None, refused=reason, called=(entry.provider, entry.model), usage=self.usage
            )
            self._finished_ledger(entry)
        self._steps.close()

    def show(self, chunk: object) -> None:
        """Take note of a chunk that the caller is about to see."""
        self.is_visible = True
        self.usage.update(self.usage_of(chunk))

    def usage_of(self, reply: object) -> Mapping[str, int]:
        """The tokens that a reply or a chunk reports."""
        hook = self.chain.policy.usage
        if hook is None:
            return read_usage(reply)
        # A reply must not be lost because its tokens could not be counted.
        return call_hook(hook, reply, reason="a usage hook failed, so tokens were not counted") or {}

    def _walk_entries(self) -> Generator[Step, Outcome, None]:
        chain = self.chain
        args, kwargs = self.args, self.kwargs
        previous = chain.last_provider
        for place, entry in enumerate(chain.entries):
            self._check()
            skipped = chain.skips(entry, self.needs)
            if skipped is not None:
                self._skip(entry, skipped)
                continue
            if previous is not None and previous != entry.provider:
                args, kwargs = chain.policy.handover(args, kwargs)
            previous = chain.last_provider = entry.provider
            self._turn(place)
            while True:
                outcome = yield from self._attempt(entry, args, kwargs)
                if outcome is None:
                    break
                decision, report = self._decide(entry, outcome, place)
                if report.kind == "provider.auth" and (yield from self._renewed(entry.provider)):
                    self.loop.attempts -= 1
                    decision = Retry(after=0.0, why="the credentials were renewed")
                elif isinstance(decision, Shrink):
                    call = ShortenedCall(entry.call, args, kwargs, chain.policy.shrink)
                    self.loop.shrink()
                    answer = yield Hook(call.shorten)
                    self._check()
                    if isinstance(answer, HookAnswer) and answer.value is True:
                        args, kwargs = call.args, call.kwargs
                    else:
                        decision = GiveUp(why="the messages could not be shortened")
                self._record(entry, outcome, report, decision)
                if isinstance(decision, Fallback):
                    self.passed_over.append(
                        PassedEntry(
                            provider=entry.provider, model=entry.model, reason=decision.why, report=report
                        )
                    )
                    break
                if not isinstance(decision, Retry | Shrink):
                    raise self._given_up(outcome.error, decision)
                if isinstance(decision, Retry) and decision.after > 0:
                    yield Wait(decision.after)
                self._check()

    def _attempt(
        self, entry: Entry[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Generator[Step, Outcome, CallFailure | None]:
        """Make one attempt; `None` if a breaker refuses it."""
        chain = self.chain
        closed_off = None if chain.guard is None else chain.guard.refuses(entry.called)
        if closed_off is not None:
            self._skip(entry, str(closed_off))
            return None
        self.calling = entry
        if self.is_visible:
            self.is_visible = False
            self.usage = {}
        refusal = catch(self._admit, entry, args, kwargs)[1]
        if refusal is not None:
            self.loop.stopped = "it was not allowed"
            attach(refusal, self._finished_ledger())
            raise refusal
        if entry.credential is not None:
            answer = yield Hook(entry.credential)
            self._check()
            if not isinstance(answer, HookAnswer):
                # The lookup's own message may hold the secret, so nothing of it is pair_of_call.
                return CallFailure(_no_credential(entry))
            kwargs = {**kwargs, "credential": answer.value}
        self._calls += 1
        outcome = yield Call(entry, args, kwargs)
        assert isinstance(outcome, CallFailure)  # (a call that works ends the pass)
        return outcome

    def _admit(self, entry: Entry[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Call the `before` hook, take an attempt, and reserve what it may cost."""
        if self.chain.policy.before is not None:
            self.chain.policy.before(entry)
        budget = self.operation.budget
        if budget is None:
            return
        refusal = self.operation.take() if self._calls else None
        if refusal is not None:
            raise BudgetExceeded(why=refusal)
        expected = estimate(self.chain.prices, entry.provider, entry.model, kwargs, args)
        if expected is None and budget.refuses_unpriced:
            raise Unpriced(
                target=f"{entry.provider}/{entry.model}",
                advice="Pass it in `Chain(prices=Prices({…}))`, or install `genai-prices` for the public list",
                provider=entry.provider,
                model=entry.model,
                certainty=Certainty.NOT_SENT,
            )
        self.reserved = budget.reserve(expected or 0)

    def _settle(self, entry: Entry[Any], usage: Mapping[str, int], report: ErrorReport | None) -> int | None:
        """What the call cost, if that is known; the reservation is settled."""
        cost = self.chain.prices.cost(entry.provider, entry.model, usage) if usage else None
        if self.reserved is not None:
            if cost is not None:
                self.reserved.settle(cost)
            elif report is not None and report.certainty in (Certainty.NOT_SENT, Certainty.REJECTED):
                self.reserved.release()
            else:
                self.reserved.keep()
            self.reserved = None
        return cost

    def _decide(self, entry: Entry[Any], failed: CallFailure, place: int) -> tuple[Decision, ErrorReport]:
        chain = self.chain
        self.last = failed.error
        scope = self.operation.scope
        if scope is not None and scope.cancelled:
            # A cancelled call often comes back as a broken connection; it was cancelled all the same.
            raise self._cancelled() from failed.error
        idempotent = (
            True if chain.policy.keyed and self.operation.value is not None else chain.policy.idempotent
        )
        report = describe(
            failed.error, provider=entry.provider, model=entry.model, origin="call", idempotent=idempotent
        )
        if chain.guard is not None:
            chain.guard.failed(entry.called, report)
        self.calling = None
        chain.cool(entry, report)
        has_next = any(chain.skips(other, self.needs) is None for other in chain.entries[place + 1 :])
        self.loop.policy = chain.plans[place][0 if has_next else 1]
        self.loop.allowed = Allowed(idempotent, fall_back=has_next, shrink=chain.policy.shrink is not None)
        budget = self.operation.budget
        decision, report = self.loop.failed(
            report,
            failed.error,
            since=self.operation.since,
            called=(entry.provider, entry.model),
            jitter=chain.options.jitter(),
            budgets=() if budget is None else budget.lines(),
            visible=failed.visible,
        )
        self.operation.since = ledgers_attached[0]
        return decision, report

    def _record(
        self, entry: Entry[Any], failed: CallFailure, report: ErrorReport, decision: Decision
    ) -> None:
        usage = failed.usage or usage_in(report) or self._usage_of_error(failed.error)
        cost = self._settle(entry, usage, report)
        row = self.loop.record(
            report,
            decision,
            wait=_wait_of(decision),
            # Each entry has been tried as often as it may be.
            exhausted=isinstance(decision, GiveUp)
            and report.retryable
            and self.loop.tries > 1
            and not failed.visible,
            called=(entry.provider, entry.model),
            usage=usage,
            cost=cost,
        )
        watcher = self.chain.options.watcher
        if is_watched(watcher):
            is_handled = isinstance(decision, Retry | Fallback) or self.operation.is_nested
            notified = with_attempt(report, row, handled=is_handled)
            notify(AttemptFailed(layer=self.loop.name, attempt=row, report=notified), watcher)
        self.loop.failed_inside = None

    def _usage_of_error(self, error: Exception) -> Mapping[str, int]:
        return {} if self.chain.policy.usage is None else self.usage_of(error)

    def _renewed(self, provider: str) -> Generator[Step, Outcome, bool]:
        hook = self.chain.policy.refresh
        if hook is None or provider in self.chain.refreshed:
            return False
        self.chain.refreshed.add(provider)
        # A refresh that raises did not work; its message may hold a secret.
        answer = yield Hook(lambda: hook(provider))
        self._check()
        return isinstance(answer, HookAnswer) and answer.value is True

    def _turn(self, place: int) -> None:
        self.loop.turn(self.chain.plans[place][0], self.loop.allowed)

    def _check(self) -> None:
        scope = self.operation.scope
        if scope is not None and scope.cancelled:
            raise self._cancelled()

    def _cancelled(self) -> Exception:
        fault = self.operation.stopped()
        self.chain.keep_ledger(self.loop.ledger())
        return fault

    def _given_up(self, error: Exception, decision: Decision) -> Exception:
        final = error
        if isinstance(decision, Park) and not isinstance(error, Parked):
            at = self.chain.options.clock.now() + timedelta(seconds=decision.after)
            final = Parked.wrap(error, resume_at=at, waits_for=decision.why, caller_facing=True)
        return self._ended(final)

    def _exhausted(self) -> Exception:
        if self.last is not None:
            return self._ended(self.last)
        self.loop.stopped = "every entry was passed over"
        return self._ended(
            ProviderCapability(
                kind="provider.unknown",
                message="every entry of the chain was passed over, so no call was made",
                certainty=Certainty.NOT_SENT,
                provider=self.chain.entries[-1].provider,
                model=self.chain.entries[-1].model,
            )
        )

    def _ended(self, error: Exception) -> Exception:
        ledger = self._finished_ledger()
        attach(error, ledger)
        if is_watched(self.chain.options.watcher):
            notify(OperationEnded(ledger=ledger, succeeded=False), self.chain.options.watcher)
        return error

    def _skip(self, entry: Entry[Any], reason: str) -> None:
        self.loop.skipped(entry.provider, entry.model, reason)
        self.passed_over.append(PassedEntry(provider=entry.provider, model=entry.model, reason=reason))

    def _finished_ledger(self, served_by: Entry[Any] | None = None) -> Ledger:
        ledger = self.loop.ledger()
        self.chain.keep_ledger(ledger, None if served_by is None else (served_by, self.passed_over))
        self.operation.report_ledger(ledger)
        return ledger


def _wait_of(decision: Decision) -> float | None:
    if isinstance(decision, Shrink):
        return 0.0
    return decision.after if isinstance(decision, Retry) else None


def _no_credential(entry: Entry[Any]) -> Exception:
    return ProviderCapability(
        kind="provider.auth",
        message="The credentials could not be looked up, so nothing was sent.",
        certainty=Certainty.NOT_SENT,
        provider=entry.provider,
        model=entry.model,
    )
