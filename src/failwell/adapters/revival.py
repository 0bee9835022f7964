"""From a report back to something that can be raised, and from any exception to a fault.

A revived fault describes as the very report it came from, so a failure that crossed a process,
a queue or a network is not classified a second time on the other side.
"""

from collections.abc import Mapping
from typing import Any

from failwell.adapters.causes import is_named, resolve
from failwell.adapters.describe import attach_report, describe
from failwell.errors import faults as classes
from failwell.errors.facts import Origin
from failwell.errors.fault import Fault, is_fault, join
from failwell.errors.foreign_objects import safe_call
from failwell.errors.kind_registry import KINDS
from failwell.errors.report import ErrorReport, TracebackPolicy


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


_FAMILIES: dict[str, tuple[Any, ...]] = {
    prefix: tuple(join(Recalled, family) for family in families)
    for prefix, families in {
        "validation": (classes.Validation,),
        "provider": (classes.ProviderTransient, classes.ProviderCapability),
        "tool": (classes.ToolTransient, classes.ToolTerminal),
        "session": (classes.Session,),
        "cancel": (classes.Cancellation,),
        "extension": (classes.ExtensionHost,),
    }.items()
}
_OTHER = join(Recalled, Fault)


def _stand_in_class(kind: str) -> type[Fault]:
    families = _FAMILIES.get(kind.partition(".")[0], ()) if kind in KINDS else ()
    return next((family for family in families if family.holds(kind)), _OTHER)


def revive(report: ErrorReport, raised: type[Fault] | None = None) -> Fault:
    """A fault to raise for `report`, of the family of its kind; describing it gives the same report again.

    With `raised`, the fault is also of that class, and has the fields of that class that the report has.
    """
    fields: dict[str, Any] = {
        "recorded": report.to_dict(),
        "message": report.message,
        "caller_facing": report.caller_facing,
        "certainty": report.certainty,
        "blame": report.blame,
        "retryable": None if report.retryable else False,
        "user_action": report.user_action,
        "provider": report.provider,
        "model": report.model,
        "provider_metadata": report.provider_metadata,
        "not_before": report.not_before,
        "fields_invalid": None if report.fields_invalid is None else list(report.fields_invalid),
        "resource_shortfall": report.resource_shortfall,
        "details": report.details or None,
    }
    cls = _stand_in_class(report.kind)
    if raised is not None:
        cls = join(cls, raised)
        fields |= {
            name: report.details.get(name, getattr(raised, name, None)) for name in raised.extra_fields
        }
    # Not through the constructor: a class may take other arguments than its fields, and a newer peer may know kinds
    # that are not registered here.
    fault = cls.__new__(cls)
    for name, value in fields.items():
        if value is not None:
            setattr(fault, name, value)
    fault.set_own_kind(report.kind)
    fault.args = (report.message,)
    attach_report(fault, report)
    return fault


def translate(
    error: BaseException,
    *,
    provider: str | None = None,
    model: str | None = None,
    origin: Origin | None = None,
    idempotent: bool | None = None,
) -> Fault:
    """Our fault for `error`: itself if it is one, else one that names it and is raised from it.

    `provider` and `model` are filled in where neither the error nor a cause of it knows them. `origin` says where it arose, as
    for `describe`.
    """
    if is_fault(error):
        # A fault that lets nothing be set, or read, is still the fault.
        safe_call(_fill_in, None, error, provider, model)
        return error
    report = describe(error, provider=provider, model=model, origin=origin, idempotent=idempotent)
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
