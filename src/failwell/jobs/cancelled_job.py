"""The report of a cancelled job, whose certainty says what the job did."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from failwell.adapters.describe import describe
from failwell.errors.axes import Certainty
from failwell.errors.faults import CapabilityCancelledError
from failwell.errors.report import Attempt, ErrorReport, Scene
from failwell.jobs.job import Job, JobState
from failwell.jobs.store.rows import job_values
from failwell.store.event import Event

if TYPE_CHECKING:
    from failwell.jobs.store.records import Values
    from failwell.jobs.store.sqlite import JobStore


def cancelled_report(
    instance: str, scene: Scene, attempts: int, last: Certainty | None, failure: ErrorReport | None
) -> ErrorReport:
    """The report of a job that was cancelled.

    Args:
        instance: The instance that the job called.
        scene: Where the job belongs.
        attempts: How many attempts were started.
        last: What the attempt did that the cancel ended; `None` if none was running.
        failure: The report of an earlier attempt. It becomes a row of `attempts`.
    """
    earlier = attempts if last is None else attempts - 1
    certainty = last or Certainty.NOT_SENT
    may_have_run = earlier > 0 and (failure is None or failure.certainty is Certainty.UNKNOWN)
    if (certainty is Certainty.NOT_SENT and earlier > 0) or (certainty is Certainty.PARTIAL and may_have_run):
        # What this attempt did is known, and an earlier one may have run to its end.
        certainty = Certainty.UNKNOWN
    report = describe(CapabilityCancelledError(instance, certainty=certainty), scene=scene)
    if failure is None:
        return report
    row = Attempt(number=max(1, earlier), kind=failure.kind, certainty=failure.certainty, layer="job")
    return replace(report, attempts=(*failure.attempts, row))


def end_data(report: ErrorReport, attempt: int) -> dict[str, Any]:
    """What the event says that ends a failed or cancelled job."""
    data: dict[str, Any] = {"kind": report.kind, "message": report.message, "attempt": attempt}
    if report.kind == "cancel.job":
        data["certainty"] = report.certainty.value
    return data


def cancel_unowned(store: "JobStore", jobs: Sequence[Job], now: float) -> list[str]:
    """Cancel the jobs that no live host owns and that are as they were read; return their ids."""
    return store.commit_unowned([_cancelled(job, now) for job in jobs])


def _cancelled(job: Job, now: float) -> "tuple[Values, Event]":
    request = job.request
    scene = Scene(job=job.id, run=request.run, instance=request.instance, attempt=job.attempt or None)
    # A job that is recorded as running lost its host; it may have run.
    last = Certainty.UNKNOWN if job.state is JobState.RUNNING else None
    report = cancelled_report(request.instance, scene, job.attempt, last, job.error)
    cancelled = replace(
        job,
        error=report,
        state=JobState.CANCELLED,
        ended=now,
        cancelled=now,
        due=None,
        block_reason=None,
    )
    event = Event(0, JobState.CANCELLED.value, now, end_data(report, job.attempt), job.id)
    return job_values(cancelled, job.state.value), event
