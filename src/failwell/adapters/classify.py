"""Facts in, kind out: the rule table applied once, with the winner and those that came after it.

It does not know the provider. What tells a quota from a rate limit, or a missing model from a
missing file, is the same for every provider.
"""

import re
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from failwell.adapters.facts import NOT_SENT, Facts, Phase, objects_of
from failwell.adapters.headers import allow_listed
from failwell.adapters.protocols.vendor_codes import scoped
from failwell.adapters.reading import Reading
from failwell.adapters.registrations import registered_rule
from failwell.adapters.rules import CLASSES, CODES, DECISIVE, IMPLIED_STATUS, LADDER, WORDS, Rule
from failwell.adapters.waits import wait_of
from failwell.adapters.word_index import first_match, matching
from failwell.fault.axes import Certainty
from failwell.fault.facts import DENYING, Evidence, ProviderMetadata, ResourceName, ResourceShortfall
from failwell.fault.registry import kind as registered_kind

_MOST_RUNNERS = 3
_LONGEST = 8_000
_MOST_NAME_RULES = 1024

PHASES: dict[str, Rule] = {
    **{
        phase: Rule(f"phase.{phase}", "provider.connection", "phase")
        for phase in ("pool", "dns", "connect", "proxy")
    },
    "tls": Rule("phase.tls", "provider.tls_failed", "phase"),
    "handles": Rule("phase.handles", "resource.file_handles", "phase"),
    **{
        phase: Rule(f"phase.{phase}", "provider.outcome_unknown", "phase")
        for phase in ("write", "read", "closed")
    },
}
_BUG = Rule("bug_in_a_hook", "internal.bug", "cause")
_BROKEN_STREAM = Rule("stream_broke_off", "provider.stream_interrupted", "phase")
_MISSING_MODEL = Rule("status_404", "provider.model_not_found", "status")
_MISSING_ROUTE = Rule("status_404.route", "provider.rejected", "status")
_MISSING_THING = Rule("status_404.thing", "provider.bad_request", "status")
_NOT_AN_API = Rule("page_instead_of_answer", "provider.rejected", "body")
_UNUSABLE = Rule("unusable_answer", "provider.output_invalid", "status")
_UNKNOWN = Rule("unrecognised", "provider.unknown", "default")

_MODEL = re.compile(r"\b(?:model|deployment|engine|publisher|application)s?\b", re.IGNORECASE)
_THING = re.compile(
    r"\b(?:thread|run|step|file|batch|cache|cached content|assistant|message|response|container|vector store|job|prediction"
    r"|conversation|document|fine-tun\w*|item|upload|webhook)s?\b",
    re.IGNORECASE,
)


class _NameRules(NamedTuple):
    """The rules and the status that follow from codes and class names alone."""

    rules: tuple[Rule, ...] = ()
    """The rows that name one of them, in the order of the table. A row may need words too."""
    status: int | None = None
    """The status that the first of them implies, if it implies one."""


def _index(rules: tuple[Rule, ...]) -> dict[str, tuple[int, ...]]:
    index: dict[str, tuple[int, ...]] = {}
    for place, rule in enumerate(rules):
        for code in rule.codes:
            index[code] = (*index.get(code, ()), place)
    return index


_BY_CODE = _index(CODES)
_KNOWN_CODES = _BY_CODE.keys() | IMPLIED_STATUS.keys()
_BY_STATUS = {status: rule for rule in reversed((*DECISIVE, *LADDER)) for status in rule.statuses}
_DECIDES = {status for rule in DECISIVE for status in rule.statuses}
_PASSING = frozenset(
    rule.kind
    for rule in (*CODES, *WORDS, *DECISIVE, *LADDER)
    if registered_kind(rule.kind).category.retryable
)
"""Kinds of the table whose category allows a repeat."""


def rules_for(facts: Facts) -> list[Rule]:
    """The rule that decides about these facts, followed by the next best that match as well."""
    if facts.cause_bug is not None:
        return [_BUG]
    if facts.codes and (registered := registered_rule(facts.codes)) is not None:
        return [registered]
    codes, phase, status = _codes(facts), facts.phase, facts.status
    low = facts.message[:_LONGEST].lower()
    if (
        status is None
        and phase is not None
        and not (codes and matching(_rules_by_name(codes, ()).rules, low))
    ):
        # No reply, so the class is the client's own, and it calls a connection that never came about
        # a time-out just as well.
        return [_transport(phase, in_stream=facts.in_stream)]
    rules, status = _by_name(facts, codes)
    matches = matching(rules, low) if rules else []
    ladder = _ladder(facts, status)
    if not matches:
        if status in _DECIDES:
            matches = [_BY_STATUS[status]]
        elif low and (by_words := first_match(low)) is not None and not _is_theirs(by_words, facts):
            matches = [by_words]
    if status in DENYING and matches:
        matches = [rule for rule in matches if not _is_overruled(rule, status)]
    if ladder is not None and ladder not in matches:
        matches.append(ladder)
    if len(matches) < 2:
        return matches or [_otherwise(facts, status)]
    winner = matches[0]
    return [winner, *[rule for rule in matches if rule.kind != winner.kind][:_MOST_RUNNERS]]


