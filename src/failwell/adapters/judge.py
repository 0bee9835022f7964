"""Everything that decides about a failed call: its kind, what it ran out of, how far it got, when to come back.

What is said about it, and what is kept for the record, follows in `render`.
"""

from datetime import datetime
from typing import NamedTuple

from failwell.adapters.classify import classify
from failwell.adapters.extract import Extract
from failwell.adapters.quota import window_of
from failwell.adapters.rules import Rule
from failwell.adapters.waits import wait_of
from failwell.fault.axes import Certainty
from failwell.fault.facts import NotBefore

_LIMITS = ("provider.rate_limited", "provider.quota_exhausted", "provider.overloaded")


class Judgement(NamedTuple):
    """What was decided, and by which rule."""

    rule: Rule
    runners: tuple[Rule, ...]
    """Rules that fitted as well, the next best first."""
    window: dict[str, str]
    """What a limit counts, and over how long, as far as it says."""
    certainty: Certainty | None
    """How far the call got, where that does not follow from the kind."""
    wait: NotBefore | None
    ignored: tuple[str, ...]
    """Who named a wait that makes no sense."""
    forbidden: bool
    """The provider itself says that a repeat is of no use."""


def judge(found: Extract, now: datetime | None = None) -> Judgement:
    """Decide about these facts, as one who reads them `now`."""
    rule, runners = classify(found)
    wait, ignored = wait_of(found, now)
    return Judgement(
        rule,
        runners,
        window_of(found, rule.kind) if rule.kind in _LIMITS else {},
        _in_stream(rule) if found.in_stream else None,
        wait,
        ignored,
        found.headers.get("x-should-retry", "").lower() == "false",
    )


def _in_stream(rule: Rule) -> Certainty | None:
    """How far a call got that failed in the middle of a stream; a phase says that itself."""
    return Certainty.PARTIAL if rule.kind.startswith("provider.") and rule.basis != "phase" else None
