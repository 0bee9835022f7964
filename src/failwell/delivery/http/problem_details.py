"""One failure as a problem document (RFC 9457), and back.

`strict` says what the user's view says and nothing more. `verbose` adds who was called and what
they answered, for callers who run the service themselves. Neither holds foreign text.

The JSON Schema of a problem document, and how an OpenAPI document shows it.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from json import loads
from math import ceil, isfinite
from typing import Any, Literal, cast

from failwell.adapters.log_records.http_reply import SavedReply, describe_reply
from failwell.adapters.log_records.peer import (
    as_evidence,
    claimed_kind,
    longer,
    peer_claims,
    report_of_claim,
)
from failwell.delivery.plain_text import finite, json_text, text_or
from failwell.errors.axes import ActionKind, Category
from failwell.errors.facts import DENYING
from failwell.errors.foreign_objects import safe_call
from failwell.errors.headers import lower_headers
from failwell.errors.identity import fingerprint
from failwell.errors.kind_registry import find_kind, http_status_of
from failwell.errors.redact import redact_text, redact_value
from failwell.errors.report import SCHEMA, ErrorReport, default_policy

Disclosure = Literal["strict", "verbose"]

MEDIA_TYPE = "application/problem+json"
KINDS_URI = "https://failwell.dev/kinds/"
_LONGEST_WAIT = 2**31 - 1
_REPLY = ("status_code", "code", "request_id", "retry_after")
_CAUSE = ("type", "kind", "via", "level")

_OURS = (
    "id", "category", "certainty", "retryable", "user_action", "not_before", "fields_invalid",
    "resource_shortfall", "occurred_at", "error_type", "provider", "model", "provider_metadata", "causes",
)  # fmt: skip
"""What a document of one's own service says about the failure, beside its kind and detail."""
_CODES = ("code", "error", "reason")
"""Where other services put an error code."""
_ERROR_TYPE = "ProblemReply"
_ID = re.compile(r"err_[0-9a-f]{8,64}")


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


_PASSING = frozenset({408, 409, 423, 425, 429})
"""The statuses of the 400s after which the same call may succeed."""


def from_problem(
    document: object,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    trusted: bool = False,
) -> ErrorReport:
    """The report behind a problem document of another service. Never raises.

    A kind that the document names counts if it is registered here and speaks of a provider, a tool or the input;
    otherwise the status decides. Its texts are evidence: they are masked, cut and kept in `details["peer"]`.

    Args:
        document: The document, or the body of the reply.
        status: The status of the reply; by default the one that the document names.
        headers: The headers of the reply.
        trusted: Whether the service is your own. Then its message, its advice, its fields and kinds that are not
            registered here are taken over, masked and cut. Kinds about its own run never are.
    """
    return replace(_read_problem(document, status, headers, trusted=trusted), origin="call")


def _read_problem(
    document: object, status: int | None, headers: Mapping[str, str] | None, *, trusted: bool
) -> ErrorReport:
    fields = _parsed(document)
    named = fields.get("status") if status is None else status
    code = named if type(named) is int else 0
    kind = _kind_of(fields, code, trusted=trusted)
    if kind is not None and not trusted and _forbids(code, kind):
        kind = None
    reply = _reply_of(fields, code, headers)
    if kind is None:
        # Prose of somebody else's service is recorded where the policy keeps foreign text.
        is_recorded = _is_schema(fields) or default_policy().keeps_message
        report = as_evidence(reply, fields, source=_ERROR_TYPE) if is_recorded else reply
        return replace(report, id=_id_of(fields) or report.id) if trusted else report
    if trusted:
        return _ours(kind, fields)
    report = report_of_claim(kind, fields, error_type=_ERROR_TYPE, rule="problem.kind")
    delay = longer(report.not_before, reply.not_before)
    return replace(report, not_before=delay, provider_metadata=reply.provider_metadata)


def _forbids(status: int, kind: str) -> bool:
    """Whether the status says that a repeat is of no use, and a kind that the peer names says it is."""
    known = find_kind(kind)
    is_final = 400 <= status < 500 and status not in _PASSING
    return is_final and known is not None and known.category.retryable


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


def _id_of(fields: Mapping[str, Any]) -> str | None:
    """The id under which one's own service recorded the failure, so that both sides can find it."""
    stated = text_or(fields.get("id"), "")
    return stated if _ID.fullmatch(stated) else None


def _is_schema(fields: Mapping[str, Any]) -> bool:
    return text_or(fields.get("schema"), "").startswith("failwell.error/")


def _kind_of(fields: Mapping[str, Any], code: int, *, trusted: bool) -> str | None:
    """The kind that a document of ours names, if it may name it."""
    if not _is_schema(fields):
        return None
    kind = claimed_kind(fields.get("kind"), trusted=trusted)
    known = None if kind is None else find_kind(kind)
    # A 401 or 403 is never repeated, so no document turns it into what is.
    is_denied = known is not None and known.category.retryable and code in DENYING
    return None if is_denied else kind