def _is_overruled(rule: Rule, status: int) -> bool:
    """Whether a 401 or 403 decides instead of `rule`, which allows a repeat or blames the content.

    A machine code may say that a 403 is a rate limit, as some vendors document. Words may not, and at a
    401 nothing may: who is not known is not told that the text was too long.
    """
    if rule.kind in _PASSING or rule.kind == "provider.context_too_long":
        return status == 401 or rule.basis != "code"
    return rule.kind == "provider.content_refused" and status == 401


def _is_theirs(rule: Rule, facts: Facts) -> bool:
    """Whether a reply mentions a bug. It is then a bug of the provider."""
    return rule.kind == _BUG.kind and (facts.body is not None or (facts.status or 0) >= 400)


def _by_name(facts: Facts, codes: tuple[str, ...]) -> tuple[tuple[Rule, ...], int | None]:
    """The rows that name a code or the class, and the status that counts."""
    status = facts.status
    if status is None:
        return _rules_by_name(codes, facts.names)
    if facts.in_stream and status < 400:
        status = _rules_by_name(codes, facts.names).status or status
    return _rules_by_name(codes, _specific_names(facts.names)).rules, status


def _otherwise(facts: Facts, status: int | None) -> Rule:
    """The rule for facts that no row fits."""
    if facts.phase is not None:
        return _transport(facts.phase, in_stream=facts.in_stream)
    if facts.in_stream:
        return _BROKEN_STREAM
    # The status was good and the client complains all the same: it could not use the answer.
    return _UNUSABLE if status is not None and 200 <= status < 300 else _UNKNOWN


def _transport(phase: Phase, *, in_stream: bool) -> Rule:
    return _BROKEN_STREAM if in_stream and phase not in NOT_SENT else PHASES[phase]


def _codes(facts: Facts) -> tuple[str, ...]:
    """The codes that the table knows, and numbers that may be a status."""
    codes = scoped(facts.provider, facts.codes)
    return tuple([code for code in codes if code in _KNOWN_CODES or len(code) == 3]) if codes else codes


@lru_cache(maxsize=_MOST_NAME_RULES)
def _rules_by_name(codes: tuple[str, ...], names: tuple[str, ...]) -> _NameRules:
    # Keyed by words of the table and names of classes alone: they come again in failures that differ in all else.
    places = {place for code in (*codes, *names) for place in _BY_CODE.get(code, ())}
    by_class = [rule for rule in CLASSES if not rule.codes.isdisjoint(names)]
    return _NameRules((*(CODES[place] for place in sorted(places)), *by_class), _implied((*codes, *names)))


def _implied(names: tuple[str, ...]) -> int | None:
    for name in names:
        if name in IMPLIED_STATUS:
            return IMPLIED_STATUS[name]
        if len(name) == 3 and name.isdecimal() and "400" <= name < "600":
            return int(name)
    return None


@lru_cache(maxsize=_MOST_NAME_RULES)
def _specific_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """The class names that are more specific than the status. Most only repeat it."""
    return tuple(name for name in names if name not in IMPLIED_STATUS)


def _ladder(facts: Facts, status: int | None) -> Rule | None:
    if status is None:
        return None
    if status == 404:
        # A model's provider that says no more means the model; of any other service nothing is known.
        if _MODEL.search(facts.message) or (facts.provider and not facts.message.strip()):
            return _MISSING_MODEL
        return _MISSING_THING if _THING.search(facts.message) else _MISSING_ROUTE
    if status < 400:
        return _NOT_AN_API if _is_page(facts) else None
    return _BY_STATUS.get(status)


def _is_page(facts: Facts) -> bool:
    kind = facts.headers.get("content-type", "")
    return (
        "text/html" in kind
        or "mimetype: text/html" in facts.message
        or facts.message.lstrip()[:9].lower() == "<!doctype"
    )


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


def window_of(facts: Facts, kind: str) -> dict[str, str]:
    """What a rate limit or a quota counts (`limited`) and over how long (`window`), where the reply names it."""
    units = _STOCK if kind == "provider.quota_exhausted" else _FLOW
    holders = () if facts.body is None or type(facts.body) is str else objects_of(facts.body)
    ids = [
        str(holder[key]).lower()
        for holder in holders
        if not _IDS.isdisjoint(holder)
        for key in holder
        if key in _IDS
    ]
    text = " ".join((*facts.codes, *ids, facts.message[:2_000])).lower()
    # Codes and ids are for programs; the sentence beside them often speaks of more.
    unit = _limited_unit(facts.codes) or _first(units, " ".join(ids)) or _first(units, text)
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
    for piece, pattern, meaning in signs if text else ():
        if piece in text and (pattern is None or pattern.search(text)):
            return meaning
    return None


