"""What came of an ended job, as a caller wants it: its result, or the fault that it ended with."""

from typing import Any

from failwell.fault.capability import CapabilityCancelledError
from failwell.jobs.job import Job, JobState
from failwell.report.revive import revive


def result_of(job: Job) -> Any:
    """What came of an ended job.

    Raises:
        Fault: it failed or was cancelled.
    """
    if job.state is JobState.COMPLETED:
        return job.result
    if job.error is not None:
        raise revive(job.error)
    raise CapabilityCancelledError(job.request.instance)
