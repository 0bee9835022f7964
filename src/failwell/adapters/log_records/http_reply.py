"""A saved HTTP reply becomes a report, whichever provider sent it.

Reads what `curl` prints and what people save as JSON. The rules see the whole reply; of its prose
nothing is kept.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from json import JSONDecodeError, loads
from typing import Any, cast

from failwell.adapters.log_records.log_record import classify
from failwell.errors.faults import Validation
from failwell.errors.lazy_regex import lazy_regex
from failwell.errors.report import ErrorReport

_STATUS_LINE = lazy_regex(r"HTTP/\d(?:\.\d)?[ \t]+(?P<status>\d{3})(?:[ \t].*)?$")
_MOST_HEADERS = 1_000
"""Lines of headers that are read; no server sends more, and joining them takes time."""


@dataclass(frozen=True, slots=True)
class SavedReply:
    """One HTTP reply as it was saved: header names lower-cased, the body undecoded."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: str = ""


def parse_reply(text: str) -> SavedReply:
    """A reply to build a report of, from `curl -i` or `curl -v` output, or from JSON with `status`, `headers` and `body`.

    Of several replies in a row (a proxy's, a redirect's) the last is read.

    Raises:
        Validation: there is no status line, and no JSON object with a `status`.
    """
    if text.lstrip().startswith("{"):
        return _from_json(text)
    lines = list(_reply_lines(text))
    starts = dict.fromkeys(number for number, line in enumerate(lines) if _STATUS_LINE.match(line))
    if not starts:
        raise Validation(
            kind="validation.shape_invalid",
            message="the text has no status line such as `HTTP/1.1 429 Too Many Requests`",
        )
    start = next(iter(starts))
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
    """What `reply` means, by the rules that judge a live one."""
    row = {
        "provider": provider,
        "transport": "http",
        "http_status": reply.status,
        "headers": reply.headers,
        "body": reply.body,
        "exception_class": "FailedReply",
    }
    return classify(row, model=model)


def _from_json(text: str) -> SavedReply:
    try:
        saved = loads(text)
    except (ValueError, RecursionError) as error:
        raise Validation(
            kind="validation.shape_invalid", message="the reply is not valid JSON", **_place(error)
        ) from error
    status = saved.get("status", saved.get("status_code"))
    if isinstance(status, str) and len(status) == 3 and status.isdecimal():
        status = int(status)
    if not isinstance(status, int) or not 100 <= status <= 599:
        raise Validation(
            kind="validation.shape_invalid",
            message="a saved reply needs a `status` between 100 and 599",
            fields_invalid=["status"],
        )
    body = saved.get("body", "")
    if not isinstance(body, str):
        from json import dumps

        body = dumps(body)
    return SavedReply(status, _json_headers(saved.get("headers")), body)


def _place(error: Exception) -> dict[str, Any]:
    if isinstance(error, JSONDecodeError):
        return {"details": {"line": error.lineno, "column": error.colno}}
    return {}


def _json_headers(headers: object) -> dict[str, str]:
    """Headers as an object, as pairs, or as objects with `name` and `value`."""
    pairs: list[tuple[object, object]] = []
    if isinstance(headers, Mapping):
        pairs = list(cast("Mapping[object, object]", headers).items())
    elif isinstance(headers, list):
        for item in cast("list[Any]", headers):
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
    for line in lines[:_MOST_HEADERS]:
        if line[:1] in (" ", "\t") and last:
            headers[last] += f" {line.strip()}"
            continue
        name, colon, value = line.partition(":")
        if colon:
            last = name.strip().lower()
            headers[last] = f"{headers[last]}, {value.strip()}" if last in headers else value.strip()
    return headers
