"""Whether something happens for the first time within a while, over all processes that use a store of limits."""

from collections.abc import Mapping
from json import dumps, loads
from typing import Any

from failwell.calls.shared_limits__sharing import LimitStore
from failwell.calls.suppress import record_suppressed, suppressed
from failwell.errors.fault import Fault

_LOST = "the store of shared limits cannot be used, so every process counts for itself"


def is_first(store: LimitStore, name: str, seconds: float) -> bool:
    """Whether nobody has asked for `name` within `seconds`; also if the store cannot be used."""
    own = dumps(["first", name])
    answers: list[bool] = []

    def change(now: float, values: Mapping[str, str]) -> Mapping[str, str | None]:
        ends = _end_of(values.get(own))
        # A clock that was set back must not keep a name for longer than it was asked to be kept.
        answers[:] = [not now < ends <= now + seconds]
        if not answers[0]:
            return {}
        over = {
            other: None
            for other, text in values.items()
            if other.startswith('["first"') and _end_of(text) <= now
        }
        return {**over, own: dumps({"until": now + seconds})}

    try:
        store.change(change)
    except Fault as fault:
        record_suppressed(suppressed(fault, _LOST))
        return True
    return answers[0]


def _end_of(text: str | None) -> float:
    try:
        fields: Any = loads(text or "{}")
        return float(fields.get("until", 0.0))
    except (ValueError, TypeError, AttributeError):
        return 0.0
