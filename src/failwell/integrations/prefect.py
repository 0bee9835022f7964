"""Prefect: `@reliability(task)` in place of `@task` repeats a task run as its failures allow, through Prefect's own retries.

Each repeat is a state `AwaitingRetry` with its time, so Prefect shows what a run waits for. The message of a failed state
and the stored result are the report, and none of the exception's text.

Example:
    >>> from failwell.integrations.prefect import TaskFailed, reliability
    >>> def register(task):
    ...     @reliability(task(name="summarize"))
    ...     def summarize(text):
    ...         return text[:10]
    ...     return summarize
"""

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial, wraps
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any, SupportsIndex, Unpack

from failwell.calls.operation import Operation
from failwell.calls.policy import SCHEDULES, Policy
from failwell.calls.retry_options import RetryOptions, RetryParameters
from failwell.calls.suppress import catch, catch_async
from failwell.calls.task_calls import (
    TaskFailed,
    decided,
    decided_async,
    named,
    open_operation,
    paused,
    repeatable,
    task_options,
)
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.missing_extra import need

__all__ = ["LONGEST", "TaskFailed", "reliability", "retry_condition"]

LONGEST = 900.0
"""Seconds. A run waits in its process; a longer delay fails it, and its failure says when to run it again."""
_DELAY = "_failwell_delay"
_delay: ContextVar[float] = ContextVar("failwell_prefect_delay", default=0.0)
_operations: dict[Any, Operation] = {}
"""By the id of the task run. Prefect repeats a run in the process that began it."""
_MOST_RUNS = 10_000


class _Delays(list[float]):
    """Prefect reads the delay of a retry from a list; this one holds the delay that was decided last."""

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        return _delay.get()


def reliability(
    task: Callable[..., Any], **parameters: Unpack[RetryParameters]
) -> Callable[[Callable[..., Any]], Any]:
    """A decorator for a task: `task` around a function that is repeated as its failures allow.

    It replaces `retries`, `retry_delay_seconds`, `retry_jitter_factor` and `retry_condition_fn` of the task.

    Args:
        task: `prefect.task`, or `prefect.task(...)` with options.
        parameters: Those of `failwell.retry`.

    Raises:
        TypeError: a parameter has the wrong type, there is none of that name, or the function is a generator.
        ValueError: a number makes no sense.
    """
    merged = task_options("prefect", LONGEST, **parameters)

    def decorate(function: Callable[..., Any]) -> Any:
        if isgeneratorfunction(function) or isasyncgenfunction(function):
            raise TypeError("`reliability` repeats a task that returns; put `@failwell.retry` on a generator")
        return task(_attempt(function, named(merged, function))).with_options(
            retries=_most_attempts(merged.policy),
            retry_delay_seconds=_Delays([0.0]),
            retry_jitter_factor=0,
            retry_condition_fn=_is_repeated,
        )

    return decorate


def retry_condition(_task: Any, _run: Any, state: Any) -> bool:
    """For `@task(retries=…, retry_condition_fn=retry_condition)`, where Prefect keeps counting and waiting.

    Prefect waits by its own numbers then, so a server-requested delay is not kept; one over a minute is a `False`.
    """
    error = safe_getattr(state, "data")
    return isinstance(error, BaseException) and repeatable(error) is not None


def _most_attempts(policy: Policy) -> int:
    """A number of retries that Prefect never reaches first: the policy counts."""
    schedules = [rule.schedule for rule in policy.rules if rule.schedule is not None]
    return max(schedule.max_attempts for schedule in (*schedules, *SCHEDULES.values()))


def _is_repeated(_task: Any, run: Any, state: Any) -> bool:
    error = safe_getattr(state, "data")
    if not isinstance(error, Exception):
        return False
    delay = _delay_of(error)
    if delay is None and not isinstance(error, TaskFailed):
        # Prefect itself raised it, such as a timeout of the run.
        operation = _operations.get(run.id)
        delay = None if operation is None else _delay_of(_failed(run.id, decided(operation, error)))
    _delay.set(delay or 0.0)
    return delay is not None


def _delay_of(error: Exception) -> float | None:
    return error.__dict__.get(_DELAY)


def _attempt(function: Callable[..., Any], options: RetryOptions) -> Callable[..., Any]:
    """`function`, of which whatever it raises leaves as a report, unless Prefect itself raised it."""
    if iscoroutinefunction(function):

        @wraps(function)
        async def attempt_async(*args: Any, **kwargs: Any) -> Any:
            run = _current_run()
            operation = _operation(run, options)
            operation.enter()
            try:
                result, error = await catch_async(partial(function, *args, **kwargs))
                if error is None:
                    return _succeeded(run, operation, result)
                raise error if _is_of_prefect(error) else _failed(run, await decided_async(operation, error))
            finally:
                operation.detach()

        return attempt_async

    @wraps(function)
    def attempt(*args: Any, **kwargs: Any) -> Any:
        run = _current_run()
        operation = _operation(run, options)
        operation.enter()
        try:
            result, error = catch(partial(function, *args, **kwargs))
            if error is None:
                return _succeeded(run, operation, result)
            raise error if _is_of_prefect(error) else _failed(run, decided(operation, error))
        finally:
            operation.detach()

    return attempt


def _current_run() -> Any:
    context = need("prefect.context").TaskRunContext.get()
    return None if context is None else context.task_run.id


def _operation(run: Any, options: RetryOptions) -> Operation:
    """The operation of the task run: the same in each of its attempts."""
    operation = _operations.get(run)
    if operation is None:
        operation = open_operation(options)
        pause = paused(operation)
        if pause is not None and run is not None:
            # The next attempt opens it again.
            failure, seconds = pause
            failure.__dict__[_DELAY] = seconds if seconds <= options.policy.in_process_limit else None
            raise failure
        if run is not None:
            _operations[run] = operation
            if len(_operations) > _MOST_RUNS:
                # A run that Prefect cancelled: it does not say so.
                del _operations[next(iter(_operations))]
    return operation


def _succeeded(run: Any, operation: Operation, result: Any) -> Any:
    _operations.pop(run, None)
    operation.succeeded()
    return result


def _failed(run: Any, outcome: tuple[TaskFailed, float | None]) -> TaskFailed:
    """The failure of an attempt, which carries the delay to the next one."""
    failure, delay = outcome
    failure.__dict__[_DELAY] = delay
    if delay is None:
        _operations.pop(run, None)
    return failure


def _is_of_prefect(error: Exception) -> bool:
    """Whether Prefect raised it to end the run in its own way, as after a timeout."""
    return type(error).__module__.partition(".")[0] == "prefect"
