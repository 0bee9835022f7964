"""The ways to say how long to wait: each as headers, as members of a body, or as prose."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

FORMS: dict[str, float | None] = {
    "seconds": 7.0,
    "float": 7.5,
    "date": 30.0,
    "ms": 6.5,
    "reset-duration": 360.0,
    "reset-rfc3339": 45.0,
    "ratelimit-field": 55.0,
    "retryinfo": 28.0,
    "prose": 432.0,
    "epoch": 60.0,
    "epoch-ms": 90.0,
    "estimated-time": 20.0,
    "none": None,
    "garbage": None,
    "days": 274_579.0,
}
"""Form → the seconds it means; `None` for a form without a sensible meaning."""

IN_BODY = frozenset({"retryinfo", "estimated-time"})
"""Forms that only some bodies have a place for."""

EVERYWHERE = frozenset(FORMS) - IN_BODY
"""Forms that any reply can carry."""


@dataclass(frozen=True, slots=True)
class Wait:
    """One delay in one form."""

    form: str
    seconds: float | None = None
    headers: tuple[tuple[str, str], ...] = ()
    prose: str = ""
    """A sentence for the message, with a space before it."""


def tell(form: str, now: datetime, vendor: str = "x", delay: float | None = None) -> Wait:
    """The wait of `form`, counted from `now`; `vendor` is the first word of its window headers.

    `delay` replaces the seconds that the form usually means, where it means any.
    """
    seconds = FORMS[form]
    if delay is not None and seconds is not None:
        seconds = delay
    if form == "prose":
        return Wait(form, seconds, prose=f" Please try again in {_span(seconds or 0)}.")
    return Wait(form, seconds, _headers(form, now + timedelta(seconds=seconds or 0), vendor, seconds or 0))


def _span(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:.0f}m{rest:g}s" if minutes else f"{rest:g}s"


def _headers(form: str, at: datetime, vendor: str, seconds: float) -> tuple[tuple[str, str], ...]:
    match form:
        case "seconds" | "float":
            return (("retry-after", f"{seconds:g}"),)
        case "date":
            return (("retry-after", format_datetime(at.astimezone(UTC), usegmt=True)),)
        case "ms" | "days":
            return (("retry-after-ms", f"{seconds * 1000:.0f}"),)
        case "garbage":
            return (("retry-after", "soon"),)
        case "reset-duration":
            return _window(vendor, _span(seconds))
        case "reset-rfc3339":
            return _window(vendor, at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"))
        case "ratelimit-field":
            return (("ratelimit-policy", '"api";q=100;w=300'), ("ratelimit", f'"api";r=0;t={seconds:.0f}'))
        case "epoch" | "epoch-ms":
            stamp = at.timestamp() * (1000 if form == "epoch-ms" else 1)
            return (("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", str(round(stamp))))
        case _:
            return ()


def _window(vendor: str, reset: str) -> tuple[tuple[str, str], ...]:
    if vendor == "anthropic":
        stem = "anthropic-ratelimit-requests"
        return ((f"{stem}-limit", "50"), (f"{stem}-remaining", "0"), (f"{stem}-reset", reset))
    return (
        ("x-ratelimit-limit-requests", "60"),
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", reset),
    )


def retry_details(wait: Wait) -> list[dict[str, Any]]:
    """The wait as a google.rpc detail, where that is its form."""
    if wait.form != "retryinfo":
        return []
    return [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{wait.seconds:.0f}s"}]
