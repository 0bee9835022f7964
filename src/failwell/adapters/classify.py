"""Facts in, reading out: the kind that the ranks decide, with its evidence and the safe facts around it.

It does not know the provider. What tells a quota from a rate limit, or a missing model from a
missing file, is the same for every provider.
"""

import re
from datetime import datetime
from functools import lru_cache
from typing import Any

from failwell.adapters.classification import Classification, Rule
from failwell.adapters.facts import Facts, ids_of
from failwell.adapters.precedence import is_denied, rules_for
from failwell.adapters.retry_after import wait_of
from failwell.errors.axes import Certainty
from failwell.errors.facts import Evidence, ProviderMetadata, ResourceName, ResourceShortfall
from failwell.errors.headers import allow_listed
from failwell.errors.kind_registry import kind as registered_kind
from failwell.errors.kinds_table import Kind
from failwell.errors.lazy_regex import lazy_regex

LIMITS = ("provider.rate_limited", "provider.quota_exhausted", "provider.overloaded")
"""Kinds whose replies name what is counted, and over how long."""


def _in_stream(rule: Rule) -> Certainty | None:
    """How far a call got that failed in the middle of a stream; a phase says that itself."""
    return Certainty.PARTIAL if rule.kind.startswith("provider.") and rule.basis != "phase" else None


_Sign = tuple[str, re.Pattern[str] | None, str]
"""A piece of text, a pattern that must match too (if the piece alone is not enough), and the meaning."""

_FLOW: tuple[_Sign, ...] = (
    *(
        (word, None, "concurrency")
        for word in ("concurren", "parallel", "simultaneous", "in flight", "queue limit")
    ),
    ("token", None, "tokens"),
    ("tp", lazy_regex(r"\btp[mdh]\b"), "tokens"),
    *((word, None, "requests") for word in ("request", "query", "queries", "prediction")),
    ("call", lazy_regex(r"calls?\b"), "requests"),
    ("rp", lazy_regex(r"\brp[mdh]\b"), "requests"),
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
    ("second", lazy_regex(r"per[-_ ]?second"), "second"),
    ("/s", lazy_regex(r"/s\b"), "second"),
    ("min", lazy_regex(r"per[-_ ]?min"), "minute"),
    ("/min", None, "minute"),
    ("/ min", None, "minute"),
    ("pm", lazy_regex(r"\b[tr]pm\b"), "minute"),
    ("hour", lazy_regex(r"per[-_ ]?hour"), "hour"),
    ("hourly", None, "hour"),
    ("ph", lazy_regex(r"\b[tr]ph\b"), "hour"),
    ("day", lazy_regex(r"per[-_ ]?day"), "day"),
    ("daily", None, "day"),
    ("pd", lazy_regex(r"\b[tr]pd\b"), "day"),
    ("week", lazy_regex(r"per[-_ ]?week"), "week"),
    ("weekly", None, "week"),
    ("month", lazy_regex(r"per[-_ ]?month"), "month"),
    ("monthly", None, "month"),
)
"""How windows are written, in full and in short, the shortest window first."""


def window_of(facts: Facts, kind: str) -> dict[str, str]:
    """What a rate limit or a quota counts (`limited`) and over how long (`window`), where the reply names it."""
    units = _STOCK if kind == "provider.quota_exhausted" else _FLOW
    ids = ids_of(facts.body)
    text = " ".join((*facts.codes, *ids, facts.message[:2_000])).lower()
    # Codes and ids are for programs; the sentence beside them often speaks of more.
    unit = (
        _limited_unit(facts.codes) or (_first(units, " ".join(ids)) if ids else None) or _first(units, text)
    )
    details = {} if unit is None else {"limited": unit}
    # A balance is a sum; no window passes that would fill it again.
    if unit != "balance":
        window = _first(_WINDOWS, text)
        if window is not None:
            details["window"] = window
    return details


def _limited_unit(codes: tuple[str, ...]) -> str | None:
    """What is counted, if a code is just that word."""
    for code in codes:
        if code in ("tokens", "requests"):
            return code
    return None


def _first(signs: tuple[_Sign, ...], text: str) -> str | None:
    """The meaning of the first sign that occurs in the text."""
    for piece, pattern, meaning in signs:
        if piece in text and (pattern is None or pattern.search(text)):
            return meaning
    return None


_SIZE = r"(\d{1,15}(?:\.\d{1,6})?)\s?([KMGT](?:i?B)?\b|bytes|B\b)"
_NEEDED = lazy_regex(
    rf"(?:tried to allocate|requires? more system memory \(|needs|requires?|trying to allocate"
    rf"|attempting to (?:reserve|allocate)|failed to allocate(?: request for)?|out of memory allocating|\bused)\s?{_SIZE}",
    re.IGNORECASE,
)
_FREE = lazy_regex(
    rf"(?:of which {_SIZE} is free|{_SIZE} free\b|than is available \({_SIZE}|{_SIZE} (?:is |are )?available"
    rf"|available[: ]+{_SIZE}|\bused [\d.]+[KMGT] of {_SIZE} hbm)",
    re.IGNORECASE,
)
_MPS_USE = lazy_regex(
    rf"MPS allocated: {_SIZE}(?:, other allocations: {_SIZE})?, max allowed: {_SIZE}", re.IGNORECASE
)
_MEGABYTES = {"B": 1 / 1024 / 1024, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}
_MEASURES: dict[str, ResourceName] = {
    "resource.gpu_memory": "gpu_vram_mb",
    "resource.system_memory": "system_ram_mb",
    "resource.disk": "disk_mb",
}


