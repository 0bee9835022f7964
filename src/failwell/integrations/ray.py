"""Ray: `@reliability(ray.remote)` in place of `@ray.remote` repeats a task in its worker and returns a typed failure.

Ray's own `retry_exceptions` takes classes of exceptions and repeats at once, so it can neither tell a wrong key from a
full minute nor keep a delay that a server requested. Its `max_retries` still restarts tasks whose worker died.

Example:
    >>> from failwell.integrations.ray import TaskFailed, reliability
    >>> def register(ray):
    ...     @reliability(ray.remote(num_cpus=1))
    ...     def summarize(text):
    ...         return text[:10]
    ...     return summarize
"""

from collections.abc import Callable
from typing import Any, Unpack

from failwell.calls.model_calls import PluginOptions
from failwell.calls.retry_options import RetryOptions
from failwell.calls.task_calls import TaskFailed, repeated_inside, task_options
from failwell.errors.foreign_objects import safe_getattr

__all__ = ["TaskFailed", "reliability"]


def reliability(
    remote: Callable[..., Any], *, options: RetryOptions | None = None, **parameters: Unpack[PluginOptions]
) -> Callable[[Callable[..., Any]], Any]:
    """A decorator for a task: `remote` around a function that is repeated as its failures allow.

    The task waits in its worker for up to a minute, exactly as long as a server requests. A longer delay ends the task:
    its failure says when to submit it again (`describe(error).not_before`). What `ray.get` raises carries the report and
    its attempts, and none of the texts of the exceptions in the worker.

    Args:
        remote: `ray.remote`, or `ray.remote(...)` with options.
        options: All parameters as one value. A parameter beside it wins.
        parameters: Those of `failwell.retry`. They travel to the worker by pickling, which a `guard` and a `budget`
            cannot: both belong to one process.

    Raises:
        TypeError: a parameter has the wrong type, or there is none of that name.
        ValueError: a number makes no sense, or a guard or a budget would have to travel.
    """
    merged = task_options("ray", options, **parameters)
    if merged.guard is not None or merged.budget is not None:
        raise ValueError("a `guard` or a `budget` belongs to one process and cannot travel to Ray's workers")

    def decorate(function: Callable[..., Any]) -> Any:
        if isinstance(function, type):
            raise TypeError(
                f"`reliability` repeats a task, and `{function.__name__}` is an actor: put `@failwell.retry` on its methods"
            )
        task = remote(repeated_inside(function, merged))
        own = safe_getattr(task, "_default_options")
        if isinstance(own, dict) and own.get("retry_exceptions"):  # pyright: ignore[reportUnknownMemberType]
            raise ValueError("leave out `retry_exceptions`: the calls of both loops would multiply")
        return task

    return decorate
