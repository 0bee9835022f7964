"""The job world's summary of a failure: a coarse projection of a report.

Four categories instead of twelve, and `retriable` in the sense of that world: whether submitting
the same job again can make sense. Whether the runtime retries it by itself is the report's
`retryable`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, cast, get_args

from failwell.adapters.safe_getattr import safe_call, safe_getattr, str_attr
from failwell.fault.axes import JobCategory
from failwell.fault.capability import CapabilityError
from failwell.fault.facts import ResourceShortfall
from failwell.report.describe import describe
from failwell.report.policy import TracebackPolicy
from failwell.report.record import ErrorReport, Scene
from failwell.report.resolve import category_of, resolve

_CATEGORIES: tuple[JobCategory, ...] = get_args(JobCategory)


@dataclass(frozen=True, slots=True)
class JobError:
    """What a finished job keeps about its failure: enough to show it and to offer a retry."""

    category: JobCategory
    message: str
    retriable: bool
    original_exc_repr: str
    traceback: str | None = None
    retry_after_seconds: float | None = None
    fields_invalid: list[str] | None = None
    resource_shortfall: ResourceShortfall | None = None
    capability_name: str | None = None
    capability_instance_id: str | None = None
    occurred_at: datetime | None = None

    @classmethod
    def from_report(cls, report: ErrorReport) -> "JobError":
        """The projection of `report`."""
        return cls(
            category=report.category.job,
            message=report.message,
            retriable=report.resubmit,
            original_exc_repr=report.error_type if report.internal is None else report.internal.repr,
            traceback=None if report.internal is None else report.internal.traceback,
            retry_after_seconds=None if report.not_before is None else report.not_before.after,
            fields_invalid=None if report.fields_invalid is None else list(report.fields_invalid),
            resource_shortfall=report.resource_shortfall,
            capability_name=report.scene.capability,
            capability_instance_id=report.scene.instance,
            occurred_at=report.occurred_at,
        )

    def to_dict(self) -> dict[str, Any]:
        """This summary as JSON-safe values, without nulls."""
        made = {f.name: value for f in fields(self) if (value := getattr(self, f.name)) is not None}
        if self.resource_shortfall is not None:
            short = self.resource_shortfall
            made["resource_shortfall"] = {f.name: getattr(short, f.name) for f in fields(short)}
        if self.occurred_at is not None:
            made["occurred_at"] = self.occurred_at.isoformat()
        return made

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "JobError":
        """The exact inverse of `to_dict`."""
        held = dict(data)
        short = held.get("resource_shortfall")
        if short is not None:
            held["resource_shortfall"] = ResourceShortfall(**cast("dict[str, Any]", short))
        at = held.get("occurred_at")
        if at is not None:
            held["occurred_at"] = datetime.fromisoformat(cast("str", at))
        return cls(**held)


def classify_exception(exc: BaseException) -> JobCategory:
    """The job category of any exception.

    A capability error answers with the category it declares, whatever else it derives from; any
    other exception with the projection of its kind. What nobody recognises is `fatal`.
    """
    declared = _declared(exc)
    if declared is not None:
        return declared[0]
    # The error path never raises: what cannot be classified is fatal.
    reading = safe_call(resolve, None, exc)
    return "fatal" if reading is None else category_of(reading).job


def _declared(exc: BaseException) -> tuple[JobCategory, bool] | None:
    """What a capability error says of itself, if that is something the job world knows."""
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
    report = describe(exc, policy=traceback_policy, scene=place, at=occurred_at)
    made = JobError.from_report(report)
    known: dict[str, Any] = {f.name: getattr(made, f.name) for f in fields(made)}
    declared = _declared(exc)
    if declared is not None:
        known["category"], known["retriable"] = declared
    if traceback_policy is TracebackPolicy.NONE:
        known["message"] = ""
    elif traceback_policy is TracebackPolicy.STRICT:
        known["message"] = report.view("user")["title"]
    return JobError(**known)
