"""A budget that several loops share: what one reserves, no other can spend.

Safe between threads and tasks. A budget may lie in another one; then everything is taken from both.
While a budget is open (`with budget:`), every loop below takes its attempts from it.
"""

from contextvars import ContextVar, Token
from threading import Lock
from types import TracebackType
from typing import Self

from failwell.decision.budget import Budget, Spent, over
from failwell.fault.base import Fault
from failwell.runtime.clock import SYSTEM_CLOCK, Clock

_open: ContextVar["SharedBudget | None"] = ContextVar("failwell_budget", default=None)


class BudgetExceeded(Fault, kind="limit.budget_exceeded"):
    """What may be spent is spent, so nothing was sent."""

    why: str
    """Which limit it was."""

    def summary(self) -> str:
        return f"nothing was sent: {self.why}"


class SharedBudget:
    """Attempts, seconds and micro-cents, shared by all loops that use it."""

    def __init__(
        self,
        budget: Budget,
        *,
        clock: Clock = SYSTEM_CLOCK,
        parent: "SharedBudget | None" = None,
        cost: int = 0,
    ) -> None:
        self.budget = budget
        self.parent = parent
        self._clock = clock
        self._began = clock.monotonic()
        self._lock = Lock()
        self._attempts = 0
        self._cost = cost
        """Micro-cents already spent; a resumed run carries them over."""
        self._reserved = 0
        self._tokens: list[Token[SharedBudget | None]] = []

    @property
    def spent(self) -> Spent:
        """What is gone, reserved money included."""
        with self._lock:
            return self._spent()

    def lines(self) -> tuple[tuple[Budget, Spent], ...]:
        """This budget and those around it, each with what was spent of it."""
        mine = ((self.budget, self.spent),)
        return mine if self.parent is None else (*mine, *self.parent.lines())

    def take(self, *, below: "SharedBudget | None" = None) -> str | None:
        """Take one attempt; `None`, or why there is none left. Budgets from `below` on are skipped."""
        if self is below:
            return None
        with self._lock:
            refused = over(self.budget, self._spent())
            if refused is not None:
                return refused
            self._attempts += 1
        refused = None if self.parent is None else self.parent.take(below=below)
        if refused is not None:
            with self._lock:
                self._attempts -= 1
        return refused

    def reserve(self, cost: int) -> "Reservation":
        """Set `cost` micro-cents aside for one call.

        Raises:
            BudgetExceeded: there is not that much left, and nothing was set aside.
        """
        refused = self._set_aside(cost)
        if refused is not None:
            raise BudgetExceeded(why=refused)
        return Reservation(self, cost)

    def settle(self, reserved: int, cost: int) -> None:
        """Give back what was reserved, and spend what it really cost."""
        with self._lock:
            self._reserved -= reserved
            self._cost += cost
        if self.parent is not None:
            self.parent.settle(reserved, cost)

    def __enter__(self) -> Self:
        self._tokens.append(_open.set(self))
        return self

    def __exit__(
        self, cls: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _open.reset(self._tokens.pop())

    def _set_aside(self, cost: int) -> str | None:
        with self._lock:
            limit = self.budget.cost
            if limit is not None and self._cost + self._reserved + cost > limit:
                left = limit - self._cost - self._reserved
                return f"the call may cost {cost} micro-cents and {max(0, left)} of {limit} are left"
            self._reserved += cost
        refused = None if self.parent is None else self.parent._set_aside(cost)  # noqa: SLF001  (the same class)
        if refused is not None:
            with self._lock:
                self._reserved -= cost
        return refused

    def _spent(self) -> Spent:
        return Spent(
            attempts=self._attempts,
            seconds=self._clock.monotonic() - self._began,
            cost=self._cost + self._reserved,
        )


class Reservation:
    """Money set aside for one call. Used as a block, it is spent in full unless it was settled."""

    def __init__(self, budget: SharedBudget, cost: int) -> None:
        self._budget = budget
        self.cost = cost
        self._open = True

    def settle(self, cost: int) -> None:
        """Say what it really cost; a second time changes nothing."""
        if self._open:
            self._open = False
            self._budget.settle(self.cost, cost)

    def keep(self) -> None:
        """Spend all of it: the call may have been billed."""
        self.settle(self.cost)

    def release(self) -> None:
        """Give all of it back: nothing was sent, or nothing was done."""
        self.settle(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, cls: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.keep()


open_budget = _open.get
set_open_budget = _open.set
reset_open_budget = _open.reset
