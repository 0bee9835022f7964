"""Celery: a failed task is sent again when its report allows it.

The queue does the waiting, so a delay that is too long to sleep is no problem here.

Example:
    >>> from failwell.integrations.celery import retry_task
    >>> def register(app):
    ...     @app.task(bind=True, max_retries=None)
    ...     def summarize(self, text):
    ...         try:
    ...             return text[:10]
    ...         except Exception as error:
    ...             retry_task(self, error)
    ...     return summarize
"""

from collections.abc import Callable
from typing import Any, NoReturn

from failwell.decision.policy import Policy, Tries, decide
from failwell.decision.verdict import Park, Retry
from failwell.report.describe import describe
from failwell.runtime.clock import random_jitter

__all__ = ["retry_task"]

LONGEST = 3600.0
"""Seconds; Redis hands a task out a second time when it waits longer than this (its visibility timeout)."""
_DEFAULT = Policy()


def retry_task(
    task: Any,
    error: Exception,
    *,
    policy: Policy = _DEFAULT,
    idempotent: bool | None = None,
    longest: float = LONGEST,
    jitter: Callable[[], float] = random_jitter,
) -> NoReturn:
    """Send the task again if the failure allows it, else raise `error`. To be called in an `except` block.

    The policy counts the calls, and the task's own `max_retries` holds as well: set it to `None` to leave
    the counting to the policy.

    Args:
        task: The bound task (`self` in a task made with `bind=True`).
        error: What was caught.
        policy: Says how often and how soon.
        idempotent: Whether a repeat is harmless although the outcome is unknown.
        longest: Seconds; where a longer wait is required, `error` is raised.
        jitter: Draws the jitter.

    Raises:
        Retry: Celery's own, which tells the worker that the task was sent again.
        Exception: `error`, where a repeat is not allowed or would not help.
    """
    if _is_predicate(error):
        raise error
    report = describe(error, idempotent=idempotent)
    tries = Tries(attempts=task.request.retries + 1, idempotent=idempotent)
    decision = decide(policy, report, tries, jitter())
    if isinstance(decision, Retry | Park) and decision.after <= longest:
        raise task.retry(exc=error, countdown=decision.after)
    raise error


def _is_predicate(error: Exception) -> bool:
    """Whether Celery itself raised it to say what happens to the task: `Retry`, `Ignore` or `Reject`."""
    return any(
        (cls.__module__, cls.__name__) == ("celery.exceptions", "TaskPredicate")
        for cls in type(error).__mro__
    )
