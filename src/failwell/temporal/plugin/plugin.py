"""The plugin of Temporal for clients and workers. Importing this module loads temporalio."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, cast

from temporalio.converter import DataConverter, FailureConverter, PayloadConverter
from temporalio.exceptions import FailureError
from temporalio.plugin import SimplePlugin
from temporalio.worker import (
    ActivityInboundInterceptor,
    Interceptor,
    WorkerConfig,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowRunner,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner
from temporalio.workflow import NondeterminismError

from failwell.calls.policy import SCHEDULES, Policy
from failwell.calls.retry_options import RetryOptions
from failwell.errors.fault import Fault
from failwell.errors.foreign_objects import safe_call
from failwell.temporal.plugin.activity import ActivitySettings, ReportedActivity
from failwell.temporal.plugin.errors import to_application_error
from failwell.temporal.plugin.workflow import is_wrapper, workflow_class


class ReliabilityPlugin(SimplePlugin):
    """What `failwell.temporal.plugin.reliability` returns."""

    def __init__(
        self,
        options: RetryOptions,
        *,
        non_retryable: Collection[str],
        idempotent_activities: Collection[str],
        workflow_failures: tuple[type[BaseException], ...],
    ) -> None:
        interceptor = _Reliability(options, non_retryable, idempotent_activities, workflow_failures)
        super().__init__(  # pyright: ignore[reportUnknownMemberType]  (Temporal's types are open)
            "failwell.reliability",
            data_converter=_with_reports,
            interceptors=[interceptor],
            workflow_runner=_with_passthrough,
            # For what is raised outside the interceptor: where a workflow is made, and where its arguments are read.
            workflow_failure_exception_types=[Fault, *_final_types(workflow_failures)],
        )

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """See base class. A worker whose client has the plugin too gets it once."""
        present: Any = cast("dict[str, Any]", config).get("interceptors", ())
        if any(isinstance(each, _Reliability) for each in present):
            return config
        return super().configure_worker(config)


def _final_types(failures: tuple[type[BaseException], ...]) -> list[type[BaseException]]:
    """Types that end a workflow wherever they are raised; none of them takes a `NondeterminismError` with it."""
    types = [cls for cls in failures if not issubclass(NondeterminismError, cls)]
    # Temporal raises it for arguments that it cannot read.
    return [*types, RuntimeError] if issubclass(RuntimeError, failures) else types


class _Reliability(Interceptor):
    def __init__(
        self,
        options: RetryOptions,
        non_retryable: Collection[str],
        idempotent_activities: Collection[str],
        workflow_failures: tuple[type[BaseException], ...],
    ) -> None:
        self._settings = ActivitySettings(options, non_retryable, idempotent_activities)
        self._workflow_class = workflow_class(workflow_failures, _most_attempts(options.policy))

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return ReportedActivity(next, self._settings)

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: ARG002  (Temporal passes it)
    ) -> type[WorkflowInboundInterceptor]:
        return self._workflow_class


def _most_attempts(policy: Policy) -> int:
    """What bounds an activity without `maximum_attempts` where no worker answers: as many as any schedule allows."""
    schedules = [rule.schedule for rule in policy.rules if rule.schedule is not None]
    return max(schedule.max_attempts for schedule in (*schedules, *SCHEDULES.values()))


class _Reports:
    """A failure converter that writes the report of what no interceptor has seen."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Any) -> None:
        if isinstance(exception, Exception) and (
            not isinstance(exception, FailureError) or is_wrapper(exception)
        ):
            exception = safe_call(to_application_error, exception, exception)
        parent: Any = super()
        parent.to_failure(exception, payload_converter, failure)


def _with_reports(converter: DataConverter | None) -> DataConverter:
    base = DataConverter.default if converter is None else converter
    own: type[FailureConverter] = base.failure_converter_class
    if issubclass(own, _Reports):
        return base
    return replace(base, failure_converter_class=type(f"{own.__name__}WithReports", (_Reports, own), {}))


def _with_passthrough(runner: WorkflowRunner | None) -> WorkflowRunner:
    if not isinstance(runner, SandboxedWorkflowRunner):
        return cast("WorkflowRunner", runner)
    return replace(runner, restrictions=runner.restrictions.with_passthrough_modules("failwell"))
