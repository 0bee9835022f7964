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
from typing import Any, NoReturn, TypeVar, Unpack

from failwell._extras import need
from failwell.adapters.safe_getattr import safe_getattr
from failwell.decision.policy import Policy, Tries, decide
from failwell.decision.verdict import Park, Retry
from failwell.fault.classes import Validation
from failwell.integrations._model_calls import PluginOptions
from failwell.integrations._task_calls import TaskFailed, task_failure, task_options
from failwell.report.describe import describe
from failwell.report.failure_context import attach
from failwell.report.record import Attempt, ErrorReport
from failwell.runtime.clock import random_jitter
from failwell.runtime.loop import Parked
from failwell.runtime.operation import Operation, keyed
from failwell.runtime.retry_options import RetryOptions

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
    options: RetryOptions | None = None,
    longest: float = LONGEST,
    **parameters: Unpack[PluginOptions],
) -> A:
    """The app, whose tasks are sent again as their failures allow.

    A delay that a server requested becomes the countdown of the message. The result backend stores a `TaskFailed`: the
    report with all attempts, and no text of the exception. `idempotency_key()` is the same in every attempt of a task.
    A task says with `@app.task(idempotent=True)` that a repeat is harmless although the outcome is unknown. The policy
    counts the calls; the `max_retries` that a task sets itself holds as well.

    Args:
        app: The app, before its tasks are first used.
        options: All parameters as one value. A parameter beside it wins.
        longest: Seconds; where a longer wait is required, the task fails, and its report says when to send it again.
        parameters: Those of `failwell.retry`.

    Raises:
        MissingExtra: celery is not installed.
        TypeError: a parameter has the wrong type, or there is none of that name.
        ValueError: a number makes no sense, or the tasks of the app exist already.
    """
    merged = task_options("celery", options, longest, **parameters)
    own: Any = app
    if safe_getattr(own, "finalized"):
        raise ValueError("the tasks of this app exist already: call `reliability` where the app is made")
    base: Any = need("celery.utils.imports").symbol_by_name(own.task_cls)
    own.task_cls = _task_class(base, merged)
    # The class is made of `task_cls` once, when it is first needed.
    own.__dict__.pop("Task", None)
    return app


def _task_class(base: Any, options: RetryOptions) -> Any:
    class ReliableTask(base):
        """A task that runs under the retry policy of its app."""

        abstract = True
        max_retries = None
        idempotent: bool | None = options.idempotent

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            if self.request.called_directly:
                return base.__call__(self, *args, **kwargs)
            task_name = options.name or self.name
            own = replace(options, name=task_name, idempotent=self.idempotent)
            with keyed(f"celery/{self.request.id}"):
                operation = _operation(own, self.request)
                operation.enter()
                try:
                    result = self.run(*args, **kwargs)
                except Exception as error:
                    # Whatever a task raises leaves as a report.
                    if _is_predicate(error):
                        operation.abandoned()
                        raise
                    failure, delay = _decided(operation, error)
                else:
                    operation.succeeded()
                    return result
                finally:
                    operation.detach()
            # Outside the `except` block: Celery would add the exception to what it stores.
            if delay is None:
                raise failure
            headers: dict[str, Any] = {**_headers(self.request), _HEADER: failure.args[0]}
            raise self.retry(exc=failure, countdown=delay, headers=headers)

    return ReliableTask


def _operation(options: RetryOptions, request: Any) -> Operation:
    """The operation of a task, with the attempts that earlier messages of it have made."""
    operation = Operation(options)
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


def _decided(operation: Operation, error: Exception) -> tuple[TaskFailed, float | None]:
    """The failure to store, and seconds until the task is sent again."""
    try:
        delay = operation.failed(error)
    except Parked as parked:
        error, delay = parked, None
    if delay is not None and operation.loop is not None:
        attach(error, operation.loop.ledger())
    return task_failure(error, idempotent=operation.options.idempotent), delay


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
