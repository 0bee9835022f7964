"""What came of an ended job, as a caller wants it: its result, or the fault that it ended with."""

from typing import Any

from failwell.fault.capability import CapabilityCancelledError
from failwell.jobs.job import Job, JobState
from failwell.jobs.queue_faults import NotOver
from failwell.report.revive import revive


def result_of(job: Job) -> Any:
    """What came of an ended job.

    Raises:
        Fault: it failed or was cancelled.
        NotOver: it has not ended.
    """
    if not job.state.is_final:
        raise NotOver(job=job.id, stands=job.state.value)
    if job.state is JobState.COMPLETED:
        return job.result
    if job.error is not None:
        raise revive(job.error)
    raise CapabilityCancelledError(job.request.instance)
