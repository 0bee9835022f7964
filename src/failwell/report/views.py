"""One report, four audiences. Who may see a field is written on the field, not decided by a caller.

A new field that carries no label here is shown to nobody, and a test says so.
"""

from typing import Any, Literal

from failwell.fault.registry import find_kind
from failwell.report.record import ErrorReport
from failwell.report.wire import to_dict

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
        shown["message"] = user_message(report)
        if "scene" in shown:
            shown["scene"] = {name: v for name, v in shown["scene"].items() if name in _USER_SCENE}
            if not shown["scene"]:
                del shown["scene"]
    return shown


def user_message(report: ErrorReport) -> str:
    """The report's message if it was written for the caller, else what its kind says to anybody."""
    if report.caller_facing:
        return report.message
    known = find_kind(report.kind)
    return report.title if known is None else known.summary


def _model(report: ErrorReport, debug: bool) -> dict[str, Any]:
    known = find_kind(report.kind)
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
    if report.fields_invalid:
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
