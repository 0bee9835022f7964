"""A saved HTTP reply becomes a report, whichever provider sent it.

Reads the status, the headers and the error code in a JSON body. The body's prose is neither kept
nor read, and a code counts only if it is spelled like one.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from json import JSONDecodeError, loads
from math import isfinite
from typing import Any, NamedTuple, cast

from failwell.adapters.status import kind_of_status
from failwell.fault.base import Fault
from failwell.fault.classes import Validation
from failwell.fault.facts import NotBefore, ProviderMetadata
from failwell.report.describe import describe
from failwell.report.record import ErrorReport, Evidence
from failwell.report.redact import safe_headers

_BY_CODE: tuple[tuple[str, str], ...] = (
    (r"insufficient_(?:quota|credits?|balance|funds)|billing.*", "provider.quota_exhausted"),
    (r"credits_exhausted|payment_required|servicequotaexceeded(?:exception)?", "provider.quota_exhausted"),
    (r"model_not_found|modelnotfound(?:exception)?|deploymentnotfound", "provider.model_not_found"),
    (r"context_length_exceeded|request_too_large|string_above_max_length", "provider.context_too_long"),
    (r"content_filter|content_policy_violation|contentpolicyviolation|responsibleaipolicyviolation",
     "provider.content_refused"),
    (r"rate_limit(?:_exceeded|_error|ed)?|throttling(?:exception)?|too_many_requests", "provider.rate_limited"),
    (r"overloaded(?:_error)?|engine_overloaded|modelnotready(?:exception)?", "provider.overloaded"),
    (r"invalid_api_key|authentication_error|unauthenticated", "provider.auth"),
)  # fmt: skip
"""Codes that say more than the status does. Looked at first, in this order."""

_STATUS_LINE = re.compile(r"HTTP/\d(?:\.\d)?[ \t]+(?P<status>\d{3})(?:[ \t].*)?$")
_CODE = re.compile(r"[A-Za-z][\w.\-]{1,63}")
_CODE_KEYS = ("code", "type", "status", "reason", "__type", "Code", "error_type")
_REQUEST_IDS = (
    "x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "x-ms-request-id", "x-goog-request-id",
    "x-fal-request-id", "cf-ray",
)  # fmt: skip
_LONGEST_WAIT = 366 * 86_400.0
"""A longer one is a mistake in the reply rather than a wait."""


class FailedReply(Fault):
    """A service answered with a failure."""


@dataclass(frozen=True, slots=True)
class SavedReply:
    """One HTTP reply as it was saved: header names lower-cased, the body undecoded."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: str = ""


class Verdict(NamedTuple):
    """Which kind a reply is, and what said so."""

    kind: str
    basis: str
    saw: str


def parse_reply(text: str) -> SavedReply:
    """Read `curl -i` or `curl -v` output, or JSON with `status`, `headers` and `body`.

    Of several replies in a row (a proxy's, a redirect's) the last is read.

    Raises:
        Validation: there is no status line, and no JSON object with a `status`.
    """
    if text.lstrip().startswith("{"):
        return _from_json(text)
    lines = list(_reply_lines(text))
    starts = [number for number, line in enumerate(lines) if _STATUS_LINE.match(line)]
    if not starts:
        raise Validation(
            kind="validation.shape_invalid",
            message="the text has no status line such as `HTTP/1.1 429 Too Many Requests`",
        )
    start = starts[0]
    while True:
        end = next((at for at in range(start + 1, len(lines)) if not lines[at].strip()), len(lines))
        body = next((at for at in range(end, len(lines)) if lines[at].strip()), len(lines))
        if body not in starts:
            break
        start = body
    status = cast("re.Match[str]", _STATUS_LINE.match(lines[start]))
    return SavedReply(int(status["status"]), _headers(lines[start + 1 : end]), "\n".join(lines[body:]))


def describe_reply(
    reply: SavedReply, *, provider: str | None = None, model: str | None = None
) -> ErrorReport:
    """What `reply` means: the code in its body decides, then its status."""
    codes = list(_codes(reply))
    verdict = judge(reply.status, codes)
    at = _time(reply.headers.get("date"))
    wait = _wait(reply.headers, at)
    code = next(iter(codes), None)
    fault = FailedReply(
        kind=verdict.kind,
        message=f"the service answered with {_status_words(reply.status)}"
        + (f", code {code}" if code else ""),
        caller_facing=False,
        provider=provider,
        model=model,
        not_before=wait,
        provider_metadata=ProviderMetadata(
            status_code=reply.status,
            code=code,
            request_id=next((reply.headers[name] for name in _REQUEST_IDS if name in reply.headers), None),
            retry_after=None if wait is None else wait.after,
            headers=safe_headers(reply.headers),
        ),
    )
    evidence = Evidence(rule=f"reply.{verdict.basis}", basis=verdict.basis, saw=verdict.saw)
    return replace(describe(fault, at=at), evidence=(evidence,))


