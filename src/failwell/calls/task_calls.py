"""The tasks of an engine (Celery, DBOS, Prefect) under one retry authority: what every plugin for an engine holds.

An engine stores the exception of a failed task, its text and its traceback in its own database. A plugin raises
`TaskFailed` in its place: the report as JSON, and nothing of the exception's text.

The question that every engine asks: may this failure be repeated, and how soon?
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar, Unpack

from failwell.adapters.describe import attach_report, describe
from failwell.adapters.revival import Recalled
from failwell.calls.attempt_loop import Parked
from failwell.calls.model_calls import refuse_options
from failwell.calls.operation import Operation
from failwell.calls.policy import IN_PROCESS_LIMIT, exhausted_inside, is_unsure
from failwell.calls.retry import run, run_async
from failwell.calls.retry_options import RetryOptions, RetryParameters, merge_options
from failwell.calls.suppress import catch, catch_async
from failwell.errors.axes import Category
from failwell.errors.context import attach
from failwell.errors.fault import Fault
from failwell.errors.report import ErrorReport

_F = TypeVar("_F", bound=Callable[..., Any])
_SHORTEST_PAUSE = 0.01


class TaskFailed(Recalled):
    """A task failed, and this is its report. Describing it gives that report again."""

    def __init__(self, recorded: str) -> None:
        # The only argument is text, so that an engine that stores `args` as JSON can make it again.
        report = ErrorReport.read(recorded)
        super().__init__(recorded=report.to_dict(), message=f"{report.kind}: {report.message}")
        self.args = (recorded,)
        self.set_own_kind(report.kind)
        attach_report(self, report)

    @property
    def report(self) -> ErrorReport:
        """What failed, whether a repeat helps and when, and the attempts that were made."""
        return self.recorded_report

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


def task_failure(error: BaseException, *, idempotent: bool | None = None) -> TaskFailed:
    """The failure to raise in place of `error`. It is returned as it is if it is one already."""
    if isinstance(error, TaskFailed):
        return error
    return TaskFailed(describe(error, idempotent=idempotent).to_json())


def task_options(
    engine: str, longest: float = IN_PROCESS_LIMIT, **parameters: Unpack[RetryParameters]
) -> RetryOptions:
    """The options of the tasks of one plugin; the engine itself waits for up to `longest` seconds.

    Unlike a model call, a task is not taken to be idempotent.

    Raises:
        TypeError: a parameter has the wrong type, there is none of that name, or a task cannot keep it.
        ValueError: a number makes no sense.
    """
    # A guard counts by provider; which one a task calls is known to its failures alone.
    guarded = {"provider": engine} if parameters.get("guard") is not None else None
    merged = merge_options(guarded, **parameters)
    refuse_options(merged, engine, "shrink", "stream")
    if merged.policy.in_process_limit == IN_PROCESS_LIMIT:
        merged = replace(merged, policy=replace(merged.policy, in_process_limit=longest))
    return merged


def named(options: RetryOptions, function: Callable[..., Any]) -> RetryOptions:
    """The options with the name of the function, unless they have one."""
    if options.name is not None:
        return options
    name = getattr(function, "__qualname__", type(function).__qualname__).replace(".<locals>.", ".")
    return replace(options, name=name)


def decided(operation: Operation, error: Exception) -> tuple[TaskFailed, float | None]:
    """The failure of an attempt, and seconds until the next one, or `None` if there is none."""
    try:
        delay = operation.failed(error)
    except Fault as end:
        # Parked, cancelled, or a policy that could not be applied.
        error, delay = end, None
    return _with_ledger(operation, error, delay)


async def decided_async(operation: Operation, error: Exception) -> tuple[TaskFailed, float | None]:
    """`decided`, with hooks that may be async."""
    try:
        delay = await operation.failed_async(error)
    except Fault as end:
        # As in `decided`.
        error, delay = end, None
    return _with_ledger(operation, error, delay)


def _with_ledger(
    operation: Operation, error: Exception, delay: float | None
) -> tuple[TaskFailed, float | None]:
    if delay is not None and operation.loop is not None:
        attach(error, operation.loop.ledger())
    return task_failure(error, idempotent=operation.options.idempotent), delay


def open_operation(options: RetryOptions) -> Operation:
    """An operation of these options.

    Raises:
        TaskFailed: a guard or a budget allows no call, or the work was cancelled.
    """
    try:
        return Operation(options)
    except Fault as refusal:
        # Without its context, which an engine would store.
        raise task_failure(refusal) from None


def paused(operation: Operation) -> tuple[TaskFailed, float] | None:
    """Why an attempt has to wait, and for how many seconds, because a provider told another user of the guard so.

    The engine waits then and not the attempt, as it does after a failure.
    """
    guard = operation.options.guard
    pause = None if guard is None else guard.paused(operation.called)
    if guard is None or pause is None or pause.not_before is None or pause.not_before.after < _SHORTEST_PAUSE:
        return None
    # Nothing was sent, so a probe that was admitted is free again.
    guard.abandoned(operation.called)
    return task_failure(pause), pause.not_before.after


def repeated_inside(function: _F, options: RetryOptions) -> _F:
    """`function`, repeated in the process of the task; what it finally raises is a `TaskFailed`."""
    options = named(options, function)
    if iscoroutinefunction(function):

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await run_async(options, function, *args, **kwargs)

        return recorded(function, call, options.idempotent)
    return recorded(
        function, lambda *args, **kwargs: run(options, function, *args, **kwargs), options.idempotent
    )


def recorded(function: _F, call: Callable[..., Any] | None = None, idempotent: bool | None = None) -> _F:
    """`function`, made by `call` if that is given; whatever it raises becomes a `TaskFailed`."""
    call = call or function
    result: Any
    if iscoroutinefunction(function):

        @wraps(function)
        async def recorded_async(*args: Any, **kwargs: Any) -> Any:
            value, error = await catch_async(partial(call, *args, **kwargs))
            if error is not None:
                raise task_failure(error, idempotent=idempotent)
            return value

        result = recorded_async
    else:

        @wraps(function)
        def recorded_plain(*args: Any, **kwargs: Any) -> Any:
            value, error = catch(partial(call, *args, **kwargs))
            if error is not None:
                raise task_failure(error, idempotent=idempotent)
            return value

        result = recorded_plain
    return result


def repeatable(
    error: BaseException,
    *,
    idempotent: bool | None = None,
    longest: float = IN_PROCESS_LIMIT,
    repeat_exhausted: bool = False,
) -> ErrorReport | None:
    """The report of a failure that a framework may repeat within `longest` seconds, or `None`.

    An interrupt and a cancel are never repeated, nor is what a loop below has parked, nor work that may
    have been done unless the call is declared `idempotent`. What a loop below has repeated up to its limit is
    repeated only if `repeat_exhausted` is set: the calls of both loops multiply.
    """
    if not isinstance(error, Exception) or isinstance(error, Parked):
        return None
    report = describe(error, origin="call", idempotent=idempotent)
    if report.category is Category.CANCELLED or not report.retryable or is_unsure(report, idempotent):
        return None
    if exhausted_inside(report) is not None and not repeat_exhausted:
        return None
    delay = report.not_before
    return None if delay is not None and delay.after > longest else report
