"""The server-requested delay, in every form that providers use, with its source and its confidence.

Headers in seconds, fractions, dates, milliseconds and clock times; fields of a body; and prose. All of
them are read, the latest credible time wins, and nonsense is skipped and recorded.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple, cast

from failwell.adapters.facts import Facts, Objects, objects_of
from failwell.errors.facts import LONGEST_WAIT, Confidence, NotBefore
from failwell.errors.headers import lower_headers
from failwell.errors.lazy_regex import lazy_regex

_EPOCH = 1_000_000_000.0
"""A number beyond this is a time of day, not a wait: no server requests thirty years."""
_PLAIN = lazy_regex(r"[0-9]{1,15}(?:\.[0-9]{1,9})?(?:[eE][+-]?[0-9]{1,2})?")
_SPAN = lazy_regex(
    r"(?P<value>\d{1,12}(?:\.\d{1,9})?)\s?(?P<unit>milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)(?![a-z])",
    re.IGNORECASE | re.ASCII,
)
_PROSE = lazy_regex(
    r"(?:(?:try|retry)(?:ing)?(?: your request)?(?: again)?|wait|resets?(?: at)?|available|renews?|retry after|retrying)"
    r"[ :]{1,3}(?:again )?(?:in|after|for|within)?[ :]{0,3}(?:about |approximately |~)?"
    r"(?P<span>\d{1,12}(?:\.\d{1,9})?\s?(?:milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)(?![a-z])"
    r"(?:[ ,]{0,2}(?:and )?\d{1,6}(?:\.\d{1,9})?\s?(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])){0,4})",
    re.IGNORECASE | re.ASCII,
)
_INVITING = ("try", "wait", "reset", "availab", "renew")
"""Every sentence that names a wait contains one of these words."""
_FIELDS: dict[str, tuple[str, float | None, Confidence]] = {
    "retryDelay": ("retryDelay", None, "high"),
    "retry_delay": ("retryDelay", None, "high"),
    "retry_after_ms": ("retry_after_ms", 0.001, "high"),
    "retryAfterMs": ("retry_after_ms", 0.001, "high"),
    "retry_after": ("retry_after", None, "high"),
    "retryAfter": ("retry_after", None, "high"),
    "retry_after_seconds": ("retry_after", None, "high"),
    "estimated_time": ("estimated_time", 1.0, "medium"),
}
"""Members of a body that name a wait: what they are called here, their unit, and how far to trust them."""
_KEYS = frozenset({*_FIELDS, "headers"})
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_OUTRIGHT = {
    "retry-after-ms": 0.001,
    "x-ms-retry-after-ms": 0.001,
    "retry-after": 1.0,
    "x-amz-retry-after": 0.001,
    "grpc-retry-pushback-ms": 0.001,
}
"""Headers that name a wait, each with its unit in seconds."""
_FINER = frozenset(_OUTRIGHT) - {"retry-after"}
_RETRY_AFTER = "header retry-after"
_SURE: Confidence = "high"
_LONGEST_TEXT = 4_000
_LONGEST_VALUE = 64
_MOST_NAMES = 64
_MOST_VALUES = 8
_SHORTER_THAN_A_DATE = 10
"""A number with at most this many digits is below `_EPOCH`, so it is a number of seconds."""
LARGEST_SKEW = timedelta(days=1)
"""How far the provider's clock may be from ours; a `Date` beyond it is ignored."""
_VALUE = lazy_regex(r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6},\s)?(?:[^,]|,(?!\s))+", re.IGNORECASE)
"""One value of a header that was sent twice; the comma after a weekday belongs to an HTTP date."""
_WINDOW = lazy_regex(r'(?:"[^"]*"|[^",])+')
"""One member of a `RateLimit` field; a comma inside quotes does not end it."""
_RATELIMIT_T = lazy_regex(r"(?:^|[;,\s])(?:t|reset)\s*=\s*(\d{1,12})")
_RATELIMIT_R = lazy_regex(r"(?:^|[;,\s])(?:r|remaining)\s*=\s*(\d{1,12})")


class Wait(NamedTuple):
    """One statement about when to retry."""

    seconds: float
    source: str
    confidence: Confidence


class Waits(NamedTuple):
    """Every wait that the reply states, and those that are not credible."""

    waits: tuple[Wait, ...]
    nonsense: tuple[str, ...]

    @property
    def latest(self) -> Wait | None:
        """The statement that decides: the latest among the most trusted."""
        return max(self.waits, key=lambda wait: (_TRUST[wait.confidence], wait), default=None)


_TRUST: dict[Confidence, int] = {"low": 0, "medium": 1, "high": 2}


