"""A dialect: which scenarios a provider can show, its reply to each, and where the expected kind differs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

from failwell.errors.axes import Certainty
from failwell.errors.kind_registry import kind as registered
from failwell.testing.laboratory.delay_forms import EVERYWHERE, FORMS, tell
from failwell.testing.laboratory.lab_reply import Answer, Declined, LabCall, LabTurn, Reply
from failwell.testing.laboratory.scenario import BELOW, SCENARIOS, Truth

_SHORTEST_LONG_WAIT = 6 * 3600
"""Seconds after which a rate limit counts as a quota; the rules of `adapters.precedence` say the same."""


@dataclass(frozen=True, slots=True)
class Differs:
    """How the correct classification of a scenario differs for this provider."""

    kind: str | None = None
    certainty: Certainty | None = None
    wait: float | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one provider reports failures."""

    name: str
    title: str
    answers: Mapping[str, Answer]
    declines: Declined = field(default_factory=dict[str, str])
    differs: Mapping[str, Differs] = field(default_factory=dict[str, Differs])
    wait: str = "seconds"
    """The form in which this provider usually sends the delay."""
    forms: frozenset[str] = EVERYWHERE
    """The forms that can be requested."""
    vendor: str = "x"
    """The first word of its window headers."""
    streams_by_default: bool = False
    """Whether it streams by default."""
    refuse: Callable[[LabCall], Reply | None] | None = None
    """Its reply to a conversation that the provider does not accept, if the lab knows its rules."""
    scripted: Callable[[LabCall, LabTurn, int], Reply] | None = None
    """Its reply with the content of a script's turn; the number of the turn makes the ids."""

    def answer(self, scenario: str) -> Answer | None:
        """Its answer to `scenario`; `None` if it declines it."""
        own = self.answers.get(scenario)
        if own is not None or scenario in self.declines:
            return own
        below = BELOW.get(scenario)
        return None if below is None else below(self.answers["ok"])

    def reply(
        self, scenario: str, call: LabCall, form: str | None = None, delay: float | None = None
    ) -> Reply | None:
        """Its reply to one request; `form` is the form of the wait, and `delay` its seconds if not the usual ones."""
        answer = self.answer(scenario)
        if answer is None:
            return None
        if scenario == "rate_limited":
            wait = tell(form or self.wait, datetime.now(UTC), self.vendor, delay)
            return answer(replace(call, wait=wait))
        return answer(call)

    def truth(self, scenario: str, form: str | None = None, *, stream: bool = False) -> Truth:
        """The expected classification of `scenario` in this dialect, for a stream or a plain call."""
        row = SCENARIOS[scenario]
        known = row.streamed if stream and row.streamed is not None else row.truth
        own = self.differs.get(scenario)
        if own is not None:
            kind = own.kind or known.kind
            sure = own.certainty
            if sure is None:
                sure = registered(own.kind).certainty if own.kind else known.certainty
            return Truth(kind, sure, own.wait)
        if scenario == "rate_limited":
            wait = FORMS[form or self.wait]
            # A window that opens again after hours is a quota, whatever it is called.
            is_long = wait is not None and wait >= _SHORTEST_LONG_WAIT
            return replace(known, kind="provider.quota_exhausted" if is_long else known.kind, wait=wait)
        return known


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a provider says about a conversation that it does not accept."""

    message: str
    param: str | None = None
    """The member of the request, where the provider names one."""
    code: str | None = None
    """The provider's code, where it has one."""
    kind: str | None = None
    """The provider's type of the error, where it has several."""


def members(value: object) -> dict[str, Any]:
    """A JSON object, or an empty one if the value is something else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """A JSON list, or an empty one if the value is something else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def is_text(value: object) -> bool:
    """Whether the value is a string with at least one letter."""
    return isinstance(value, str) and value != ""
