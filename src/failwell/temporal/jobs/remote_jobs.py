"""Jobs that the workers of a Temporal server run, as records of the same form as local ones.

Each job is one workflow, whose id holds that of the job. Temporal stores it, so there is no queue of our own.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from json import dumps
from typing import Any

from temporalio.api.enums.v1 import PendingActivityState, TaskQueueType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from failwell.adapters.describe import describe
from failwell.errors.faults import CapabilityCancelledError
from failwell.errors.report import ErrorReport
from failwell.jobs.faults import UnknownJob
from failwell.jobs.job import FOREVER, Job, JobId, JobRequest, JobState, check_request, new_job_id
from failwell.jobs.manifest import check_instance
from failwell.temporal.connection import ConnectionOptions, InvalidConnection
from failwell.temporal.jobs.job_payload import is_job_id, job_payload, request_of
from failwell.temporal.plugin import recover
from failwell.temporal.queues import JOB_PREFIX, JOB_WORKFLOW, instance_queue

_MIDDLE = 3
"""The priority of a job without one; Temporal has 1, which goes first, to 5."""
_LATE = 5.0
"""Seconds after its deadline when a job that no worker has taken ends."""
_STATES = {
    WorkflowExecutionStatus.COMPLETED: JobState.COMPLETED,
    WorkflowExecutionStatus.CANCELED: JobState.CANCELLED,
    WorkflowExecutionStatus.TERMINATED: JobState.CANCELLED,
    WorkflowExecutionStatus.FAILED: JobState.FAILED,
    WorkflowExecutionStatus.TIMED_OUT: JobState.FAILED,
}


class RemoteJobs:
    """Submits jobs to a task queue, and reads their records."""

    def __init__(self, client: Client, options: ConnectionOptions) -> None:
        self._client = client
        self._task_queue = options.task_queue

    async def submit(self, request: JobRequest) -> str:
        """Submit a job and return its id. A second job with the same key is the first.

        Raises:
            CapabilityInputError: the request is not valid, or larger than the server stores.
            RPCError: the server refused it.
        """
        check_request(request)
        check_instance(request.instance)
        job = request.key or new_job_id()
        now = datetime.now(UTC)
        delay = None if request.not_before is None else max(request.not_before - now, timedelta())
        limit = None if request.deadline is None else request.deadline - now + timedelta(seconds=_LATE)
        reuse = WorkflowIDReusePolicy.ALLOW_DUPLICATE
        if request.unique == FOREVER:
            reuse = WorkflowIDReusePolicy.REJECT_DUPLICATE
        try:
            await self._client.start_workflow(
                JOB_WORKFLOW,
                job_payload(request),
                id=f"{JOB_PREFIX}{job}",
                task_queue=self._task_queue,
                id_reuse_policy=reuse,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                start_delay=delay,
                execution_timeout=limit,
                priority=Priority(priority_key=_MIDDLE - max(-2, min(2, request.priority))),
                memo={"instance": request.instance, "action": request.action},
            )
        except WorkflowAlreadyStartedError:
            # The job with this key has ended; its record holds the result.
            return job
        return job

    async def wait(self, job: str) -> Job:
        """Wait until a job ends, and return its record.

        Raises:
            UnknownJob: the job does not exist.
        """
        handle = self._handle(job)
        result, error = await self._outcome(job, handle)
        return _ended(await self._described(job, handle), result, error)

    async def record(self, job: str) -> Job:
        """The record of a job, with its result or its error if it has ended.

        Raises:
            UnknownJob: the job does not exist.
        """
        handle = self._handle(job)
        record = await self._described(job, handle)
        if not record.state.is_final:
            return record
        return _ended(record, *await self._outcome(job, handle))

    async def cancel(self, job: str) -> bool:
        """Cancel a job; `False` if it has ended. A running one stops a little later.

        Raises:
            UnknownJob: the job does not exist.
        """
        handle = self._handle(job)
        if (await self._described(job, handle)).state.is_final:
            return False
        await handle.cancel()
        return True

    async def has_worker(self, instance: str) -> bool:
        """Whether a worker takes jobs of an instance."""
        reply = await self._client.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace=self._client.namespace,
                task_queue=TaskQueue(name=instance_queue(self._task_queue, instance)),
                task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
            )
        )
        return bool(reply.pollers)

    async def latest(self, limit: int) -> list[Job]:
        """The latest jobs of this task queue, newest first, without results and errors."""
        query = f"WorkflowType = '{JOB_WORKFLOW}' AND TaskQueue = {dumps(self._task_queue)}"
        entries = self._client.list_workflows(query, limit=limit or None)
        return [await _record(entry.id.removeprefix(JOB_PREFIX), entry) async for entry in entries]

    def _handle(self, job: str) -> WorkflowHandle[Any, Any]:
        return self._client.get_workflow_handle(f"{JOB_PREFIX}{job}")

    async def _described(self, job: str, handle: WorkflowHandle[Any, Any]) -> Job:
        try:
            description = await handle.describe()
            events = [event async for event in handle.fetch_history_events()]
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise UnknownJob(job=job) from None
            raise
        payloads = events[0].workflow_execution_started_event_attributes.input.payloads
        try:
            (fields,) = await self._client.data_converter.decode(payloads)
            record = await _record(job, description)
        except KeyError as error:
            raise _undecoded(error) from error
        request = request_of(fields, None if is_job_id(job) else job)
        return replace(record, request=request, **_latest_attempt(description, events))

    async def _outcome(self, job: str, handle: WorkflowHandle[Any, Any]) -> tuple[Any, ErrorReport | None]:
        """The result, or the report of the failure, once the job has ended."""
        try:
            return await handle.result(), None
        except WorkflowFailureError as error:
            return None, recover(error)
        except KeyError as error:
            raise _undecoded(error) from error
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise UnknownJob(job=job) from None
            raise


def _undecoded(error: KeyError) -> InvalidConnection:
    """The fault for a payload in an encoding that this process has no codec for."""
    return InvalidConnection.wrap(
        error,
        "the record of the job cannot be decoded; use the `--codec` of its worker and its submitter",
        caller_facing=True,
    )


def _ended(job: Job, result: Any, error: ErrorReport | None) -> Job:
    if job.state is JobState.CANCELLED:
        error = describe(CapabilityCancelledError(job.request.instance))
    return replace(job, result=result, error=error)


async def _record(job: str, entry: WorkflowExecution) -> Job:
    """The record of a job from what a list of workflows says."""
    memo = await entry.memo()
    return Job(
        id=JobId(job),
        request=JobRequest(instance=memo.get("instance", ""), action=memo.get("action", "execute")),
        state=JobState.PENDING if entry.status is None else _STATES.get(entry.status, JobState.PENDING),
        submitted=entry.start_time.timestamp(),
        ended=None if entry.close_time is None else entry.close_time.timestamp(),
    )


def _latest_attempt(
    description: WorkflowExecutionDescription, events: Sequence[HistoryEvent]
) -> dict[str, Any]:
    """How often the job was started, and when it was started last."""
    for activity in description.raw_description.pending_activities:
        values: dict[str, Any] = {"attempt": activity.attempt}
        if activity.state != PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED:
            values["state"] = JobState.RUNNING
            values["started"] = activity.last_started_time.ToDatetime(UTC).timestamp()
        return values
    for event in reversed(events):
        if event.HasField("activity_task_started_event_attributes"):
            attempt = event.activity_task_started_event_attributes.attempt
            return {"attempt": attempt, "started": event.event_time.ToDatetime(UTC).timestamp()}
    return {}