class _Statements:
    """The waits read so far, and the time at which the reply was sent.

    The provider's clock and ours may differ, so a time of day is measured on its clock where the reply
    shows it. That header is parsed only if needed: most waits are given in seconds.
    """

    __slots__ = ("_date", "_now", "is_sure", "nonsense", "waits")

    def __init__(self, date: str | None, now: datetime | None) -> None:
        self._date, self._now = date, now
        self.waits: list[tuple[int, float, str, Confidence]] = []
        """Trust, seconds, source and confidence of each. The greatest tuple decides."""
        self.nonsense: list[str] = []
        self.is_sure = False

    @property
    def now(self) -> datetime:
        """The provider's clock if the reply shows a credible time, else ours."""
        local = self._now or datetime.now(UTC)
        remote = instant(self._date or "")
        return local if remote is None or abs(remote - local) > LARGEST_SKEW else remote

    def add(self, source: str, seconds: float | None, confidence: Confidence) -> None:
        if seconds is None or not 0 <= seconds <= LONGEST_WAIT:
            self.nonsense.append(source)
        else:
            self.waits.append((_TRUST[confidence], seconds, source, confidence))
            if confidence == "high":
                self.is_sure = True


def wait_of(facts: Facts, now: datetime | None = None) -> tuple[NotBefore | None, tuple[str, ...]]:
    """The delay that a reply asks for, and the headers and fields that name a time that makes no sense."""
    nonsense: tuple[str, ...] = ()
    plain = _plain_wait(facts)
    if plain is not None:
        seconds, source, confidence = plain, _RETRY_AFTER, _SURE
    else:
        statements = _collect(facts.headers, facts.body, facts.message, now)
        nonsense, waits = tuple(statements.nonsense), statements.waits
        if not waits:
            return None, nonsense
        _, seconds, source, confidence = waits[0] if len(waits) == 1 else max(waits)
    return NotBefore(after=seconds, source=source, confidence=confidence), nonsense


def _plain_wait(facts: Facts) -> float | None:
    """The wait of a reply that names one only, as a number of seconds in a header: most do, and nothing has to be compared then."""
    headers = facts.headers
    value = headers.get("retry-after")
    if value is None or len(value) >= _SHORTER_THAN_A_DATE or not (value.isascii() and value.isdecimal()):
        return None
    if not headers.keys().isdisjoint(_FINER):
        return None
    body = facts.body
    if body is not None and type(body) is not str:
        for holder in body if type(body) is Objects else objects_of(body):
            if not _KEYS.isdisjoint(holder):
                return None
    seconds = float(value)
    return seconds if seconds <= LONGEST_WAIT else None


def read_waits(headers: Mapping[str, str], body: object, message: str, now: datetime | None = None) -> Waits:
    """Every wait in a reply's headers, body and message, as of `now`."""
    statements = _collect(headers, body, message, now)
    waits = tuple(Wait(seconds, source, confidence) for _, seconds, source, confidence in statements.waits)
    return Waits(waits, tuple(statements.nonsense))


def _collect(headers: Mapping[str, str], body: object, message: str, now: datetime | None) -> _Statements:
    statements = _Statements(headers.get("date"), now)
    if headers:
        _headers(headers, statements)
    if body is not None and type(body) is not str:
        for holder in body if type(body) is Objects else objects_of(body):
            if not _KEYS.isdisjoint(holder):
                _fields(holder, statements)
    if message and not statements.is_sure:
        _prose(message, statements)
    return statements


_CLOCK_SKEW = 60.0
"""Seconds by which a server's clock may be behind ours."""


def seconds_of(value: str, statements: _Statements, *, unit: float = 1.0) -> float | None:
    """A header's value: a number, an HTTP date, an ISO time, a clock time, or spans like `6m0s`.

    Of several values, as a proxy makes them by adding its own, the longest credible one counts.
    """
    if len(value) < _SHORTER_THAN_A_DATE and value.isascii() and value.isdecimal():
        return int(value) * unit
    if ", " in value:
        several = _VALUE.findall(value[:_LONGEST_TEXT])[:_MOST_VALUES]
        waits = [_seconds_of_one(text, statements, unit) for text in several]
        return max((wait for wait in waits if wait is not None and wait <= LONGEST_WAIT), default=None)
    return _seconds_of_one(value, statements, unit)


def _seconds_of_one(value: str, statements: _Statements, unit: float) -> float | None:
    text = value.strip().strip('"')
    if len(text) > _LONGEST_VALUE:
        return None
    if _PLAIN.fullmatch(text):
        number = float(text)
        if unit == 1.0 and number >= _EPOCH:
            stamp = number / 1000 if number >= _EPOCH * 1000 else number
            delay = stamp - statements.now.timestamp()
            # A time that is long past is none that a server has asked for; a delay of zero would make a loop hot.
            return None if delay < -_CLOCK_SKEW else max(0.0, delay)
        return number * unit
    return _spans(text) if _SPAN.match(text) else _date(text, statements)


