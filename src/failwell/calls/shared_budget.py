"""A budget that several loops share: what one loop reserves, no other can spend.

Safe between threads and tasks, and between processes if there is a store. A budget may lie in another one; then everything is taken from both.
While a budget is open (`with budget:`), every loop below takes its attempts from it.

What is spent of a shared budget, as a value of a store, and back.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from json import dumps, loads
from threading import RLock
from types import TracebackType
from typing import Any, Self, TypeVar

from failwell.calls.argument_checks import check_number
from failwell.calls.budget import Budget, Spent, dollars, over, to_micro_cents
from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.calls.shared_limits import LimitSharing, LimitStore
from failwell.errors.fault import Fault


class BudgetValues:
    """The totals that a store last had of one budget. What this process has counted since is added to them."""

    def __init__(self, name: str) -> None:
        self._name = dumps(["budget", name])
        self._stored = (0, 0, 0)
        """Attempts, micro-cents and reserved micro-cents."""
        self._before = self._stored

    def load(
        self, values: Mapping[str, str], attempts: int, cost: int, reserved: int
    ) -> tuple[float | None, int, int, int]:
        """The time of the store at which the budget was begun, and the totals of all processes."""
        started, *shared = _read(values.get(self._name))
        new = [
            total + own - known
            for total, own, known in zip(shared, (attempts, cost, reserved), self._stored, strict=True)
        ]
        self._stored = (shared[0], shared[1], shared[2])
        return started, new[0], new[1], new[2]

    def changes(self, started: float, attempts: int, cost: int, reserved: int) -> dict[str, str | None]:
        """The value to write; the store then has it."""
        totals = (attempts, cost, reserved)
        self._before = self._stored
        if totals == self._stored:
            return {}
        self._stored = totals
        fields = {"started": started, "attempts": attempts, "cost": cost, "reserved": reserved}
        return {self._name: dumps(fields)}

    def undo(self) -> None:
        """The latest changes were not stored, and count as this process's own."""
        self._stored = self._before


def _read(text: str | None) -> tuple[float | None, int, int, int]:
    try:
        fields: Any = loads(text or "{}")
        started = fields.get("started")
        numbers = (int(fields.get(name, 0)) for name in ("attempts", "cost", "reserved"))
        attempts, cost, reserved = numbers
        return (None if started is None else float(started)), attempts, cost, reserved
    except (ValueError, TypeError, AttributeError):
        # Nothing that this version writes. It counts from nothing rather than from nonsense.
        return None, 0, 0, 0


_T = TypeVar("_T")
_open: ContextVar["SharedBudget | None"] = ContextVar("failwell_budget", default=None)
# The way back is kept in the context and not on the budget, so tasks and threads may open the same one.
_outside: ContextVar[tuple["SharedBudget | None", ...]] = ContextVar("failwell_budgets_outside", default=())


class BudgetExceeded(Fault, kind="limit.budget_exceeded"):
    """What may be spent is spent, so nothing was sent."""

    why: str
    """Which limit it was."""

    def summary(self) -> str:
        return f"nothing was sent: {self.why}"


class Unpriced(Fault, kind="validation.config_invalid"):
    """A budget in US dollars cannot count a call whose price is unknown, so nothing was sent."""

    target: str
    """The provider and the model."""
    advice: str

    def summary(self) -> str:
        return (
            f"nothing was sent: a budget in US dollars applies, and the price of {self.target} is unknown. "
            f"{self.advice}, or allow it with `Budget(unpriced='allow')`."
        )


