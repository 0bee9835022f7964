"""Sentry's `before_send`: our fingerprint and fields in, everybody else's text out.

Sentry keeps messages, local variables, request bodies and headers, and its scrubber knows keys,
not sentences. Here an exception's value becomes the composed message, local variables go, and
of a request only what is on a list stays. Use it as `sentry_sdk.init(dsn=..., before_send=before_send)`.

Example:
    >>> from failwell.sentry import before_send
    >>> error = ConnectionRefusedError(111, "Connection refused")
    >>> event = before_send({"event_id": "1"}, {"exc_info": (type(error), error, None)})
    >>> event["tags"]["kind"]
    'provider.connection'
"""

from collections.abc import Callable, Iterator
from typing import Any, cast

from failwell.adapters.describe import describe
from failwell.delivery.logging import error_in
from failwell.delivery.paging import page_severity
from failwell.errors.causes import links
from failwell.errors.fault import is_fault
from failwell.errors.foreign_objects import safe_call
from failwell.errors.json_walk import map_texts
from failwell.errors.kind_registry import find_kind
from failwell.errors.redact import MARK, redact_text, redact_value
from failwell.errors.report import ErrorReport, Severity
from failwell.errors.safe_str import arguments_text, as_dict, sequence_of

__all__ = ["before_send"]

Event = Any
"""Sentry's event: a dictionary, typed differently in each of its versions."""

REQUEST_KEYS = frozenset({"method", "url"})
REQUEST_HEADERS = frozenset(
    {"accept", "content-length", "content-type", "host", "traceparent", "user-agent", "x-request-id"}
)
_FREE_FORM = ("extra", "message", "tags", "transaction", "user", "server_name", "spans")
_SOURCE_LINES = frozenset({"context_line", "pre_context", "post_context", "filename", "abs_path"})
_WITHHELD = "withheld"
_SHORTEST_QUOTE = 8


def before_send(event: Event, hint: dict[str, Any]) -> Event:
    """The event as it may leave. Never raises and never returns more than it was given.

    Args:
        event: Sentry's event; it is changed in place.
        hint: Sentry's hint, which holds the exception.
    """
    # The error path must not raise, nor send what it could not check.
    prepared = safe_call(_prepared, None, event, hint)
    if prepared is not None:
        return prepared
    allowed = {key: event[key] for key in ("event_id", "timestamp", "platform", "level") if key in event}
    return {**allowed, "message": "failwell could not check this event, so its content was withheld"}


def _prepared(event: Event, hint: dict[str, Any]) -> Event:
    error = error_in(hint.get("exc_info"))
    report = None if error is None else describe(error)
    quotes = _quotes(event, error)
    for key in _FREE_FORM:
        if key in event:
            event[key] = redact_value(_without(event[key], quotes))
    crumbs = _values(event.get("breadcrumbs"))
    if crumbs:
        event["breadcrumbs"] = {"values": [redact_value(_without(crumb, quotes)) for crumb in crumbs]}
    _keep_template(event, quotes)
    _keep_request(event)
    for stack in _stacks(event):
        for frame in stack.get("frames") or ():
            frame.pop("vars", None)
            for place in _SOURCE_LINES & frame.keys():
                frame[place] = redact_value(frame[place])
    contexts = event.setdefault("contexts", {})
    for name in contexts:
        contexts[name] = redact_value(contexts[name])

    values = _values(event.get("exception"))
    value_of = _values_of(report)
    for value in values:
        value["value"] = value_of(value.get("type"), value is values[-1])
        if isinstance(mechanism := value.get("mechanism"), dict):
            cast("dict[str, Any]", mechanism).pop("data", None)
    if report is not None:
        _say(event, report)
    return event


def _quotes(event: Event, error: BaseException | None) -> list[str]:
    """The texts of the exceptions, so that quotes of them elsewhere can be masked."""
    # As Sentry printed them, and as the built-in class prints their arguments: no `__str__` of theirs is called.
    texts = {value.get("value") for value in _values(event.get("exception"))}
    chain = [] if error is None else [error, *(link.error for link in links(error)[0])]
    texts |= {safe_call(arguments_text, "", link) for link in chain if not is_fault(link)}
    quotes = (text for text in texts if isinstance(text, str) and len(text) >= _SHORTEST_QUOTE)
    return sorted(quotes, key=len, reverse=True)


def _without(value: Any, quotes: list[str]) -> Any:
    """`value` without the quotes in its texts. What is neither text nor container is left for `redact_value` to name."""

    def mask(text: str) -> str:
        for quote in quotes:
            text = text.replace(quote, MARK)
        return text

    return map_texts(value, mask, keys=False)


def _say(event: Event, report: ErrorReport) -> None:
    """Add what a report says to the event for Sentry."""
    event["fingerprint"] = [report.fingerprint]
    severity = page_severity(report, "sentry")
    # An application that chose a lower level for the event keeps it.
    if event.get("level", "error") == "error":
        event["level"] = "fatal" if severity is Severity.CRITICAL else severity.value
    tags = {
        "kind": report.kind,
        "category": report.category.value,
        "provider": report.provider,
        "severity": report.severity.value,
    }
    event["tags"] = dict(event.get("tags") or {}) | {k: v for k, v in tags.items() if v is not None}
    event["contexts"]["failwell"] = report.view("operator")


def _values_of(report: ErrorReport | None) -> Callable[[object, bool], str]:
    """A function from an exception's type, and whether it is the outermost, to its value in the event."""
    kinds = {} if report is None else {cause.type: cause.kind for cause in report.causes}

    def value_of(name: object, outermost: bool) -> str:
        if report is None:
            return _WITHHELD
        if outermost:
            return report.message
        known = find_kind(kinds.get(name) or "") if type(name) is str else None
        return _WITHHELD if known is None else known.summary

    return value_of


def _keep_template(event: Event, quotes: list[str]) -> None:
    # The template is the program's own; parameters and the formatted line may quote exceptions.
    if isinstance(entry := event.get("logentry"), dict):
        template = cast("dict[str, Any]", entry).get("message")
        event["logentry"] = {
            "message": redact_text(_without(template, quotes)) if isinstance(template, str) else ""
        }


def _keep_request(event: Event) -> None:
    if not isinstance(event.get("request"), dict):
        return
    request = cast("dict[str, Any]", event["request"])
    headers = as_dict(request.get("headers")) or {}
    allowed = {key: redact_value(request[key]) for key in REQUEST_KEYS if key in request}
    allowed["headers"] = {
        name: redact_value(value)
        for name, value in headers.items()
        if type(name) is str and name.lower() in REQUEST_HEADERS
    }
    event["request"] = allowed


def _stacks(event: Event) -> Iterator[dict[str, Any]]:
    for place in ("exception", "threads"):
        for value in _values(event.get(place)):
            yield from (value[key] for key in ("stacktrace", "raw_stacktrace") if value.get(key))
    if event.get("stacktrace"):
        yield event["stacktrace"]


def _values(holder: Any) -> list[dict[str, Any]]:
    # Sentry's documents allow a bare list where its SDK writes `{"values": [...]}`.
    inner = cast("dict[str, Any]", holder).get("values") if isinstance(holder, dict) else holder
    return [value for value in sequence_of(inner) if isinstance(value, dict)]
