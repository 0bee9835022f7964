"""Which window a limit counts in: what it counts, over how long."""

import re

from failwell.adapters.extract import Extract, objects_of

_Sign = tuple[str, re.Pattern[str]]
"""A piece of text that alone says nothing, and the pattern that must fit where it is found."""

_UNITS: tuple[tuple[str, tuple[str, ...], tuple[_Sign, ...]], ...] = (
    ("spend", ("spend", "billing", "$", "usd", "dollar", "budget"), ()),
    ("balance", ("credit", "balance", "prepaid", "funds", "payment", "depleted"), ()),
    ("concurrency", ("concurren", "parallel", "simultaneous", "in flight", "queue limit"), ()),
    ("storage", ("storage", "disk"), ()),
    ("tokens", ("token",), (("tp", re.compile(r"\btp[mdh]\b")),)),
    (
        "requests",
        ("request", "query", "queries", "prediction"),
        (("call", re.compile(r"calls?\b")), ("rp", re.compile(r"\brp[mdh]\b"))),
    ),
)
"""What may be counted, words that say so, and signs."""
_PER = re.compile(r"per[-_ ]?(second|min|hour|day|week|month)")
"""How every window is written; each has a short form as well."""
_WINDOWS: tuple[tuple[str, str, tuple[str, ...], tuple[_Sign, ...]], ...] = (
    ("second", "second", (), (("/s", re.compile(r"/s\b")),)),
    ("minute", "min", ("/min", "/ min"), (("pm", re.compile(r"\b[tr]pm\b")),)),
    ("hour", "hour", ("hourly",), (("ph", re.compile(r"\b[tr]ph\b")),)),
    ("day", "day", ("daily",), (("pd", re.compile(r"\b[tr]pd\b")),)),
    ("week", "week", ("weekly",), ()),
    ("month", "month", ("monthly",), ()),
)
"""A window, what `_PER` calls it, and its short forms: words and signs."""
_IDS = frozenset({"quotaId", "quotaMetric", "quota_limit"})


def window_of(found: Extract) -> dict[str, str]:
    """What a rate limit or a quota counts (`limited`) and over how long (`window`), as far as it says."""
    held = () if found.body is None or type(found.body) is str else objects_of(found.body)
    ids = [
        str(holder[key]) for holder in held if not _IDS.isdisjoint(holder) for key in holder if key in _IDS
    ]
    text = " ".join((*found.codes, *ids, found.message[:2_000])).lower()
    unit = _unit(text)
    # A balance is a sum; no window passes that would fill it again.
    window = None if unit == "balance" else _window(text)
    details = {} if unit is None else {"limited": unit}
    if window is not None:
        details["window"] = window
    return details


def _unit(text: str) -> str | None:
    """The first thing that the text says is counted."""
    for unit, words, signs in _UNITS:
        for word in words:
            if word in text:
                return unit
        for piece, pattern in signs:
            if piece in text and pattern.search(text):
                return unit
    return None


def _window(text: str) -> str | None:
    """The shortest window that the text names, in full or by a short form."""
    named = _PER.findall(text) if "per" in text else ()
    for window, name, words, signs in _WINDOWS:
        if name in named:
            return window
        for word in words:
            if word in text:
                return window
        for piece, pattern in signs:
            if piece in text and pattern.search(text):
                return window
    return None