def judge(status: int, codes: list[str]) -> Verdict:
    """The kind for a status and the error codes that came with it."""
    if status >= 400:
        for pattern, kind in _BY_CODE:
            for code in codes:
                if re.fullmatch(pattern, code, re.IGNORECASE):
                    return Verdict(kind, "code", code)
    return Verdict(kind_of_status(status), "status", str(status))


def _from_json(text: str) -> SavedReply:
    try:
        saved = loads(text)
    except (ValueError, RecursionError) as error:
        raise Validation(
            kind="validation.shape_invalid", message="the reply is not valid JSON", **_place(error)
        ) from error
    asked = saved.get("status", saved.get("status_code"))
    if isinstance(asked, str) and asked.isdecimal():
        asked = int(asked)
    if not isinstance(asked, int) or not 100 <= asked <= 599:
        raise Validation(
            kind="validation.shape_invalid",
            message="a saved reply needs a `status` between 100 and 599",
            fields_invalid=["status"],
        )
    body = saved.get("body", "")
    if not isinstance(body, str):
        from json import dumps

        body = dumps(body)
    return SavedReply(asked, _json_headers(saved.get("headers")), body)


def _place(error: Exception) -> dict[str, Any]:
    if isinstance(error, JSONDecodeError):
        return {"details": {"line": error.lineno, "column": error.colno}}
    return {}


def _json_headers(given: object) -> dict[str, str]:
    """Headers as an object, as pairs, or as objects with `name` and `value`."""
    pairs: list[tuple[object, object]] = []
    if isinstance(given, Mapping):
        pairs = list(cast("Mapping[object, object]", given).items())
    elif isinstance(given, list):
        for item in cast("list[Any]", given):
            if isinstance(item, Mapping):
                named = cast("Mapping[str, object]", item)
                pairs.append((named.get("name", ""), named.get("value", "")))
            elif isinstance(item, list) and len(pair := cast("list[object]", item)) == 2:
                pairs.append((pair[0], pair[1]))
    return {str(name).lower(): _joined(value) for name, value in pairs}


def _joined(value: object) -> str:
    return ", ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)


def _reply_lines(text: str) -> Iterator[str]:
    """The lines of the reply alone; `curl -v` marks its headers and adds talk of its own."""
    lines = text.splitlines()
    verbose = any(line.startswith("< HTTP/") for line in lines)
    for line in lines:
        if not verbose:
            yield line
        elif line.startswith("<") and (line == "<" or line[1:2].isspace()):
            yield line[2:]
        elif not line.startswith(("* ", "> ", "{ ", "} ", ">")):
            yield line


def _headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    last = ""
    for line in lines:
        if line[:1] in (" ", "\t") and last:
            headers[last] += f" {line.strip()}"
            continue
        name, colon, value = line.partition(":")
        if colon:
            last = name.strip().lower()
            headers[last] = f"{headers[last]}, {value.strip()}" if last in headers else value.strip()
    return headers


def _codes(reply: SavedReply) -> Iterator[str]:
    """Everything in the reply that is spelled like a code, the most specific first."""
    try:
        body = loads(reply.body)
    except (ValueError, RecursionError):
        # A page, a sentence or half a reply: the status has to do.
        body = None
    for place in _places(body):
        for key in _CODE_KEYS:
            value = place.get(key)
            if isinstance(value, str) and _CODE.fullmatch(name := value.rpartition("#")[2]):
                yield name
    if isinstance(body, Mapping) and isinstance(
        error := cast("Mapping[str, object]", body).get("error"), str
    ):
        yield from [error] if _CODE.fullmatch(error) else []
    named = reply.headers.get("x-amzn-errortype", "").partition(":")[0]
    yield from [named] if _CODE.fullmatch(named) else []


def _places(body: object) -> Iterator[Mapping[str, object]]:
    if isinstance(body, list) and body:
        body = cast("list[object]", body)[0]
    if not isinstance(body, Mapping):
        return
    top = cast("Mapping[str, object]", body)
    for key in ("error", "errors", "detail"):
        inner = top.get(key)
        if isinstance(inner, list) and inner:
            inner = cast("list[object]", inner)[0]
        if isinstance(inner, Mapping):
            yield cast("Mapping[str, object]", inner)
    yield top


def _wait(headers: Mapping[str, str], at: datetime | None) -> NotBefore | None:
    """The latest credible time that the headers name for a repeat."""
    waits: list[NotBefore] = []
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        seconds = _number(value)
        if seconds is not None:
            waits.append(NotBefore(after=seconds * unit, source=name))
        elif (until := _time(value)) is not None:
            after = max(0.0, (until - (at or datetime.now(UTC))).total_seconds())
            confidence = "medium" if at is None else "high"
            waits.append(NotBefore(after=after, at=until, source=f"{name} (date)", confidence=confidence))
    credible = [wait for wait in waits if wait.after <= _LONGEST_WAIT]
    return max(credible, key=lambda wait: wait.after, default=None)


def _number(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if isfinite(seconds) and seconds >= 0 else None


def _time(value: str | None) -> datetime | None:
    if not value:
        return None
    from email.utils import parsedate_to_datetime

    try:
        read = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)


def _status_words(status: int) -> str:
    from http import HTTPStatus

    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"status {status}"
