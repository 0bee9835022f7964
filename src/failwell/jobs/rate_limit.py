"""How often jobs of a capability may start: `10/min`, over all hosts of a store.

The generic cell rate algorithm: one number is stored for each capability, the time at which the next start is due if
starts come evenly. A start before its time is allowed as long as it is one of a burst.
"""

import re
from typing import NamedTuple

UNITS = {"s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
PATTERN = r"[1-9][0-9]{0,5}/(s|min|h|d)"
_EARLY = 1e-6
"""Seconds by which a start may come too early: two clocks of one machine differ by less."""


class RateLimit(NamedTuple):
    """How often jobs may start."""

    text: str
    interval: float
    """Seconds between two starts that come evenly."""
    burst: int = 1
    """How many starts may come at once after a pause."""


class Grant(NamedTuple):
    """The answer to a request for starts."""

    granted: int
    next_at: float
    """When the next start is allowed. Seconds since 1970."""
    due: float
    """The number to store."""


def rate_limit_of(text: str, burst: int = 1) -> RateLimit:
    """The limit that a manifest writes as `10/min`.

    Raises:
        ValueError: it is written otherwise.
    """
    if re.fullmatch(PATTERN, text) is None:
        raise ValueError(f"`{text}` is no rate such as `5/s`, `10/min`, `100/h` or `1000/d`")
    number, _, unit = text.partition("/")
    return RateLimit(text, UNITS[unit] / int(number), burst)


def take(limit: RateLimit, due: float | None, count: int, now: float) -> Grant:
    """Grant up to `count` starts; `due` is the stored number, or `None` if there is none."""
    tolerance = (limit.burst - 1) * limit.interval
    # A number beyond this comes from a clock that was set back, or from a slower limit; it must not block for long.
    latest = now + tolerance + limit.interval
    at = now if due is None else min(max(due, now), latest)
    granted = 0
    while granted < count and at - now <= tolerance + _EARLY:
        at += limit.interval
        granted += 1
    return Grant(granted, max(now, at - tolerance), at)