def _headers(headers: Mapping[str, str], statements: _Statements, where: str = "header") -> None:
    outright, resets = _names_of_times(tuple(headers))
    is_outright = False
    for name, unit in outright:
        if not (value := headers[name]):
            continue
        seconds = seconds_of(value, statements, unit=unit)
        # A reply with both often has a zero in the finer one; the coarser then says the truth.
        if seconds == 0 and unit != 1.0 and headers.get("retry-after"):
            continue
        is_outright = is_outright or seconds is not None
        statements.add(f"{where} {name}", seconds, "high" if where == "header" else "medium")
    if not is_outright and (resets or "ratelimit" in headers):
        _windows(headers, resets, statements, where)


@lru_cache(maxsize=_MOST_NAMES)
def _names_of_times(names: tuple[str, ...]) -> tuple[list[tuple[str, float]], list[tuple[str, str]]]:
    """The headers that name a wait, each with its unit, and those with a reset, each with the one that has the remainder.

    The same names come again in every failure of a service, so they are looked through once.
    """
    outright = [(name, unit) for name, unit in _OUTRIGHT.items() if name in names]
    resets = [(name, beside) for name in names if "reset" in name and (beside := _beside(name)) in names]
    return outright, resets


def _windows(
    headers: Mapping[str, str], resets: list[tuple[str, str]], statements: _Statements, where: str
) -> None:
    """Add the resets of the windows that are used up. The reset of any other window is ignored."""
    if "ratelimit" in headers:
        limits = headers["ratelimit"][:_LONGEST_TEXT]
        # The field used to be one window with named members before it became a list of windows.
        for window in [limits] if "remaining=" in limits else _WINDOW.findall(limits):
            reset, rest = _RATELIMIT_T.search(window), _RATELIMIT_R.search(window)
            if reset and (rest is None or rest.group(1).strip("0") == ""):
                sure: Confidence = "high" if where == "header" else "medium"
                statements.add(f"{where} ratelimit", float(reset.group(1)), sure)
    for name, beside in resets:
        if _number(headers[beside]) == 0:
            seconds = seconds_of(headers[name], statements)
            if seconds != 0:
                statements.add(f"{where} {name}", seconds, "medium")


def _beside(reset: str) -> str | None:
    """The header with the remainder of the window whose reset is in `reset`, if there is one."""
    is_limit = "ratelimit" in reset.replace("rate-limit", "ratelimit")
    return reset.replace("reset", "remaining") if is_limit else None


def _fields(holder: Mapping[str, Any], statements: _Statements) -> None:
    for key, (source, unit, confidence) in _FIELDS.items():
        value = holder.get(key)
        if value is not None:
            seconds = _flexible(value, statements) if unit is None else _scaled(value, unit)
            statements.add(f"body {source}", seconds, confidence)
    inner = holder.get("headers")
    if isinstance(inner, dict):
        _headers(lower_headers(cast("dict[Any, Any]", inner)), statements, "body header")


def _prose(message: str, statements: _Statements) -> None:
    low = message[:_LONGEST_TEXT].lower()
    places: list[int] = []
    for word in _INVITING:
        # Most messages hold none of them, and this is the quickest way to see it.
        at = low.find(word) if word in low else -1
        while at >= 0:
            if word == "try" and low.startswith("re", max(0, at - 2)):
                places.append(max(0, at - 2))
            places.append(at)
            at = low.find(word, at + 1)
    # To try the pattern everywhere would cost more than all else that is done here.
    for at in sorted(places):
        match = _PROSE.match(low, at)
        if match:
            statements.add("message", _spans(match.group("span")), "medium")
            return


def _spans(text: str) -> float | None:
    total = sum(float(m.group("value")) * _UNITS[_unit(m.group("unit"))] for m in _SPAN.finditer(text))
    return total if _SPAN.search(text) else None


def _unit(word: str) -> str:
    low = word.lower()
    return "ms" if low.startswith(("ms", "mil")) else low[0]


def _date(text: str, statements: _Statements) -> float | None:
    at = instant(text)
    # A time that has passed means that the wait is over, or that a clock is wrong; both mean now.
    return None if at is None else max(0.0, (at - statements.now).total_seconds())


def instant(text: str) -> datetime | None:
    """An HTTP date or an ISO 8601 time, in UTC where it does not name a zone."""
    if not text:
        return None
    from email.utils import parsedate_to_datetime

    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            return None
    try:
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError:
        return None


def _flexible(value: object, statements: _Statements) -> float | None:
    if isinstance(value, int | float):
        return _scaled(value, 1.0)
    if isinstance(value, str):
        return seconds_of(value, statements)
    if isinstance(value, dict):
        duration = cast("dict[Any, Any]", value)
        seconds, nanos = duration.get("seconds", 0), duration.get("nanos", 0)
        full = _number(seconds) if isinstance(seconds, str) else _scaled(seconds, 1.0)
        fraction = _scaled(nanos, 1e-9)
        return None if full is None or fraction is None else full + fraction
    return None


def _scaled(value: object, unit: float) -> float | None:
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or not -_EPOCH * 1000 < value < _EPOCH * 1000
    ):
        return None
    return value * unit


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0
