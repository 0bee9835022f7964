"""One report, four audiences. Who may see a field is written on the field, not decided by a caller.

A new field that carries no label here is not shown, and a test fails.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal, cast

from failwell.errors.axes import JobCategory
from failwell.errors.facts import ResourceShortfall
from failwell.errors.kind_registry import KINDS
from failwell.errors.report import ErrorReport
from failwell.errors.wire import to_dict

Audience = Literal["user", "model", "operator", "audit"]

AUDIENCES: dict[str, str] = {
    "schema": "user operator audit",
    "id": "user operator audit",
    "kind": "user model operator audit",
    "category": "user model operator audit",
    "domain": "user operator audit",
    "certainty": "user operator audit",
    "blame": "operator audit",
    "retryable": "user model operator audit",
    "message": "user operator audit",
    "title": "user model operator audit",
    "error_type": "operator audit",
    "user_action": "user operator audit",
    "fingerprint": "operator audit",
    "occurred_at": "user operator audit",
    "caller_facing": "operator audit",
    "handled": "operator audit",
    "origin": "operator audit",
    "scene": "user operator audit",
    "provider": "operator audit",
    "model": "operator audit",
    "provider_metadata": "operator audit",
    "not_before": "user operator audit",
    "fields_invalid": "user model operator audit",
    "resource_shortfall": "user operator audit",
    "details": "operator audit",
    "causes": "operator audit",
    "frames": "operator audit",
    "attempts": "operator audit",
    "evidence": "operator audit",
    "internal": "operator audit",
    "extra": "audit",
}
"""Field → who may see it."""

_SEEN_BY: dict[str, frozenset[str]] = {
    audience: frozenset(name for name, seen in AUDIENCES.items() if audience in seen.split())
    for audience in ("user", "model", "operator", "audit")
}
_USER_SCENE = ("run", "workflow", "node", "item", "job", "session", "turn", "tool")


_OF_THE_MODEL = frozenset({"provider.output_invalid", "tool.input_invalid"})
"""Kinds about what the model itself wrote. It may see the names of its fields."""


def view(report: ErrorReport, audience: Audience, *, debug: bool = False) -> dict[str, Any]:
    """What `audience` may see of `report`.

    `debug` lets a model see the redacted message and the causes as well, for a workflow whose
    author allowed that in one of its stages; it changes nothing for the others.
    """
    if audience == "audit":
        return to_dict(report)
    if audience == "model":
        return _model(report, debug)
    seen = _SEEN_BY[audience]
    shown = {name: value for name, value in to_dict(report).items() if name in seen}
    if audience == "user":
        if not report.caller_facing:
            # Which part of this program's own data is invalid is not the caller's business.
            shown.pop("fields_invalid", None)
        shown["message"] = user_message(report)
        if "scene" in shown:
            shown["scene"] = {name: v for name, v in shown["scene"].items() if name in _USER_SCENE}
            if not shown["scene"]:
                del shown["scene"]
    return shown


def user_message(report: ErrorReport) -> str:
    """The report's message if it was written for the caller, else its kind's summary."""
    if report.caller_facing:
        return report.message
    known = KINDS.get(report.kind)
    return report.title if known is None else known.summary


def _model(report: ErrorReport, debug: bool) -> dict[str, Any]:
    known = KINDS.get(report.kind)
    shown: dict[str, Any] = {
        "kind": report.kind,
        "title": report.title,
        "category": report.category._value_,
        "retryable": report.retryable,
    }
    if report.not_before is not None:
        shown["wait_seconds"] = report.not_before.after
    shown["action"] = (report.user_action.kind if known is None else known.action)._value_
    if known is not None and known.advice:
        shown["advice"] = known.advice
    if report.fields_invalid and (report.caller_facing or report.kind in _OF_THE_MODEL):
        shown["fields_invalid"] = list(report.fields_invalid)
    allowed = () if known is None else known.model_keys
    context = {name: report.details[name] for name in allowed if name in report.details}
    if context:
        shown["context"] = context
    if debug:
        shown["message"] = report.message
        shown["causes"] = [
            {name: value for name in ("type", "kind", "message") if (value := getattr(cause, name))}
            for cause in report.causes
        ]
    return shown


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
        values = {f.name: value for f in fields(self) if (value := getattr(self, f.name)) is not None}
        if self.resource_shortfall is not None:
            short = self.resource_shortfall
            values["resource_shortfall"] = {f.name: getattr(short, f.name) for f in fields(short)}
        if self.occurred_at is not None:
            values["occurred_at"] = self.occurred_at.isoformat()
        return values

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "JobError":
        """The exact inverse of `to_dict`."""
        fields_read = dict(data)
        short = fields_read.get("resource_shortfall")
        if short is not None:
            fields_read["resource_shortfall"] = ResourceShortfall(**cast("dict[str, Any]", short))
        at = fields_read.get("occurred_at")
        if at is not None:
            fields_read["occurred_at"] = datetime.fromisoformat(cast("str", at))
        return cls(**fields_read)
