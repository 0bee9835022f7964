"""Runs one job of a Temporal activity on the local queue, with its workers, memory limits and retries."""

import asyncio
from dataclasses import replace
from json import loads
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from failwell.errors.fault import Fault
from failwell.errors.faults import CapabilityCancelledError
from failwell.jobs.faults import QueueStopped
from failwell.jobs.job import Job, JobRequest, JobState, new_job_id
from failwell.jobs.job_error import job_error
from failwell.jobs.runtime import Runtime
from failwell.jobs.store.rows import result_to_json
from failwell.temporal.jobs.job_payload import is_job_id, request_of, too_large
from failwell.temporal.plugin import to_application_error
from failwell.temporal.queues import BEAT, JOB_ACTIVITY, JOB_PREFIX, LARGEST

STOPPED = "failwell.WorkerStopped"
"""The type of the failure of a job whose worker was stopped; Temporal starts it on another one."""


class JobActivity:
    """The activity of jobs, over the queue of this process."""

    def __init__(self, jobs: Runtime) -> None:
        self._jobs = jobs

    @activity.defn(name=JOB_ACTIVITY)
    async def run(self, payload: dict[str, Any]) -> Any:
        """Run a job and return its result as JSON.

        A repeat of the activity finds the job that an earlier one submitted to the same store.
        """
        info = activity.info()
        beats = asyncio.ensure_future(self._beat())
        try:
            request = request_of(payload, f"temporal:{info.workflow_run_id}/{info.activity_id}")
            job = await self._ended(request, info.attempt)
            if job.state is JobState.COMPLETED:
                text = result_to_json(job.result)
                if len(text) > LARGEST:
                    raise too_large("the results", request.instance, len(text))
                return loads(text)
            raise CapabilityCancelledError(request.instance) if job.error is None else job_error(job.error)
        except Fault as fault:
            raise _final(fault) from None
        finally:
            beats.cancel()

    async def _ended(self, request: JobRequest, attempt: int) -> Job:
        """The job once it has ended. If the activity is cancelled, the job is cancelled first."""
        queue = self._jobs.queue
        job = await queue.submit(request, _job_id(activity.info().workflow_id))
        if job.state is JobState.CANCELLED:
            # An earlier attempt was stopped together with its worker.
            job = await queue.submit(replace(request, key=f"{request.key}#{attempt}"), new_job_id())
        try:
            return await self._jobs.wait(job.id)
        except asyncio.CancelledError:
            self._jobs.cancel(job.id)
            await self._jobs.wait(job.id)
            if activity.is_worker_shutdown():
                raise ApplicationError("the worker stops", type=STOPPED) from None
            raise
        except QueueStopped:
            raise ApplicationError("the worker stops", type=STOPPED) from None

    @staticmethod
    async def _beat() -> None:
        while True:
            # A short job needs none.
            await asyncio.sleep(BEAT)
            activity.heartbeat()


def _job_id(workflow: str | None) -> str:
    """The id of a local job: that of the job that was submitted, or a new one for a node of a run."""
    name = (workflow or "").removeprefix(JOB_PREFIX)
    return name if is_job_id(name) else new_job_id()


def _final(error: Fault) -> ApplicationError:
    """The failure of a job, which Temporal does not repeat: the local queue has made every attempt that its policy allows.

    It has no cause, because Temporal stores the text of causes.
    """
    failure = to_application_error(error)
    return ApplicationError(
        failure.message, *failure.details, type=failure.type, non_retryable=True, category=failure.category
    )
