"""What may be spent: attempts, seconds, money. A budget is a value, and so is what was spent of it."""

from failwell.fault.frozen import frozen


@frozen
class Budget:
    """A limit across all layers below one call. `None` means that nobody set one."""

    attempts: int | None = None
    seconds: float | None = None
    """Overall time, waits included."""
    cost: int | None = None
    """Micro-cents."""

    def __post_init__(self) -> None:
        for name in ("attempts", "seconds", "cost"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ValueError(f"`{name}` must not be negative")


NO_BUDGET = Budget()


@frozen
class Spent:
    """What has been spent so far."""

    attempts: int = 0
    seconds: float = 0.0
    cost: int = 0


def over(budget: Budget, spent: Spent, *, wait: float = 0.0) -> str | None:
    """Why one more attempt after `wait` seconds would go over the budget, or `None`."""
    if budget.attempts is not None and spent.attempts >= budget.attempts:
        return f"all {budget.attempts} attempts are spent"
    if budget.seconds is not None and spent.seconds + wait > budget.seconds:
        return f"waiting {wait:.1f} s would pass the deadline of {budget.seconds:g} s"
    if budget.cost is not None and spent.cost >= budget.cost:
        return f"the budget of {budget.cost} micro-cents is spent"
    return None
