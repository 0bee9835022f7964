"""The attempt loop as a state machine: outcomes in, decisions out.

It performs no I/O and reads no clock. The drivers (`failwell.calls.retry`, `failwell.calls.chain.chain`
and every layer above) pass it failures, carry out its decisions and record how those went.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from math import prod
from sys import _getframe  # pyright: ignore[reportPrivateUsage]  (as `logging` does)
from typing import NamedTuple, TypeAlias

from failwell.adapters.describe import after_delivery
from failwell.calls.budget import Budget, Spent
from failwell.calls.policy import (
    Decision,
    GiveUp,
    Policy,
    PredicateFailed,
    RetryState,
    decide_by,
    decision_text,
    first_rule,
    schedule_of,
)
from failwell.calls.sdk_retries import sdk_calls
from failwell.calls.suppress import Subscription, call_back, call_hook, record_suppressed, suppressed
from failwell.errors.context import Layer, Ledger, Skipped, inner_ledger, product
from failwell.errors.fault import Fault, is_fault
from failwell.errors.frozen import frozen
from failwell.errors.report import Attempt, ErrorReport

MOST_ROWS = 64
"""Rows kept in a ledger; of a longer loop the last ones."""
_NO_TOKENS: Mapping[str, int] = {}


class Allowed(NamedTuple):
    """What this loop is able to do besides repeating."""

    idempotent: bool | None = None
    fall_back: bool = False
    evict: bool = False
    park: bool = True
    ask: bool = False
    shrink: bool = False


PLAIN = Allowed()


class Loop:
    """One operation being tried: its policy, how often it was called, and the rows so far."""

    __slots__ = (
        "_merges", "allowed", "attempts", "broken", "calls", "delivered", "failed_inside", "inner", "layers", "most",
        "name", "policy", "rows", "sdk", "shrunk", "skips", "stopped", "tries",
    )  # fmt: skip

    def __init__(self, policy: Policy, *, name: str = "call", allowed: Allowed = PLAIN) -> None:
        self.policy = policy
        self.name = name
        self.allowed = allowed
        self.attempts = 0
        """Calls that count against the schedule in force."""
        self.tries = 0
        """Calls that this loop made itself."""
        self.calls = 0
        """Calls in all, those of loops inside included."""
        self.most = 0
        """Calls that the schedule in force allows this loop."""
        self.rows: list[Attempt] = []
        self.skips: list[Skipped] = []
        self.inner: list[Ledger] = []
        """Ledgers of loops that ended inside the running attempt."""
        self.failed_inside: Ledger | None = None
        """The latest of them, if it failed and no loop inside the attempt has succeeded since."""
        self.delivered = False
        """Whether the caller had received part of the result of the latest call that failed."""
        self.layers: tuple[Layer, ...] = ()
        """The largest product of loops inside this one so far."""
        self.stopped = ""
        self.sdk: Layer | None = None
        """The vendor's client that repeated the latest call by itself."""
        self.broken: PredicateFailed | None = None
        """Set where the policy could not be applied."""
        self.shrunk = False
        """Whether the messages were shortened, which happens once."""
        self._merges = False
        """Whether the latest row of a loop inside stands for the running attempt."""

    def ended_inside(self, ledger: Ledger) -> None:
        """Take note of a loop that ended inside the running attempt."""
        self.inner.append(ledger)
        self.failed_inside = ledger if ledger.attempts and ledger.attempts[-1].kind is not None else None

    def failed(
        self,
        report: ErrorReport,
        error: BaseException,
        *,
        since: int,
        called: tuple[str | None, str | None] = (None, None),
        jitter: float,
        budgets: tuple[tuple[Budget, Spent], ...] = (),
        visible: bool = False,
    ) -> tuple[Decision, ErrorReport]:
        """Take note of a failed call; what to do about it, and the report with what this loop knows.

        Ledgers on `error` count as those of loops inside this one if they were attached after `since` others. If
        it carries none, it counts as the failure of the loop inside that failed last.
        """
        self.attempts += 1
        self.tries += 1
        inner = inner_ledger(error, since)
        merges = inner is not None
        if inner is None and self.failed_inside is not None:
            inner, merges = self.failed_inside, _is_raised_by_function(error)
        delivered = inner is not None and inner.delivered
        self.delivered = visible or delivered
        if self.delivered:
            report = after_delivery(report)
        try:
            rule = first_rule(self.policy, report)
        except PredicateFailed as broken:
            self.broken = broken
            self._join(inner, called, merges=merges)
            return GiveUp(why=str(broken)), report
        self.most = max(self.most, schedule_of(rule, report).max_attempts)
        if inner is not None or self.inner:
            self._join(inner, called, merges=merges)
        self.sdk = sdk_calls(error)
        if self.sdk is not None:
            self._nest((self.sdk,))
        allowed = self.allowed
        tries = RetryState(
            self.attempts,
            budgets,
            allowed.idempotent,
            allowed.fall_back,
            allowed.evict,
            allowed.park,
            allowed.ask,
            visible,
            exhausted=self._exhausted(inner),
            delivered=delivered,
            may_shrink=allowed.shrink and not self.shrunk,
        )
        return decide_by(self.policy, rule, report, tries, jitter), report

    def record(
        self,
        report: ErrorReport | None,
        decision: Decision | None,
        *,
        wait: float | None = None,
        refused: str | None = None,
        exhausted: bool = False,
        called: tuple[str | None, str | None] = (None, None),
        usage: Mapping[str, int] = _NO_TOKENS,
        cost: int | None = None,
    ) -> Attempt:
        """Write the row of the latest call: what was decided, unless it was `refused` after all.

        A loop inside has already written the rows of its calls. The last of them then stands for the attempt
        of this loop too, so that every call has one row.

        Returns:
            The attempt as this loop counts it.
        """
        if report is None:
            self.tries += 1
            if self.inner:
                self._join(None, called, merges=False)
                self._merges = self.rows[-1].kind is None
        reason = refused or ("it succeeded" if decision is None else decision_text(decision))
        if wait is None:
            self.stopped = reason
        if self.sdk is not None and report is not None:
            reason = f"{reason}; the {self.sdk.name} made {self.sdk.calls} calls by itself"
        exhausted = exhausted or (refused is None and isinstance(decision, GiveUp) and decision.exhausted)
        row = Attempt(
            number=self.tries,
            kind=None if report is None else report.kind,
            certainty=None if report is None else report.certainty,
            provider=called[0] or (None if report is None else report.provider),
            model=called[1] or (None if report is None else report.model),
            usage=usage,
            cost=cost,
            wait=wait,
            reason=reason,
            layer=self.name,
            exhausted=exhausted or None,
        )
        if self._merges:
            self._merges = False
            self.rows[-1] = self._merged(self.rows[-1], row)
        else:
            self.calls += 1
            self.rows.append(row if self.calls == row.number else replace(row, number=self.calls))
        if len(self.rows) > MOST_ROWS:
            del self.rows[:-MOST_ROWS]
        return row

    def skipped(self, provider: str, model: str, reason: str) -> None:
        """Take note of an entry that is passed over."""
        self.skips.append(Skipped(before=self.calls + 1, provider=provider, model=model, reason=reason))

    def shrink(self) -> None:
        """Take note that the messages are shortened; the call that was refused spends no attempt."""
        self.shrunk = True
        self.attempts -= 1

    def turn(self, policy: Policy, allowed: Allowed) -> None:
        """Begin with another entry: its schedule counts from nothing."""
        self.policy = policy
        self.allowed = allowed
        self.attempts = 0

    def ledger(self) -> Ledger:
        """What happened so far."""
        return Ledger(
            layer=self.name,
            attempts=tuple(self.rows),
            stopped=self.stopped,
            skipped=tuple(self.skips),
            most=max(self.most, self.tries),
            inside=self.layers,
            delivered=self.delivered,
        )

    def _join(self, cause: Ledger | None, called: tuple[str | None, str | None], *, merges: bool) -> None:
        """Take over the rows of the loops inside the latest attempt; it failed because of `cause`, if any.

        The last row of `cause` stands for the attempt if it `merges` with it.
        """
        inner, self.inner = self.inner, []
        self.failed_inside = None
        ledgers = [ledger for ledger in inner if ledger is not cause]
        for ledger in ledgers if cause is None else [*ledgers, cause]:
            self.rows += [
                replace(
                    row,
                    number=self.calls + row.number,
                    provider=row.provider or called[0],
                    model=row.model or called[1],
                )
                for row in ledger.attempts
            ]
            self.skips += [replace(skip, before=self.calls + skip.before) for skip in ledger.skipped]
            self.calls += ledger.attempts[-1].number if ledger.attempts else 0
            self._nest(ledger.layers, stops=ledger is cause and ledger.exhausted)
        self._merges = merges and cause is not None and bool(cause.attempts)

    def _nest(self, layers: tuple[Layer, ...], *, stops: bool = False) -> None:
        if prod(layer.calls for layer in layers) > prod(layer.calls for layer in self.layers):
            self.layers = layers
        if layers and layers[0].calls > 1 and self.most > 1:
            stops = stops and not self.policy.repeat_exhausted
            warn_about_nesting(Layer(self.name, self.most), layers, repeats=not stops)

    def _exhausted(self, inner: Ledger | None) -> str | None:
        if inner is None or not inner.exhausted:
            return None
        layers = (Layer(self.name, self.most), *inner.layers)
        return f"`{inner.layer}` has already tried it {inner.attempts[-1].number} times ({product(layers)})"

    def _merged(self, inner: Attempt, own: Attempt) -> Attempt:
        """The row of a call that a loop inside this one made last, with what this loop decided about it."""
        kind = "" if own.kind == inner.kind else f" ({own.kind})"
        reason = own.reason if own.kind is None else f"{inner.reason}; `{self.name}`{kind}: {own.reason}"
        if own.kind is not None and own.wait is None and inner.exhausted and self.policy.repeat_exhausted:
            reason = f"{reason} ({product((Layer(self.name, self.most), *self.layers))})"
        return replace(
            inner,
            usage=inner.usage or own.usage,
            cost=own.cost if inner.cost is None else inner.cost,
            wait=own.wait,
            reason=reason,
            exhausted=inner.exhausted or own.exhausted,
        )


