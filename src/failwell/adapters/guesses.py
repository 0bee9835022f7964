"""Reads what all words of a row are most likely about, where the rules read nothing or only words."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from failwell.adapters.classification import Reading
from failwell.adapters.codes import is_documented
from failwell.adapters.facts import STRUCTURES, Facts
from failwell.adapters.rules import GENERIC
from failwell.adapters.saved.reading import (
    GENERAL_CLASSES,
    NO_LIBRARY,
    UNKNOWN_KINDS,
    VAGUE_CLASSES,
    read_facts,
    saved_facts,
    texts_of,
    unwrapped,
)
from failwell.adapters.words.text_model import CLEAR_LEAD, guess
from failwell.errors.kind_registry import kind as registered_kind

GUESS = "guess."
"""How the names of rules begin that took all words together."""
_LEAD = 0.0
"""How far a guess must lead that allows no repeat, in a row of a log."""
_OVERRIDING_LEAD = 2.5
"""How far one must lead that differs from what the rules read in words."""
_FEWEST_WORDS = 4
_DEFAULTS = frozenset(f"python.{name}" for name in VAGUE_CLASSES)
"""The rules of classes that do not even say whose mistake it was."""
_USED_FOR_ANYTHING = (400, 404, 422)
"""Statuses of which words may say more."""
_DENIALS = frozenset({"provider.auth", "provider.permission", "provider.quota_exhausted"})
"""Kinds that no guess turns into one that is repeated."""


def read_row(row: Mapping[str, Any], now: datetime | None = None) -> Reading:
    """The reading of one saved row: by its facts and the rules, and where those read nothing or only words, by all its words."""
    row = unwrapped(row)
    facts = saved_facts(row)
    return guessed(facts, read_facts(row, facts, now), text_of(row, facts))


def text_of(row: Mapping[str, Any], facts: Facts) -> str:
    """Everything that a row says in words."""
    return "\n".join(dict.fromkeys((facts.message, *texts_of(row))))


def guessed(facts: Facts, reading: Reading, text: str, *, least: float = _LEAD) -> Reading:
    """What a failure is most likely about by all its words, where the rules read nothing or only words.

    What the rules make of it is counted with the words, so a guess that differs is right far more often than they are.

    Args:
        facts: Those of what is known to be a failure: any text is most likely about something.
        reading: What the rules make of it.
        text: What is said.
        least: How far one kind must lead. One whose failures are repeated elsewhere, or that changes what a status says, must lead clearly.
    """
    first, status = reading.evidence[0], facts.status
    if not (reading.kind in UNKNOWN_KINDS or _is_event(facts, reading) or _is_soft(reading, status)):
        return reading
    if text.isascii() and len(set(text.split())) < _FEWEST_WORDS:
        return reading
    found = guess(text, facts.exception_type, (reading.kind, first.basis))
    if found is None or found.kind in UNKNOWN_KINDS:
        return reading
    category, of_rules = registered_kind(found.kind).category, registered_kind(reading.kind).category
    if category is of_rules:
        # The rules tell kinds of one category apart better.
        return reading
    # A `RuntimeError` is a bug in a program, and may be anything in a library.
    is_default = reading.rule in _DEFAULTS and facts.sdk not in NO_LIBRARY
    is_known = reading.kind not in UNKNOWN_KINDS and not is_default and not _is_event(facts, reading)
    is_bold = category.retryable or status is not None
    needed = CLEAR_LEAD if is_bold else max(least, _OVERRIDING_LEAD) if is_known else least
    if found.lead < needed or (category.retryable and reading.kind in _DENIALS):
        return reading
    is_reply = facts.body is not None or status is not None
    if is_reply and found.kind.startswith(("resource.", "internal.")):
        # A reply tells nothing about this machine.
        return reading
    if status is not None and found.kind not in GENERIC.get(status, ()):
        return reading
    rule = f"{GUESS}{found.kind.partition('.')[2]}"
    # What is only likely is no reason to do something twice.
    return Reading.from_rule(
        kind=found.kind, rule=rule, basis="message", saw="all words together", retryable=False
    )


def _is_event(facts: Facts, reading: Reading) -> bool:
    """Whether a server reported an error in a stream, and nothing of it was understood. A stream that only ends reports nothing."""
    return reading.rule == "provider.stream_broke_off" and isinstance(facts.body, STRUCTURES)


def _is_soft(reading: Reading, status: int | None) -> bool:
    """Whether the rules decided by words, by a code or class that nobody documents, or by a status that is used for anything."""
    first = reading.evidence[0]
    if status is not None:
        return status in _USED_FOR_ANYTHING and first.basis in ("status", "message")
    if first.basis == "message":
        # What is full or used up on this machine is said in few ways.
        return first.rule.startswith("provider.") and not reading.kind.startswith("resource.")
    if first.basis in ("code", "class"):
        is_denial = reading.kind in ("provider.auth", "provider.permission")
        return first.rule.startswith("provider.") and not is_documented(first.saw) and not is_denial
    return first.rule.startswith("python.") and first.rule.removeprefix("python.") in GENERAL_CLASSES
