"""Appending with patience: a store that is away for a moment does not cost a run its work.

Only for a run under way, where somebody would rather wait six seconds than lose an hour. A command
that merely looks is told at once.
"""

from collections.abc import Sequence
from itertools import count

from failwell.decision.policy import SCHEDULES
from failwell.journal.event import Event, Fact
from failwell.journal.faults import StoreUnavailable
from failwell.journal.store import Store
from failwell.runtime.clock import SYSTEM_CLOCK, Clock


async def append_patiently(
    store: Store, run: str, facts: Sequence[Fact], *, clock: Clock = SYSTEM_CLOCK
) -> list[Event]:
    """As `store.append`, repeated by the schedule `store` while the store is unavailable for now.

    A refused append has recorded nothing, so repeating it records nothing twice.

    Raises:
        Fault: the store still refuses, or refuses for a reason that waiting does not cure.
    """
    schedule = SCHEDULES["store"]
    for attempt in count(1):
        try:
            return store.append(run, facts)
        except StoreUnavailable as refusal:
            if refusal.retryable is False or attempt >= schedule.max_attempts:
                raise
        await clock.asleep(schedule.backoff.wait(attempt))
    raise AssertionError("the loop only ends by returning or raising")