def _is_raised_by_function(error: BaseException) -> bool:
    """Whether the repeated function itself raised the fault, and nothing that it called.

    After the failure of a loop inside, such a fault reports that failure and is no further call. Other exceptions
    may come from a call without a frame.
    """
    if not is_fault(error):
        return False
    trace = error.__traceback__
    while trace is not None and _is_package(trace.tb_frame.f_globals.get("__name__"), "failwell"):
        trace = trace.tb_next
    return trace is not None and trace.tb_next is None


def _is_package(module: object, *packages: str) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in packages


class NestedRetries(UserWarning):
    """Two loops repeat the same call, so their calls multiply."""


_MOST_PAIRS = 1_000
_pairs: set[tuple[str, str]] = set()
"""The loops that were warned about under the filters in force."""
_pairs_filters: list[object] = [None]


def _is_news(outer: str, inner: str) -> bool:
    # `warnings.catch_warnings`, and with it every test of pytest, begins anew, as Python's own register does.
    if _pairs_filters[0] is not warnings.filters:
        _pairs_filters[0] = warnings.filters
        _pairs.clear()
    if (outer, inner) in _pairs:
        return False
    if len(_pairs) < _MOST_PAIRS:
        _pairs.add((outer, inner))
    return True


def warn_about_nesting(outer: Layer, inner: tuple[Layer, ...], *, repeats: bool) -> None:
    """Warn that `outer` is around `inner`, once for each pair of names."""
    if not _is_news(outer.name, inner[0].name):
        return
    if inner[0].is_sdk:
        advice = "Switch the client's own retries off with `failwell.calls.without_sdk_retries`."
    elif repeats:
        advice = "One of the two loops is usually enough."
    else:
        advice = (
            f"`{outer.name}` does not repeat what `{inner[0].name}` has repeated up to its limit. "
            "One of the two loops is usually enough; `repeat_exhausted=True` keeps both."
        )
    text = f"retries inside retries: {product((outer, *inner))}. {advice}"
    # An error that a filter makes of the warning must not replace the failure at hand.
    call_hook(_warn, text, reason="a warning was turned into an error")


