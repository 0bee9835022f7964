"""Which window a limit counts in: what it counts, over how long."""

import re
from typing import NamedTuple

from failwell.adapters.extract import Extract, values_of


class _Sign(NamedTuple):
    """How a text shows that it speaks of something: plain words, and words that need a pattern."""

    name: str
    words: tuple[str, ...]
    needle: str = ""
    """A piece of what the pattern finds, looked for first because that is cheap."""
    pattern: re.Pattern[str] | None = None

    def is_in(self, text: str) -> bool:
        if any(map(text.__contains__, self.words)):
            return True
        return self.pattern is not None and self.needle in text and self.pattern.search(text) is not None


def _per(window: str) -> tuple[str, ...]:
    return tuple(f"per{gap}{window}" for gap in ("", " ", "-", "_"))


_UNITS = (
    _Sign("spend", ("spend", "billing", "$", "usd", "dollar", "budget")),
    _Sign("balance", ("credit", "balance", "prepaid", "funds", "payment", "depleted")),
    _Sign("concurrency", ("concurren", "parallel", "simultaneous", "in flight", "queue limit")),
    _Sign("storage", ("storage", "disk")),
    _Sign("tokens", ("token",), "tp", re.compile(r"\btp[mdh]\b")),
    _Sign("requests", ("request", "query", "queries", "prediction")),
    _Sign("requests", (), "call", re.compile(r"calls?\b")),
    _Sign("requests", (), "rp", re.compile(r"\brp[mdh]\b")),
)
_WINDOWS = (
    _Sign("second", _per("second"), "/s", re.compile(r"/s\b")),
    _Sign("minute", (*_per("min"), "/min", "/ min"), "pm", re.compile(r"\b[tr]pm\b")),
    _Sign("hour", (*_per("hour"), "hourly"), "ph", re.compile(r"\b[tr]ph\b")),
    _Sign("day", (*_per("day"), "daily"), "pd", re.compile(r"\b[tr]pd\b")),
    _Sign("week", (*_per("week"), "weekly")),
    _Sign("month", (*_per("month"), "monthly")),
)


class Window(NamedTuple):
    """`tokens` per `minute`, `requests` per `day`, a `balance` without any window."""

    unit: str | None
    per: str | None

    def details(self) -> dict[str, str]:
        """What is known of it, for the report's details."""
        known = {"limited": self.unit, "window": self.per}
        return {name: value for name, value in known.items() if value is not None}


def window_of(found: Extract) -> Window:
    """The window that a rate limit or a quota speaks of, as far as it says."""
    ids = " ".join(str(value) for value in values_of(found.body, "quotaId", "quotaMetric", "quota_limit"))
    text = f"{' '.join(found.codes)} {ids} {found.message[:2_000]}".lower()
    unit = _first(_UNITS, text)
    return Window("balance", None) if unit == "balance" else Window(unit, _first(_WINDOWS, text))


def _first(signs: tuple[_Sign, ...], text: str) -> str | None:
    return next((sign.name for sign in signs if sign.is_in(text)), None)