def _ours(kind: str, fields: Mapping[str, Any]) -> ErrorReport:
    """What a service of one's own says, masked and cut, except where it happened: that is its place, not ours."""
    known = find_kind(kind)
    record: dict[str, Any] = {
        # What a view leaves out.
        "schema": SCHEMA,
        "blame": "provider" if known is None else known.blame.value,
        "error_type": _ERROR_TYPE,
        "fingerprint": fingerprint(kind, _ERROR_TYPE),
    }
    record |= redact_value({key: fields[key] for key in _OURS if key in fields})
    record |= {
        "kind": kind,
        "title": redact_text(text_or(fields.get("title"), kind), 200) if known is None else known.title,
        "message": redact_text(text_or(fields.get("detail"), "")),
        "caller_facing": True,
        "evidence": [{"rule": "problem.kind", "basis": "declared", "saw": kind}],
    }
    report = ErrorReport.read(record)
    place = {key: fields[key] for key in ("scene",) if fields.get(key)}
    return replace(report, details={"peer": peer_claims(place, _ERROR_TYPE)}) if place else report


def _reply_of(fields: Mapping[str, Any], code: int, headers: Mapping[str, str] | None) -> ErrorReport:
    """The report that the reply itself gives: by its status, its headers and its code."""
    lower = lower_headers(headers or {})
    from failwell.adapters.registrations import is_known_code

    # A code that no rule knows decides nothing, and would only be quoted.
    codes = {key: fields[key] for key in _CODES if is_known_code(fields.get(key))}
    body = json_text(codes)
    return describe_reply(SavedReply(code, lower, body))


def _copied(document: Mapping[str, Any]) -> dict[str, Any]:
    return dict(document)


def _parsed(document: object) -> Mapping[str, Any]:
    if isinstance(document, Mapping):
        return safe_call(_copied, None, cast("Mapping[str, Any]", document)) or {}
    if not issubclass(type(document), str | bytes | bytearray):
        # A body that is JSON, but no object.
        return {}
    try:
        parsed: object = loads(cast("str | bytes", document))
    except (ValueError, RecursionError):
        # A gateway's HTML page, or bytes of no encoding: the status still speaks.
        return {}
    return cast("Mapping[str, Any]", parsed) if isinstance(parsed, dict) else {}


_NAME = "Problem"
_METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})
_FASTAPI_VALIDATION = "#/components/schemas/HTTPValidationError"

PROBLEM_SCHEMA: dict[str, Any] = {
    "title": "Problem",
    "description": "A failure as a problem document (RFC 9457).",
    "type": "object",
    "required": ["type", "title", "status", "detail", "id", "kind", "category", "retryable"],
    "properties": {
        "type": {"type": "string", "description": "A URI that ends in the kind."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What happened, in one sentence."},
        "instance": {"type": "string", "description": "The path of the request."},
        "request_id": {"type": "string"},
        "id": {"type": "string", "description": "The id under which the service has logged the failure."},
        "kind": {"type": "string", "description": "The stable name of this way to fail. Branch on it."},
        "category": {"type": "string", "enum": [category.value for category in Category]},
        "retryable": {
            "type": "boolean",
            "description": "Whether the same request may be repeated after a wait.",
        },
        "user_action": {
            "type": "object",
            "required": ["kind"],
            "properties": {
                "kind": {"type": "string", "enum": [action.value for action in ActionKind]},
                "detail": {"type": "string"},
            },
        },
        "not_before": {
            "type": "object",
            "description": "When a repeat may make sense.",
            "properties": {
                "after": {"type": "number", "description": "Seconds from `occurred_at`."},
                "at": {"type": "string", "format": "date-time"},
            },
        },
        "fields_invalid": {"type": "array", "items": {"type": "string"}},
        "errors": {
            "type": "array",
            "description": "The reasons for which a request failed validation.",
            "items": {
                "type": "object",
                "required": ["type", "loc", "msg"],
                "properties": {
                    "type": {"type": "string"},
                    "loc": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
                    "msg": {"type": "string"},
                },
            },
        },
        "occurred_at": {"type": "string", "format": "date-time"},
    },
}
"""What a caller may rely on; a document may hold more."""


def with_problems(document: dict[str, Any]) -> dict[str, Any]:
    """An OpenAPI `document` in which every operation answers failures with a problem. It is changed in place.

    The replies that a framework documents for a failed validation are replaced; replies that the application documents itself stay.
    """
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas[_NAME] = deepcopy(PROBLEM_SCHEMA)
    for path in document.get("paths", {}).values():
        for method, operation in cast("Mapping[str, Any]", path).items():
            if method in _METHODS:
                replies = operation.setdefault("responses", {})
                if _FASTAPI_VALIDATION in str(replies.get("422", "")):
                    replies["422"] = _reply("The request is not valid.")
                replies.setdefault("default", _reply("The request failed."))
    if _FASTAPI_VALIDATION not in str(document.get("paths", "")):
        schemas.pop("HTTPValidationError", None)
        schemas.pop("ValidationError", None)
    return document


def _reply(description: str) -> dict[str, Any]:
    return {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{_NAME}"}}},
    }
