"""Temporal activities under the retry policy: an attempt fails with its report, and says whether it is repeated, and when.

Importing this module loads temporalio.
"""

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from threading import Lock
from typing import Any, cast

from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadConverter
from temporalio.exceptions import ApplicationError
from temporalio.exceptions import CancelledError as TemporalCancelled
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from failwell.adapters.describe import describe
from failwell.calls.attempt_loop import Parked
from failwell.calls.idempotency import keyed
from failwell.calls.model_calls import switch_off_sdk_retries
from failwell.calls.operation import Operation
from failwell.calls.retry_options import RetryOptions, merge_options
from failwell.calls.suppress import OnRaise, catch_async
from failwell.calls.task_calls import TaskFailed, open_operation, paused
from failwell.errors.context import attach
from failwell.errors.fault import Fault
from failwell.errors.foreign_objects import safe_call, safe_getattr
from failwell.errors.report import Attempt, ErrorReport, Scene
from failwell.temporal.plugin.errors import HEADER, application_error, holds_report, subject_of

_MODEL_CALLS = ("invoke_model_activity", "invoke_model_activity_streaming")
_MODEL_SUFFIXES = ("__model_request", "__model_request_stream")
_MOST_LEDGERS = 1_000
_MOST_OPTIONS = 256
_MOST_COUNTED = 1_000_000
_UNTYPED_ATTEMPTS = 3


class _Ledgers:
    """The rows of activities that were attempted in this process and are not over."""

    def __init__(self) -> None:
        self._rows: OrderedDict[object, tuple[Attempt, ...]] = OrderedDict()
        self._lock = Lock()

    def take(self, key: object) -> tuple[Attempt, ...]:
        with self._lock:
            return self._rows.pop(key, ())

    def put(self, key: object, rows: Sequence[Attempt]) -> None:
        with self._lock:
            self._rows[key] = tuple(rows)
            while len(self._rows) > _MOST_LEDGERS:
                self._rows.popitem(last=False)


class _Attempt:
    """One attempt of an activity: what the server and the header say about it."""

    def __init__(self, headers: Mapping[str, Payload]) -> None:
        info = activity.info()
        header = _read_header(headers)
        policy = info.retry_policy
        self.info = info
        self.number = info.attempt + _count(header, "earlier")
        """Which call it is, counted over the waits of the workflow."""
        in_policy = 0 if policy is None else policy.maximum_attempts
        self.most: int | None = (_count(header, "attempts") if header else in_policy) or None
        """Attempts in all, if the policy of the activity names a number."""
        in_list = () if policy is None else policy.non_retryable_error_types or ()
        listed: Any = header.get("not_repeated") if header else [*in_list]
        self.not_repeated = frozenset(map(str, cast("list[object]", listed) if type(listed) is list else ()))
        self.place = (info.namespace, info.workflow_id, info.workflow_run_id, info.activity_id)
        own = "/".join(str(part) for part in self.place if part)
        self.scene = Scene(
            run=info.workflow_id, workflow=info.workflow_type, node=info.activity_type, attempt=self.number
        )
        self.key = f"temporal/{header.get('key') or own}"


class ActivitySettings:
    """What holds for all activities of a plugin."""

    def __init__(
        self, options: RetryOptions, non_retryable: Collection[str], idempotent_activities: Collection[str]
    ) -> None:
        self.options = options
        self.non_retryable = frozenset(non_retryable)
        self.idempotent_activities = frozenset(idempotent_activities)
        self.ledgers = _Ledgers()