class SharedBudget:
    """Attempts, seconds and US dollars, shared by all loops that use it."""

    def __init__(
        self,
        budget: Budget,
        *,
        clock: Clock = SYSTEM_CLOCK,
        parent: "SharedBudget | None" = None,
        spent_usd: float = 0.0,
        cost: int = 0,
        store: LimitStore | None = None,
        name: str = "",
    ) -> None:
        """Nothing is spent yet, unless `spent_usd`, `cost` or the store says so.

        Args:
            budget: What may be spent.
            clock: Tells the time.
            parent: A budget from which everything is taken, too.
            spent_usd: US dollars that are gone already.
            cost: Micro-cents that are gone already; work that is resumed carries them over.
            store: Shares the budget with all processes that use the same `name` in it.
            name: What it is called in the store. Put the day into it for a budget of a day.

        Raises:
            ValueError: a number makes no sense, or there is a store and no name.
        """
        check_number("spent_usd", spent_usd)
        if (store is None) != (not name):
            raise ValueError("a budget in a store needs a `name`, and one with a `name` needs a `store`")
        self.budget = budget
        self.parent = parent
        self._clock = clock
        self._start = clock.monotonic()
        self._lock = RLock()
        self._attempts = 0
        self._cost = cost + to_micro_cents(spent_usd)
        """Micro-cents already spent."""
        self._reserved = 0
        self._sharing = None if store is None else LimitSharing(store, clock)
        self._shared = BudgetValues(name)

    @property
    def spent(self) -> Spent:
        """What is gone, reserved money included."""
        if self._sharing is not None:
            limits = self._sharing.changed()
            if limits is not None:
                with self._lock:
                    self._load(limits.now, limits.values)
        with self._lock:
            return self._spent()

    def lines(self) -> tuple[tuple[Budget, Spent], ...]:
        """This budget and those around it, each with what was spent of it."""
        own_line = ((self.budget, self.spent),)
        return own_line if self.parent is None else (*own_line, *self.parent.lines())

    def take(self, *, below: "SharedBudget | None" = None) -> str | None:
        """Take one attempt; `None`, or why there is none left. Budgets from `below` on are skipped."""
        if self is below:
            return None
        refusal = self._change(self._take)
        if refusal is not None:
            return refusal
        refusal = None if self.parent is None else self.parent.take(below=below)
        if refusal is not None:
            self._change(self._give_back)
        return refusal

    def _take(self) -> str | None:
        refusal = over(self.budget, self._spent())
        if refusal is None:
            self._attempts += 1
        return refusal

    def _give_back(self) -> None:
        self._attempts -= 1

    @property
    def refuses_unpriced(self) -> bool:
        """Whether this budget, or one around it, limits money and refuses what has no known price."""
        budget = self.budget
        if budget.unpriced == "refuse" and budget.micro_cents is not None:
            return True
        return self.parent is not None and self.parent.refuses_unpriced

    def reserve(self, cost: int = 0, *, usd: float = 0.0) -> "Reservation":
        """Set money aside for one call: `usd` dollars, or `cost` micro-cents as a ledger counts them.

        Raises:
            BudgetExceeded: there is not that much left, and nothing was set aside.
        """
        cost += to_micro_cents(usd)
        refusal = self._set_aside(cost)
        if refusal is not None:
            raise BudgetExceeded(why=refusal)
        return Reservation(self, cost)

    def settle(self, reserved: int, cost: int) -> None:
        """Give back what was reserved, and spend what it really cost."""

        def settled() -> None:
            self._reserved -= reserved
            self._cost += cost

        self._change(settled)
        if self.parent is not None:
            self.parent.settle(reserved, cost)

    def __enter__(self) -> Self:
        _outside.set((*_outside.get(), _open.get()))
        _open.set(self)
        return self

    def __exit__(
        self, cls: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack = _outside.get()
        # Empty where the block was entered in another context, which has its own way back.
        if stack:
            _outside.set(stack[:-1])
            _open.set(stack[-1])

    def _set_aside(self, cost: int) -> str | None:

        def set_aside() -> str | None:
            limit = self.budget.micro_cents
            if limit is not None and self._cost + self._reserved + cost > limit:
                remaining = limit - self._cost - self._reserved
                return f"the call may cost {dollars(cost)}, and {dollars(max(0, remaining))} of {dollars(limit)} are left"
            self._reserved += cost
            return None

        def give_back() -> None:
            self._reserved -= cost

        refusal = self._change(set_aside)
        if refusal is not None:
            return refusal
        refusal = None if self.parent is None else self.parent._set_aside(cost)  # noqa: SLF001  (the same class)
        if refusal is not None:
            self._change(give_back)
        return refusal

    def _change(self, change: Callable[[], _T]) -> _T:
        """Change what is spent, in the store too if there is one. Without it this process counts for itself."""
        with self._lock:
            if self._sharing is None:
                return change()
            results: list[_T] = []

            def change_shared(now: float, values: Mapping[str, str]) -> Mapping[str, str | None]:
                self._load(now, values)
                results[:] = [change()]
                elapsed = self._clock.monotonic() - self._start
                return self._shared.changes(now - elapsed, self._attempts, self._cost, self._reserved)

            if not self._sharing.change(change_shared) and results:
                self._shared.undo()
            return results[0] if results else change()

    def _load(self, now: float, values: Mapping[str, str]) -> None:
        started, attempts, cost, reserved = self._shared.load(
            values, self._attempts, self._cost, self._reserved
        )
        self._attempts, self._cost, self._reserved = attempts, cost, reserved
        if started is not None:
            # A clock that was set back must not give time back.
            self._start = min(self._start, self._clock.monotonic() - max(0.0, now - started))

    def _spent(self) -> Spent:
        return Spent(
            attempts=self._attempts,
            seconds=self._clock.monotonic() - self._start,
            cost=self._cost + self._reserved,
        )


class Reservation:
    """Money set aside for one call. Used as a block, it is spent in full unless it was settled."""

    def __init__(self, budget: SharedBudget, cost: int) -> None:
        self._budget = budget
        self.cost = cost
        self._open = True

    def settle(self, cost: int = 0, *, usd: float = 0.0) -> None:
        """Say what it really cost, in micro-cents or in US dollars; a second time changes nothing."""
        cost += to_micro_cents(usd)
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
