"""Temporal: one plugin for client and worker. The server repeats activities as their failures allow, and no longer.

`Client.connect(address, plugins=[reliability()])` is all; a worker with that client has the plugin too, beside those of
OpenAI Agents and Pydantic AI. `recover(error)` is the report of whatever a workflow or an activity failed with.

Example:
    >>> from failwell.temporal.plugin import reliability, retry_policy, to_application_error
    >>> reliability().name()
    'failwell.reliability'
    >>> retry_policy("server").maximum_attempts
    3
    >>> to_application_error(ConnectionRefusedError(111, "Connection refused")).type
    'provider.connection'
"""

from collections.abc import Collection
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Unpack

from failwell.calls.policy import SCHEDULES, Schedule
from failwell.calls.retry_options import RetryParameters
from failwell.calls.task_calls import task_options
from failwell.errors.missing_extra import need
from failwell.temporal.plugin.errors import recover, to_application_error

if TYPE_CHECKING:
    from temporalio.plugin import SimplePlugin

__all__ = ["recover", "reliability", "retry_policy", "to_application_error"]

_COEFFICIENTS = {"exponential": 2.0, "fixed": 1.0}


def reliability(
    *,
    non_retryable: Collection[str] = (),
    idempotent_activities: Collection[str] = (),
    workflow_failures: tuple[type[BaseException], ...] = (Exception,),
    **parameters: Unpack[RetryParameters],
) -> "SimplePlugin":
    """A plugin for `Client.connect(address, plugins=[reliability()])`; workers with that client have it too.

    An activity fails with its report: the kind is the type of the `ApplicationError`, the report is in the details, and nothing
    of the exception's text leaves the worker. The server repeats what a repeat can mend, as often as the policy allows, after the
    delay that the provider requested. For a longer one the workflow waits with a timer and calls the activity again, which
    costs no attempt. An exception in the code of a workflow ends the workflow instead of stalling it.

    An activity whose `RetryPolicy` names `maximum_attempts` has that number and the waits of its policy; any
    other has those of the failure's kind.

    Args:
        non_retryable: Names of exceptions that are never repeated, whatever they mean. `non_retryable_error_types` of an
            activity's policy adds to them.
        idempotent_activities: Names of activities that may be repeated although their outcome is unknown. The model calls of
            OpenAI Agents and Pydantic AI are among them.
        workflow_failures: Exceptions that end a workflow when its code raises them. With `(Fault,)` a bug stalls it, as without
            the plugin, until a worker with mended code takes over.
        parameters: Those of `failwell.retry`.

    Raises:
        MissingExtra: temporalio is not installed.
        TypeError: a parameter has the wrong type, or there is none of that name.
        ValueError: a number makes no sense.
    """
    for name, value in (("non_retryable", non_retryable), ("idempotent_activities", idempotent_activities)):
        if isinstance(value, str):
            raise TypeError(f"`{name}` takes a list of names, not one text: write `{name}=[{value!r}]`")
    merged = task_options("temporal", **parameters)
    need("temporalio")
    from failwell.temporal.plugin.plugin import ReliabilityPlugin

    return ReliabilityPlugin(
        merged,
        non_retryable=non_retryable,
        idempotent_activities=idempotent_activities,
        workflow_failures=workflow_failures,
    )


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
