"""DBOS: `@reliability(DBOS.step())` in place of `@DBOS.step()` repeats a step by durable sleeps of its workflow.

Every attempt is a step that DBOS records, and every wait a sleep that it records: a workflow that is recovered goes on
where it was, also in the middle of a long wait. The recorded error is the report, and none of the exception's text.

Example:
    >>> from failwell.integrations.dbos import TaskFailed, reliability
    >>> def register(DBOS):
    ...     @reliability(DBOS.step())
    ...     def summarize(text):
    ...         return text[:10]
    ...     return summarize
"""

from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, Unpack

from failwell.calls.operation import Operation
from failwell.calls.retry_options import RetryParameters
from failwell.calls.task_calls import (
    TaskFailed,
    named,
    open_operation,
    paused,
    recorded,
    repeatable,
    task_options,
)
from failwell.errors.missing_extra import need

__all__ = ["LONGEST", "TaskFailed", "reliability", "should_retry"]

LONGEST = 86_400.0
"""Seconds. A longer delay is not slept in the workflow; its failure says when to start the workflow again."""


def reliability(
    step: Callable[..., Any], **parameters: Unpack[RetryParameters]
) -> Callable[[Callable[..., Any]], Any]:
    """A decorator for a step: `step` around a function that is repeated as its failures allow.

    Leave `retries_allowed` off, as it is by default: the calls of both loops would multiply.

    Args:
        step: `DBOS.step()`, with the options that you give it.
        parameters: Those of `failwell.retry`.

    Raises:
        TypeError: a parameter has the wrong type, or there is none of that name.
        ValueError: a number makes no sense.
    """
    merged = task_options("dbos", LONGEST, **parameters)

    def decorate(function: Callable[..., Any]) -> Any:
        own = named(merged, function)
        attempt = step(recorded(function, idempotent=own.idempotent))
        if iscoroutinefunction(function):

            @wraps(function)
            async def repeated_async(*args: Any, **kwargs: Any) -> Any:
                operation = open_operation(own)
                while (pause := paused(operation)) is not None:
                    await _sleep_async(operation, pause[1])
                while True:
                    async with operation:
                        return await attempt(*args, **kwargs)
                    await _sleep_async(operation, operation.delay or 0.0)

            return repeated_async

        @wraps(function)
        def repeated(*args: Any, **kwargs: Any) -> Any:
            operation = open_operation(own)
            while (pause := paused(operation)) is not None:
                _sleep(operation, pause[1])
            while True:
                with operation:
                    return attempt(*args, **kwargs)
                _sleep(operation, operation.delay or 0.0)

        return repeated

    return decorate


def should_retry(error: BaseException, *, idempotent: bool | None = None) -> bool:
    """For `DBOS.step(retries_allowed=True, should_retry=should_retry)`, where DBOS keeps counting and waiting.

    DBOS waits by its own numbers then, so a server-requested delay is not kept; one over a minute is a `False`.
    """
    return repeatable(error, idempotent=idempotent) is not None


def _sleep(operation: Operation, seconds: float) -> None:
    engine = need("dbos").DBOS
    if engine.workflow_id is None:
        operation.wait(seconds)
    else:
        engine.sleep(seconds)


async def _sleep_async(operation: Operation, seconds: float) -> None:
    engine = need("dbos").DBOS
    if engine.workflow_id is None:
        await operation.wait_async(seconds)
    else:
        await engine.sleep_async(seconds)