_SIZE = r"(\d{1,15}(?:\.\d{1,6})?)\s?([KMGT](?:i?B)?\b|bytes)"
_NEEDED = re.compile(
    rf"(?:tried to allocate|requires? more system memory \(|needs|requires?|trying to allocate|attempting to reserve|\bused)\s?{_SIZE}",
    re.IGNORECASE,
)
_FREE = re.compile(
    rf"(?:of which {_SIZE} is free|{_SIZE} free\b|than is available \({_SIZE}|{_SIZE} (?:is |are )?available"
    rf"|available[: ]+{_SIZE}|\bused [\d.]+[KMGT] of {_SIZE} hbm)",
    re.IGNORECASE,
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
    needed, free = _NEEDED.search(message[:2_000]), _FREE.search(message[:2_000])
    if needed is None or free is None:
        return None
    return ResourceShortfall(measure, _megabytes(needed), _megabytes(free))


def _megabytes(match: re.Match[str]) -> float:
    groups = [group for group in match.groups() if group is not None]
    return round(float(groups[0]) * _MEGABYTES[groups[1][0].upper()], 2)


def needed_mb(message: str) -> float | None:
    """The requested size in megabytes, where the message gives that alone."""
    needed = _NEEDED.search(message[:2_000])
    return None if needed is None else _megabytes(needed)


_CODE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,59}")
_MOST_SENTENCES = 512
_new = object.__new__


def classify(facts: Facts, now: datetime | None = None) -> Reading:
    """The reading of one failed call: its kind with the evidence, a composed sentence, safe facts.

    The sentence is made of our words, the provider's name, the status and the code. Nothing that the
    provider or its SDK wrote in prose gets into it.
    """
    rules = rules_for(facts)
    rule = rules[0]
    wait, ignored = wait_of(facts, now)
    details: dict[str, Any] = window_of(facts, rule.kind) if rule.kind in LIMITS else {}
    if ignored:
        details["ignored_waits"] = list(ignored)
    code = _machine_code(facts.codes)
    headers = facts.headers
    # Called as a class, each would first have its keywords put into a dictionary and taken out again.
    metadata = _new(ProviderMetadata)
    ProviderMetadata.__init__(
        metadata,
        sdk=facts.sdk,
        exception_type=facts.exception_type or None,
        status_code=facts.status,
        code=code,
        request_id=facts.request_id,
        retry_after=None if wait is None else wait.after,
        headers=allow_listed(headers) if headers else {},
    )
    reading = _new(Reading)
    Reading.__init__(
        reading,
        kind=rule.kind,
        evidence=_evidence(facts, rules),
        message=_sentence(registered_kind(rule.kind).summary, facts.provider, facts.status, code),
        certainty=_in_stream(rule) if facts.in_stream else None,
        retryable=False if _is_forbidden(facts, rule) else None,
        provider=facts.provider,
        model=facts.model,
        provider_metadata=metadata,
        not_before=wait,
        resource_shortfall=shortfall_of(rule.kind, facts.message),
        details=details,
    )
    return reading


def _is_forbidden(facts: Facts, rule: Rule) -> bool:
    """Whether the reply forbids a repeat that the kind would allow."""
    if facts.headers.get("x-should-retry", "").lower() == "false":
        return True
    return rule.kind in _PASSING and _denies(facts)


def _denies(facts: Facts) -> bool:
    if facts.status is not None and facts.status >= 400:
        return facts.status in DENYING
    # No reply, or an error inside a good one: a class or a code may stand for the status.
    return _by_name(facts, _codes(facts))[1] in DENYING


def _evidence(facts: Facts, rules: list[Rule]) -> tuple[Evidence, ...]:
    rule = rules[0]
    first = _record(rule.name, rule.basis, _saw(facts, rule)[:200])
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


def _saw(facts: Facts, rule: Rule) -> str:
    if rule.codes:
        for code in chain(facts.codes, facts.names):
            if code in rule.codes:
                return code[:80]
    if rule.basis == "status" and facts.status is not None:
        return f"HTTP {facts.status}"
    if rule.basis == "phase":
        return facts.phase or "stream"
    return facts.exception_type or rule.basis


def _machine_code(codes: tuple[str, ...]) -> str | None:
    for code in codes:
        if code != "error" and _CODE.fullmatch(code) and not code.isdecimal():
            return code
    return None
