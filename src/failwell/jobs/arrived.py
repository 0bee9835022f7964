"""A report that came from a worker, as something to raise: of the class that its category stands for.

Whoever catches `CapabilityResourceError` catches it whether it was raised here or there, and describing
it gives the worker's own report back, unchanged.
"""

from collections.abc import Mapping
from typing import Any

from failwell.fault.base import Fault
from failwell.fault.capability import (
    CapabilityError,
    CapabilityFatalError,
    CapabilityInputError,
    CapabilityResourceError,
    CapabilityTransientError,
)
from failwell.report.record import ErrorReport


class _Arrived(Fault):
    recorded: Mapping[str, Any]
    """The report as it was written on the wire."""

    @property
    def recorded_report(self) -> ErrorReport:
        """The report that this fault stands for."""
        return ErrorReport.read(self.recorded)

    def own_fields(self) -> dict[str, Any]:
        return {}


class RemoteInputError(_Arrived, CapabilityInputError):
    """The worker refused what it was given."""


class RemoteTransientError(_Arrived, CapabilityTransientError):
    """Something passing went wrong in the worker."""


class RemoteResourceError(_Arrived, CapabilityResourceError):
    """Something was used up in the worker."""


class RemoteFatalError(_Arrived, CapabilityFatalError):
    """The worker failed, and no repeat will help."""


_CLASSES: dict[str, type[CapabilityError]] = {
    "user_input": RemoteInputError,
    "transient": RemoteTransientError,
    "resource": RemoteResourceError,
    "fatal": RemoteFatalError,
}


def raisable(report: ErrorReport) -> CapabilityError:
    """A fault to raise for a worker's `report`."""
    cls = _CLASSES[report.category.job]
    given: dict[str, Any] = {
        "kind": report.kind,
        "recorded": report.to_dict(),
        "caller_facing": report.caller_facing,
        "certainty": report.certainty,
        "blame": report.blame,
        "user_action": report.user_action,
        "not_before": report.not_before,
        "details": report.details or None,
    }
    if not report.retryable:
        given["retryable"] = False
    if cls is RemoteInputError:
        given["fields_invalid"] = report.fields_invalid
    if cls is RemoteResourceError:
        given["resource_shortfall"] = report.resource_shortfall
    return cls(message=report.message, **given)