class ReportedActivity(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, settings: ActivitySettings) -> None:
        super().__init__(next)
        self._settings = settings
        self._options: dict[tuple[str, int | None], RetryOptions] = {}

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        attempt = _Attempt(input.headers)
        options = self._options_of(attempt)
        _switch_off_retries(input)
        try:
            with keyed(attempt.key):
                return await self._run(self._open(options, attempt), attempt, input)
        except _Failed as end:
            failure = end.failure
        # Without its context, whose text Temporal would store.
        raise failure from None

    async def _run(self, operation: Operation, attempt: _Attempt, input: ExecuteActivityInput) -> Any:
        operation.enter()
        try:
            # A cancel, or a completion from elsewhere, is no failure.
            with OnRaise(abandoned=lambda _error: operation.abandoned()):
                result, error = await catch_async(self.next.execute_activity, input)
            if error is None:
                operation.succeeded()
                self._settings.ledgers.take(attempt.place)
                return result
            if isinstance(error, TemporalCancelled):
                # Temporal reports it itself.
                operation.abandoned()
                raise error
            # Whatever else an activity raises leaves as a report.
            raise _Failed(await self._failed(operation, attempt, error))
        finally:
            operation.detach()

    def _options_of(self, attempt: _Attempt) -> RetryOptions:
        name = attempt.info.activity_type
        options = self._options.get((name, attempt.most))
        if options is None:
            options = merge_options(options=self._settings.options, attempts=attempt.most, name=name)
            if options.idempotent is None and self._is_idempotent(name):
                options = replace(options, idempotent=True)
            if len(self._options) >= _MOST_OPTIONS:
                self._options.clear()
            self._options[name, attempt.most] = options
        return options

    def _is_idempotent(self, name: str) -> bool:
        return (
            name in self._settings.idempotent_activities
            or name in _MODEL_CALLS
            or name.endswith(_MODEL_SUFFIXES)
        )

    def _open(self, options: RetryOptions, attempt: _Attempt) -> Operation:
        try:
            operation = open_operation(options)
        except TaskFailed as refusal:
            # A guard or a budget allows no call now.
            raise _Failed(_waiting(refusal.report)) from None
        pause = paused(operation)
        if pause is not None:
            raise _Failed(_waiting(pause[0].report))
        rows = self._settings.ledgers.take(attempt.place)
        if attempt.number > 1:
            loop = operation.failing_loop()
            loop.attempts = loop.tries = loop.calls = attempt.number - 1
            loop.rows = [*rows]
        return operation

    async def _failed(self, operation: Operation, attempt: _Attempt, error: Exception) -> ApplicationError:
        subject = cast("Exception", subject_of(error))
        is_forbidden = self._is_forbidden(error, subject, attempt)
        if isinstance(error, ApplicationError) and error is subject and not holds_report(error):
            return _bounded(error, attempt, is_final=is_forbidden)
        delay: float | None = None
        is_parked = False
        try:
            delay = await operation.failed_async(subject)
        except Parked as parked:
            subject, is_parked = parked, attempt.most != 1 and not is_forbidden
        except Fault as end:
            # Cancelled, or a policy that could not be applied.
            subject = end
        if operation.loop is not None and delay is not None:
            attach(subject, operation.loop.ledger())
            self._settings.ledgers.put(attempt.place, operation.loop.rows)
        report = describe(subject, idempotent=operation.options.idempotent, scene=attempt.scene)
        if is_parked:
            return application_error(report, error, non_retryable=True, parked=_requested(report))
        is_final = delay is None or is_forbidden
        if attempt.most is not None and report.not_before is None:
            # Its policy names the numbers, so the server waits by them.
            delay = None
        return application_error(report, error, non_retryable=is_final, delay=delay)

    def _is_forbidden(self, error: BaseException, subject: BaseException, attempt: _Attempt) -> bool:
        """Whether a list of names forbids a repeat, the plugin's or that of the activity's policy, or who raised it."""
        if isinstance(error, ApplicationError) and error.non_retryable:
            return True
        names = self._settings.non_retryable | attempt.not_repeated
        return not names.isdisjoint(
            {type(error).__name__, type(subject).__name__, safe_getattr(error, "type")}
        )


class _Failed(Exception):
    """The attempt is over, with this failure."""

    def __init__(self, failure: ApplicationError) -> None:
        super().__init__()
        self.failure = failure


def _waiting(report: ErrorReport) -> ApplicationError:
    """The failure of an activity that was not called: the workflow waits if it is known for how long."""
    parked = _requested(report) if report.retryable else None
    return application_error(report, None, non_retryable=True, parked=parked)


def _requested(report: ErrorReport) -> float | None:
    return None if report.not_before is None else report.not_before.after


def _bounded(error: ApplicationError, attempt: _Attempt, *, is_final: bool) -> ApplicationError:
    """An author's own error, which Temporal repeats by its policy, but not for ever."""
    if error.non_retryable or not (is_final or attempt.number >= (attempt.most or _UNTYPED_ATTEMPTS)):
        return error
    return ApplicationError(
        error.message, *error.details, type=error.type, non_retryable=True, category=error.category
    )


def _read_header(headers: Mapping[str, Payload]) -> Mapping[str, Any]:
    payload = headers.get(HEADER)
    value: Any = None if payload is None else safe_call(PayloadConverter.default.from_payload, None, payload)
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _count(header: Mapping[str, Any], name: str) -> int:
    """A number of attempts in a header, which another worker wrote."""
    value = header.get(name)
    return value if type(value) is int and 0 < value < _MOST_COUNTED else 0


def _switch_off_retries(input: ExecuteActivityInput) -> None:
    """Switch the client's own retries off where a plugin's activity calls a model."""
    first = input.args[0] if input.args else None
    if is_dataclass(first) and not isinstance(first, type):
        if {"model_settings", "model_request_parameters"} <= {field.name for field in fields(first)}:
            settings: Any = safe_getattr(first, "model_settings")
            input.args = [
                replace(cast("Any", first), model_settings={**(settings or {}), "max_retries": 0}),
                *input.args[1:],
            ]
        return
    provider = safe_getattr(safe_getattr(input.fn, "__self__"), "_model_provider")
    if provider is not None:
        safe_call(switch_off_sdk_retries, None, provider, "_client")
