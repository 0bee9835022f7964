"""How often a worker died in a row, and whether it may be started again."""

import asyncio

from failwell.fault.base import Fault
from failwell.fault.facts import NotBefore
from failwell.jobs.faults import WorkerCrashed


class Crashes:
    """Counts deaths between which no call was answered. Too many, and nothing is started for a while."""

    def __init__(self, capability: str, most: int, cooldown: float) -> None:
        self._capability = capability
        self._most = most
        self._cooldown = cooldown
        self._until = 0.0
        self._last: Fault | None = None
        self._answered = 0
        self.deaths = 0

    def count(self, fault: Fault, answered: int) -> bool:
        """Note a death after `answered` calls in all; whether the worker is quarantined now comes back."""
        if answered > self._answered:
            self.deaths = 0
        self._answered = answered
        self.deaths += 1
        self._last = fault
        if self.deaths < self._most:
            return False
        self._until = asyncio.get_running_loop().time() + self._cooldown
        return True

    def left(self) -> float:
        """Seconds of quarantine that are left."""
        return max(0.0, self._until - asyncio.get_running_loop().time()) if self._until else 0.0

    def forgive(self) -> None:
        """Forget them."""
        self.deaths = 0
        self._until = 0.0

    def refuse(self) -> None:
        """Do nothing, or say why nothing is started.

        Raises:
            WorkerCrashed: the worker is quarantined.
        """
        left = self.left()
        if left <= 0:
            return
        raise WorkerCrashed(
            message=f"the worker of capability {self._capability!r} died {self.deaths} times in a row;"
            f" nothing is started for another {left:.0f} s",
            capability_name=self._capability,
            reason="quarantined",
            quarantined_for=round(left, 3),
            not_before=NotBefore(after=left, source="quarantine"),
        ) from self._last
