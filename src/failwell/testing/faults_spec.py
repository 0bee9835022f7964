"""The faults that a test can be run under, by name: `rate_limit`, `overflow:2`, `rate_limit@ms`, `overloaded`."""

from dataclasses import dataclass
from difflib import get_close_matches

from failwell.testing.laboratory.delay_forms import FORMS
from failwell.testing.laboratory.scenario import SCENARIOS

ALIASES = {
    "rate_limit": "rate_limited",
    "quota": "daily_quota",
    "overload": "overloaded",
    "overflow": "context_too_long",
    "stall": "slow_headers",
    "disconnect": "reset_after_read",
    "cut_stream": "broken_stream",
}
"""Short names → scenarios of the lab."""
_LASTING = frozenset(
    {
        "bad_key",
        "no_permission",
        "missing_model",
        "daily_quota",
        "empty_balance",
        "content_refused_in",
        "bad_schema",
    }
)
"""Scenarios that a repeat of the same request meets again."""


@dataclass(frozen=True, slots=True)
class FaultSpec:
    """One fault that is injected: what happens, and to how many calls."""

    name: str
    """As it was written."""
    scenario: str
    form: str | None = None
    times: int | None = 1
    """How many calls fail before one succeeds; `None` if all do."""

    def scenario_of(self, *, stream: bool) -> str:
        """The lab's scenario for a call: a stall comes after the first chunk of a stream."""
        return "slow_body" if self.scenario == "slow_headers" and stream else self.scenario


def fault_names() -> list[str]:
    """The names of all faults: the short ones, then the lab's scenarios."""
    return [*ALIASES, *(name for name in SCENARIOS if name != "ok" and name not in ALIASES.values())]


def parse_fault(text: str) -> FaultSpec:
    """The fault that `text` names: a name, `@form` for the form of a delay, `:N` or `:always` for the calls that fail.

    Raises:
        ValueError: it names none. The message lists them.
    """
    rest, colon, count = text.strip().partition(":")
    name, at, form = rest.partition("@")
    scenario = ALIASES.get(name, name)
    if scenario not in SCENARIOS or scenario == "ok":
        close = get_close_matches(name, fault_names(), n=1)
        hint = f"; did you mean `{close[0]}`?" if close else ""
        listed = ", ".join(fault_names())
        raise ValueError(
            f"no fault `{name}`{hint} There are: {listed}"
            if hint
            else f"no fault `{name}`; there are: {listed}"
        )
    if at and (scenario != "rate_limited" or form not in FORMS):
        raise ValueError(
            f"`{text}`: a form of the delay belongs to `rate_limit`, and is one of {', '.join(FORMS)}"
        )
    times: int | None = None if scenario in _LASTING else 1
    if colon:
        if count != "always" and not (count.isdecimal() and int(count) > 0):
            raise ValueError(f"`{text}`: after the colon comes the number of calls that fail, or `always`")
        times = None if count == "always" else int(count)
    elif scenario == "context_too_long":
        times = None
    return FaultSpec(text.strip(), scenario, form or None, times)


def parse_faults(text: str) -> list[FaultSpec]:
    """The faults of a list with commas.

    Raises:
        ValueError: one of them does not exist, or there is none.
    """
    faults = [parse_fault(part) for part in text.split(",") if part.strip()]
    if not faults:
        raise ValueError(f"no fault is named; there are: {', '.join(fault_names())}")
    return faults
