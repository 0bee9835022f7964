"""Which window a limit counts in: what it counts, over how long."""

import re

from failwell.adapters.extract import Extract, objects_of

_Sign = tuple[str, re.Pattern[str] | None, str]
"""A piece of text, a pattern that must fit besides where the piece alone says nothing, and what that means."""

_FLOW: tuple[_Sign, ...] = (
    *(
        (word, None, "concurrency")
        for word in ("concurren", "parallel", "simultaneous", "in flight", "queue limit")
    ),
    ("token", None, "tokens"),
    ("tp", re.compile(r"\btp[mdh]\b"), "tokens"),
    *((word, None, "requests") for word in ("request", "query", "queries", "prediction")),
    ("call", re.compile(r"calls?\b"), "requests"),
    ("rp", re.compile(r"\brp[mdh]\b"), "requests"),
)
"""What a rate limit counts. Its sentence may name a page about billing, where one could buy more."""
_STOCK: tuple[_Sign, ...] = (
    *((word, None, "spend") for word in ("spend", "$", "usd", "dollar", "budget")),
    *((word, None, "balance") for word in ("credit", "balance", "prepaid", "funds", "payment", "depleted")),
    ("billing", None, "spend"),
    *((word, None, "storage") for word in ("storage", "disk")),
    *_FLOW,
)
"""What a quota counts. Sentences about money name tokens and requests as well, so money comes first."""
_WINDOWS: tuple[_Sign, ...] = (
    ("per", re.compile(r"per[-_ ]?second"), "second"),
    ("/s", re.compile(r"/s\b"), "second"),
    ("per", re.compile(r"per[-_ ]?min"), "minute"),
    ("/min", None, "minute"),
    ("/ min", None, "minute"),
    ("pm", re.compile(r"\b[tr]pm\b"), "minute"),
    ("per", re.compile(r"per[-_ ]?hour"), "hour"),
    ("hourly", None, "hour"),
    ("ph", re.compile(r"\b[tr]ph\b"), "hour"),
    ("per", re.compile(r"per[-_ ]?day"), "day"),
    ("daily", None, "day"),
    ("pd", re.compile(r"\b[tr]pd\b"), "day"),
    ("per", re.compile(r"per[-_ ]?week"), "week"),
    ("weekly", None, "week"),
    ("per", re.compile(r"per[-_ ]?month"), "month"),
    ("monthly", None, "month"),
)
"""How windows are written, in full and in short, the shortest window first."""
_IDS = frozenset({"quotaId", "quotaMetric", "quota_limit"})


def window_of(found: Extract, kind: str) -> dict[str, str]:
    """What a rate limit or a quota counts (`limited`) and over how long (`window`), as far as it says."""
    units = _STOCK if kind == "provider.quota_exhausted" else _FLOW
    held = () if found.body is None or type(found.body) is str else objects_of(found.body)
    ids = [
        str(holder[key]).lower()
        for holder in held
        if not _IDS.isdisjoint(holder)
        for key in holder
        if key in _IDS
    ]
    text = " ".join((*found.codes, *ids, found.message[:2_000])).lower()
    # Codes and ids are for programs; the sentence beside them often speaks of more.
    unit = _code(found.codes) or _first(units, " ".join(ids)) or _first(units, text)
    details = {} if unit is None else {"limited": unit}
    # A balance is a sum; no window passes that would fill it again.
    if unit != "balance":
        window = _first(_WINDOWS, text)
        if window is not None:
            details["window"] = window
    return details


def _code(codes: tuple[str, ...]) -> str | None:
    """What a code says is counted, where that is all it says."""
    for code in codes:
        if code in ("tokens", "requests"):
            return code
    return None


def _first(signs: tuple[_Sign, ...], text: str) -> str | None:
    """What the first sign that is in the text means."""
    for piece, pattern, meant in signs if text else ():
        if piece in text and (pattern is None or pattern.search(text)):
            return meant
    return None
