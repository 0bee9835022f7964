"""Builders for what acts: calls that fail as scripted, on a clock that the test owns."""

from collections.abc import Callable
from typing import Any

from failwell.errors.context import Ledger, ledger_of
from failwell.errors.facts import NotBefore
from failwell.errors.fault import Fault
from failwell.testing.builders import make_fault

Outcome = Any
_INTERRUPTS = (KeyboardInterrupt, SystemExit)


def told(seconds: float, source: str = "retry-after") -> NotBefore:
    """What a provider says about when to come back."""
    return NotBefore(after=seconds, source=source)


def overloaded(**changes: Any) -> Fault:
    return make_fault(kind="provider.overloaded", **changes)


def rate_limited(**changes: Any) -> Fault:
    return make_fault(kind="provider.rate_limited", **changes)


class Scripted:
    """A call that does one scripted thing after the other; the last one for ever."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes = outcomes
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    @property
    def count(self) -> int:
        return len(self.calls)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        outcome = self.outcomes[min(self.count, len(self.outcomes) - 1)]
        self.calls.append((args, kwargs))
        if outcome in _INTERRUPTS or isinstance(outcome, BaseException):
            raise outcome
        return outcome(*args, **kwargs) if callable(outcome) else outcome

    async def on_loop(self, *args: Any, **kwargs: Any) -> Any:
        return self(*args, **kwargs)


def caught(action: Callable[[], Any]) -> Exception:
    """What `action` raises."""
    try:
        action()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def ledger(error: BaseException) -> Ledger:
    """The ledger that must be on `error`."""
    found = ledger_of(error)
    assert found is not None
    return found


def even() -> float:
    """Luck that leaves every wait as it is."""
    return 0.5
