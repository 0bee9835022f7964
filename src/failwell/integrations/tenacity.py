"""tenacity: `@tenacity.retry(retry=retry_if_failwell(), wait=wait_failwell(), stop=...)`.

tenacity repeats for ever unless it is given a `stop`, so give it one.

Example:
    >>> import tenacity
    >>> from failwell.integrations.tenacity import retry_if_failwell, wait_failwell
    >>> retryer = tenacity.Retrying(
    ...     retry=retry_if_failwell(), wait=wait_failwell(), stop=tenacity.stop_after_attempt(3)
    ... )
    >>> retryer(lambda: 42)
    42
"""

from collections.abc import Callable
from typing import Any

from failwell.adapters.describe import describe
from failwell.calls.clock import random_jitter
from failwell.calls.policy import SCHEDULES, default_schedule
from failwell.calls.task_calls import repeatable
from failwell.errors.missing_extra import need

__all__ = ["retry_if_failwell", "wait_failwell"]


def retry_if_failwell(*, idempotent: bool | None = None, repeat_exhausted: bool = False) -> Any:
    """A tenacity predicate: true for failures that may be repeated, never for a cancel or an interrupt.

    It combines with tenacity's others by `&` and `|`.

    Args:
        idempotent: Whether a repeat is harmless although the outcome is unknown.
        repeat_exhausted: Whether to repeat what a failwell loop below has repeated up to its limit.

    Raises:
        MissingExtra: tenacity is not installed.
    """

    def may(error: BaseException) -> bool:
        return repeatable(error, idempotent=idempotent, repeat_exhausted=repeat_exhausted) is not None

    return need("tenacity").retry_if_exception(may)


def wait_failwell(
    default: Callable[[Any], float] | float | None = None, *, jitter: Callable[[], float] = random_jitter
) -> Any:
    """A tenacity wait: exactly what the provider requested, otherwise `default`.

    Args:
        default: Seconds, or another of tenacity's waits. Left out, the failure's own schedule says: from
            five seconds on for a rate limit, from one second on for a server that fails.
        jitter: Draws the jitter of that schedule.

    Raises:
        MissingExtra: tenacity is not installed.
    """
    tenacity = need("tenacity")

    class Wait(tenacity.wait.wait_base):
        """The wait, as one of tenacity's, so that it can be added to others."""

        def __call__(self, retry_state: Any) -> float:
            error = retry_state.outcome.exception()
            report = None if error is None else describe(error, origin="call")
            if report is not None and report.not_before is not None:
                return report.not_before.after
            if callable(default):
                return float(default(retry_state))
            if default is not None:
                return float(default)
            schedule = SCHEDULES["server" if report is None else default_schedule(report)]
            return schedule.backoff.wait(retry_state.attempt_number, jitter())

    return Wait()
