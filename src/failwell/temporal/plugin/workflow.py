"""Temporal workflows: an exception in their code ends them, and a long delay of an activity is a timer.

Everything that is decided here follows from the history, so a replay decides the same. Importing this module loads temporalio.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from temporalio import workflow
from temporalio.api.common.v1 import RetryPolicy as RetryPolicyMessage
from temporalio.common import RetryPolicy
from temporalio.converter import PayloadConverter
from temporalio.exceptions import ActivityError, ApplicationError, FailureError
from temporalio.worker import (
    ExecuteWorkflowInput,
    HandleSignalInput,
    HandleUpdateInput,
    StartActivityInput,
    StartLocalActivityInput,
    WorkflowInboundInterceptor,
    WorkflowOutboundInterceptor,
)

from failwell.adapters.describe import describe
from failwell.adapters.vendors.temporalio import report_in
from failwell.errors.context import scene
from failwell.errors.fault import Fault
from failwell.errors.foreign_objects import safe_getattr
from failwell.temporal.plugin.errors import (
    HEADER,
    application_error,
    is_decided,
    outside_sandbox,
    recorded_in,
    subject_of,
)

_NOT_REPEATED = (
    *(
        "TypeError",
        "ValueError",
        "RuntimeError",
        "KeyError",
        "AttributeError",
        "AssertionError",
        "ValidationError",
    ),
    *("PayloadsTooLarge", "PayloadSizeError"),
)
"""Types of failures that no plugin has described: the SDK could not read the arguments or write the result."""


def workflow_class(failures: tuple[type[BaseException], ...], most: int) -> type[WorkflowInboundInterceptor]:
    """The interceptor of workflows. Temporal makes one for each run, without arguments."""

    class Floor(_Workflow):
        workflow_failures = failures
        most_attempts = most

    return Floor


class _Workflow(WorkflowInboundInterceptor):
    """Ends a workflow whose code raises, where Temporal would repeat its task until somebody looks."""

    workflow_failures: tuple[type[BaseException], ...]
    most_attempts: int

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound, self.most_attempts))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        return await self._run(super().execute_workflow(input))

    async def handle_signal(self, input: HandleSignalInput) -> None:
        await self._run(super().handle_signal(input))

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:
        return await self._run(super().handle_update_handler(input))

    async def _run(self, call: Awaitable[Any]) -> Any:
        try:
            return await call
        except workflow.NondeterminismError:
            # A worker with the right code continues it.
            raise
        except self.workflow_failures as error:
            if isinstance(error, workflow.ContinueAsNewError) or not isinstance(error, Exception):
                raise
            if isinstance(error, FailureError) and not is_wrapper(error):
                raise
            failure = _inline_failure(error)
        raise failure from None


def is_wrapper(error: FailureError) -> bool:
    """Whether it is an application error that only stands for another exception."""
    return isinstance(error, ApplicationError) and not is_decided(error)


def _inline_failure(error: Exception) -> ApplicationError:
    """The end of a workflow: never repeated as a whole, since its activities were."""
    subject = subject_of(error)
    report = None if isinstance(subject, Fault) else recorded_in(subject)
    if report is None:
        with (
            scene(run=workflow.info().workflow_id, workflow=workflow.info().workflow_type),
            outside_sandbox(),
        ):
            report = describe(subject, at=workflow.now())
    return application_error(report, error, non_retryable=True)


class _Outbound(WorkflowOutboundInterceptor):
    """Bounds the retries of activities, and waits for a long delay with a timer of the workflow."""

    def __init__(self, next: WorkflowOutboundInterceptor, most: int) -> None:
        super().__init__(next)
        self._most = most
        self._count = 0

    def start_activity(self, input: StartActivityInput) -> "workflow.ActivityHandle[Any]":
        return self._start(input, self.next.start_activity)

    def start_local_activity(self, input: StartLocalActivityInput) -> "workflow.ActivityHandle[Any]":
        return self._start(input, self.next.start_local_activity)

    def _start(self, input: Any, start: Callable[[Any], Any]) -> Any:
        self._count += 1
        info = workflow.info()
        own: RetryPolicy | None = input.retry_policy
        header: dict[str, Any] = {"key": f"{info.workflow_id}/{info.run_id}/{self._count}"}
        if own is not None:
            header |= {
                "attempts": own.maximum_attempts,
                "not_repeated": [*(own.non_retryable_error_types or ())],
            }
        input.retry_policy = _limit(own, self._most)
        _check(input)
        input.headers = {**input.headers, HEADER: PayloadConverter.default.to_payload(header)}
        calls = _Calls(input, start, header)
        task = asyncio.get_running_loop().create_task(calls.run(), name=f"activity: {input.activity}")
        task.add_done_callback(calls.close)
        return task


class _Calls:
    """An activity that is called again after each long delay."""

    def __init__(self, input: Any, start: Callable[[Any], Any], header: Mapping[str, Any]) -> None:
        self._input = input
        self._start = start
        self._header = header
        limit = input.schedule_to_close_timeout
        self._deadline = None if limit is None else workflow.now() + limit
        self._handle: asyncio.Future[Any] = start(input)

    async def run(self) -> Any:
        while True:
            try:
                return await self._handle
            except (ActivityError, ApplicationError) as error:
                wait, earlier = _park_of(error)
                if wait is None or (self._deadline is not None and workflow.now() + wait >= self._deadline):
                    raise
                kind = str(safe_getattr(_cause(error), "type"))
            await workflow.sleep(wait, summary=f"blocked: {kind}")
            header = {**self._header, "earlier": earlier}
            changes: dict[str, Any] = {
                "headers": {**self._input.headers, HEADER: PayloadConverter.default.to_payload(header)},
                # The name of a call that is over cannot be used again.
                "activity_id": None,
            }
            if self._deadline is not None:
                changes["schedule_to_close_timeout"] = self._deadline - workflow.now()
            self._handle = self._start(replace(self._input, **changes))

    def close(self, _task: "asyncio.Task[Any]") -> None:
        """Cancel the activity with a task that was cancelled before it ran."""
        if not self._handle.done():
            self._handle.cancel()


def _park_of(error: ActivityError | ApplicationError) -> tuple[timedelta | None, int]:
    """How long the activity's worker parked the call, and the attempts before it. Both are in the history."""
    cause = _cause(error)
    # Older releases of temporalio read a delay of nothing where there is none.
    if not isinstance(cause, ApplicationError) or not cause.non_retryable or not cause.next_retry_delay:
        return None, 0
    report = report_in(cause.details)
    if report is None:
        return None, 0
    place: Any = report.get("scene")
    number: Any = cast("Mapping[str, Any]", place).get("attempt") if isinstance(place, Mapping) else None
    return cause.next_retry_delay, number - 1 if type(number) is int and number > 0 else 0


