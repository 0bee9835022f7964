"""From a report back to something that can be raised, and from any exception to a fault.

A revived fault describes as the very report it came from, so a failure that crossed a process,
a queue or a network is not classified a second time on the other side.
"""

from collections.abc import Mapping
from typing import Any

from failwell.adapters.safe_getattr import safe_call
from failwell.fault.base import Fault, is_fault
from failwell.report.describe import attach_report, describe
from failwell.report.record import ErrorReport, TracebackPolicy
from failwell.report.resolve import is_named, resolve


class Recalled(Fault):
    """A failure that happened elsewhere and arrived as a report."""

    recorded: Mapping[str, Any]
    """The report as it was written on the wire."""

    @property
    def recorded_report(self) -> ErrorReport:
        """The report that this fault stands for."""
        return ErrorReport.read(self.recorded)

    def own_fields(self) -> dict[str, Any]:
        return {}


def revive(report: ErrorReport) -> Fault:
    """A fault to raise for `report`; describing it gives the same report again."""
    fault = Recalled(
        recorded=report.to_dict(),
        message=report.message,
        caller_facing=report.caller_facing,
        certainty=report.certainty,
        blame=report.blame,
        retryable=None if report.retryable else False,
        user_action=report.user_action,
        provider=report.provider,
        model=report.model,
        provider_metadata=report.provider_metadata,
        not_before=report.not_before,
        fields_invalid=None if report.fields_invalid is None else list(report.fields_invalid),
        resource_shortfall=report.resource_shortfall,
        details=report.details or None,
    )
    # A newer peer may know kinds that are not registered here.
    fault.set_own_kind(report.kind)
    attach_report(fault, report)
    return fault


def translate(
    error: BaseException,
    *,
    provider: str | None = None,
    model: str | None = None,
    untyped: str | None = None,
    idempotent: bool | None = None,
) -> Fault:
    """Our fault for `error`: itself if it is one, else one that names it and is raised from it.

    `provider` and `model` are filled in where neither the error nor a cause of it knows them.
    """
    if is_fault(error):
        # A fault that lets nothing be set, or read, is still the fault.
        safe_call(_fill_in, None, error, provider, model)
        return error
    report = describe(error, provider=provider, model=model, untyped=untyped, idempotent=idempotent)
    fault = revive(report)
    fault.__cause__ = error
    return fault


def _fill_in(fault: Fault, provider: str | None, model: str | None) -> None:
    known = resolve(fault)
    if known.provider is None and is_named(provider):
        fault.provider = provider
    if known.model is None and is_named(model):
        fault.model = model


def portable(error: BaseException) -> Fault:
    """A stand-in for a foreign exception that survives pickling and keeps its classification."""
    return revive(describe(error, policy=TracebackPolicy.STRICT))