_NOT_THE_CALLER = ("failwell", "asyncio", "concurrent", "contextlib", "threading")


def _warn(text: str) -> None:
    """Warn at the line that called the outermost function of this package, below event loops and threads."""
    frame, level = _getframe(), 1
    while frame.f_back is not None and _is_package(frame.f_globals.get("__name__"), *_NOT_THE_CALLER):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, NestedRetries, stacklevel=level)


class Parked(Fault):
    """A retry is put aside until a later time. It inherits everything from the failure that parked it."""

    resume_at: datetime
    """When it may make sense to try again."""
    waits_for: str = ""
    """What it waits for, in a few words."""

    def summary(self) -> str:
        return f"blocked until {self.resume_at.isoformat(timespec='seconds')}: {self.waits_for}"


@frozen
class AttemptFailed:
    """One attempt failed, and this was decided about it."""

    layer: str
    attempt: Attempt
    """Its number, kind, wait and reason."""
    report: ErrorReport
    type: str = "tried"


@frozen
class OperationEnded:
    """An operation that failed at least once is over."""

    ledger: Ledger
    succeeded: bool
    type: str = "ended"


AttemptEvent: TypeAlias = AttemptFailed | OperationEnded
Watcher: TypeAlias = Callable[[AttemptEvent], object]

_watchers: list[Watcher] = []


def watch(watcher: Watcher) -> Subscription:
    """Call `watcher` with every failed attempt and every end in this process.

    It is called from now on or while a `with` block runs, and not for its own attempts.

    Returns:
        A subscription: a context manager, or an object to `close()`.
    """
    return Subscription(watcher, _watchers)


def is_watched(own: Watcher | None) -> bool:
    """Whether there is a watcher."""
    return own is not None or bool(_watchers)


def with_attempt(report: ErrorReport, attempt: Attempt, *, handled: bool) -> ErrorReport:
    """`report` as watchers get it: with the attempt, and whether the work goes on all the same."""
    return replace(report, attempts=report.attempts or (attempt,), handled=handled or report.handled)


def notify(event: AttemptEvent, own: Watcher | None) -> None:
    """Call the loop's own watcher and those of the whole process."""
    for watcher in [*_watchers] if own is None else [own, *_watchers]:
        error = call_back(watcher, event)[1]
        if error is not None:
            record_suppressed(suppressed(error, "a watcher of attempts failed and was passed over"))
