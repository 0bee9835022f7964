"""One failure as a problem document (RFC 9457), and back.

`strict` says what the user's view says and nothing more. `verbose` adds who was called and what
they answered, for callers who run the service themselves. Neither holds foreign text.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from json import dumps, loads
from math import ceil, isfinite
from typing import Any, Literal, cast

from failwell.fault.base import Fault
from failwell.fault.facts import NotBefore, ProviderMetadata
from failwell.fault.registry import find_kind, is_kind
from failwell.report.describe import describe
from failwell.report.fingerprint import fingerprint
from failwell.report.record import ErrorReport, Evidence
from failwell.report.redact import redact_text, safe_headers

Disclosure = Literal["strict", "verbose"]

MEDIA_TYPE = "application/problem+json"
KINDS_URI = "https://failwell.dev/kinds/"
_LONGEST_WAIT = 2**31 - 1
_REPLY = ("status_code", "code", "request_id", "retry_after")
_CAUSE = ("type", "kind", "via", "level")

_BY_STATUS = {
    400: "provider.bad_request",
    401: "provider.auth",
    402: "provider.quota_exhausted",
    403: "provider.permission",
    408: "provider.outcome_unknown",
    409: "provider.unavailable",
    413: "provider.bad_request",
    422: "provider.bad_request",
    425: "provider.unavailable",
    429: "provider.rate_limited",
    504: "provider.outcome_unknown",
}
"""What a status means when the document says nothing that we know."""


class ProblemReply(Fault):
    """Another service answered with a problem."""


def problem(
    report: ErrorReport,
    *,
    instance: str | None = None,
    request_id: str | None = None,
    disclosure: Disclosure = "strict",
    status: int | None = None,
) -> dict[str, Any]:
    """The document for `report`; `status` is for a host whose answer is already decided."""
    view = report.view("user")
    document: dict[str, Any] = {
        "type": KINDS_URI + report.kind,
        "title": view.pop("title"),
        "status": report.http_status if status is None else status,
        "detail": view.pop("message"),
    }
    if instance is not None:
        document["instance"] = instance
    if request_id is not None:
        document["request_id"] = request_id
    document |= view
    return document | _for_insiders(report) if disclosure == "verbose" else document


def problem_json(document: Mapping[str, Any]) -> bytes:
    """`document` as the bytes of a reply; a number that JSON cannot write is never among them."""
    return dumps(_finite(document), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def retry_after_header(report: ErrorReport) -> str | None:
    """Whole seconds for `Retry-After`, rounded up; `None` unless a repeat is really invited.

    A used-up quota may know when it renews and still invites nobody: whoever pays must act.
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
    by its status; its title and detail are not taken over, because nobody vouches for them.
    """
    given = _parsed(document)
    if str(given.get("schema", "")).startswith("failwell.error/") and is_kind(given.get("kind")):
        return _ours(given)
    told = given.get("status") if status is None else status
    return _theirs(told if isinstance(told, int) else None, headers, given.get("type"))


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


def _ours(given: Mapping[str, Any]) -> ErrorReport:
    kind = str(given["kind"])
    known = find_kind(kind)
    record = {
        # What a view leaves out, so that the reader does not have to guess.
        "blame": "provider" if known is None else known.blame.value,
        "error_type": ProblemReply.__name__,
        "fingerprint": fingerprint(kind, ProblemReply.__name__),
        **given,
        "message": given.get("detail", ""),
        "caller_facing": True,
    }
    for key in ("type", "status", "detail", "instance", "request_id", "domain"):
        record.pop(key, None)
    return ErrorReport.read(record)


def _theirs(status: int | None, headers: Mapping[str, str] | None, uri: object) -> ErrorReport:
    kept = safe_headers(headers)
    wait = _wait(kept.get("retry-after"))
    reply = ProviderMetadata(
        status_code=status,
        request_id=kept.get("x-request-id"),
        retry_after=wait,
        headers=kept,
    )
    told = {"problem_type": redact_text(uri, 200)} if isinstance(uri, str) and uri != "about:blank" else None
    report = describe(
        ProblemReply(
            kind=_kind_of(status),
            caller_facing=False,
            provider_metadata=reply,
            not_before=None if wait is None else NotBefore(after=wait, source="retry-after"),
            details=told,
        )
    )
    return replace(report, evidence=(Evidence(rule="problem.status", basis="status", saw=str(status)),))


def _kind_of(status: int | None) -> str:
    if status is None or not 400 <= status < 600:
        return "provider.unknown"
    return _BY_STATUS.get(status, "provider.unavailable" if status >= 500 else "provider.rejected")


def _wait(value: str | None) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except ValueError:
            return None
        # A date without a zone is meant as GMT, which the format prescribes.
        aware = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
        return max(0.0, (aware - datetime.now(UTC)).total_seconds())
    return seconds if isfinite(seconds) and seconds >= 0 else None


def _parsed(document: Mapping[str, Any] | str | bytes) -> Mapping[str, Any]:
    if isinstance(document, Mapping):
        return document
    try:
        parsed: object = loads(document)
    except (ValueError, RecursionError):
        # A gateway's HTML page, or bytes of no encoding: the status still speaks.
        return {}
    return cast("Mapping[str, Any]", parsed) if isinstance(parsed, dict) else {}


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(inner) for key, inner in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in cast("list[Any]", value)]
    return value