def shortfall_of(kind: str, message: str) -> ResourceShortfall | None:
    """What was needed and what there was, where the message gives both in numbers."""
    measure = _MEASURES.get(kind)
    if measure is None:
        return None
    text = message[:2_000]
    needed, free = needed_mb(text), _free_mb(text)
    return None if needed is None or free is None else ResourceShortfall(measure, needed, free)


def _free_mb(text: str) -> float | None:
    """The free memory in megabytes: as the message gives it, or what a limit leaves beside the memory in use."""
    free = _FREE.search(text)
    if free is not None:
        return _sizes_mb(free)[0]
    use = _MPS_USE.search(text)
    if use is None:
        return None
    *used, limit = _sizes_mb(use)
    return round(max(0.0, limit - sum(used)), 2)


def _sizes_mb(match: re.Match[str]) -> list[float]:
    """Every size of a match in megabytes, in order."""
    groups = [group for group in match.groups() if group is not None]
    return [
        round(float(number) * _MEGABYTES[unit[0].upper()], 2)
        for number, unit in zip(groups[::2], groups[1::2], strict=True)
    ]


def needed_mb(message: str) -> float | None:
    """The requested size in megabytes, where the message gives that alone."""
    needed = _NEEDED.search(message[:2_000])
    return None if needed is None else _sizes_mb(needed)[0]


_CODE = lazy_regex(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,59}")
_MOST_SENTENCES = 512
_FAILED_DEPENDENCY = 424


def classify(facts: Facts, now: datetime | None = None) -> Classification:
    """The reading of one failed call: its kind with the evidence, a composed sentence, safe facts.

    The sentence is made of our words, the provider's name, the status and the code. Nothing that the
    provider or its SDK wrote in prose gets into it.
    """
    wait, ignored = wait_of(facts, now)
    rules = rules_for(facts, wait)
    rule = rules[0]
    details: dict[str, Any] = window_of(facts, rule.kind) if rule.kind in LIMITS else {}
    if ignored:
        details["ignored_waits"] = list(ignored)
    known = registered_kind(rule.kind)
    code = _machine_code(facts.codes)
    headers = facts.headers
    metadata = ProviderMetadata(
        sdk=facts.sdk,
        exception_type=facts.exception_type or None,
        status_code=facts.status,
        code=code,
        request_id=facts.request_id,
        retry_after=None if wait is None else wait.after,
        headers=allow_listed(headers) if headers else {},
    )
    return Classification(
        kind=rule.kind,
        evidence=_evidence(facts, rules),
        message=_sentence(known.summary, facts.provider, facts.status, code),
        certainty=_in_stream(rule) if facts.in_stream else None,
        retryable=False if _is_forbidden(facts, known, rule) else None,
        provider=facts.provider,
        model=facts.model,
        provider_metadata=metadata,
        not_before=wait,
        details=details,
        resource_shortfall=shortfall_of(rule.kind, facts.message) if rule.kind in _MEASURES else None,
    )


def _is_forbidden(facts: Facts, known: Kind, rule: Rule) -> bool:
    """Whether the reply forbids a repeat that the kind would allow, or a 424 does not say what has to happen before one."""
    if facts.status == _FAILED_DEPENDENCY and rule.basis == "status":
        return True
    advice = facts.headers.get("x-should-retry")
    if advice is not None and advice.lower() == "false":
        return True
    return known.category.retryable and is_denied(facts)


def _evidence(facts: Facts, rules: list[Rule]) -> tuple[Evidence, ...]:
    rule = rules[0]
    first = _record(rule.name, rule.basis, (rule.saw or facts.exception_type or rule.basis)[:200])
    if len(rules) == 1:
        return (first,)
    return (first, *[_record(other.name, "runner_up", other.kind) for other in rules[1:]])


@lru_cache(maxsize=_MOST_SENTENCES)
def _record(name: str, basis: str, saw: str) -> Evidence:
    return Evidence(rule=f"provider.{name}", basis=basis, saw=saw)


@lru_cache(maxsize=_MOST_SENTENCES)
def _sentence(summary: str, provider: str | None, status: int | None, code: str | None) -> str:
    facts = [provider] if provider else []
    if status is not None:
        facts.append(f"HTTP {status}")
    if code is not None:
        facts.append(f"code `{code}`")
    suffix = f" ({', '.join(facts)})" if facts else ""
    return f"{summary.removesuffix('.')}{suffix}."


@lru_cache(maxsize=_MOST_SENTENCES)
def _machine_code(codes: tuple[str, ...]) -> str | None:
    for code in codes:
        if code != "error" and _CODE.fullmatch(code) and not code.isdecimal():
            return code
    return None
