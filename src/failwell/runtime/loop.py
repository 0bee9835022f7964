"""The attempt loop as a state machine: told what happened, it says what to do next.

It performs no I/O and reads no clock. The drivers in `failwell.runtime.retry` (and every layer above)
feed it times and failures, carry out its decisions and hand it the outcome.
"""

from typing import NamedTuple

from failwell.decision.budget import Spent
from failwell.decision.policy import Policy, Tries, reason
from failwell.decision.verdict import Decision, Evict, GiveUp, Park, Retry, say
from failwell.report.ledger import Ledger
from failwell.report.record import Attempt, ErrorReport

_MOST_ATTEMPTS = 64
"""Rows kept in a ledger; a loop that needs more is not a loop any more."""


class Allowed(NamedTuple):
    """What this loop is able to do besides repeating."""

    idempotent: bool | None = None
    fall_back: bool = False
    evict: bool = False
    park: bool = True
    ask: bool = False


_PLAIN = Allowed()


class Loop:
    """One operation being tried: its policy, what was spent, and the rows so far."""

    def __init__(self, policy: Policy, *, layer: str = "call", allowed: Allowed = _PLAIN) -> None:
        self.policy = policy
        self.layer = layer
        self.allowed = allowed
        self.spent = Spent()
        self.rows: list[Attempt] = []
        self.nested: list[str] = []
        self.stopped = ""

    def failed(
        self,
        report: ErrorReport,
        *,
        elapsed: float,
        luck: float,
        visible: bool = False,
        inner: Ledger | None = None,
    ) -> Decision:
        """Record a failed attempt, `elapsed` seconds after the loop began, and say what to do."""
        self.spent = Spent(attempts=self.spent.attempts + 1, seconds=elapsed, cost=self.spent.cost)
        if inner is not None and len(inner.attempts) > 1:
            self.nested.append(f"{inner.layer} × {len(inner.attempts)}")
        tries = Tries(
            spent=self.spent,
            idempotent=self.allowed.idempotent,
            may_fall_back=self.allowed.fall_back,
            may_evict=self.allowed.evict,
            may_park=self.allowed.park,
            may_ask=self.allowed.ask,
            visible=visible,
        )
        reasoned = reason(self.policy, report, tries, luck)
        decision = reasoned.decision
        self._record(report, decision)
        return decision

    def ledger(self) -> Ledger:
        """What happened so far."""
        return Ledger(
            layer=self.layer, attempts=tuple(self.rows), stopped=self.stopped, nested=tuple(self.nested)
        )

    def _record(self, report: ErrorReport, decision: Decision) -> None:
        wait = decision.after if isinstance(decision, Retry) else None
        if not isinstance(decision, Retry | Evict):
            self.stopped = say(decision)
        if isinstance(decision, Park):
            # A parked attempt was turned away, not failed: it does not count.
            self.spent = self.spent.plus(attempts=-1)
        if len(self.rows) < _MOST_ATTEMPTS:
            self.rows.append(
                Attempt(
                    number=len(self.rows) + 1,
                    kind=report.kind,
                    certainty=report.certainty,
                    provider=report.provider,
                    model=report.model,
                    wait=wait,
                    reason=None if isinstance(decision, GiveUp) else say(decision),
                )
            )
