"""What may be spent: attempts, seconds, money. A budget is a value, and so is what was spent of it.

Money is written in US dollars and counted in whole micro-cents, which add up without drifting.
"""

from typing import Literal

from failwell.calls.argument_checks import check_count, check_number
from failwell.errors.frozen import frozen

MICRO_CENTS_PER_DOLLAR = 100_000_000


@frozen
class Budget:
    """A limit across all layers below one call. `None` means that there is no limit."""

    attempts: int | None = None
    seconds: float | None = None
    """Overall time, waits included."""
    usd: float | None = None
    """US dollars."""
    unpriced: Literal["refuse", "allow"] = "refuse"
    """Whether a model without a known price may be called under a limit in dollars, which cannot count it."""

    def __post_init__(self) -> None:
        if self.attempts is not None:
            check_count("attempts", self.attempts, 0)
        if self.seconds is not None:
            check_number("seconds", self.seconds, endless=True)
        if self.usd is not None:
            check_number("usd", self.usd)
        if self.unpriced not in ("refuse", "allow"):
            raise ValueError(f"`unpriced` must be 'refuse' or 'allow', not {self.unpriced!r}")

    @property
    def micro_cents(self) -> int | None:
        """The limit of money as it is counted."""
        return None if self.usd is None else to_micro_cents(self.usd)


NO_BUDGET = Budget()


@frozen
class Spent:
    """What has been spent so far."""

    attempts: int = 0
    seconds: float = 0.0
    cost: int = 0
    """Micro-cents."""

    @property
    def usd(self) -> float:
        """The money in US dollars."""
        return self.cost / MICRO_CENTS_PER_DOLLAR


def over(budget: Budget, spent: Spent, *, wait: float = 0.0) -> str | None:
    """Why one more attempt after `wait` seconds would go over the budget, or `None`."""
    if budget.attempts is not None and spent.attempts >= budget.attempts:
        return f"all {budget.attempts} attempts are spent"
    if budget.seconds is not None and spent.seconds + wait > budget.seconds:
        return f"waiting {wait:.1f} s would pass the deadline of {budget.seconds:g} s"
    limit = budget.micro_cents
    if limit is not None and spent.cost >= limit:
        return f"the budget of {dollars(limit)} is spent"
    return None


def to_micro_cents(usd: float | str) -> int:
    """US dollars as whole micro-cents; half a micro-cent rounds up."""
    from decimal import ROUND_HALF_UP, Decimal

    exact = Decimal(str(usd)) * MICRO_CENTS_PER_DOLLAR
    return int(exact.quantize(Decimal(1), rounding=ROUND_HALF_UP))


def dollars(micro_cents: int) -> str:
    """An amount for people: `$0.5`, `$0.00000041`."""
    whole, rest = divmod(micro_cents, MICRO_CENTS_PER_DOLLAR)
    return f"${whole}.{rest:08d}".rstrip("0").rstrip(".")
