"""Facts in, kind out: the rule table applied once, with the winner and those that came after it.

It does not know the provider. What tells a quota from a rate limit, or a missing model from a
missing file, is the same whoever says it.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from failwell.adapters.codes import taught
from failwell.adapters.extract import NOT_SENT, Extract, Phase
from failwell.adapters.rules import CODES, DECISIVE, IMPLIED_STATUS, LADDER, Rule
from failwell.adapters.word_index import first_said, fitting

_MOST_RUNNERS = 3
_LONGEST = 8_000
_MOST_NAMED = 1024

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


class _Named(NamedTuple):
    """What codes and class names alone say."""

    rules: tuple[Rule, ...] = ()
    """The rows that name one of them, in the order of the table; a row may still ask for words."""
    status: int | None = None
    """The status that the first of them stands for, where it stands for one."""


def _index(rules: tuple[Rule, ...]) -> dict[str, tuple[int, ...]]:
    made: dict[str, tuple[int, ...]] = {}
    for place, rule in enumerate(rules):
        for code in rule.codes:
            made[code] = (*made.get(code, ()), place)
    return made


_BY_CODE = _index(CODES)
_MEANT = _BY_CODE.keys() | IMPLIED_STATUS.keys()
_BY_STATUS = {status: rule for rule in reversed((*DECISIVE, *LADDER)) for status in rule.statuses}
_DECIDES = {status for rule in DECISIVE for status in rule.statuses}


def classify(found: Extract) -> Verdict:
    """Which rule speaks for these facts."""
    if found.cause_bug is not None:
        return Verdict(_BUG)
    if found.codes and (own := taught(found.codes)) is not None:
        return Verdict(own)
    codes, phase, status = _meant(found.codes), found.phase, found.status
    low = found.message[:_LONGEST].lower()
    if status is None and phase is not None and not (codes and fitting(_named(codes, ()).rules, low)):
        # No reply, so the class is the client's own, and it calls a connection that never came about
        # a time-out just as well.
        return Verdict(_transport(phase, in_stream=found.in_stream))
    rules, status = _by_name(found, codes)
    fits = fitting(rules, low) if rules else []
    ladder = _ladder(found, status)
    if not fits:
        if status in _DECIDES:
            fits = [_BY_STATUS[status]]
        elif low and (said := first_said(low)) is not None:
            fits = [said]
    if ladder is not None and ladder not in fits:
        fits.append(ladder)
    if not fits:
        return Verdict(_otherwise(found, status))
    winner = fits[0]
    if len(fits) == 1:
        return Verdict(winner)
    return Verdict(winner, tuple([rule for rule in fits if rule.kind != winner.kind][:_MOST_RUNNERS]))


def _by_name(found: Extract, codes: tuple[str, ...]) -> tuple[tuple[Rule, ...], int | None]:
    """The rows that name a code or the class, and the status that counts."""
    status = found.status
    if status is None:
        return _named(codes, found.names)
    if found.in_stream and status < 400:
        status = _named(codes, found.names).status or status
    return _named(codes, _telling(found.names)).rules, status


def _otherwise(found: Extract, status: int | None) -> Rule:
    """What is left to say where no row fits."""
    if found.phase is not None:
        return _transport(found.phase, in_stream=found.in_stream)
    if found.in_stream:
        return _BROKEN_STREAM
    # The status was good and the client complains all the same: it could not use the answer.
    return _UNUSABLE if status is not None and 200 <= status < 300 else _UNKNOWN


def _transport(phase: Phase, *, in_stream: bool) -> Rule:
    return _BROKEN_STREAM if in_stream and phase not in NOT_SENT else PHASES[phase]


def _meant(codes: tuple[str, ...]) -> tuple[str, ...]:
    """The codes that mean something to the table, numbers that may be a status among them."""
    return tuple([code for code in codes if code in _MEANT or len(code) == 3]) if codes else codes


@lru_cache(maxsize=_MOST_NAMED)
def _named(codes: tuple[str, ...], names: tuple[str, ...]) -> _Named:
    # Keyed by words of the table and names of classes alone: they come again in failures that differ in all else.
    places = {place for code in (*codes, *names) for place in _BY_CODE.get(code, ())}
    return _Named(tuple(CODES[place] for place in sorted(places)), _implied((*codes, *names)))


def _implied(names: tuple[str, ...]) -> int | None:
    for name in names:
        if name in IMPLIED_STATUS:
            return IMPLIED_STATUS[name]
        if len(name) == 3 and name.isdecimal() and "400" <= name < "600":
            return int(name)
    return None


@lru_cache(maxsize=_MOST_NAMED)
def _telling(names: tuple[str, ...]) -> tuple[str, ...]:
    """The class names that say more than the status does; most only repeat it."""
    return tuple(name for name in names if name not in IMPLIED_STATUS)


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
