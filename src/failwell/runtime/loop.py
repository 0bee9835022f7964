"""The attempt loop as a state machine: outcomes in, decisions out.

It performs no I/O and reads no clock. The drivers (`failwell.runtime.retry`, `failwell.runtime.fallback`
and every layer above) pass it failures, carry out its decisions and record how those went.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple, TypeAlias

from failwell.decision.budget import Budget, Spent
from failwell.decision.policy import Policy, Tries, decide
from failwell.decision.verdict import Decision, say
from failwell.fault.base import Fault
from failwell.fault.frozen import frozen
from failwell.report.failure_context import Ledger, Skipped
from failwell.report.record import Attempt, ErrorReport
from failwell.runtime.suppress import Subscription, call_back, record_suppressed, suppressed

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


PLAIN = Allowed()


class Loop:
    """One operation being tried: its policy, how often it was called, and the rows so far."""

    __slots__ = ("allowed", "attempts", "calls", "layer", "nested", "policy", "rows", "skips", "stopped")

    def __init__(self, policy: Policy, *, layer: str = "call", allowed: Allowed = PLAIN) -> None:
        self.policy = policy
        self.layer = layer
        self.allowed = allowed
        self.attempts = 0
        """Calls that count against the schedule in force."""
        self.calls = 0
        """Calls in all."""
        self.rows: list[Attempt] = []
        self.skips: list[Skipped] = []
        self.nested: list[str] = []
        self.stopped = ""

    def failed(
        self,
        report: ErrorReport,
        *,
        jitter: float,
        budgets: tuple[tuple[Budget, Spent], ...] = (),
        visible: bool = False,
        inner: Ledger | None = None,
    ) -> Decision:
        """Take note of a failed call, and say what to do about it."""
        self.attempts += 1
        self.calls += 1
        if inner is not None and len(inner.attempts) > 1:
            self.nested.append(f"{inner.layer} × {len(inner.attempts)}")
        allowed = self.allowed
        tries = Tries(
            self.attempts,
            budgets,
            allowed.idempotent,
            allowed.fall_back,
            allowed.evict,
            allowed.park,
            allowed.ask,
            visible,
        )
        return decide(self.policy, report, tries, jitter)

    def record(
        self,
        report: ErrorReport | None,
        decision: Decision | None,
        *,
        wait: float | None = None,
        refused: str | None = None,
        called: tuple[str | None, str | None] = (None, None),
        usage: Mapping[str, int] = _NO_TOKENS,
        cost: int | None = None,
    ) -> Attempt:
        """Write the row of the latest call: what was decided, unless it was `refused` after all."""
        if report is None:
            self.calls += 1
        reason = refused or ("it succeeded" if decision is None else say(decision))
        if wait is None:
            self.stopped = reason
        row = Attempt(
            number=self.calls,
            kind=None if report is None else report.kind,
            certainty=None if report is None else report.certainty,
            provider=called[0] or (None if report is None else report.provider),
            model=called[1] or (None if report is None else report.model),
            usage=usage,
            cost=cost,
            wait=wait,
            reason=reason,
        )
        self.rows.append(row)
        if len(self.rows) > MOST_ROWS:
            del self.rows[0]
        return row

    def skipped(self, provider: str, model: str, reason: str) -> None:
        """Take note of an entry that is passed over."""
        self.skips.append(Skipped(before=self.calls + 1, provider=provider, model=model, reason=reason))

    def turn(self, policy: Policy, allowed: Allowed) -> None:
        """Begin with another entry: its schedule counts from nothing."""
        self.policy = policy
        self.allowed = allowed
        self.attempts = 0

    def ledger(self) -> Ledger:
        """What happened so far."""
        return Ledger(
            layer=self.layer,
            attempts=tuple(self.rows),
            stopped=self.stopped,
            skipped=tuple(self.skips),
            nested=tuple(self.nested),
        )


class Parked(Fault):
    """The work is put aside until a later time. It inherits everything from the failure that parked it."""

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


def notify(event: AttemptEvent, own: Watcher | None) -> None:
    """Call the loop's own watcher and those of the whole process."""
    for watcher in [*_watchers] if own is None else [own, *_watchers]:
        error = call_back(watcher, event)[1]
        if error is not None:
            record_suppressed(suppressed(error, "a watcher of attempts failed and was passed over"))
