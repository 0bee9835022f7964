"""A job as a Temporal workflow: one activity, on the queue of the instance that runs it."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from failwell.temporal.queues import (
        HEARTBEAT_TIMEOUT,
        JOB_ACTIVITY,
        JOB_WORKFLOW,
        LONGEST,
        MOST_STARTS,
        instance_queue,
    )

_RETRY = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_attempts=MOST_STARTS)


# A request that cannot be read fails the job. By default, it would be tried for ever.
@workflow.defn(name=JOB_WORKFLOW, failure_exception_types=[Exception])
class JobWorkflow:
    """One job. Its result is that of the capability; its failure carries the report of the job."""

    @workflow.run
    async def run(self, request: dict[str, Any]) -> Any:
        """Run the job of `request`, as `job_payload` writes it."""
        return await run_job(request, workflow.info().task_queue)


async def run_job(request: dict[str, Any], task_queue: str) -> Any:
    """Run a job from workflow code, and return its result as JSON.

    The queue of the machine that runs it decides about retries. Temporal starts it again only if that machine is
    lost or stops.

    Args:
        request: The job, as `job_payload` writes it.
        task_queue: The queue of workflow runs; that of the instance is derived from it.
    """
    return await workflow.execute_activity(
        JOB_ACTIVITY,
        request,
        task_queue=instance_queue(task_queue, request["instance"]),
        start_to_close_timeout=timedelta(seconds=LONGEST),
        heartbeat_timeout=timedelta(seconds=HEARTBEAT_TIMEOUT),
        retry_policy=_RETRY,
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )
