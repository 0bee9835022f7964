"""One failure as a problem document (RFC 9457), and back.

`strict` says what the user's view says and nothing more. `verbose` adds who was called and what
they answered, for callers who run the service themselves. Neither holds foreign text.
"""

from collections.abc import Mapping
from json import loads
from math import ceil, isfinite
from typing import Any, Literal, cast

from failwell.delivery.plain_text import finite, json_text, text_or
from failwell.fault.registry import find_kind, http_status_of, is_kind
from failwell.report.identity import fingerprint
from failwell.report.record import ErrorReport
from failwell.report.redact import redact_text
from failwell.report.saved_failures.saved_reply import SavedReply, describe_reply

Disclosure = Literal["strict", "verbose"]

MEDIA_TYPE = "application/problem+json"
KINDS_URI = "https://failwell.dev/kinds/"
_LONGEST_WAIT = 2**31 - 1
_REPLY = ("status_code", "code", "request_id", "retry_after")
_CAUSE = ("type", "kind", "via", "level")

_OURS = (
    "schema", "id", "kind", "category", "certainty", "retryable", "user_action", "not_before", "fields_invalid",
    "resource_shortfall", "scene", "occurred_at", "error_type", "provider", "model", "provider_metadata", "causes",
)  # fmt: skip
"""What a document of ours may say about the failure, beside its title and detail."""
_CODES = ("code", "error", "reason")
"""Where other services put an error code; it counts only if it is spelled like one."""
_ERROR_TYPE = "ProblemReply"


def problem(
    report: ErrorReport,
    *,
    instance: str | None = None,
    request_id: str | None = None,
    disclosure: Disclosure = "strict",
    status: int | None = None,
    type_base: str = KINDS_URI,
) -> dict[str, Any]:
    """The document for `report`; `status` is for a host whose answer is already decided.

    Its `type` is `type_base` followed by the kind.
    """
    view = report.view("user")
    document: dict[str, Any] = {
        "type": type_base + report.kind,
        "title": view.pop("title"),
        "status": http_status_of(report.kind, report.category) if status is None else status,
        "detail": view.pop("message"),
    }
    if instance is not None:
        document["instance"] = instance
    if request_id is not None:
        document["request_id"] = request_id
    document |= view
    return finite(document | _for_insiders(report) if disclosure == "verbose" else document)


def problem_json(document: Mapping[str, Any]) -> bytes:
    """`document` as the bytes of a reply; a number that JSON cannot write is never among them."""
    return json_text(document).encode()


def retry_after_header(report: ErrorReport) -> str | None:
    """Whole seconds for `Retry-After`, rounded up; `None` unless a repeat is really invited.

    A used-up quota may have a renewal time and still invite no repeat: the account owner must act.
    """
    wait = report.not_before
    if not report.retryable or wait is None or not isfinite(wait.after):
        return None
    return str(min(max(0, ceil(wait.after)), _LONGEST_WAIT))


def from_problem(
    document: Mapping[str, Any] | str | bytes,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> ErrorReport:
    """The report behind a problem document. Never raises.

    A document of ours gives back a report with the same user's view. Anybody else's is classified
    by its status; its title and detail are not used, because they are not trusted.
    """
    fields = _parsed(document)
    if text_or(fields.get("schema"), "").startswith("failwell.error/") and is_kind(fields.get("kind")):
        return _ours(fields)
    return _theirs(fields, status, headers)


def _for_insiders(report: ErrorReport) -> dict[str, Any]:
    whole = report.to_dict()
    reply: dict[str, Any] = whole.get("provider_metadata", {})
    causes: list[dict[str, Any]] = whole.get("causes", [])
    added = {
        "error_type": report.error_type,
        "provider": report.provider,
        "model": report.model,
        "provider_metadata": {key: reply[key] for key in _REPLY if key in reply},
        "causes": [{key: cause[key] for key in _CAUSE if key in cause} for cause in causes],
    }
    return {key: value for key, value in added.items() if value}


def _ours(fields: Mapping[str, Any]) -> ErrorReport:
    kind = str(fields["kind"])
    known = find_kind(kind)
    record: dict[str, Any] = {
        # What a view leaves out.
        "blame": "provider" if known is None else known.blame.value,
        "error_type": _ERROR_TYPE,
        "fingerprint": fingerprint(kind, _ERROR_TYPE),
    }
    record |= {key: fields[key] for key in _OURS if key in fields}
    record |= {
        "title": redact_text(text_or(fields.get("title"), kind), 200),
        "message": redact_text(text_or(fields.get("detail"), "")),
        "caller_facing": True,
        "evidence": [{"rule": "problem.kind", "basis": "declared", "saw": kind}],
    }
    return ErrorReport.read(record)


def _theirs(fields: Mapping[str, Any], status: int | None, headers: Mapping[str, str] | None) -> ErrorReport:
    code = fields.get("status") if status is None else status
    lower = {name.lower(): value for name, value in (headers or {}).items()}
    body = json_text({key: fields[key] for key in _CODES if isinstance(fields.get(key), str)})
    return describe_reply(SavedReply(code if type(code) is int else 0, lower, body))


def _parsed(document: Mapping[str, Any] | str | bytes) -> Mapping[str, Any]:
    if isinstance(document, Mapping):
        return document
    try:
        parsed: object = loads(document)
    except (ValueError, RecursionError):
        # A gateway's HTML page, or bytes of no encoding: the status still speaks.
        return {}
    return cast("Mapping[str, Any]", parsed) if isinstance(parsed, dict) else {}
