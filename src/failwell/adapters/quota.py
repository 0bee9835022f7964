"""Which window a limit counts in: what it counts, over how long."""

import re
from typing import NamedTuple

from failwell.adapters.extract import Extract, values_of

_UNITS = (
    ("spend", r"spend|billing|\$|usd|dollar|budget"),
    ("balance", r"credit|balance|prepaid|funds|payment|depleted"),
    ("concurrency", r"concurren|parallel|simultaneous|in flight|queue limit"),
    ("storage", r"storage|disk"),
    ("tokens", r"token|\btp[mdh]\b"),
    ("requests", r"request|quer(?:y|ies)|calls?\b|\brp[mdh]\b|predictions?"),
)
_WINDOWS = (
    ("second", r"per[-_ ]?second|/s\b|persecond"),
    ("minute", r"per[-_ ]?min|perminute|\b[tr]pm\b|/ ?min"),
    ("hour", r"per[-_ ]?hour|hourly|\b[tr]ph\b"),
    ("day", r"per[-_ ]?day|perday|daily|\b[tr]pd\b|tokens-per-day"),
    ("week", r"per[-_ ]?week|weekly"),
    ("month", r"per[-_ ]?month|monthly|permonth"),
)
_UNIT_RULES = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _UNITS)
_WINDOW_RULES = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _WINDOWS)


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
    text = f"{' '.join(found.codes)} {ids} {found.message[:2_000]}"
    unit = next((name for name, rule in _UNIT_RULES if rule.search(text)), None)
    if unit == "balance":
        return Window("balance", None)
    return Window(unit, next((name for name, rule in _WINDOW_RULES if rule.search(text)), None))
