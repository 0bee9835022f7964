"""Any exception as the job world sees it: its category, and the summary that a job keeps."""

from dataclasses import fields
from datetime import datetime
from typing import Any, get_args

from failwell.adapters.causes import INPUT, category_of, resolve
from failwell.adapters.describe import describe
from failwell.errors.axes import JobCategory
from failwell.errors.faults import CapabilityError
from failwell.errors.foreign_objects import safe_call, safe_getattr, str_attr
from failwell.errors.report import Scene, TracebackPolicy
from failwell.errors.views import JobError

_CATEGORIES: tuple[JobCategory, ...] = get_args(JobCategory)


def classify_exception(exc: BaseException) -> JobCategory:
    """The job category of any exception.

    A capability error answers with the category it declares, whatever else it derives from; any
    other exception with the projection of its kind in input that was given, so a `ValueError` is `user_input`. An
    unknown exception is `fatal`.
    """
    declared = _declared(exc)
    if declared is not None:
        return declared[0]
    # The error path never raises: what cannot be classified is fatal.
    reading = safe_call(resolve, None, exc, INPUT)
    return "fatal" if reading is None else category_of(reading).job


def _declared(exc: BaseException) -> tuple[JobCategory, bool] | None:
    """The category in the view of an exception that names its own, if that category is known."""
    if not issubclass(type(exc), CapabilityError):
        return None
    category = str_attr(exc, "category")
    if category not in _CATEGORIES:
        return None
    return category, safe_getattr(exc, "default_retriable") is True


def map_bare_exception_to_job_error(
    exc: BaseException,
    capability_name: str | None = None,
    capability_instance_id: str | None = None,
    traceback_policy: TracebackPolicy = TracebackPolicy.FULL,
    occurred_at: datetime | None = None,
) -> JobError:
    """Any exception as a job's summary of it, with as much detail as the policy allows.

    Under `strict` the message of an exception that is not ours is withheld, and a message of ours
    is replaced by what its kind says.
    """
    place = Scene(capability=capability_name, instance=capability_instance_id)
    report = describe(exc, policy=traceback_policy, origin="input", scene=place, at=occurred_at)
    job_error = JobError.from_report(report)
    known: dict[str, Any] = {f.name: getattr(job_error, f.name) for f in fields(job_error)}
    if traceback_policy is not TracebackPolicy.FULL:
        # The job world's policies say whether there is a traceback at all; a report always has its places.
        known["traceback"] = None
    declared = _declared(exc)
    if declared is not None:
        known["category"], known["retriable"] = declared
    if traceback_policy is TracebackPolicy.NONE:
        known["message"] = ""
    elif traceback_policy is TracebackPolicy.STRICT:
        known["message"] = report.view("user")["title"]
    return JobError(**known)
