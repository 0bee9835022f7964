"""The report of a cancelled job, whose certainty says what the job did."""

from dataclasses import replace
from typing import Any

from failwell.fault.axes import Certainty
from failwell.fault.capability import CapabilityCancelledError
from failwell.report.describe import describe
from failwell.report.record import Attempt, ErrorReport, Scene


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
    if certainty is Certainty.NOT_SENT and earlier > 0:
        # This attempt never began, and an earlier one may have run.
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
