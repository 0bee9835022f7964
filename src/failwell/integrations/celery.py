"""Celery: a failed task is sent again when its report allows it, and its stored result is the report.

The queue does the waiting, so a delay that is too long to sleep is no problem here. `reliability(app)` does so for all
tasks of an app; `retry_task` for one, in its `except` block.

Example:
    >>> from failwell.integrations.celery import reliability
    >>> def make(celery):
    ...     app = reliability(celery.Celery("app"))
    ...     @app.task
    ...     def summarize(text):
    ...         return text[:10]
    ...     return summarize
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn, TypeVar, Unpack

from failwell.adapters.describe import describe
from failwell.calls.clock import random_jitter
from failwell.calls.idempotency import keyed
from failwell.calls.operation import Operation
from failwell.calls.policy import Park, Policy, Retry, RetryState, decide
from failwell.calls.retry_options import RetryOptions, RetryParameters
from failwell.calls.suppress import catch
from failwell.calls.task_calls import TaskFailed, decided, open_operation, paused, task_options
from failwell.errors.faults import Validation
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.missing_extra import need
from failwell.errors.report import Attempt, ErrorReport

__all__ = ["LONGEST", "TaskFailed", "reliability", "retry_task"]

LONGEST = 3600.0
"""Seconds; Redis hands a task out a second time when it waits longer than this (its visibility timeout)."""
_DEFAULT = Policy()
_HEADER = "failwell_report"
"""The header of a message that holds the report of the attempt before it."""

A = TypeVar("A")


def reliability(
    app: A,
    *,
    longest: float = LONGEST,
    **parameters: Unpack[RetryParameters],
) -> A:
    """The app, whose tasks are sent again as their failures allow.

    A delay that a server requested becomes the countdown of the message. The result backend stores a `TaskFailed`: the
    report with all attempts, and no text of the exception. `idempotency_key()` is the same in every attempt of a task.
    A task says with `@app.task(idempotent=True)` that a repeat is harmless although the outcome is unknown. The policy
    counts the calls; the `max_retries` that a task sets itself holds as well.

    Args:
        app: The app, before its tasks are first used.
        longest: Seconds; where a longer wait is required, the task fails, and its report says when to send it again.
        parameters: Those of `failwell.retry`.

    Raises:
        MissingExtra: celery is not installed.
        TypeError: a parameter has the wrong type, or there is none of that name.
        ValueError: a number makes no sense, or the tasks of the app exist already.
    """
    merged = task_options("celery", longest, **parameters)
    own: Any = app
    if safe_getattr(own, "finalized"):
        raise ValueError("the tasks of this app exist already: call `reliability` where the app is made")
    base: Any = need("celery.utils.imports").symbol_by_name(own.task_cls)
    own.task_cls = _task_class(base, merged)
    # The class is made of `task_cls` once, when it is first needed.
    own.__dict__.pop("Task", None)
    return app


def _task_class(base: Any, options: RetryOptions) -> Any:
    by_task: dict[str, RetryOptions] = {}

    class ReliableTask(base):
        """A task that runs under the retry policy of its app."""

        abstract = True
        max_retries = None
        idempotent: bool | None = options.idempotent

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            if self.request.called_directly:
                return base.__call__(self, *args, **kwargs)
            own = by_task.get(self.name)
            if own is None:
                own = replace(options, name=options.name or self.name, idempotent=self.idempotent)
                by_task[self.name] = own
            try:
                with keyed(f"celery/{self.request.id}"):
                    result, failure, delay = _attempt(self, own, args, kwargs)
            except TaskFailed as refusal:
                # A guard or a budget allows no call now.
                result, failure, delay = None, refusal, _countdown(own, self.request, refusal.report)
            if failure is None:
                return result
            # Outside the `except` block: Celery would add the exception to what it stores.
            if delay is None:
                raise failure
            headers: dict[str, Any] = {**_headers(self.request), _HEADER: failure.args[0]}
            raise self.retry(exc=failure, countdown=delay, headers=headers)

    return ReliableTask


def _attempt(
    task: Any, options: RetryOptions, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, TaskFailed | None, float | None]:
    """The result of a task, or its failure and seconds until it is sent again.

    Raises:
        TaskFailed: no call is allowed now.
    """
    operation = _operation(options, task.request)
    pause = paused(operation)
    if pause is not None:
        raise pause[0]
    operation.enter()
    try:
        result, error = catch(partial(task.run, *args, **kwargs))
        if error is None:
            operation.succeeded()
            return result, None, None
        if _is_predicate(error):
            operation.abandoned()
            raise error
        # Whatever else a task raises leaves as a report.
        return None, *decided(operation, error)
    finally:
        operation.detach()


def _countdown(options: RetryOptions, request: Any, report: ErrorReport) -> float | None:
    """Seconds until a task that was not called is sent again."""
    tries = RetryState(attempts=request.retries + 1, idempotent=options.idempotent)
    decision = decide(options.policy, report, tries, options.jitter())
    return decision.after if isinstance(decision, Retry) else None


def _operation(options: RetryOptions, request: Any) -> Operation:
    """The operation of a task, with the attempts that earlier messages of it have made."""
    operation = open_operation(options)
    if request.retries:
        loop = operation.failing_loop()
        loop.attempts = loop.tries = loop.calls = request.retries
        loop.rows = [*_earlier(request)]
    return operation


def _headers(request: Any) -> dict[str, Any]:
    return request.headers or {}


def _earlier(request: Any) -> tuple[Attempt, ...]:
    try:
        return ErrorReport.read(_headers(request)[_HEADER]).attempts
    except (KeyError, TypeError, Validation):
        # An older version, or another program, has sent the message.
        return ()


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
    tries = RetryState(attempts=task.request.retries + 1, idempotent=idempotent)
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