def _cause(error: ActivityError | ApplicationError) -> BaseException | None:
    """What the activity failed with. The failure of a local activity is not wrapped."""
    return error if isinstance(error, ApplicationError) else error.cause


def _check(input: StartActivityInput | StartLocalActivityInput) -> None:
    """Refuse options that Temporal would refuse after half of its command is written, which stalls the workflow.

    Raises:
        TypeError: a timeout is no `timedelta`.
        ValueError: a number of the policy makes no sense.
    """
    for name in ("schedule_to_close", "schedule_to_start", "start_to_close", "heartbeat"):
        value = getattr(input, f"{name}_timeout", None)
        if value is not None and not isinstance(value, timedelta):
            raise TypeError(f"`{name}_timeout` takes a `timedelta`, not {type(value).__name__}")
    if input.retry_policy is not None:
        input.retry_policy.apply_to_proto(RetryPolicyMessage())


def _limit(policy: RetryPolicy | None, most: int) -> RetryPolicy:
    own = RetryPolicy(maximum_interval=timedelta(seconds=300)) if policy is None else policy
    names = own.non_retryable_error_types or ()
    return replace(
        own,
        maximum_attempts=own.maximum_attempts or most,
        non_retryable_error_types=[*names, *(name for name in _NOT_REPEATED if name not in names)],
    )
