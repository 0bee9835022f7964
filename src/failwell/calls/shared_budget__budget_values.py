"""What is spent of a shared budget, as a value of a store, and back."""

from collections.abc import Mapping
from json import dumps, loads
from typing import Any


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
