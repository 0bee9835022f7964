"""Temporal: the server repeats activities; failwell gives it the numbers, and says whether a failure may be repeated.

Build the error in the activity, next to what failed. A workflow that catches it describes it as any other
exception and gets the same report back.

Example:
    >>> from failwell.integrations.temporal import retry_policy, to_application_error
    >>> retry_policy("server").maximum_attempts
    3
    >>> to_application_error(ConnectionRefusedError(111, "Connection refused")).type
    'provider.connection'
"""

from datetime import timedelta
from typing import Any

from failwell._extras import need
from failwell.decision.policy import SCHEDULES, Schedule
from failwell.report.describe import describe

__all__ = ["retry_policy", "to_application_error"]

_COEFFICIENTS = {"exponential": 2.0, "fixed": 1.0}


def retry_policy(schedule: Schedule | str = "server") -> Any:
    """Temporal's `RetryPolicy` with the numbers of one of our schedules.

    Args:
        schedule: A schedule, or the name of a default one: `server`, `rate_limit`, `none`, …

    Raises:
        MissingExtra: temporalio is not installed.
        ValueError: no schedule has that name, or its waits grow in a way that Temporal does not know.
    """
    chosen = SCHEDULES.get(schedule) if isinstance(schedule, str) else schedule
    if chosen is None:
        raise ValueError(f"there is no schedule {schedule!r}: use one of {', '.join(sorted(SCHEDULES))}")
    backoff = chosen.backoff
    coefficient = _COEFFICIENTS.get(backoff.curve)
    if coefficient is None:
        raise ValueError(f"Temporal knows no {backoff.curve} back-off: use an exponential or a fixed one")
    return need("temporalio.common").RetryPolicy(
        initial_interval=timedelta(seconds=backoff.first),
        backoff_coefficient=coefficient,
        maximum_interval=timedelta(seconds=max(backoff.first, backoff.longest)),
        maximum_attempts=chosen.max_attempts,
    )


def to_application_error(error: BaseException, *, idempotent: bool | None = None) -> Any:
    """Temporal's `ApplicationError` for `error`: its kind as the type, its report in the details.

    It is non-retryable unless the report allows a retry, and carries the delay that the provider requested. One of
    Temporal's own application errors is returned as it is. Do not pass a cancel: let it through, since
    Temporal has its own way of reporting one.

    Args:
        error: What was raised.
        idempotent: Whether a repeat is harmless although the outcome is unknown.

    Raises:
        MissingExtra: temporalio is not installed.
    """
    application_error = need("temporalio.exceptions").ApplicationError
    if isinstance(error, application_error):
        return error
    report = describe(error, idempotent=idempotent)
    delay = report.not_before
    return application_error(
        report.message,
        report.to_dict(),
        type=report.kind,
        non_retryable=not report.retryable,
        next_retry_delay=None if delay is None else timedelta(seconds=delay.after),
    )
