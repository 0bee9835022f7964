"""Moments and spans as people type and read them."""

import re
from datetime import UTC, datetime, timedelta

from failwell.cli.parser import Parser, usage_error

_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*(s|m|h|d|w)")
_LONGEST = 1e11
"""Seconds, about three thousand years. A larger number comes from a damaged row."""
_LONGEST_SPAN = 1_000_000_000
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}


def span(text: str, option: str, see: str) -> float:
    """Seconds of `90s`, `15m`, `12h`, `7d` or `2w`; `see` is the command that documents the option.

    Raises:
        Usage: it is none of them.
    """
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        hint = f"; did you mean `{text.strip()}s`?" if _SPAN.fullmatch(f"{text.strip()}s") else ""
        raise usage_error(f"`{option}` takes a span such as `90s`, `2h` or `7d`, not `{text}`{hint}", see=see)
    seconds = float(match[1]) * _SECONDS[match[2]]
    if seconds > _LONGEST_SPAN:
        raise usage_error(
            f"`{option}` takes a span of at most {_LONGEST_SPAN:,} seconds, 31 years, not `{text}`", see=see
        )
    return seconds


def add_answer_timeout(parser: Parser, command: str) -> None:
    """Declare `--answer-timeout` of a command."""
    see = f"failwell {command} --help"

    def seconds(text: str) -> float:
        value = span(text, "--answer-timeout", see)
        if not value:
            raise usage_error("`--answer-timeout` must be more than nothing", see=see)
        return value

    parser.add_argument(
        "--answer-timeout",
        metavar="SPAN",
        type=seconds,
        help="how long a question is shown, such as 90s; then it counts as a no, and a gate waits in the journal",
    )


def moment(text: str, option: str, now: float, see: str) -> float:
    """A moment: a span before now (`2h`), or a date with or without a time, in UTC unless it names a zone.

    Raises:
        Usage: it is neither.
    """
    if _SPAN.fullmatch(text.strip()):
        return now - span(text, option, see)
    try:
        read = datetime.fromisoformat(text.strip())
    except ValueError:
        raise usage_error(
            f"`{option}` takes a span such as `2h` or a date such as `2025-01-31`, not `{text}`", see=see
        ) from None
    return (read if read.tzinfo is not None else read.replace(tzinfo=UTC)).timestamp()


def start_time(at: str | None, delay: str | None, see: str) -> datetime | None:
    """When a job starts: the value of `--at` or of `--delay`; `None` without both.

    Raises:
        Usage: it is no time, or no span.
    """
    if delay is not None:
        return datetime.now(UTC) + timedelta(seconds=span(delay, "--delay", see))
    if at is None:
        return None
    try:
        read = datetime.fromisoformat(at.strip())
    except ValueError:
        hint = f"; `--delay {at.strip()}` takes a span" if _SPAN.fullmatch(at.strip()) else ""
        raise usage_error(
            f"`--at` takes a time such as `2025-01-31T18:00` or `2025-01-31T18:00+01:00`, not `{at}`{hint}",
            see=see,
        ) from None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def clock(at: float) -> str:
    """A moment as commands print it: in UTC, to the second; `?` for a number that is none."""
    moment = _utc(at)
    return "?" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%SZ")


def iso(at: float | None) -> str | None:
    """A moment as commands print it for programs; `None` for a number that is none."""
    moment = None if at is None else _utc(at)
    return None if moment is None else moment.isoformat(timespec="milliseconds")


def _utc(at: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(at, UTC)
    except (OverflowError, OSError, ValueError):
        # A damaged row must not break a listing.
        return None


def lasted(seconds: float | None) -> str:
    """A span as commands print it, in two units at most."""
    if seconds is None:
        return ""
    if not abs(seconds) < _LONGEST:
        return "?"
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
