"""Facts in, kind out: the rule table applied once, with the winner and those that came after it.

It does not know the provider. What tells a quota from a rate limit, or a missing model from a
missing file, is the same whoever says it.
"""

import re
from typing import NamedTuple

from failwell.adapters.codes import taught
from failwell.adapters.extract import NOT_SENT, Extract
from failwell.adapters.rules import CODES, DECISIVE, IMPLIED_STATUS, LADDER, WORDS, Rule

_MOST_RUNNERS = 3
_LONGEST = 8_000

PHASES: dict[str, Rule] = {
    **{
        phase: Rule(f"phase.{phase}", "provider.connection", "phase")
        for phase in ("pool", "dns", "connect", "proxy")
    },
    "tls": Rule("phase.tls", "provider.tls_failed", "phase"),
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


class Verdict(NamedTuple):
    """The rule that decided, and the next best that fitted as well."""

    rule: Rule
    runners: tuple[Rule, ...] = ()


def _index(rules: tuple[Rule, ...]) -> dict[str, tuple[tuple[int, Rule], ...]]:
    made: dict[str, list[tuple[int, Rule]]] = {}
    for place, rule in enumerate(rules):
        for code in rule.codes:
            made.setdefault(code, []).append((place, rule))
    return {code: tuple(found) for code, found in made.items()}


_BY_CODE = _index(CODES)
_BY_STATUS = {status: rule for rule in reversed((*DECISIVE, *LADDER)) for status in rule.statuses}
_DECIDES = {status for rule in DECISIVE for status in rule.statuses}


def classify(found: Extract) -> Verdict:
    """Which rule speaks for these facts."""
    if found.cause_bug is not None:
        return Verdict(_BUG)
    if (own := taught(found.codes)) is not None:
        return Verdict(own)
    if found.status is None and found.phase is not None and not _by_code(found, found.codes):
        # No reply, so the class is the client's own, and it calls a connection that never came about
        # a time-out just as well.
        return Verdict(_transport(found))
    fitting: list[Rule] = _by_code(found, (*found.codes, *_telling(found)))
    status = _status(found)
    ladder = _ladder(found, status)
    if not fitting:
        if status in _DECIDES:
            fitting.append(_BY_STATUS[status])
        else:
            fitting.extend(_by_words(found))
    if ladder is not None and ladder not in fitting:
        fitting.append(ladder)
    if not fitting:
        if found.phase is not None:
            return Verdict(_transport(found))
        if found.in_stream:
            return Verdict(_BROKEN_STREAM)
        # The status was good and the client complains all the same: it could not use the answer.
        return Verdict(_UNUSABLE if status is not None and 200 <= status < 300 else _UNKNOWN)
    winner = fitting[0]
    return Verdict(winner, tuple(rule for rule in fitting[1:] if rule.kind != winner.kind)[:_MOST_RUNNERS])


def _transport(found: Extract) -> Rule:
    phase = found.phase or "read"
    if phase in NOT_SENT:
        return PHASES[phase]
    if found.in_stream:
        return _BROKEN_STREAM
    return PHASES[phase]


def _by_code(found: Extract, codes: tuple[str, ...]) -> list[Rule]:
    hits = {place: rule for code in codes for place, rule in _BY_CODE.get(code, ())}
    if not hits:
        return []
    low = _low(found)
    return [hits[place] for place in sorted(hits) if _says(hits[place], low)]


def _telling(found: Extract) -> tuple[str, ...]:
    """The class names that say more than the status does; most only repeat it."""
    if found.status is None:
        return found.names
    return tuple(name for name in found.names if name not in IMPLIED_STATUS)


def _by_words(found: Extract) -> list[Rule]:
    low = _low(found)
    if not low:
        return []
    for rule in WORDS:
        if _says(rule, low):
            return [rule]
    return []


def _low(found: Extract) -> str:
    """What the words of rules are looked for in: the message, lower-cased and no longer than any of theirs."""
    return found.message[:_LONGEST].lower()


def _says(rule: Rule, low: str) -> bool:
    if rule.pattern is not None and not (any(map(low.__contains__, rule.words)) and rule.pattern.search(low)):
        return False
    return rule.unless is None or rule.unless.search(low) is None


def _status(found: Extract) -> int | None:
    if found.status is not None and not (found.in_stream and found.status < 400):
        return found.status
    for name in (*found.codes, *found.names):
        if name in IMPLIED_STATUS:
            return IMPLIED_STATUS[name]
        if len(name) == 3 and name.isdecimal() and "400" <= name < "600":
            return int(name)
    return found.status


def _ladder(found: Extract, status: int | None) -> Rule | None:
    if status is None:
        return None
    if status == 404:
        # A model's provider that says no more means the model; of any other service nothing is known.
        if _MODEL.search(found.message) or (found.provider and not found.message.strip()):
            return _MISSING_MODEL
        return _MISSING_THING if _THING.search(found.message) else _MISSING_ROUTE
    if status < 400:
        return _NOT_AN_API if _is_page(found) else None
    return _BY_STATUS.get(status)


def _is_page(found: Extract) -> bool:
    kind = found.headers.get("content-type", "")
    return (
        "text/html" in kind
        or "mimetype: text/html" in found.message
        or found.message.lstrip()[:9].lower() == "<!doctype"
    )
