"""Moments and spans as people type and read them."""

import re
from datetime import UTC, datetime

from failwell.apps.cli.parser import wrong

_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*(s|m|h|d|w)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_SEE = "failwell runs --help"


def span(text: str, option: str, see: str = _SEE) -> float:
    """Seconds of `90s`, `15m`, `12h`, `7d` or `2w`; `see` is where more is told about the option.

    Raises:
        Usage: it is none of them.
    """
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        meant = f"; did you mean `{text.strip()}s`?" if _SPAN.fullmatch(f"{text.strip()}s") else ""
        raise wrong(f"`{option}` takes a span such as `90s`, `2h` or `7d`, not `{text}`{meant}", see=see)
    return float(match[1]) * _SECONDS[match[2]]


def moment(text: str, option: str, now: float) -> float:
    """A moment: so long before now (`2h`), or a date, with a time or without, in UTC unless it says otherwise.

    Raises:
        Usage: it is neither.
    """
    if _SPAN.fullmatch(text.strip()):
        return now - span(text, option)
    try:
        read = datetime.fromisoformat(text.strip())
    except ValueError:
        raise wrong(
            f"`{option}` takes a span such as `2h` or a date such as `2025-01-31`, not `{text}`", see=_SEE
        ) from None
    return (read if read.tzinfo is not None else read.replace(tzinfo=UTC)).timestamp()


def clock(at: float) -> str:
    """A moment in UTC, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def iso(at: float | None) -> str | None:
    """A moment as a program reads it."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def lasted(seconds: float | None) -> str:
    """A span in two units at most."""
    if seconds is None:
        return ""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} m" if hours else f"{minutes} m {rest} s"
