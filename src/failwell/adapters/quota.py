"""Which window a limit counts in: what it counts, over how long."""

import re

from failwell.adapters.extract import Extract, objects_of

_Sign = tuple[str, re.Pattern[str] | None, str]
"""A piece of text, a pattern that must fit where the piece alone says nothing, and what they stand for."""


def _words(name: str, *words: str) -> tuple[_Sign, ...]:
    return tuple((word, None, name) for word in words)


_UNITS: tuple[_Sign, ...] = (
    *_words("spend", "spend", "billing", "$", "usd", "dollar", "budget"),
    *_words("balance", "credit", "balance", "prepaid", "funds", "payment", "depleted"),
    *_words("concurrency", "concurren", "parallel", "simultaneous", "in flight", "queue limit"),
    *_words("storage", "storage", "disk"),
    *_words("tokens", "token"),
    ("tp", re.compile(r"\btp[mdh]\b"), "tokens"),
    *_words("requests", "request", "query", "queries", "prediction"),
    ("call", re.compile(r"calls?\b"), "requests"),
    ("rp", re.compile(r"\brp[mdh]\b"), "requests"),
)
_PER = re.compile(r"per[-_ ]?(second|min|hour|day|week|month)")
"""How every window is written; each has a short form as well."""
_WINDOWS: tuple[tuple[str, str, tuple[_Sign, ...]], ...] = (
    ("second", "second", (("/s", re.compile(r"/s\b"), "second"),)),
    ("minute", "min", (*_words("minute", "/min", "/ min"), ("pm", re.compile(r"\b[tr]pm\b"), "minute"))),
    ("hour", "hour", (*_words("hour", "hourly"), ("ph", re.compile(r"\b[tr]ph\b"), "hour"))),
    ("day", "day", (*_words("day", "daily"), ("pd", re.compile(r"\b[tr]pd\b"), "day"))),
    ("week", "week", _words("week", "weekly")),
    ("month", "month", _words("month", "monthly")),
)
"""A window, what `_PER` calls it, and its short forms."""
_IDS = frozenset({"quotaId", "quotaMetric", "quota_limit"})


def window_of(found: Extract) -> dict[str, str]:
    """What a rate limit or a quota counts (`limited`) and over how long (`window`), as far as it says."""
    held = () if found.body is None or type(found.body) is str else objects_of(found.body)
    ids = [
        str(holder[key]) for holder in held if not _IDS.isdisjoint(holder) for key in holder if key in _IDS
    ]
    text = " ".join((*found.codes, *ids, found.message[:2_000])).lower()
    unit = _first(_UNITS, text)
    # A balance is a sum; no window passes that would fill it again.
    window = None if unit == "balance" else _window(text)
    details = {} if unit is None else {"limited": unit}
    if window is not None:
        details["window"] = window
    return details


def _window(text: str) -> str | None:
    """The shortest window that the text names, in full or by a short form."""
    named = _PER.findall(text) if "per" in text else ()
    for window, name, short in _WINDOWS:
        if name in named or _first(short, text):
            return window
    return None


def _first(signs: tuple[_Sign, ...], text: str) -> str | None:
    """What the first sign that is in the text stands for."""
    for piece, pattern, name in signs:
        if piece in text and (pattern is None or pattern.search(text)):
            return name
    return None
